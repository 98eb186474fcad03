"""Tables: rows without times, which hold over all time; in memory, or in files that do not change.

>>> names = table_of([{"id": 3, "name": "Ada"}, {"id": 4, "name": "Bob"}], name="names")
>>> names.schema.names, names.is_table, names.describe()
(['id', 'name'], True, 'Arrow table of 2 rows, over all time')

A table in files is read by whoever needs it. Its files are listed when the plan is made: a table is the same
table as long as they are, and one that has changed since is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError, DataError, PlanError
from caesura.io.ingress.refusals import Lateness
from caesura.io.ingress.shape import Shape, Shaped
from caesura.io.places import Place
from caesura.io.sources.files import CSV, JSON, PARQUET, FileReader
from caesura.io.sources.formats import Format
from caesura.io.sources.memory import TableReader, arrow_reader, pandas_reader
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.python_rows import RowsReader
from caesura.io.sources.source import Source
from caesura.kernels.ticks import FIRST
from caesura.plan import TICKS, Properties, Raw, here
from caesura.punctuation import INFINITY, Pattern

TABLE_BYTES = 1 << 30
"""How large a table may be that every process holds, unless the user says otherwise."""
FORMATS = {"parquet": PARQUET, "csv": CSV, "json": JSON}


@dataclass(frozen=True)
class Always(Shape):
    """Rows without a time column: each lives from the first tick on, without an end."""

    time_type: pa.DataType = TICKS

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def insert_only(self) -> bool:
        return True

    def check(self, schema: pa.Schema) -> pa.DataType:
        self._check_names(schema)
        return self.time_type

    def _cut(self, batch: pa.RecordBatch, payload: pa.RecordBatch) -> Shaped:
        first = np.full(batch.num_rows, FIRST)
        return Shaped(first, np.full(batch.num_rows, INFINITY), None, payload, None, first)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Source):
    """A source whose rows hold over all time."""

    late: Lateness = "error"
    max_bytes: int = TABLE_BYTES

    kind: ClassVar[str] = "table"

    def derive(self, *inputs: Properties) -> Properties:
        return Properties(insert_only=True)

    def counts(self, name: str) -> bool:
        return name != "max_bytes" and super().counts(name)

    @property
    def declares(self) -> tuple[str, ...]:
        return ()

    @property
    def is_table(self) -> bool:
        return True

    @property
    def holds_always(self) -> bool:
        return True

    @property
    def in_memory(self) -> bool:
        return self.reader.in_memory

    @property
    def known_bytes(self) -> int:
        assert isinstance(self.reader, AtOnce)
        return self.reader.known_bytes

    def timed(self, time: pa.DataType) -> Table:
        assert isinstance(self.shape, Always)
        return replace(self, shape=replace(self.shape, time_type=time))

    def refuse_large(self, size: int) -> None:
        if size <= self.max_bytes:
            return
        raise PlanError(
            f"the table holds {_shown(size)} or more, and every worker process would hold a copy; "
            f"the limit is {_shown(self.max_bytes)}.",
            remedy="Join it as a stream, in stages: cz.read.parquet(..., time=...).forever(). Or take fewer "
            "columns or rows first; or raise the limit: cz.table(..., max_bytes=...).",
        ).at(self.step, self.place)

    def describe(self) -> str:
        return f"{self.reader.describe()}, over all time"


def _shown(size: int) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB")
    power = min(len(units) - 1, (len(str(size)) - 1) // 3)
    return f"{size / 1000**power:.3g} {units[power]}"


class AtOnce(Reader):
    """A reader of a table: its rows, and then that no more come."""

    spark_form = "lanes"
    complete = True

    def __init__(self, inner: Reader, known_bytes: int) -> None:
        self.inner, self.known_bytes = inner, known_bytes
        self.schema = inner.schema
        self.in_memory = inner.in_memory
        self._count: int | None = None

    @property
    def key(self) -> str:  # type: ignore[override]
        return f"whole:{self.inner.key}"

    @property
    def put_back(self) -> str:  # type: ignore[override]
        return self.inner.put_back

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        return self.inner.passed(offsets)

    def displaced(self, passed: Mapping[str, int]) -> str:
        return self.inner.displaced(passed)

    def latest(self) -> Offsets:
        if self._count is None:
            known = self.inner.latest()
            if known is None:
                known = {0: sum(raw.batch.num_rows for raw in self.inner.read({}) if isinstance(raw, Raw))}
            self._count = known.get(0, 0)
        return {0: self._count + 1}

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        """The rows, and one offset behind them that stands for the end."""
        at = offsets.get(0, 0)
        for raw in self.inner.read(offsets):
            assert isinstance(raw, Raw)
            yield raw
            at = raw.end
        if at <= self.latest()[0] - 1:
            yield Raw(0, at, pa.RecordBatch.from_pylist([], self.schema), ((0, Pattern()),), gap=1)

    def narrowed(self, columns: Sequence[str]) -> AtOnce:
        return AtOnce(self.inner.narrowed(columns), self.known_bytes)

    def for_one_run(self) -> AtOnce:
        inner = self.inner.for_one_run()
        return self if inner is self.inner else AtOnce(inner, self.known_bytes)

    def describe(self) -> str:
        return self.inner.describe()


class TableFiles(FileReader):
    """The files of a table, as they were when the plan was made."""

    complete = True

    def __init__(self, path: Place, format: Format, **more: Any) -> None:
        listed: dict[str, tuple[int, int]] | None = more.pop("listed", None)
        super().__init__(path, format, **more)
        self.complete = True
        self.listed = listed if listed is not None else {f.name: file_state(f) for f in super().files()}
        self.key = f"{self.key}:{sorted(self.listed.items())}"

    def files(self) -> list[Place]:
        found = super().files()
        listed: dict[str, tuple[int, int]] | None = getattr(self, "listed", None)
        if listed is None:
            return found
        here = {file.name: file_state(file) for file in found}
        changed = sorted(n for n in {*here, *listed} if here.get(n) != listed.get(n))
        if changed:
            raise DataError(
                f"'{changed[0]}' of the table in '{self.path}' has changed, come or gone since the plan "
                "was made.",
                remedy="Make the plan anew to take the table as it is now.",
            )
        return found

    def narrowed(self, columns: Sequence[str]) -> TableFiles:
        more = {"schema": self.schema, "columns": columns, "batch_size": self.batch_size}
        return TableFiles(self.path, self.format, listed=self.listed, **more)


def file_state(file: Place) -> tuple[int, int]:
    """What tells that a file is the same: its size, and when it was written."""
    about = file.entry()
    return (about.size, about.changed) if about is not None else (0, 0)


def table_of(
    data: Any,
    *,
    schema: pa.Schema | None = None,
    format: str | None = None,
    name: str = "",
    max_bytes: int = TABLE_BYTES,
) -> Table:
    """A table of rows, of Arrow data, of a pandas frame, or of a file or folder."""
    place = here()
    try:
        reader = _reader(data, schema, format)
    except CaesuraError as error:
        raise error.at(name or Table.kind, place) from None
    return Table(reader=reader, shape=Always("interval", ""), name=name, place=place, max_bytes=max_bytes)


def _reader(data: Any, schema: pa.Schema | None, format: str | None) -> AtOnce:
    if isinstance(data, str | Path | Place):
        path = Place.of(data)
        files = TableFiles(path, format_of(path, format), schema=schema)
        return AtOnce(files, sum(size for size, _ in files.listed.values()))
    if format is not None:
        raise PlanError(f"format={format!r} is said of files.", remedy="Leave it out: rows are in memory.")
    table = in_memory_table(data, schema)
    return AtOnce(TableReader(table), int(table.nbytes))


def in_memory_table(data: Any, schema: pa.Schema | None) -> pa.Table:
    """Rows, Arrow data or a pandas frame as a table."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        return pandas_reader(data).table
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader) or hasattr(
        data, "__arrow_c_stream__"
    ):
        reader = arrow_reader(data)
        return reader.table if isinstance(reader, TableReader) else reader.stream.read_all()
    if not isinstance(data, Iterable):
        raise DataError(
            f"{type(data).__name__} {data!r} is no table.",
            remedy="Give rows, an Arrow table, a pandas or Spark DataFrame, or the path of a file or folder.",
        )
    rows = RowsReader(list(data), schema)
    return pa.Table.from_batches([raw.batch for raw in rows.read({}) if isinstance(raw, Raw)], rows.schema)


def format_of(path: Place, format: str | None) -> Format:
    """What files a table has, by what the user says or by how they are called."""
    if format is not None and format not in FORMATS:
        raise PlanError(
            f"no files are of the format {format!r}.", remedy=f"Write one of: {', '.join(FORMATS)}."
        )
    if format is not None:
        return FORMATS[format]
    some = [path] if path.is_file() else path.files()
    names = [f.name for f in some if not f.name.startswith((".", "_"))]
    found = [known for known in FORMATS.values() if any(n.endswith(known.endings) for n in names)]
    if len(found) == 1:
        return found[0]
    if not path.exists():
        return PARQUET  # whose reader says that there is nothing
    what = "files of several formats" if found else "no file whose name tells its format"
    raise PlanError(
        f"'{path}' has {what}.", remedy=f"Say which are meant: format=, one of {', '.join(FORMATS)}."
    )


__all__ = ["TABLE_BYTES", "Always", "Table", "file_state", "format_of", "in_memory_table", "table_of"]
