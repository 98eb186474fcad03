"""A Parquet file by runs of row groups: what their statistics say, and their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.io.pruning import Span


class Groups:
    """An open file, of which some columns are wanted."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.schema = schema
        self._file = pq.ParquetFile(file)
        self._meta = self._file.metadata

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

    def count(self, run: list[int]) -> int:
        """How many rows a run has."""
        return sum(self._meta.row_group(number).num_rows for number in run)

    def weight(self, run: list[int]) -> int:
        """How many bytes the columns wanted take in a run."""
        size = 0
        for group in (self._meta.row_group(number) for number in run):
            for column in (group.column(place) for place in range(group.num_columns)):
                if column.path_in_schema.split(".")[0] in self.schema.names:
                    size += column.total_compressed_size
        return size

    def spans(self, run: list[int], time: str) -> dict[str, Span]:
        """What the statistics say of each column over a run; the time column in ticks."""
        found: dict[str, Span] = {}
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
            found[name] = Span(ends[0], ends[1], any(s.null_count for s in some))
        return found

    def batches(self, run: list[int], size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a run."""
        yield from self._file.iter_batches(batch_size=size, row_groups=run, columns=self.schema.names)

    def close(self) -> None:
        self._file.close()


def ticks(value: Any, t: pa.DataType) -> int:
    """A time as the engine counts it."""
    if pa.types.is_integer(t):
        return int(value)
    micros = pa.timestamp("us", tz=t.tz if pa.types.is_timestamp(t) else None)
    return int(pa.scalar(value, t).cast(micros).cast(pa.int64()).as_py())
