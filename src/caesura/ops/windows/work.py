"""What is computed over windows: built-in aggregates in one pass, and the user's modules.

Both give, for units with their members, rows: the unit that each belongs to, its own stamps, its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from caesura.expr import Expr, compile_expr, type_of
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.slots import Slots
from caesura.ops.windows.units import Units
from caesura.udm import Use
from caesura.udm.adapters import Members, adapter
from caesura.udm.calls import Caller


class Rows(NamedTuple):
    """Results: the unit of each row, its stamps as the work gives them, and its columns."""

    unit: I64
    le: I64
    re: I64
    columns: list[pa.Array]


class UnitMembers(NamedTuple):
    """The members of units, for works: copies written out, in canonical order."""

    n: I64
    values: list[pa.Array]
    keys: Sequence[Any]
    """What names each unit, for states kept from one time to the next."""
    ids: I64
    """What names each member."""


class Work(Protocol):
    """Computes rows for units."""

    makers: list[Any]
    fields: list[pa.Field]
    incremental: bool
    ordered: bool
    """Whether members must come in canonical order."""

    def rows(self, units: Units, given: UnitMembers) -> Rows: ...
    def retain(self, group: Any, lo: int, hi: int, there: set[Any]) -> None: ...
    def forget(self, done: Sequence[Any]) -> None: ...
    def renumber(self, remaining: I64) -> None: ...
    def restored(self, members: int) -> None: ...
    def counts(self) -> dict[str, int]: ...
    @property
    def held(self) -> int:
        """How many states and members of the user's modules there are."""


class Folding:
    """Built-in aggregates: slots filled and emptied again."""

    incremental = False
    ordered = False

    def __init__(
        self, aggregates: Sequence[tuple[str, Aggregate]], schema: pa.Schema, time: pa.DataType
    ) -> None:
        self.slots = Slots(aggregates, schema, (), time=time, insert_only=True, fields={})
        self.makers = self.slots.makers
        self.fields = self.slots.value_types

    def columns(self, units: Units, given: UnitMembers) -> list[pa.Array]:
        """One column per aggregate, one value per unit."""
        if not self.slots.aggregates:
            return []
        count = len(units)
        name = np.arange(count).astype(np.uint64)
        self.slots.find(name, name)
        self.slots.open_as(name, name, pa.record_batch({}), {})
        self.slots.add(units.owner, given.n, given.values[: len(self.makers)])
        out = self.slots.results(np.arange(count))
        self.slots.drop(np.arange(count))
        self.slots.tidy()
        return out


class Aggregation:
    """Built-in aggregates and user-defined ones side by side: one row per unit."""

    def __init__(
        self, outputs: Sequence[tuple[str, Aggregate | Use]], schema: pa.Schema, time: pa.DataType
    ) -> None:
        self._outputs = outputs
        plain = [(n, o) for n, o in outputs if isinstance(o, Aggregate)]
        self._fold = Folding(plain, schema, time)
        self.makers, self.fields = list(self._fold.makers), list(self._fold.fields)
        self._calls: list[tuple[Caller, int, int]] = []
        for _, use in outputs:
            if isinstance(use, Use):
                self._calls.append(_mapped(self, use, schema, time))
        self.incremental = any(call.incremental for call, _, _ in self._calls)
        self.ordered = any(not call.incremental for call, _, _ in self._calls)

    @property
    def callers(self) -> list[tuple[Caller, int, int]]:
        """The modules at work, and which of the value columns each reads."""
        return self._calls

    def rows_of(self, members: Members, results: Sequence[list[Any]]) -> Rows:
        """One row per unit, from what each module computed."""
        columns = [
            call.column(members, some) for (call, _, _), some in zip(self._calls, results, strict=True)
        ]
        return Rows(np.arange(len(members.start)), members.low, members.high, columns)

    @property
    def slots(self) -> Slots:
        """The built-in aggregates."""
        return self._fold.slots

    def rows(self, units: Units, given: UnitMembers) -> Rows:
        plain = iter(self._fold.columns(units, given))
        called = iter(self._calls)
        columns = []
        for _, output in self._outputs:
            if isinstance(output, Aggregate):
                columns.append(next(plain))
                continue
            call, first, last = next(called)
            columns.append(call.values(_members(units, given, first, last), given.keys))
        return Rows(np.arange(len(units)), units.low, units.high, columns)

    def retain(self, group: Any, lo: int, hi: int, there: set[Any]) -> None:
        for call, _, _ in self._calls:
            call.retain(group, lo, hi, there)

    def forget(self, done: Sequence[Any]) -> None:
        for call, _, _ in self._calls:
            call.forget(done)

    def renumber(self, remaining: I64) -> None:
        for call, _, _ in self._calls:
            call.renumber(remaining)

    def restored(self, members: int) -> None:
        for call, _, _ in self._calls:
            call.restored(members)

    def counts(self) -> dict[str, int]:
        return _summed([call for call, _, _ in self._calls])

    @property
    def held(self) -> int:
        return sum(call.held for call, _, _ in self._calls)


