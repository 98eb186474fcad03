"""Rows as Python objects: dicts, dataclasses, named or plain tuples, with punctuation between them.

>>> from caesura.punctuation import cti
>>> reader = RowsReader([{"t": 1, "id": 7}, cti(5), {"t": 6, "id": 8}])
>>> [raw] = reader.read({})
>>> raw.batch.num_rows, raw.punctuations
(2, ((1, Pattern(time < 5)),))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from caesura.errors import DataError, PlanError, closest
from caesura.events.columns import empty_rows
from caesura.events.content import column_key
from caesura.expr.arrays import exact_array
from caesura.io.sources.memory import BATCH, OTHER_ROWS, PUT_BACK, columns_key
from caesura.io.sources.passed import PassedRows
from caesura.io.sources.protocol import Offsets, Reader
from caesura.plain_arrays import plain_array
from caesura.plan import Raw, SourceBatch
from caesura.punctuation import Intent, Pattern, Punctuation

PEEKED = 100  # rows that a schema is inferred from
LIVE_BATCH = 1024  # rows of an iterator that wait for each other


class RowsReader(Reader):
    """An iterable of Python rows. A sequence can be read again; an iterator once."""

    in_memory = True
    put_back = PUT_BACK

    def __init__(
        self, rows: Iterable[Any], schema: pa.Schema | None = None, *, batch_size: int | None = None
    ) -> None:
        again = isinstance(rows, Sequence)
        self.origin = None if again else rows
        self._parts: list[Raw] | None = None
        """Rows that can be read again, as they were when first looked at."""
        self.punctuates = not again or any(isinstance(row, (Punctuation, Pattern)) for row in rows)
        self.batch_size = batch_size or (BATCH if again else LIVE_BATCH)
        self._rows = rows
        self._rest: Iterator[Any] | None = None if again else iter(rows)
        self._peeked: list[Any] = []
        self._used = False
        self.schema = schema if schema is not None else self._infer()

    def _infer(self) -> pa.Schema:
        """The schema of the first rows: enough of them that every column has a value."""
        known: list[dict[str, Any]] = []
        for row in self._rows if self._rest is None else self._rest:
            if self._rest is not None:
                self._peeked.append(row)
            if isinstance(row, (Punctuation, Pattern)):
                continue
            known.append(_named(row, None, len(known)))
            full = all(v is not None for v in known[0].values())
            if len(known) >= PEEKED or (self._rest is not None and full):
                break
        if not known:
            raise DataError(
                "there is no row to infer a schema from.",
                remedy="Give schema=, as in pa.schema([('ts', pa.int64()), ('id', pa.int64())]).",
            )
        try:
            return _schema_of(known)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise DataError(
                f"the first rows do not have one type per column: {error}.",
                remedy="Give schema=, or make each column's values of one type.",
            ) from None

    @cached_property
    def _whole(self) -> pa.Table:
        """All rows, where they can be read again."""
        parts = self._again()
        return pa.Table.from_batches([raw.batch for raw in parts], self.schema if not parts else None)

    @cached_property
    def _passed(self) -> PassedRows:
        return PassedRows(self._whole)

    def passed(self, offsets: Offsets) -> Mapping[str, int]:
        if self.origin is not None:
            return {}
        return self._passed.up_to(min(offsets.get(0, 0), self._whole.num_rows))

    def displaced(self, passed: Mapping[str, int]) -> str:
        return OTHER_ROWS if self.origin is None and self._passed.differ(passed) else ""

    @cached_property
    def key(self) -> str:  # type: ignore[override]
        """By content, where the rows can be read again; else by the columns alone."""
        if self.origin is not None:
            return f"iterator:{columns_key(self.schema)}"
        parts, whole = self._again(), self._whole
        keys = ",".join(column_key(column) for column in whole.columns)
        marks = [f"{raw.offset + place}:{pattern}" for raw in parts for place, pattern in raw.punctuations]
        return f"rows:{columns_key(self.schema)}:{whole.num_rows}:{keys}:{self.batch_size}:{marks}"

    def latest(self) -> Offsets | None:
        return None if self.origin is not None else {0: sum(raw.batch.num_rows for raw in self._again())}

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        parts = self._gathered(self.batch_size) if self.origin is not None else self._again()
        for raw in parts:
            yield from _cut(raw, self.batch_size, offsets.get(0, 0))

    def cannot_replay(self) -> str:
        return "these rows were read already, and an iterator can be read once only" if self._used else ""

    def _again(self) -> list[Raw]:
        if self._parts is None:
            self._parts = list(self._gathered(BATCH))
        return self._parts

    def _gathered(self, size: int) -> Iterator[Raw]:
        """The rows in batches of a size, with the punctuation between them."""
        offset = 0
        rows: list[dict[str, Any]] = []
        marks: list[tuple[int, Pattern]] = []
        for row in self._all():
            if isinstance(row, (Punctuation, Pattern)):
                marks.append((len(rows), _pattern(row)))
                continue
            rows.append(_named(row, self.schema, offset + len(rows)))
            if len(rows) == size:
                yield Raw(0, offset, self._batch(rows, offset), tuple(marks))
                offset += len(rows)
                rows, marks = [], []
        if rows or marks:
            yield Raw(0, offset, self._batch(rows, offset), tuple(marks))

    def _all(self) -> Iterator[Any]:
        if self._rest is None:
            return iter(self._rows)
        if self._used:
            raise DataError(
                f"{self.cannot_replay()}.",
                remedy="Give a list, or make the iterator anew.",
            )
        self._used = True
        return chain(self._peeked, self._rest)

    def _batch(self, rows: list[dict[str, Any]], offset: int) -> pa.RecordBatch:
        if len(self.schema) == 0:
            return empty_rows(len(rows))
        try:
            columns = [exact_array([row.get(f.name) for row in rows], f.type) for f in self.schema]
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise _misfit(rows, self.schema, offset) from None

    def describe(self) -> str:
        return "rows"


def _cut(raw: Raw, size: int, skip: int) -> Iterator[Raw]:
    """A batch in smaller ones, without the first rows of the lane; punctuation stays in its place."""
    for start in range(0, raw.batch.num_rows + 1, size):
        rows = raw.batch.slice(start, size)
        marks = [(place - start, pattern) for place, pattern in raw.punctuations if place >= start]
        marks = [mark for mark in marks if mark[0] < size]
        offset, end = raw.offset + start, raw.offset + start + rows.num_rows
        if end < skip or (end == skip and not marks) or not (rows.num_rows or marks):
            continue
        cut = max(0, skip - offset)
        remaining = tuple((place - cut, pattern) for place, pattern in marks if place >= cut)
        yield Raw(0, offset + cut, rows.slice(cut), remaining)


def _schema_of(rows: list[dict[str, Any]]) -> pa.Schema:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: plain_array([row.get(name) for row in rows]) for name in names}
    return pa.schema([pa.field(name, column.type) for name, column in columns.items()])


def _misfit(rows: list[dict[str, Any]], schema: pa.Schema, offset: int) -> DataError:
    """Names the first value that does not fit; there is one."""
    place, field, error = next(_misfits(rows, schema))
    return DataError(
        f"row {offset + place}: column '{field.name}' is {field.type}, "
        f"but the value is {rows[place].get(field.name)!r} ({error}).",
        remedy="Give schema= with a type that all values fit, or mend the row.",
    )


def _misfits(rows: list[dict[str, Any]], schema: pa.Schema) -> Iterator[tuple[int, pa.Field, Exception]]:
    for place, row in enumerate(rows):
        for field in schema:
            try:
                exact_array([row.get(field.name)], field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                yield place, field, error


def _named(row: Any, schema: pa.Schema | None, number: int) -> dict[str, Any]:
    """A row as a dict; refuses names that the schema does not have."""
    if isinstance(row, Mapping):
        named = dict(row)
    elif dataclasses.is_dataclass(row) and not isinstance(row, type):
        named = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    elif isinstance(row, tuple):
        named = _from_tuple(row, schema, number)
    else:
        raise DataError(
            f"row {number} is {row!r}, which names no columns.",
            remedy="Rows are dicts, tuples, dataclasses, or punctuation between them.",
        )
    if schema is not None and not named.keys() <= set(schema.names):
        name = sorted(map(str, named.keys() - set(schema.names)))[0]
        raise DataError(
            f"row {number} has a column '{name}' that the schema does not have.",
            remedy=closest(name, schema.names),
        )
    return named


def _from_tuple(row: tuple[Any, ...], schema: pa.Schema | None, number: int) -> dict[str, Any]:
    names = getattr(row, "_fields", None) or (schema.names if schema is not None else None)
    if names is None:
        raise PlanError(
            "plain tuples do not name their columns.",
            remedy="Give schema= with a name for each, or rows that are dicts or named tuples.",
        )
    if len(names) != len(row):
        raise DataError(
            f"row {number} has {len(row)} values, but there are {len(names)} columns.",
            remedy=f"Columns are: {', '.join(names)}.",
        )
    return dict(zip(names, row, strict=True))


def _pattern(item: Punctuation | Pattern) -> Pattern:
    if isinstance(item, Pattern):
        return item
    if item.intent is not Intent.DEFINITE:
        raise DataError(
            f"a source cannot give '{item}'.", remedy="Put definite punctuation between rows only."
        )
    return item.pattern
