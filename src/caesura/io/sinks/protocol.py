"""What a sink is: everything that a host may ask of one.

A sink takes the output of a query an epoch at a time, and an epoch counts when it is committed: whatever was
written before that is partial work, and an epoch that runs again finds it gone. So the answer of a sink to
"which epoch did you commit last?" is all that makes a query exactly-once.

A sink belongs to one query. Each start of the query takes the next fencing number; a start that a later one
has taken over from is refused when it commits.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.events import Item
from caesura.plan import Node, here

if TYPE_CHECKING:
    from caesura.runtime.buckets.aligner import Epoch
    from caesura.runtime.metrics.status import Board

Form = Literal["changes", "final", "marked"]
"""What output rows are: changes as they come, rows that no longer change, or changes with marks for those."""


class Sink(ABC):
    """Where the output of a query goes."""

    takes: ClassVar[tuple[Form, ...]] = ("changes", "final", "marked")
    """The forms of output that it can hold."""
    delivery: ClassVar[Literal["exactly once", "at least once"]] = "exactly once"
    """What of an epoch that runs again: nothing, or whoever takes it may have seen some of it before."""
    claims: ClassVar[bool] = False
    """Whether it says that what it holds is the answer of a plan: then a plan with another is a change."""
    keeps_late: bool = False
    """Whether late rows can be read where it writes; if not, the host keeps them beside the checkpoint."""
    at_home: ClassVar[bool] = False
    """Whether what it takes must stay in the process that has started the query."""
    folder: str = ""
    """Where its commits name Parquet files that others can read; empty where none do."""
    board: Board
    """How the query stands, as of the last epoch; the host writes it."""
    receives: ClassVar[str] = "take(epoch) of an EpochSink, or commit(epoch, parts) of a TableSink"
    """The method that a host gives epochs to, in words."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        write = vars(cls).get("write")
        if inspect.isfunction(write) and len(inspect.signature(write).parameters) == 3:
            raise PlanError(
                f"{cls.__name__}.write(epoch, packets) would never be called: sinks no longer get packets.",
                remedy=f"Write {cls.receives} instead; a method of another use needs another name.",
                place=here(),
            )

    def reach(self) -> None:
        """Called before anything is made: refuses a place that nothing can be written to."""
        return

    def open(self, outputs: Mapping[str, Node]) -> None:
        """Called once at a start, with the outputs that will come."""
        return

    def attach(self, query: str) -> None:
        """Takes the sink for a start of a query, before its first epoch; refuses another query."""
        return

    @abstractmethod
    def last_epoch(self) -> int | None:
        """The last epoch that was committed; None where none was."""

    def pending(self, epoch: int, outputs: Sequence[str]) -> Sequence[str]:
        """Which outputs of an epoch are not committed yet; none where the epoch ran before."""
        last = self.last_epoch()
        return outputs if last is None or epoch > last else ()

    def begin(self, epoch: int) -> None:
        """An epoch is about to be written: partial work of an earlier try goes."""
        self.abort(epoch)

    def abort(self, epoch: int) -> None:
        """Takes away what was written of an epoch that is not committed."""
        return


def refuse_behind(sink: Sink, epoch: int, why: str) -> None:
    """Refuses to go on from an epoch before the last that the sink has: what follows would be left out."""
    last = sink.last_epoch()
    if last is not None and last > epoch:
        raise StreamError(
            f"the sink has epoch {last}, and the query goes on behind epoch {epoch}: {why}.",
            remedy="Put back the checkpoint as it was when the sink was written last; or start with a new "
            "checkpoint and a new sink.",
        )


class BucketWriter(Protocol):
    """Writes what buckets give in one epoch, wherever it runs."""

    def prepare(self, buckets: Sequence[int]) -> None:
        """Opens what these buckets are written with, while their rows are still made."""

    def __call__(
        self, bucket: int, items: Sequence[Item], late: Mapping[str, Sequence[pa.RecordBatch]]
    ) -> None:
        """Takes the number of a bucket, its items, and late rows by source."""


class EpochSink(Sink):
    """A sink that takes an epoch whole, on the driver: rows, punctuation and late rows."""

    receives = "take(epoch)"

    @abstractmethod
    def take(self, epoch: Epoch) -> None:
        """Takes an epoch, and commits it."""

    def bucket_writer(self, epoch: int, buckets: int) -> BucketWriter | None:
        """What writes and commits a bucket's share of an epoch in its worker, once; it travels there.

        None where an epoch is taken whole.
        """
        return None


@dataclass(frozen=True)
class Part:
    """What one worker wrote of an output in an epoch; it counts when the epoch is committed."""

    output: str
    file: str
    rows: int
    size: int = 0
    sha256: str = ""
    """Size and hash of its file, by which it is found out if that was changed; none where nobody knows."""


PartWriter = Callable[[str, int, pa.Table], "Part | Sequence[Part]"]
"""Writes the rows of an output that worker so-and-so has, wherever it runs; as one part, or as several."""


def written(writer: PartWriter, output: str, worker: int, rows: pa.Table) -> Sequence[Part]:
    """The parts that a worker's rows make."""
    parts = writer(output, worker, rows)
    return (parts,) if isinstance(parts, Part) else parts


LATE = "_late"
"""The output that late rows go to, as ``_late/<source>``."""


class TableSink(Sink):
    """A sink whose parts are written by workers, wherever those run, and committed by the driver."""

    receives = "commit(epoch, parts)"
    keeps_late = True  # parts of ``_late`` are written as those of outputs are

    @abstractmethod
    def writer(self, epoch: int) -> PartWriter:
        """What writes a part of an epoch; it travels to workers."""

    @abstractmethod
    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        """Makes an epoch count, with these parts."""

    def enter(self, generation: int, plan: int) -> None:
        """Says which generation of the output the next epochs belong to, and the plan, by its number.

        A new generation begins empty, beside those before it.
        """
        if generation > 1:
            raise StreamError(
                f"{type(self).__name__} holds one generation of its output.",
                remedy="Write into a folder of files, or start with a new checkpoint and a new sink.",
            )

    @abstractmethod
    def read_back(self, output: str) -> pa.Table:
        """The rows of an output that count, epoch after epoch: for an audit, or to rebuild from."""
