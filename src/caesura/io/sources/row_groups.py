"""A Parquet file by runs of row groups: what their statistics say, their rows, and which come first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.io.sources.pruning import Pruning, ValueRange

if TYPE_CHECKING:
    from caesura.io.places import Place

AHEAD = 1024
"""So many runs of row groups are looked at for rows that are wanted first."""
TEXT_SIZE = 4
"""What a text takes at least outside a dictionary, in bytes: its length."""


class Groups:
    """An open file, of which some columns are wanted."""

    def __init__(self, file: Place, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.path, self.schema = file, schema
        self._meta = pq.read_metadata(file.open())
        self._file: Any = None

    @property
    def rows(self) -> int:
        return int(self._meta.num_rows)

    def runs(self, size: int) -> Iterator[list[int]]:
        """Row groups that lie together, about so many rows each time."""
        run: list[int] = []
        rows = 0
        for group in range(self._meta.num_row_groups):
            run.append(group)
            rows += self._meta.row_group(group).num_rows
            if rows >= size:
                yield run
                run, rows = [], 0
        if run:
            yield run

    def parts(self, size: int, start: int, time: str) -> Iterator[RowGroupRange]:
        """Its runs, where its first row stands so far from that of all files."""
        for run in self.runs(size):
            rows = self.count(run)
            yield RowGroupRange(self, run, start, rows, time)
            start += rows

    def count(self, run: list[int]) -> int:
        """How many rows a run has."""
        return sum(self._meta.row_group(number).num_rows for number in run)

    def weight(self, run: list[int], *, packed: bool = True) -> int:
        """How many bytes the columns wanted take in a run, as they lie there or unpacked."""
        size = 0
        for group in (self._meta.row_group(number) for number in run):
            for column in (group.column(place) for place in range(group.num_columns)):
                if column.path_in_schema.split(".")[0] in self.schema.names:
                    size += column.total_compressed_size if packed else column.total_uncompressed_size
        return size

    def rows_in(self, run: list[int], size: int) -> int:
        """About how many rows of a run take so many bytes, at least where a dictionary holds the values."""
        return size * self.count(run) // max(1, self.weight(run, packed=False))

    def spans(self, run: list[int], time: str) -> dict[str, ValueRange]:
        """What the statistics say of each column over a run; the time column in ticks."""
        found: dict[str, ValueRange] = {}
        for place in range(self._meta.num_columns):
            name = self._meta.schema.column(place).path
            if name not in self.schema.names:
                continue
            some = [self._meta.row_group(g).column(place).statistics for g in run]
            if any(s is None or not s.has_min_max or s.null_count is None for s in some):
                continue
            ends = [min(s.min for s in some), max(s.max for s in some)]
            if name == time:
                ends = [ticks(end, self.schema.field(name).type) for end in ends]
            found[name] = ValueRange(ends[0], ends[1], any(s.null_count for s in some))
        return found

    def batches(self, run: list[int], size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a run."""
        if self._file is None:
            import pyarrow.parquet as pq

            self._file = pq.ParquetFile(
                self.path.open(), metadata=self._meta, read_dictionary=self._repeated()
            )
        names = self.schema.names
        yield from map(decoded, self._file.iter_batches(batch_size=size, row_groups=run, columns=names))

    def _repeated(self) -> list[str]:
        """Texts that lie in a dictionary: Arrow reads those faster as numbers, to be looked up afterwards."""
        if self._meta.num_row_groups == 0:
            return []
        group = self._meta.row_group(0)
        chunks = [group.column(place) for place in range(group.num_columns)]
        return [
            chunk.path_in_schema
            for chunk in chunks
            if chunk.physical_type == "BYTE_ARRAY"
            and chunk.has_dictionary_page
            and "." not in chunk.path_in_schema
            and chunk.total_uncompressed_size < TEXT_SIZE * chunk.num_values
        ]

    def close(self) -> None:
        """Lets go of the file; what is known of it stays."""
        if self._file is not None:
            self._file.close()
            self._file = None


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with values in place of numbers in a dictionary."""
    schema, columns = batch.schema, batch.columns
    for place, column in enumerate(columns):
        if pa.types.is_dictionary(column.type):
            columns[place] = column.dictionary_decode()
            schema = schema.set(place, schema.field(place).with_type(column.type.value_type))
    return batch if schema is batch.schema else pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass
class RowGroupRange:
    """A run of row groups, and where its rows stand among those of all files."""

    groups: Groups
    run: list[int]
    start: int
    rows: int
    time: str

    @cached_property
    def spans(self) -> Mapping[str, ValueRange]:
        """What the statistics say of it."""
        return self.groups.spans(self.run, self.time)

    def split(
        self, apart: Callable[[Mapping[str, ValueRange]], bool]
    ) -> Iterator[tuple[RowGroupRange, bool]]:
        """Its row groups, those to be set apart by their statistics in parts of their own."""
        start = self.start
        for split_off, some in groupby(self.run, lambda group: apart(self.groups.spans([group], self.time))):
            run = list(some)
            rows = self.groups.count(run)
            yield RowGroupRange(self.groups, run, start, rows, self.time), split_off
            start += rows


def wanted_first(parts: Iterator[RowGroupRange], pruning: Pruning) -> Iterator[RowGroupRange]:
    """The parts of some files in their order, but those with wanted rows as early as that changes nothing."""
    waiting: deque[RowGroupRange] = deque()
    while True:
        wanted = pruning.wanted()
        while len(waiting) < (AHEAD if wanted else 1):
            part = next(parts, None)
            if part is None:
                break
            waiting.append(part)
        if not waiting:
            return
        place = pruning.first([part.spans for part in waiting]) if wanted else 0
        chosen = waiting[place]
        del waiting[place]
        pruning.moved += chosen.rows if place else 0
        yield chosen


def unread(offsets: Mapping[int, int], start: int, rows: int) -> int:
    """How many of some rows, the first ones, were read before.

    >>> unread({0: 5}, 3, 4), unread({0: 5, -9: 10}, 8, 4)
    (2, 2)
    """
    ends = [offsets.get(0, 0), *(end for key, end in offsets.items() if key < 0 and -1 - key <= start)]
    return min(rows, max(0, max(ends) - start))


def read_up_to(offsets: dict[int, int], lane: int, start: int, end: int) -> None:
    """Notes that rows were read. What is read ahead of others stands under the key -1 - its start.

    >>> offsets = {0: 5}
    >>> read_up_to(offsets, 0, 8, 10); offsets
    {0: 5, -9: 10}
    >>> read_up_to(offsets, 0, 5, 8); offsets
    {0: 10}
    """
    if start > offsets.get(lane, 0):
        key = next((k for k, stop in offsets.items() if k < 0 and stop == start), -1 - start)
        offsets[key] = end
        return
    offsets[lane] = end
    while -1 - offsets[lane] in offsets:
        offsets[lane] = offsets.pop(-1 - offsets[lane])


def ticks(value: Any, t: pa.DataType) -> int:
    """A time as the engine counts it."""
    if pa.types.is_integer(t):
        return int(value)
    micros = pa.timestamp("us", tz=t.tz if pa.types.is_timestamp(t) else None)
    return int(pa.scalar(value, t).cast(micros).cast(pa.int64()).as_py())
