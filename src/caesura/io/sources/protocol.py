"""What a source of rows is: everything that a host may ask of one, with an answer for most of it.

A source is one class. It says what its rows look like, gives them lane by lane from given offsets on, and
answers `NOTHING_NOW` where it has none at the moment; the rest has defaults. It keeps no position and holds
nothing open: offsets belong to the query, and what `read` opens is released when its iterator is closed. So
one object serves several queries, and travels to workers.

>>> class Numbers(Reader):
...     schema = pa.schema([("t", pa.int64())])
...     key = "numbers"
...     def read(self, offsets):
...         for n in range(offsets.get(0, 0), 4, 2):
...             yield Raw(0, n, pa.record_batch({"t": [n, n + 1]}))
...     def describe(self):
...         return "numbers"
>>> [(raw.offset, raw.batch.num_rows) for raw in Numbers().read_between({0: 1}, {0: 4})]
[(1, 2), (3, 1)]
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import pyarrow as pa

from caesura.plan import Raw, SourceBatch
from caesura.punctuation import Pattern

if TYPE_CHECKING:
    from caesura.consistency.reading import Break
    from caesura.io.sources.pruning import Pruning, ValueRange

Offsets = Mapping[int, int]
"""Where each lane is read on; a lane that is not named is read from its beginning."""
SparkForm = Literal["frame", "files", "lanes", "memory"]
"""How Spark reads a source: as a DataFrame of its own, from a listing of files, lane by lane to its `latest`,
or all of it in one task, as one that lies in memory.
"""


class ListedFiles(Protocol):
    """Rows that lie in files, for a host that finds the files itself."""

    @property
    def folder(self) -> str:
        """Where to look for them, in the words of Spark's file systems."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How their names end."""

    @property
    def set_aside(self) -> set[str]:
        """The files that are set aside whole, and may be mended where they lie."""

    def read_file(self, uri: str, pruning: Pruning | None = None) -> Iterator[Raw]:
        """The rows of one file, offsets counted from its own first row, without those not to be read."""

    def first_time(self, uri: str, time: str) -> int | None:
        """The first time in a file, None if it has none."""

    def spans(self, uri: str, time: str) -> tuple[dict[str, ValueRange], int, int]:
        """What is known of the columns of a file without reading it; its rows and bytes."""


class LaneBounds(Protocol):
    """Where lanes begin and end now, and whose they are, for a process that asks for nothing else."""

    def earliest(self) -> Offsets: ...

    def latest(self) -> Offsets | None: ...

    def passed(self, offsets: Offsets) -> Mapping[str, int]: ...

    def displaced(self, passed: Mapping[str, int]) -> str: ...


