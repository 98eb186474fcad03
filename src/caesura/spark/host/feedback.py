"""The consumer of a running Spark query speaks; the next epoch hears it, in every bucket.

What is said goes through the loop log, and what stands is kept beside it, so that both survive a restart,
and so that several can speak: whoever started the query, and whoever knows its checkpoint.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.errors import CaesuraError, StreamError, closest
from caesura.expr import Expr
from caesura.feedback.messages import assumed
from caesura.feedback.predicates import patterns_of
from caesura.plan import Node, here
from caesura.punctuation import Intent, Pattern, Punctuation
from caesura.runtime.buckets.labels import READERS, SAY
from caesura.runtime.feedback.consumer import StandingFeedback, fits, no_such_output, still_suppressed
from caesura.runtime.packets.packet import Packet
from caesura.spark.json_files import parsed
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.worker.bucket_keys import bucket_keys
from caesura.spark.worker.worker import SUPPRESSED, Job, as_batch

SPOKEN = "spoken.json"
LISTENERS = "listeners.json"
Said = Pattern | Expr | bool


@dataclass(frozen=True)
class Listener:
    """Who hears what is said of an output: a stage, and what there is to speak of."""

    stage: int
    step: str
    schema: pa.Schema
    time: pa.DataType

    @staticmethod
    def of(job: Job, output: str, node: Node) -> Listener:
        stage = next(s.number for s in job.stages.stages if output in s.outputs)
        return Listener(stage, node.step, node.schema, node.time)

    def to_json(self) -> list[object]:
        whole = self.schema.append(pa.field("", self.time)).serialize().to_pybytes()
        return [self.stage, self.step, b64encode(whole).decode("ascii")]

    @staticmethod
    def from_json(data: list[object]) -> Listener:
        whole = pa.ipc.read_schema(pa.py_buffer(b64decode(str(data[2]))))
        *columns, time = whole
        return Listener(int(str(data[0])), str(data[1]), pa.schema(columns), time.type)


HEARD = "Put back the file as it was; or remove it and start the query again, and say anew what shall stand."


def _told(log: LoopLog, loop: str, nothing: str, wants: tuple[str, ...] = ()) -> dict[str, Any]:
    """Who listens, as it was written down when the query was started."""
    text = log.noted(LISTENERS)
    told: dict[str, Any] = parsed(
        nothing if text is None else text, f"{loop}/{LISTENERS}", HEARD, wants=wants
    )
    return told


class Speaking:
    """What the consumers of a query have said."""

    def __init__(self, loop: str, buckets: int, outputs: Mapping[str, Listener]) -> None:
        self._loop, self._buckets, self._outputs = loop, buckets, dict(outputs)
        self._spoken: dict[int, StandingFeedback] = {}
        self._last = 0

    @staticmethod
    def of(job: Job, outputs: Mapping[str, Node]) -> Speaking:
        """The way to speak to a query that is being started; it is written down for others."""
        listeners = {name: Listener.of(job, name, node) for name, node in outputs.items()}
        speaking = Speaking(job.loop, job.buckets, listeners)
        if job.loop:
            log, readers = LoopLog(job.loop), job.stages.readers
            before = _told(log, job.loop, "{}").get(READERS, readers)
            told = {name: one.to_json() for name, one in listeners.items()}
            log.note(LISTENERS, json.dumps({"buckets": job.buckets, READERS: readers, "outputs": told}))
            if before != readers:
                speaking._say_again()
        return speaking

    def _say_again(self) -> None:
        """Steps that others read now have forgotten what they heard; what stands is said once more."""
        with self._log.alone():
            self._recall()
            for spoken in self._spoken.values():
                if spoken.intent is Intent.ASSUMED and spoken.output in self._outputs:
                    schema = self._outputs[spoken.output].schema
                    patterns = [p for p in spoken.patterns if fits(p, schema)]
                    self._send(spoken.output, [assumed(p, standing=True) for p in patterns])

    @staticmethod
    def at(checkpoint: str | Path) -> Speaking:
        """The way to speak to the query that a checkpoint belongs to, from anywhere."""
        loop = f"{checkpoint}/loop"
        if LoopLog(loop).noted(LISTENERS) is None:
            raise StreamError(
                f"nobody listens at '{checkpoint}'.",
                remedy="Give the folder that was checkpoint= of a query started with feedback=True, or with "
                "`caesura run --checkpoint FOLDER --feedback`.",
            )
        told = _told(LoopLog(loop), loop, "", wants=("outputs", "buckets"))
        listeners = {name: Listener.from_json(data) for name, data in told["outputs"].items()}
        return Speaking(loop, int(told["buckets"]), listeners)

    def say(self, intent: Intent, said: Said, output: str | None) -> StandingFeedback:
        """Tells the step behind an output something that stands until it is withdrawn."""
        name, patterns = self._read(said, output, intent.value)
        with self._log.alone():
            self._recall()
            self._last += 1
            spoken = StandingFeedback(self._last, intent, name, patterns)
            self._spoken[self._last] = spoken
            self._send(name, [Punctuation(p, intent, (("standing", True),)) for p in patterns])
            self._keep()
        return spoken

    def demand(self, said: Said, output: str | None) -> None:
        """Asks for what there is now; nothing stands afterwards."""
        name, patterns = self._read(said, output, "demand")
        with self._log.alone():
            self._send(name, [Punctuation(p, Intent.DEMANDED) for p in patterns])

    def withdraw(self, which: StandingFeedback | int) -> None:
        """Takes something back; what has lost rows by it stays suppressed until it closes."""
        number = which if isinstance(which, int) else which.number
        self._check("withdraw")
        with self._log.alone():
            self._recall()
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
        """What was said and not withdrawn, and what is still suppressed as of the last epoch."""
        if not self._loop:
            return []
        self._recall()
        said = [
            f"{spoken}{'' if spoken.output in self._outputs else no_such_output(spoken.output)}"
            for spoken in self._spoken.values()
        ]
        notes = (self._log.noted(name) or "[]" for name in self._log.notes(SUPPRESSED))
        lines = [still_suppressed(step, what) for text in notes for step, what in json.loads(text)]
        return [*said, *dict.fromkeys(lines)]

    @property
    def _log(self) -> LoopLog:
        return LoopLog(self._loop)

    def _check(self, step: str) -> None:
        if not self._loop:
            raise StreamError(
                "this query was started without a way back for what its consumer says.",
                remedy="Start it with feedback=True.",
            ).at(step, here())

    def _read(self, said: Said, output: str | None, step: str) -> tuple[str, tuple[Pattern, ...]]:
        self._check(step)
        name = output or next(iter(self._outputs))
        if name not in self._outputs or (output is None and len(self._outputs) > 1):
            given = "the query has several outputs" if output is None else f"there is no output '{output}'"
            error = StreamError(f"{given}.", remedy=f"Name one. {closest(output or '', self._outputs)}")
            raise error.at(step, here())
        listener = self._outputs[name]
        try:
            return name, tuple(p for p in patterns_of(said, listener.schema, listener.time) if not p.is_empty)
        except CaesuraError as error:
            raise error.at(listener.step, here()) from None

    def _send(self, output: str, messages: list[Punctuation]) -> None:
        if output not in self._outputs or not messages:
            return
        packets = [
            Packet(self._outputs[output].stage, SAY + output, bucket, "consumer", 0, {}, tuple(messages))
            for bucket in range(self._buckets)
        ]
        self._log.ask(as_batch(packets, bucket_keys(self._buckets)))

    def _keep(self) -> None:
        spoken = [
            [s.number, s.intent.value, s.output, [p.to_json() for p in s.patterns]]
            for s in self._spoken.values()
        ]
        self._log.note(SPOKEN, json.dumps({"last": self._last, "spoken": spoken}))

    def _recall(self) -> None:
        """What stands, by whomever it was said."""
        text = self._log.noted(SPOKEN)
        nothing = '{"last": 0, "spoken": []}'
        kept = parsed(nothing if text is None else text, f"{self._loop}/{SPOKEN}", HEARD)
        self._last, self._spoken = int(kept["last"]), {}
        for number, intent, output, patterns in kept["spoken"]:
            read = tuple(Pattern.from_json(p) for p in patterns)
            self._spoken[number] = StandingFeedback(number, Intent(intent), output, read)
