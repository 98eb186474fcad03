"""An automaton with registers, as a value: arcs from state to state, what they test, what they change.

>>> from caesura.expr import col
>>> up, down = col("up") == 1, col("up") == 0
>>> valley = Automaton((Arc("S", "fall", down, {"m": col("m") + 1}),
...                     Arc("fall", "fall", down, {"m": col("m") + 1}),
...                     Arc("fall", "rise", up & (col("m") > 0), {"m": col("m") - 1}),
...                     Arc("rise", "rise", up & (col("m") > 0), {"m": col("m") - 1})),
...                    {"m": 0}, within=30, accept={"rise": col("m") == 0})
>>> valley.states
('S', 'fall', 'rise')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Expr, attributes, col, conjuncts, lit, reads_time, type_of
from caesura.plan.duration import Duration


@dataclass(frozen=True, eq=False)
class Arc:
    """One move: taken by an item for which ``when`` is true; it may change registers."""

    source: str
    target: str
    when: Expr = field(default_factory=lambda: lit(True))
    changes: Mapping[str, Expr] = field(default_factory=dict)

    def __str__(self) -> str:
        made = "".join(f", {name} = {expr}" for name, expr in self.changes.items())
        return f"{self.source} -> {self.target} when {self.when}{made}"


@dataclass(frozen=True, eq=False)
class Automaton:
    """Arcs, registers with their first values, and how long a match may take."""

    arcs: tuple[Arc, ...]
    registers: Mapping[str, int | float]
    within: Duration
    start: str = "S"
    accept: Mapping[str, Expr] | None = None
    """The states in which a match is complete, with a test of the registers; None: all are given."""

    @cached_property
    def states(self) -> tuple[str, ...]:
        """All states, the start first."""
        named = [self.start, *(s for arc in self.arcs for s in (arc.source, arc.target))]
        return tuple(dict.fromkeys(named))

    @property
    def key(self) -> str:
        """Equal for automata that do the same."""
        ends = None if self.accept is None else {s: str(e) for s, e in self.accept.items()}
        return f"{[str(a) for a in self.arcs]} {dict(self.registers)} {self.within} {self.start} {ends}"

    def register_types(self) -> dict[str, pa.DataType]:
        """Whole numbers stay so; a register with a fraction in it is a double."""
        kinds = {True: pa.float64(), False: pa.int64()}
        return {name: kinds[isinstance(value, float)] for name, value in self.registers.items()}

    def scope(self, schema: pa.Schema) -> pa.Schema:
        """The columns of an item and the registers, as an arc sees them."""
        both = [name for name in self.registers if name in schema.names]
        if both:
            raise PlanError(
                f"'{both[0]}' is a register and a column of the stream.", remedy="Rename one of them."
            )
        return pa.schema([*schema, *self.register_types().items()])

    def check(self, schema: pa.Schema) -> None:
        """Refuses arcs that make no sense over items of this schema."""
        if not self.arcs:
            raise PlanError("an automaton without arcs matches nothing.", remedy="Give at least one arc.")
        if not any(arc.source == self.start for arc in self.arcs):
            raise PlanError(
                f"no arc leaves the start '{self.start}'.",
                remedy="Let an arc begin there, or name another start=. "
                + closest(self.start, {arc.source for arc in self.arcs}),
            )
        scope, types = self.scope(schema), self.register_types()
        for arc in self.arcs:
            for expr in (arc.when, *arc.changes.values()):
                if reads_time(expr):
                    raise PlanError(
                        f"'{expr}' reads a lifetime.",
                        remedy="Select start() into a column before the automaton.",
                    )
            if not pa.types.is_boolean(type_of(arc.when, scope)):
                raise PlanError(
                    f"the arc {arc} tests '{arc.when}', which is no condition.", remedy="Compare two values."
                )
            for name, expr in arc.changes.items():
                self._check_change(arc, name, expr, scope, types)
        self._check_accept(types)

    def _check_change(
        self, arc: Arc, name: str, expr: Expr, scope: pa.Schema, types: Mapping[str, pa.DataType]
    ) -> None:
        if name not in types:
            raise PlanError(
                f"the arc {arc} changes '{name}', which is no register.",
                remedy=f"Declare it with its first value: {{'{name}': 0}}. {closest(name, self.registers)}",
            )
        got = type_of(expr, scope)
        whole = pa.types.is_integer(got)
        if not (whole or (pa.types.is_floating(got) and types[name] == pa.float64())):
            raise PlanError(
                f"'{name}' is {types[name]}, but becomes '{expr}' of type {got}.",
                remedy=f"Start it with a fraction ({name}=0.0), or cast the value.",
            )

    def _check_accept(self, types: Mapping[str, Any]) -> None:
        for state, test in (self.accept or {}).items():
            if state not in self.states:
                raise PlanError(f"there is no state '{state}'.", remedy=closest(state, self.states))
            if not attributes(test) <= set(types):
                raise PlanError(
                    f"'{test}' may read registers only.", remedy="Keep what it needs in a register."
                )


def split(arc: Arc, registers: Mapping[str, Any]) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """What an arc tests of the item alone, that it has what registers need among it; and the rest."""
    parts = conjuncts(arc.when)
    tests = tuple(p for p in parts if attributes(p) & set(registers))
    alone = tuple(p for p in parts if not attributes(p) & set(registers))
    read = {name for expr in (*tests, *arc.changes.values()) for name in attributes(expr)}
    there = tuple(col(name).is_not_null() for name in sorted(read - set(registers)))
    return (*alone, *there), tests