class Reader(ABC):
    """Where raw rows come from."""

    # -- what is read -------------------------------------------------------------------------------------

    schema: pa.Schema
    """The columns as the outside gives them."""
    key: str
    """Equal for readers that read the same, in any process: by name, schema, options and content."""
    origin: object = None
    """The thing itself, where nothing but the user's name tells it from another: a DataFrame, an iterator.

    Its source counts by that name too, and two origins under one key are refused.
    """
    punctuates: bool = False
    """Whether punctuation may lie between the rows."""
    unordered: bool = False
    """Whether the rows that come together have no order among them."""
    in_memory: bool = False
    """Whether all rows are there from the start, and go with the plan."""
    follows: bool = False
    """Whether it never ends by itself, and does where all other sources of a query have."""
    rowless: bool = False
    """Whether no row ever comes of it: it is there for the clock that its policy reads."""
    bounded: bool = False
    """Whether its columns have few values at any time, as those of a table: state may be kept for each."""
    complete: bool = False
    """Whether no row is ever added to those that are there, as with a single file."""
    appended: bool = False
    """Whether what was read may grow at its end, as a log does, and is read on there."""
    spark_form: SparkForm = "memory"
    streaming_remedy: str = "Use run_batch(spark), or write it to files and read those."
    """What to do where a source in memory is read by a streaming query."""

    @property
    def finished(self) -> bool:
        """Whether the end of what is there now is the end of all; False where more is known to come."""
        return True

    @property
    def as_files(self) -> ListedFiles:
        """The same as files, where that is how Spark reads it."""
        raise NotImplementedError

    @abstractmethod
    def describe(self) -> str:
        """What is read, for explain."""

    def narrowed(self, columns: Sequence[str]) -> Reader:
        """The same with these columns only; itself where it cannot leave any out."""
        return self

    def batched(self, rows: int) -> Reader:
        """The same in batches of about so many rows; itself where the user chose, or it has no choice."""
        return self

    def for_one_run(self) -> Reader:
        """The same for a query that is not saved, nor sent to other processes: its key may be cheaper."""
        return self

    # -- lanes and offsets --------------------------------------------------------------------------------

    lanes: int = 1
    """How many lanes there are at the start, numbered from 0: one that gave nothing yet holds the CTI.

    A lane appears with its first batch, which may have no rows, and vanishes with what `lane_ends` gives.
    """

    def earliest(self) -> Offsets:
        """Where each lane begins that no longer begins at 0; what lay before cannot be read any more."""
        return {}

    def latest(self) -> Offsets | None:
        """Where each lane ends now; None where that is not known without reading it all."""
        return None

    @property
    def lane_bounds(self) -> LaneBounds:
        """What answers `earliest`, `latest`, `passed` and `displaced`: itself, or something smaller.

        It goes to a process of its own, and is to take little to import.
        """
        return self

    passes_gaps: bool = False
    """Whether it goes on where rows behind a saved offset are gone; else the query stops."""

    gap_remedy: str = "Put them back and start again, or start anew without the saved state."
    """What to do where rows behind a saved offset are gone."""

    def lane_name(self, lane: int) -> str:
        """What messages call a lane."""
        return f"lane {lane}"

    # -- rows ---------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        """Raw rows from these offsets on, and `NOTHING_NOW` where there are none yet.

        It ends where the input does. It does not block: whoever reads has other sources, and a clock.
        """

    prunes: bool = False
    """Whether it can leave rows unread that will be ignored, and read some before others."""

    def read_pruned(self, offsets: Offsets, pruning: Pruning) -> Iterator[SourceBatch]:
        """As `read`, without rows that will be ignored; those are counted in ``skipped``."""
        return self.read(offsets)

    def read_between(self, start: Offsets, end: Offsets | None = None) -> Iterator[Raw]:
        """The rows from some offsets up to others, once more, or up to what there is now."""
        rows = self.read(start)
        left = None if end is None else {lane for lane, stop in end.items() if stop > start.get(lane, 0)}
        while left is None or left:
            raw = next(rows, None)
            if not isinstance(raw, Raw):
                break
            if end is None:
                yield raw
                continue
            if raw.end >= end.get(raw.lane, 0) and left is not None:
                left.discard(raw.lane)
            part = raw.first(end.get(raw.lane, 0) - raw.offset)
            if part is not None:
                yield part
        close(rows)

    def sample(self, limit: int) -> Iterator[Raw]:
        """Rows from the beginning, to be looked at: so many, or more where they come in larger batches."""
        return self.read_between({})

    def cannot_replay(self) -> str:
        """Why its rows cannot be read from their beginning, as of now; empty where they can."""
        return ""

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        """What else is saved with offsets, to find out whether they still mean the same rows."""
        return {}

    def displaced(self, passed: Mapping[str, int]) -> str:
        """Why saved offsets no longer mean the rows that they did; empty where they do."""
        return ""

    put_back: str = "Put back what was read, or start anew without the saved state."
    """What to do where saved offsets no longer mean the rows that they did."""

    def saved(self, offsets: Offsets) -> None:
        """Takes note that a query goes on from these offsets, whatever happens: what lies before may go."""
        return

    def claims(self) -> list[Break]:
        """Where the claims of the pipeline that wrote the rows stand among them, if one did."""
        return []

    # -- waiting ------------------------------------------------------------------------------------------

    poll_seconds: float = 0.05
    """After how long it is asked again that had nothing, at the latest."""

    def on_arrival(self, wake: Callable[[], None]) -> None:
        """Takes a function, of any thread, to be called when rows have come; whoever waits is woken by it."""
        return

    def clock(self) -> int:
        """The clock that its policies go by, in microseconds.

        A reading enters the query's offset of the source, under ``clock``: a restart reads no earlier one.
        """
        return time.time_ns() // 1000


def lane_ends(lane: int, offset: int, schema: pa.Schema) -> Raw:
    """What a lane gives last that vanishes: nothing more comes from it, so that it holds nobody back."""
    return Raw(lane, offset, pa.RecordBatch.from_pylist([], schema), ((0, Pattern()),))


def close(rows: Iterator[SourceBatch]) -> None:
    """Releases what an iterator over rows holds open."""
    if isinstance(rows, Generator):
        rows.close()
