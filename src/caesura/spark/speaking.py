"""The consumer of a running Spark query speaks; the next epoch hears it, in every bucket.

What is said goes through the loop log, and what stands is kept beside it, so that both survive a restart.
"""

from __future__ import annotations

import json

from caesura.errors import CaesuraError, StreamError, closest
from caesura.expr import Expr
from caesura.feedback.predicates import patterns_of
from caesura.feedback.responder import assumed
from caesura.plan import Node, here
from caesura.punctuation import Intent, Pattern, Punctuation
from caesura.runtime.feedback import Spoken, gone
from caesura.runtime.fragment import SAY
from caesura.runtime.packet import Packet
from caesura.spark.looplog import LoopLog
from caesura.spark.worker import Job, as_batch

SPOKEN = "spoken.json"
Said = Pattern | Expr | bool


class Speaking:
    """What the consumer of a query has said."""

    def __init__(self, job: Job, outputs: dict[str, Node]) -> None:
        self._job, self._outputs = job, outputs
        self._spoken: dict[int, Spoken] = {}
        self._last = 0
        kept = LoopLog(job.loop).noted(SPOKEN) if job.loop else None
        if kept is not None:
            self._remember(json.loads(kept))

    def say(self, intent: Intent, said: Said, output: str | None) -> Spoken:
        """Tells the step behind an output something that stands until it is withdrawn."""
        name, patterns = self._read(said, output, intent.value)
        self._last += 1
        spoken = Spoken(self._last, intent, name, patterns)
        self._spoken[self._last] = spoken
        self._send(name, [Punctuation(p, intent, (("standing", True),)) for p in patterns])
        self._keep()
        return spoken

    def demand(self, said: Said, output: str | None) -> None:
        """Asks for what there is now; nothing stands afterwards."""
        name, patterns = self._read(said, output, "demand")
        self._send(name, [Punctuation(p, Intent.DEMANDED) for p in patterns])

    def withdraw(self, which: Spoken | int) -> None:
        """Takes something back; what has lost rows by it stays suppressed until it closes."""
        number = which if isinstance(which, int) else which.number
        spoken = self._spoken.pop(number, None)
        if spoken is None:
            names = ", ".join(f"#{n}" for n in self._spoken) or "none"
            error = StreamError(
                f"no feedback #{number} is standing.",
                remedy=f"It was withdrawn already, or never said. There are: {names}.",
            )
            raise error.at("withdraw", here())
        self._keep()
        if spoken.intent is Intent.ASSUMED:
            messages = [assumed(p, standing=True, withdrawn=True) for p in spoken.patterns]
        else:
            messages = [Punctuation(p, spoken.intent, (("withdrawn", True),)) for p in spoken.patterns]
        self._send(spoken.output, messages)

    def standing(self) -> list[str]:
        """What was said and not withdrawn."""
        return [
            f"{spoken}{'' if spoken.output in self._outputs else gone(spoken.output)}"
            for spoken in self._spoken.values()
        ]

    def _read(self, said: Said, output: str | None, step: str) -> tuple[str, tuple[Pattern, ...]]:
        if not self._job.loop:
            raise StreamError(
                "this query was started without a way back for what its consumer says.",
                remedy="Start it with feedback=True.",
            ).at(step, here())
        name = output or next(iter(self._outputs))
        if name not in self._outputs or (output is None and len(self._outputs) > 1):
            given = "the query has several outputs" if output is None else f"there is no output '{output}'"
            error = StreamError(f"{given}.", remedy=f"Name one. {closest(output or '', self._outputs)}")
            raise error.at(step, here())
        node = self._outputs[name]
        try:
            return name, tuple(p for p in patterns_of(said, node.schema, node.time) if not p.is_empty)
        except CaesuraError as error:
            raise error.at(node.step, here()) from None

    def _send(self, output: str, messages: list[Punctuation]) -> None:
        if output not in self._outputs:
            return
        stage = next(s for s in self._job.stages.stages if output in s.outputs)
        packets = [
            Packet(stage.number, SAY + output, bucket, "consumer", 0, {}, tuple(messages))
            for bucket in range(self._job.buckets)
        ]
        if messages:
            LoopLog(self._job.loop).ask(as_batch(packets, self._job.keys))

    def _keep(self) -> None:
        spoken = [
            [s.number, s.intent.value, s.output, [p.to_json() for p in s.patterns]]
            for s in self._spoken.values()
        ]
        LoopLog(self._job.loop).note(SPOKEN, json.dumps({"last": self._last, "spoken": spoken}))

    def _remember(self, kept: dict[str, object]) -> None:
        self._last = int(str(kept["last"]))
        for number, intent, output, patterns in kept["spoken"]:  # type: ignore[attr-defined]
            read = tuple(Pattern.from_json(p) for p in patterns)
            self._spoken[number] = Spoken(number, Intent(intent), output, read)
