"""What lies in a loop log beside its packets: small typed records, each written by one owner.

| record | file | written by | read by |
| --- | --- | --- | --- |
| `IgnoredRows` | ``<stage>-<bucket>.ignored`` | the bucket | tasks that read a source |
| `SuppressedRows` | ``<stage>-<bucket>.suppressed`` | the bucket | whoever lists feedback |
| `PriorityRows` | ``<stage>-<bucket>.priority`` | the bucket | tasks that read a source |
| `SourceProgress` | ``<epoch>-<stage>.progress`` | the first bucket of the stage | tasks that read a source |
| `GivenFeedback` | ``feedback.json`` | whoever gives feedback, alone | the same |
| `FeedbackTargets` | ``feedback_targets.json`` | the driver, at the start | whoever gives feedback |

A record is JSON of the form that its class declares. A file that is cut off or was changed by hand is named.

>>> SourceProgress({"clicks": 7}).to_json(), SourceProgress.name(12, 1)
({'clicks': 7}, '000000000012-1.progress')
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import pyarrow as pa

from caesura.punctuation import Intent, Pattern
from caesura.runtime.buckets.labels import READERS
from caesura.runtime.feedback.consumer import StandingFeedback

EPOCHS_REMEMBERED = 8
ByLabel = Mapping[str, Sequence[Pattern]]
"""Patterns by the exchange that rows come by."""


class LogRecord(Protocol):
    """A record of the log."""

    wants: ClassVar[tuple[str, ...]]
    """The keys that its JSON must have."""

    def to_json(self) -> Any: ...

    @classmethod
    def from_json(cls, data: Any) -> Self: ...


@dataclass(frozen=True)
class IgnoredRows:
    """What a bucket stops at its gates, as agreed to by the readers that there were."""

    readers: str = ""
    patterns: ByLabel = field(default_factory=dict)
    wants: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def name(stage: int, bucket: int) -> str:
        return f"{stage}-{bucket}.ignored"

    def to_json(self) -> Any:
        return {READERS: self.readers, **patterns_to_json(self.patterns)} if self.patterns else {}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        readers = data.pop(READERS, "")
        return cls(readers, patterns_from_json(data))


@dataclass(frozen=True)
class SuppressedRows:
    """By step, what a bucket keeps back after a withdrawal."""

    entries: Sequence[tuple[str, str]] = ()
    suffix: ClassVar[str] = ".suppressed"
    wants: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def name(cls, stage: int, bucket: int) -> str:
        return f"{stage}-{bucket}{cls.suffix}"

    def to_json(self) -> Any:
        return [list(entry) for entry in self.entries]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls([(step, what) for step, what in data])


@dataclass(frozen=True)
class PriorityRows:
    """What a bucket wanted first, from which epoch on; the last changes of it."""

    changes: Sequence[tuple[int, ByLabel]] = ()
    wants: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def name(stage: int, bucket: int) -> str:
        return f"{stage}-{bucket}.priority"

    def before(self, epoch: int) -> ByLabel:
        """What was wanted as of the epochs before one: an epoch that runs again finds the same."""
        return next((patterns for at, patterns in reversed(self.changes) if at < epoch), {})

    def at(self, epoch: int, patterns: ByLabel) -> PriorityRows:
        """The same, with what is wanted from an epoch on."""
        earlier = [change for change in self.changes if change[0] < epoch]
        if patterns_to_json(self.before(epoch)) != patterns_to_json(patterns):
            earlier.append((epoch, patterns))
        return PriorityRows(earlier[-EPOCHS_REMEMBERED:])

    def to_json(self) -> Any:
        return [[epoch, patterns_to_json(patterns)] for epoch, patterns in self.changes]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls([(epoch, patterns_from_json(patterns)) for epoch, patterns in data])


@dataclass(frozen=True)
class SourceProgress:
    """How far the sources that enter at a stage have come, by their fingerprints."""

    reached: Mapping[str, int] = field(default_factory=dict)
    wants: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def name(epoch: int, stage: int) -> str:
        return f"{epoch:012d}-{stage}.progress"

    def to_json(self) -> Any:
        return dict(self.reached)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(data)


@dataclass(frozen=True)
class GivenFeedback:
    """The feedback that consumers gave and did not withdraw, and the last number that was given."""

    last: int = 0
    entries: Sequence[StandingFeedback] = ()
    name: ClassVar[str] = "feedback.json"
    wants: ClassVar[tuple[str, ...]] = ("last", "feedback")

    def to_json(self) -> Any:
        some = [[s.number, s.intent.value, s.output, [p.to_json() for p in s.patterns]] for s in self.entries]
        return {"last": self.last, "feedback": some}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(
            int(data["last"]),
            [
                StandingFeedback(number, Intent(intent), output, tuple(map(Pattern.from_json, patterns)))
                for number, intent, output, patterns in data["feedback"]
            ],
        )


@dataclass(frozen=True)
class FeedbackTarget:
    """Who takes feedback on an output: a stage, and what it may be about."""

    stage: int
    step: str
    schema: pa.Schema
    time: pa.DataType

    def to_json(self) -> list[object]:
        whole = self.schema.append(pa.field("", self.time)).serialize().to_pybytes()
        return [self.stage, self.step, b64encode(whole).decode("ascii")]

    @staticmethod
    def from_json(data: list[object]) -> FeedbackTarget:
        whole = pa.ipc.read_schema(pa.py_buffer(b64decode(str(data[2]))))
        *columns, time = whole
        return FeedbackTarget(int(str(data[0])), str(data[1]), pa.schema(columns), time.type)


@dataclass(frozen=True)
class FeedbackTargets:
    """Who takes feedback on which output, and the readers that the plan had when the query was started."""

    buckets: int
    readers: str
    outputs: Mapping[str, FeedbackTarget]
    name: ClassVar[str] = "feedback_targets.json"
    wants: ClassVar[tuple[str, ...]] = ("outputs", "buckets")

    def to_json(self) -> Any:
        outputs = {name: one.to_json() for name, one in self.outputs.items()}
        return {"buckets": self.buckets, READERS: self.readers, "outputs": outputs}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        outputs = {name: FeedbackTarget.from_json(one) for name, one in data["outputs"].items()}
        return cls(int(data["buckets"]), data.get(READERS, ""), outputs)


def patterns_to_json(patterns: ByLabel) -> dict[str, Any]:
    return {label: [p.to_json() for p in some] for label, some in patterns.items()}


def patterns_from_json(data: Mapping[str, Any]) -> dict[str, list[Pattern]]:
    return {label: [Pattern.from_json(p) for p in some] for label, some in data.items()}
