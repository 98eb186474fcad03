"""`stream.match(cz.automaton(...))`: all runs of an automaton over the events in order of time.

      LE RE | up |      S -down-> fall -up-> rise       LE RE | begin length state |
       1  2 | 0  | +                                     1 31 | 1     1      fall  | +
       2  3 | 1  | +                              ->     2 31 | 1     2      rise  | +

Laws: items are the history's events at their LE, in order of time, ties by `order_by` and then by
payload, never by arrival. From every item a run begins; it lives while each next item takes an arc,
and for the time of ``within`` from its first item's LE. A match lives from its last item's LE until
its run's time is over. An item that has a null (or NaN) where an arc needs its value does not take it.
With a group, all this holds of the items of each group alone: the next item is the next of its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError
from caesura.fixpoint.automaton.arcs import Automaton
from caesura.fixpoint.automaton.written import item_columns, source
from caesura.plan import OUTPUT_ONLY, FeedbackRule, Holding, Need, Node, Operator, Properties, shown, ticks
from caesura.punctuation import Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class Match(Node):
    """An automaton over a whole stream, or over each group of it."""

    automaton: Automaton
    order_by: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    """Columns whose equal values make a stream of their own."""
    carried: tuple[str, ...] = ()
    """Columns of the last item of a match that leave with it."""

    kind = "automaton"

    @property
    def partitioning(self) -> str:  # type: ignore[override]
        return "key" if self.group else "one"

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns of an item that a match has."""
        return tuple(dict.fromkeys((*self.group, *self.carried)))

    def output_schema(self) -> pa.Schema:
        schema = self.inputs[0].schema
        auto = self.automaton
        auto.check(schema)
        for name in (*self.order_by, *self.beside):
            self.column(name)
        if self.within <= 0:
            raise PlanError(f"nothing fits within {self.within}.", remedy="Give a positive time.")
        for name in item_columns(auto):
            t = schema.field(name).type
            if not (pa.types.is_integer(t) or pa.types.is_floating(t)):
                raise PlanError(
                    f"'{name}' is {t}; registers hold numbers.", remedy="Cast it to bigint or double first."
                )
        source(auto)  # refuses what it cannot write
        fields = [("begin", self.time), ("length", pa.int64()), ("state", pa.string())]
        clash = [name for name in (*auto.registers, *self.beside) if name in ("begin", "length", "state")]
        if clash:
            what = "register" if clash[0] in auto.registers else "column"
            raise PlanError(f"a match has a column '{clash[0]}' already.", remedy=f"Rename the {what}.")
        first = [schema.field(name) for name in self.group]
        last = [schema.field(name) for name in self.beside if name not in self.group]
        return pa.schema([*first, *fields, *auto.register_types().items(), *last])

    @property
    def within(self) -> int:
        """How long a run may live, in ticks."""
        return ticks(self.automaton.within, self.time, "time of a match")

    def derive(self, *inputs: Properties) -> Properties:
        return Properties(insert_only=True, aligned=False, max_duration=self.within)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Any item may belong to any match: feedback stops here."""
        return OUTPUT_ONLY

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        if pattern.time_bound is None or pattern.without_time().attributes:
            return None
        return pattern

    def holds(self) -> tuple[Holding, ...]:
        return (Holding("events and runs", 0, (Need(0, ()),), until="start", size=self.within, each=2),)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return set(self.inputs[0].schema.names)

    def operator(self) -> Operator:
        from caesura.fixpoint.automaton.operator import Follow

        return Follow(self)

    def describe(self) -> str:
        auto = self.automaton
        parts = f"{len(auto.states)} states, {len(auto.arcs)} arcs, within {shown(self.within, self.time)}"
        by = f"by {', '.join(self.group)}; " if self.group else ""
        ends = "" if auto.accept is None else f"; complete in {', '.join(auto.accept)}"
        return by + parts + ends


def match(stream: Node, auto: Automaton, **options: Any) -> Match:
    """The matches of an automaton over a stream."""
    return Match(inputs=(stream,), automaton=auto, **options)
