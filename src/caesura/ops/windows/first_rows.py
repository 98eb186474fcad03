"""The first rows of each window, with their ranks: what `top` computes over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.expr import col, compile_expr, type_of
from caesura.kernels.hashing import I64
from caesura.ops.top import First
from caesura.ops.top.order import changes, ranks
from caesura.ops.windows.units import Units
from caesura.ops.windows.work import Rows, UnitMembers


class FirstRows:
    """Members sorted by the order, then by start and values; the first n of each unit are rows."""

    incremental = False
    ordered = False
    held = 0

    def __init__(self, first: First, group: Sequence[str], schema: pa.Schema, time: pa.DataType) -> None:
        self._first = first
        names = [name for name in schema.names if name not in group]
        self._columns = len(names)
        values = [col(name) for name in names] + [order.value for order in first.order]
        self.makers = [compile_expr(value, schema, time=time) for value in values]
        self.fields = [schema.field(name) for name in names]
        for place, order in enumerate(first.order):
            self.fields.append(pa.field(f"\0order{place}", type_of(order.value, schema, time=time)))

    def rows(self, units: Units, given: UnitMembers) -> Rows:
        columns, by = given.values[: self._columns], given.values[self._columns :]
        keys = [
            ~ranks(values) if order.descending else ranks(values)
            for values, order in zip(by, self._first.order, strict=True)
        ]
        values = [ranks(column) for column in reversed(columns)]
        order = np.lexsort((*values, units.le, *reversed(keys), units.owner))
        new = changes([units.owner, *keys], order)
        copies = given.n[order]
        if (copies != 1).any():
            order, new = np.repeat(order, copies), _first_copies(new, copies)
        owner = units.owner[order]
        begin = np.searchsorted(owner, owner)
        number = np.arange(len(order)) - begin
        shown = np.flatnonzero(number < (len(order) if self._first.n is None else self._first.n))
        tie, dense = np.flatnonzero(new), np.cumsum(new)
        held = {
            "row_number": number + 1,
            "rank": tie[dense - 1] - begin + 1,
            "dense_rank": dense - dense[begin] + 1,
        }
        out = [column.take(pa.array(order[shown])) for column in columns]
        out += [pa.array(held[kind][shown]) for _, kind in self._first.ranks]
        unit = owner[shown]
        return Rows(unit, units.low[unit], units.high[unit], out)

    def retain(self, group: Any, lo: int, hi: int, there: set[Any]) -> None:
        """Nothing is kept from one time to the next."""

    def forget(self, done: Sequence[Any]) -> None:
        """Nothing is kept from one time to the next."""

    def renumber(self, remaining: I64) -> None:
        """Nothing is kept from one time to the next."""

    def restored(self, members: int) -> None:
        """Nothing is kept from one time to the next."""

    def counts(self) -> dict[str, int]:
        return {}


def _first_copies(new: Any, copies: I64) -> Any:
    """Which of the copies, written out, differ from the one before: the first ones of rows that do."""
    out = np.zeros(int(copies.sum()), np.bool_)
    out[np.cumsum(copies) - copies] = new
    return out
