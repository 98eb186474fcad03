"""What conditions know of a match, in registers: the last and first rows of variables, and aggregates.

A row that is matched changes the registers of its variable, whatever the path was; a condition is a function
of them. So searches that come to a step and a row with the same registers come to the same end, and the time
is polynomial in rows, but for sums that all differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import pyarrow as pa

from caesura.expr import attributes, compile_expr
from caesura.expr.types import kind
from caesura.ops.aggregate.kinds import result_type
from caesura.ops.match.dependent import Matched, asked_behind, merging
from caesura.ops.match.formula import NUMBER, Formula, MatchFold, Navigation
from caesura.ops.match.scalars import BeyondScalarsError, ScalarRead, scalar
from caesura.ops.match.values import RowColumns

VALUE_KINDS = ("integer", "decimal", "float", "string", "date")
UNIT = 1 << 1074
"""Every double is a whole number of these parts of one."""
Change = Callable[[Any, int], Any]


class AskedOf(NamedTuple):
    """What a condition is asked of: the registers before the row, and that row."""

    registers: tuple[Any, ...]
    at: int


@dataclass(frozen=True)
class MatchRegister:
    """One register: what it begins with, the variables whose rows change it, and how."""

    begin: Any
    of: tuple[str, ...]
    change: Change


class ConditionRegisters:
    """Conditions by variable as functions of registers, over rows of groups."""

    def __init__(
        self,
        conditions: Mapping[str, Formula],
        names: tuple[str, ...],
        steps: list[list[int]],
        rows: RowColumns,
    ) -> None:
        self._rows = rows
        self._low = self._high = self._number = 0
        self._registers: list[MatchRegister] = []
        self._places: dict[object, int] = {}
        self.forgets = any(NUMBER in attributes(one.value) for one in conditions.values())
        self._conditions: dict[int, ScalarRead] = {}
        asks: dict[int, frozenset[int]] = {}
        for name, formula in conditions.items():
            at = names.index(name)
            self._conditions[at], asks[at] = self._condition(name, formula)
        self._live = [sorted(asked) for asked in asked_behind(steps, asks)]
        self._merging = merging(steps)
        self._changes = [
            [(n, one.change) for n, one in enumerate(self._registers) if not one.of or name in one.of]
            for name in names
        ]
        self._begin = tuple(one.begin for one in self._registers)

    def begin(self, low: int, high: int, number: int) -> None:
        self._low, self._high, self._number = low, high, number

    def key(self, step: int, at: int, path: Matched | None) -> Hashable | None:
        if not self._merging[step]:
            return None
        known: Any = self._begin if path is None else path.known
        return (step, at, *[known[n] for n in self._live[step]])

    def take(self, path: Matched | None, at: int, step: int, variable: int) -> Matched | None:
        known: Any = self._begin if path is None else path.known
        condition = self._conditions.get(variable)
        if condition is not None and condition(AskedOf(known, at)) is not True:
            return None
        changes = self._changes[variable]
        if changes:
            changed = list(known)
            for n, change in changes:
                changed[n] = change(changed[n], at)
            known = tuple(changed)
        return Matched(path, at, step, variable, known)

    # -- what a condition reads ----------------------------------------------------------------------------

    def _condition(self, variable: str, formula: Formula) -> tuple[ScalarRead, frozenset[int]]:
        """A condition as a function, and the registers that it reads."""
        used: set[int] = set()
        reads: dict[str, ScalarRead] = {NUMBER: lambda _: self._number}
        for name, one in formula.reads:
            counts = not one.of or variable in one.of
            if isinstance(one, MatchFold):
                reads[name] = self._fold(one, used, counts=counts)
            elif one.own_row(variable):
                reads[name] = self._own(one)
            else:
                reads[name] = self._navigated(one, used, counts=counts)
        schema = formula.schema(self._rows.payload.schema, self._rows.time)
        return scalar(formula.value, schema, self._rows.time, reads), frozenset(used)

    def _place(self, key: object, register: MatchRegister, used: set[int]) -> int:
        if key not in self._places:
            self._places[key] = len(self._registers)
            self._registers.append(register)
        used.add(self._places[key])
        return self._places[key]

    def _values(self, one: Navigation | MatchFold) -> list[Any]:
        """The value of every row, as Python has it."""
        value = one.value if isinstance(one, Navigation) else one.aggregate.value
        if value is None:
            raise BeyondScalarsError(str(one))
        make = compile_expr(value, self._rows.payload.schema, time=self._rows.time)
        column = self._rows.column(value.key, make)
        found: list[Any] = column.to_pylist()
        if kind(column.type) not in VALUE_KINDS or pa.types.is_float16(column.type):
            raise BeyondScalarsError(str(column.type))
        if kind(column.type) == "float" and not all(v is None or isfinite(v) for v in found):
            raise BeyondScalarsError("a number that is none")
        return found

    def _own(self, one: Navigation) -> ScalarRead:
        values, move = self._values(one), one.move
        if not move:
            return lambda known: values[known.at]

        def near(known: AskedOf) -> Any:
            row = known.at + move
            return values[row] if self._low <= row < self._high else None

        return near

    def _navigated(self, one: Navigation, used: set[int], *, counts: bool) -> ScalarRead:
        """FIRST and LAST; where the row itself ``counts``, it stands behind those of the register."""
        values, move, by = self._values(one), one.move, one.by
        held = by + 1 if one.first or not counts else by
        change = _first_rows(held) if one.first else _last_rows(held)
        n = self._place(("rows", one.of, one.first, held), MatchRegister((), one.of, change), used)

        def row_of(known: AskedOf) -> Any:
            rows = known.registers[n]
            if len(rows) == held:
                row = rows[-1] if one.first else rows[0]
            elif one.first and counts and len(rows) == by:
                row = known.at
            else:
                return None
            row += move
            return values[row] if self._low <= row < self._high else None

        return row_of

    def _fold(self, one: MatchFold, used: set[int], *, counts: bool) -> ScalarRead:
        """An aggregate; where the row itself ``counts``, it comes to those of the register."""
        begin, change, finish = self._folding(one)
        n = self._place(("fold", one.aggregate.key, one.of), MatchRegister(begin, one.of, change), used)
        if not counts:
            return lambda known: finish(known.registers[n])
        return lambda known: finish(change(known.registers[n], known.at))

    def _folding(self, one: MatchFold) -> tuple[Any, Change, Callable[[Any], Any]]:
        """What an aggregate begins with, what a row adds to it, and its result."""
        kind_of = one.aggregate.kind
        if kind_of == "count" and one.aggregate.value is None:
            return 0, lambda count, _: count + 1, _same
        values = self._values(one)
        if kind_of == "count":
            there = [value is not None for value in values]
            return 0, lambda count, at: count + there[at], _same
        if kind_of in ("min", "max"):
            return None, _extreme(values, min if kind_of == "min" else max), _same
        if kind_of in ("sum", "avg"):
            return self._sum(one, values)
        raise BeyondScalarsError(str(one))

    def _sum(self, one: MatchFold, values: list[Any]) -> tuple[Any, Change, Callable[[Any], Any]]:
        type = result_type(one.aggregate, self._rows.payload.schema, self._rows.time)
        whole = all(v is None or isinstance(v, int) for v in values)
        if not whole and not all(v is None or isinstance(v, float) for v in values):
            raise BeyondScalarsError(str(one))
        unit = 1 if whole else UNIT
        parts = values if whole else [None if v is None else _parts(v) for v in values]

        def finish(held: tuple[int, int]) -> Any:
            total, count = held
            if not count:
                return None
            if one.aggregate.kind == "avg":
                return total / unit / count
            if kind(type) == "float":
                return total / unit
            if not -(1 << 63) <= total < 1 << 63:
                raise BeyondScalarsError(str(total))
            return total

        return (0, 0), _added(parts), finish


def _same(value: Any) -> Any:
    return value


def _last_rows(count: int) -> Change:
    return lambda rows, at: (*rows, at)[-count:]


def _first_rows(count: int) -> Change:
    return lambda rows, at: rows if len(rows) == count else (*rows, at)


def _extreme(values: list[Any], best: Callable[[Any, Any], Any]) -> Change:
    def change(held: Any, at: int) -> Any:
        value = values[at]
        return held if value is None else value if held is None else best(held, value)

    return change


def _added(values: list[Any]) -> Change:
    def change(held: tuple[int, int], at: int) -> tuple[int, int]:
        value = values[at]
        return held if value is None else (held[0] + value, held[1] + 1)

    return change


def _parts(value: float) -> int:
    top, bottom = value.as_integer_ratio()
    return top * (UNIT // bottom)
