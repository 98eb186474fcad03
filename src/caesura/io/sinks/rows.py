"""Output as rows: kind, LE, RE, RE_new, then the payload; to a table, a file, or a function.

An end that never comes is null, and so is the new end of an insert. Files appear under their name when
the sink is closed, never half written.

>>> from caesura.events import parse
>>> items = parse('''
...  LE  RE    | id |
...  10  inf   | 3  | +
...  10  inf->15 | 3  | -
... ''')
>>> rows_table(items, items[0].schema, pa.int64()).to_pylist()[1]
{'kind': '-', 'LE': 10, 'RE': None, 'RE_new': 15, 'id': 3}
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa

from caesura.errors import DataError, PlanError
from caesura.events import Item, Page
from caesura.io.ingress.late import beside, lifetimes


def row_schema(schema: pa.Schema, time: pa.DataType) -> pa.Schema:
    """The columns of output rows; a payload column called 'kind' becomes 'kind_'."""
    ends = [("LE", time), ("RE", time), ("RE_new", time)]
    payload = beside(schema, ("kind", "LE", "RE", "RE_new"))
    return pa.schema([("kind", pa.string()), *ends, *payload])


def rows_table(items: Iterable[Item], schema: pa.Schema, time: pa.DataType) -> pa.Table:
    """The events among stream items as a table; times are timestamps where the stream's are."""
    shape = row_schema(schema, time)
    batches = [
        pa.RecordBatch.from_arrays([*lifetimes(page, time), *page.payload.columns], schema=shape)
        for page in items
        if isinstance(page, Page)
    ]
    return pa.Table.from_batches(batches, schema=shape)


class Sink(Protocol):
    """Where output goes."""

    def write(self, items: Iterable[Item]) -> None:
        """Takes output items in order."""

    def close(self) -> None:
        """Makes what was written visible."""


class CallbackSink:
    """Hands every item, page or punctuation, to a function."""

    def __init__(self, function: Callable[[Item], object]) -> None:
        self.function = function

    def write(self, items: Iterable[Item]) -> None:
        for item in items:
            self.function(item)

    def close(self) -> None:
        return None


class FileSink:
    """Writes the events to a Parquet, CSV or JSON-lines file, told by its ending."""

    def __init__(self, path: str | Path, schema: pa.Schema, time: pa.DataType) -> None:
        self.path = Path(path)
        self.schema = schema
        self.time = time
        ending = self.path.suffix.lower()
        if ending not in WRITERS:
            raise PlanError(
                f"no writer for '{self.path.name}'.", remedy=f"Let the name end in {', '.join(WRITERS)}."
            )
        self._part = self.path.with_name(f".{self.path.name}.part")
        try:
            self._writer = WRITERS[ending](self._part, row_schema(schema, time))
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"'{self.path}' cannot be written: {error}.", remedy="Give a folder that exists and is yours."
            ) from None

    def write(self, items: Iterable[Item]) -> None:
        table = rows_table(items, self.schema, self.time)
        if table.num_rows:
            self._writer.write(table)

    def close(self) -> None:
        self._writer.close()
        if self._part.exists():
            self._part.replace(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        self._writer.close()
        self._part.unlink(missing_ok=True)


def sink_to(target: str | Path | Callable[[Item], object], schema: pa.Schema, time: pa.DataType) -> Sink:
    """The sink for a path or a function."""
    return CallbackSink(target) if callable(target) else FileSink(target, schema, time)


class _Lines:
    """JSON lines: times as ISO texts, binary as base64."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=8192):
            self._file.writelines(json.dumps(row, default=_plain) + "\n" for row in batch.to_pylist())

    def close(self) -> None:
        self._file.close()


def _plain(value: object) -> str:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, Decimal) else repr(value)


def _parquet(path: Path, schema: pa.Schema) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, schema)


def _csv(path: Path, schema: pa.Schema) -> Any:
    import pyarrow.csv as pc

    nested = [f.name for f in schema if pa.types.is_struct(f.type) or pa.types.is_binary(f.type)]
    if nested:
        raise PlanError(
            f"CSV cannot hold the column '{nested[0]}' of type {schema.field(nested[0]).type}.",
            remedy="Write Parquet or JSON lines, or select the fields you need.",
        )
    return pc.CSVWriter(path, schema)


WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".jsonl": _Lines,
    ".ndjson": _Lines,
    ".json": _Lines,
}
