"""The consumer of a running Spark query gives feedback; the next epoch takes it, in every bucket.

It goes through the loop log, and what stands is kept beside it, so that both survive a restart, and so that
several can give it: whoever started the query, and whoever knows its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from caesura.errors import CaesuraError, StreamError, closest
from caesura.feedback.messages import assumed
from caesura.feedback.predicates import Meant, patterns_of
from caesura.io.places import Place
from caesura.plan import Node, here
from caesura.punctuation import Intent, Pattern, Punctuation
from caesura.runtime.buckets.labels import FEEDBACK
from caesura.runtime.feedback.consumer import (
    StandingFeedback,
    fits,
    no_such_output,
    not_standing,
    number_of,
    still_suppressed,
)
from caesura.runtime.packets.packet import Packet
from caesura.spark.host.checkpoint import spark_folder
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import FeedbackTarget, FeedbackTargets, GivenFeedback, SuppressedRows
from caesura.spark.worker.bucket_keys import bucket_keys
from caesura.spark.worker.job import Job, as_batch

REMEDY = "Put back the file as it was; or remove it, start the query again and give the feedback anew."


def target_of(job: Job, output: str, node: Node) -> FeedbackTarget:
    """Who takes feedback on an output of a query that is being started."""
    stage = next(s.number for s in job.stages.stages if output in s.outputs)
    return FeedbackTarget(stage, node.step, node.schema, node.time)


class CheckpointFeedback:
    """The feedback that the consumers of a query have given."""

    def __init__(self, loop: str, buckets: int, outputs: Mapping[str, FeedbackTarget]) -> None:
        self._loop, self._buckets, self._outputs = loop, buckets, dict(outputs)
        self._standing: dict[int, StandingFeedback] = {}
        self._last = 0

    @staticmethod
    def of(job: Job, outputs: Mapping[str, Node]) -> CheckpointFeedback:
        """Feedback to a query that is being started; how to reach it is written down for others."""
        targets = {name: target_of(job, name, node) for name, node in outputs.items()}
        feedback = CheckpointFeedback(job.loop, job.buckets, targets)
        if job.loop:
            log, now = LoopLog(job.loop), FeedbackTargets(job.buckets, job.stages.readers, targets)
            before = log.load(FeedbackTargets.name, FeedbackTargets, REMEDY)
            log.save(FeedbackTargets.name, now)
            if before is not None and before.readers != now.readers:
                feedback._give_again()
        return feedback

    def _give_again(self) -> None:
        """Steps that others read now have forgotten their feedback; what stands is given once more."""
        with self._log.alone():
            self._recall()
            for standing in self._standing.values():
                if standing.intent is Intent.ASSUMED and standing.output in self._outputs:
                    schema = self._outputs[standing.output].schema
                    patterns = [p for p in standing.patterns if fits(p, schema)]
                    self._send(standing.output, [assumed(p, standing=True) for p in patterns])

    def repeat(self, messages: Iterable[tuple[str, Punctuation]]) -> None:
        """Lets the next epoch take what was said before; what stands of it is known already."""
        for output, message in messages:
            self._send(output, [message])

    @staticmethod
    def at(checkpoint: str | Path) -> CheckpointFeedback:
        """Feedback to the query that a checkpoint belongs to, from anywhere."""
        loop = str(spark_folder(Place.of(checkpoint)) / "loop")
        targets = LoopLog(loop).load(FeedbackTargets.name, FeedbackTargets, REMEDY)
        if targets is None:
            raise StreamError(
                f"no query takes feedback at '{checkpoint}'.",
                remedy="Give the folder that was checkpoint= of a query started with feedback=True, or with "
                "`caesura run --checkpoint FOLDER --feedback`.",
            )
        return CheckpointFeedback(loop, targets.buckets, targets.outputs)

    @property
    def reached(self) -> bool:
        """Whether the query was started with a way back for what its consumer says."""
        return bool(self._loop)

    @property
    def names(self) -> list[str]:
        """The outputs that feedback can be given on."""
        return list(self._outputs)

    def give(self, intent: Intent, what: Meant, output: str | None) -> StandingFeedback:
        """Gives feedback to the step behind an output; it stands until it is withdrawn."""
        name, patterns = self._read(what, output, intent.value)
        with self._log.alone():
            self._send(name, [Punctuation(p, intent, (("standing", True),)) for p in patterns])

            def add() -> StandingFeedback:
                self._last += 1
                self._standing[self._last] = StandingFeedback(self._last, intent, name, patterns)
                return self._standing[self._last]

            return self._update(add)

    def demand(self, what: Meant, output: str | None) -> None:
        """Asks for what there is now; nothing stands afterwards."""
        name, patterns = self._read(what, output, "demand")
        with self._log.alone():
            self._send(name, [Punctuation(p, Intent.DEMANDED) for p in patterns])

    def withdraw(self, which: StandingFeedback | int) -> None:
        """Takes something back; what has lost rows by it stays suppressed until it closes."""
        number = number_of(which)
        self._check("withdraw")
        with self._log.alone():

            def take() -> StandingFeedback:
                standing = self._standing.pop(number, None)
                if standing is None:
                    raise not_standing(number, self._standing)
                return standing

            standing = self._update(take)
            if standing.intent is Intent.ASSUMED:
                messages = [assumed(p, standing=True, withdrawn=True) for p in standing.patterns]
            else:
                messages = [
                    Punctuation(p, standing.intent, (("withdrawn", True),)) for p in standing.patterns
                ]
            self._send(standing.output, messages)

    def standing(self) -> list[str]:
        """Feedback that was given and not withdrawn, and what is still suppressed as of the last epoch."""
        if not self._loop:
            return []
        self._recall()
        given = [
            f"{standing}{'' if standing.output in self._outputs else no_such_output(standing.output)}"
            for standing in self._standing.values()
        ]
        log = self._log
        records = [log.load(name, SuppressedRows) for name in log.records(SuppressedRows.suffix)]
        lines = [still_suppressed(*entry) for record in records if record for entry in record.entries]
        return [*given, *dict.fromkeys(lines)]

    @property
    def _log(self) -> LoopLog:
        return LoopLog(self._loop)

    def _check(self, step: str) -> None:
        if not self._loop:
            raise StreamError(
                "this query was not started to take feedback.",
                remedy="Start it with feedback=True.",
            ).at(step, here())

    def _read(self, what: Meant, output: str | None, step: str) -> tuple[str, tuple[Pattern, ...]]:
        self._check(step)
        name = output or next(iter(self._outputs))
        if name not in self._outputs or (output is None and len(self._outputs) > 1):
            given = "the query has several outputs" if output is None else f"there is no output '{output}'"
            error = StreamError(f"{given}.", remedy=f"Name one. {closest(output or '', self._outputs)}")
            raise error.at(step, here())
        target = self._outputs[name]
        try:
            return name, tuple(p for p in patterns_of(what, target.schema, target.time) if not p.is_empty)
        except CaesuraError as error:
            raise error.at(target.step, here()) from None

    def _send(self, output: str, messages: list[Punctuation]) -> None:
        if output not in self._outputs or not messages:
            return
        packets = [
            Packet(self._outputs[output].stage, FEEDBACK + output, bucket, "consumer", 0, {}, tuple(messages))
            for bucket in range(self._buckets)
        ]
        self._log.add_feedback(as_batch(packets, bucket_keys(self._buckets)))

    def _update(self, change: Callable[[], StandingFeedback]) -> StandingFeedback:
        """Changes what stands, by whomever it was given meanwhile."""
        done: list[StandingFeedback] = []

        def changed(held: GivenFeedback | None) -> GivenFeedback:
            self._take(held)
            done.append(change())
            return GivenFeedback(self._last, list(self._standing.values()))

        self._log.update(GivenFeedback.name, GivenFeedback, changed, REMEDY)
        return done[-1]

    def _recall(self) -> None:
        """What stands, by whomever it was given."""
        self._take(self._log.load(GivenFeedback.name, GivenFeedback, REMEDY))

    def _take(self, held: GivenFeedback | None) -> None:
        standing = held or GivenFeedback()
        self._last = standing.last
        self._standing = {standing.number: standing for standing in standing.entries}
