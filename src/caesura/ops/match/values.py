"""Formulas of matches on whole columns: which row each navigation means, then one expression over all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.expr import Expr, compile_expr
from caesura.kernels.hashing import I64, Mask
from caesura.ops.aggregate.slots import Slots
from caesura.ops.match.formula import Formula, MatchFold, Navigation
from caesura.ops.over.frames import fold_ranges


class RowColumns:
    """Rows of groups in order, and what is computed of each of them, once."""

    def __init__(self, payload: pa.RecordBatch, le: I64, time: pa.DataType) -> None:
        self.payload, self.le, self.time = payload, le, time
        self._made: dict[object, pa.Array] = {}

    def column(self, key: object, make: Callable[..., pa.Array]) -> pa.Array:
        """A column by its name, made where it is not there yet."""
        if key not in self._made:
            self._made[key] = make(self.payload, self.le, self.le)
        return self._made[key]


class Matches(NamedTuple):
    """Matches with their rows, which stand one match behind the other, and the bounds of their groups."""

    first: I64
    row: I64
    variable: I64
    number: I64
    low: I64
    high: I64


def _taken(column: pa.Array, place: I64, there: Mask) -> pa.Array:
    if len(column) == 0:
        return pa.nulls(len(place), column.type)
    return column.take(pa.array(np.where(there, place, 0), mask=~there))


class Columns:
    """A formula at places of matches."""

    def __init__(
        self, formula: Formula, names: tuple[str, ...], source: pa.Schema, time: pa.DataType
    ) -> None:
        self._schema = formula.schema(source, time)
        self.make = compile_expr(formula.value, self._schema, time=time)
        self._reads: list[_Navigated | _Folded] = [
            _Navigated(one, names, source, time)
            if isinstance(one, Navigation)
            else _Folded(one, names, source, time)
            for _, one in formula.reads
        ]

    def at(self, rows: RowColumns, found: Matches, match: I64, upto: I64) -> pa.Array:
        """The value in each match, where its rows before ``upto`` have been matched."""
        columns = [pa.array(found.number[match])]
        for read in self._reads:
            columns.append(read.at(rows, found, match, upto))
        return self.make(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def of_rows(self, rows: RowColumns, low: I64, high: I64) -> pa.Array:
        """The value for each row itself, where it reads no others but by their distance."""
        every = np.arange(len(rows.le))
        columns = [pa.nulls(len(every), pa.int64())]
        for read in self._reads:
            assert isinstance(read, _Navigated)
            columns.append(read.of_rows(rows, every, low, high))
        return self.make(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class _Navigated:
    def __init__(self, one: Navigation, names: tuple[str, ...], source: pa.Schema, time: pa.DataType) -> None:
        self._one = one
        self._of = _mask(one.of, names)
        self._names = pa.array(names, pa.string())
        self._make = None if one.value is None else compile_expr(one.value, source, time=time)
        self._key = None if one.value is None else one.value.key

    def of_rows(self, rows: RowColumns, place: I64, low: I64, high: I64) -> pa.Array:
        """The values of rows so many further, within their groups."""
        assert self._make is not None
        place = place + self._one.move
        return _taken(rows.column(self._key, self._make), place, (place >= low) & (place < high))

    def at(self, rows: RowColumns, found: Matches, match: I64, upto: I64) -> pa.Array:
        one = self._one
        place, low, high = _ranges(self._of, found, match, upto, final=one.final)
        nth = low + one.by if one.first else high - 1 - one.by
        there = (nth >= low) & (nth < high)
        entry = place[np.where(there, nth, 0)] if len(place) else np.zeros(len(nth), np.int64)
        if self._make is None:
            return _taken(self._names, found.variable[entry] if len(place) else entry, there)
        row = (found.row[entry] if len(place) else entry) + one.move
        there &= (row >= found.low[match]) & (row < found.high[match])
        return _taken(rows.column(self._key, self._make), row, there)


class _Folded:
    def __init__(self, one: MatchFold, names: tuple[str, ...], source: pa.Schema, time: pa.DataType) -> None:
        self._one = one
        self._of = _mask(one.of, names)
        self._slots = Slots([("", one.aggregate)], source, (), time=time, insert_only=True, fields={})

    def at(self, rows: RowColumns, found: Matches, match: I64, upto: I64) -> pa.Array:
        place, low, high = _ranges(self._of, found, match, upto, final=self._one.final)
        entries = pa.array(found.row[place])
        values = [
            rows.column((self._one.key, n), make).take(entries) for n, make in enumerate(self._slots.makers)
        ]
        return fold_ranges(self._slots, low, high, values)[0]


def _mask(of: tuple[str, ...], names: tuple[str, ...]) -> Mask:
    return np.array([not of or name in of for name in names], np.bool_)


def _ranges(of: Mask, found: Matches, match: I64, upto: I64, *, final: bool) -> tuple[I64, I64, I64]:
    """The rows of some variables, and where those of each match begin and end among them."""
    place = np.flatnonzero(of[found.variable])
    end = found.first[match + 1] if final else upto
    return place, np.searchsorted(place, found.first[match]), np.searchsorted(place, end)


def joined(parts: list[Formula]) -> Formula | None:
    """Conditions that must all hold, as one; None where there are none."""
    if not parts:
        return None
    value: Expr = parts[0].value
    for part in parts[1:]:
        value = value & part.value
    reads = {name: one for part in parts for name, one in part.reads}
    return Formula(value, tuple(reads.items()))