class Application:
    """A user-defined operator: any number of rows per unit."""

    def __init__(self, use: Use, schema: pa.Schema, time: pa.DataType) -> None:
        self.makers: list[Any] = []
        self.fields: list[pa.Field] = []
        self._call, self._first, self._last = _mapped(self, use, schema, time)
        self.incremental = self._call.incremental
        self.ordered = not self.incremental

    @property
    def callers(self) -> list[tuple[Caller, int, int]]:
        """The module at work, and the value columns that it reads."""
        return [(self._call, self._first, self._last)]

    def rows_of(self, members: Members, results: Sequence[list[Any]]) -> Rows:
        """The rows that the module gave for each unit."""
        return Rows(*self._call.stamped(members, results[0]))

    def rows(self, units: Units, given: UnitMembers) -> Rows:
        members = _members(units, given, self._first, self._last)
        unit, le, re, columns = self._call.rows(members, given.keys)
        return Rows(unit, le, re, columns)

    def retain(self, group: Any, lo: int, hi: int, there: set[Any]) -> None:
        self._call.retain(group, lo, hi, there)

    def forget(self, done: Sequence[Any]) -> None:
        self._call.forget(done)

    def renumber(self, remaining: I64) -> None:
        self._call.renumber(remaining)

    def restored(self, members: int) -> None:
        self._call.restored(members)

    def counts(self) -> dict[str, int]:
        return _summed([self._call])

    @property
    def held(self) -> int:
        return self._call.held


def _mapped(
    work: Aggregation | Application, use: Use, schema: pa.Schema, time: pa.DataType
) -> tuple[Caller, int, int]:
    """A caller, and which of the value columns are its own."""
    first = len(work.makers)
    for name, expr in mapped(use, schema):
        work.makers.append(compile_expr(expr, schema, time=time))
        work.fields.append(pa.field(name, type_of(expr, schema, time=time)))
    names = [f.name for f in work.fields[first:]]
    return Caller(use, adapter(use.module, names), time), first, len(work.makers)


def mapped(use: Use, schema: pa.Schema) -> list[tuple[str, Expr]]:
    """The module's columns, each with the expression that fills it."""
    from caesura.udm.mapping import mapping

    return mapping(use, schema)


def _members(units: Units, given: UnitMembers, first: int, last: int) -> Members:
    return Members(
        units.start, units.end, units.low, units.high, units.owner, units.le, units.re, given.n, given.ids,
        given.values[first:last],
    )  # fmt: skip


def _summed(calls: Sequence[Caller]) -> dict[str, int]:
    out: dict[str, int] = {}
    for call in calls:
        for name, count in call.counts.items():
            out[name] = out.get(name, 0) + count
    return out
