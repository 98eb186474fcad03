"""A loop as a finite value: `Fixpoint` closes what `Recursive`, its placeholder, stands for.

     seed ──────────────┐
                        v
     recursive ─ step ─ fixpoint ──> output
        ^                  │
        └── around the loop ┘

Law: at every instant the output is the least solution of `result = seed + step(result)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.ops.input import Turn
from caesura.ops.union import signature
from caesura.plan import TICKS, FeedbackRule, Holding, Need, Node, Operator, Properties, both
from caesura.plan.roles import OnLoop
from caesura.punctuation import Pattern

Progress = Literal["hybrid", "probing", "high_water", "staged"]
PROGRESS: tuple[Progress, ...] = ("hybrid", "probing", "high_water", "staged")
RANK = "\x00rank"
"""The hidden column that travels with the rows of a loop: how deep their derivation is."""
CUT = "cut"
"""The column that says of a row that it came after the last round that was allowed."""


@dataclass(frozen=True)
class Keep:
    """What a loop keeps: one copy of each row, or, per key, the row with the best value."""

    per: tuple[str, ...] = ()
    """The key; all columns where there is no value."""
    value: str = ""
    best: Literal["least", "greatest"] = "least"

    def further(self, schema: pa.Schema) -> list[str]:
        """The columns of a row besides its key and its value."""
        return [n for n in schema.names if n not in (*self.per, self.value)] if self.value else []

    def __str__(self) -> str:
        names = [name for name in self.per if not name.startswith("\x00")]
        return f"{self.best} {self.value} per {', '.join(names) or 'all'}" if self.value else "distinct"

    @property
    def key(self) -> str:
        """What makes two of them equal."""
        return f"{self.best} {self.value} per {', '.join(self.per) or 'all'}" if self.value else "distinct"


@dataclass(frozen=True, eq=False, kw_only=True)
class Recursive(Node):
    """The stream that goes around a loop, as the loop's own steps see it."""

    loop: str
    payload: pa.Schema
    time_type: pa.DataType = TICKS
    known: Properties = field(default_factory=Properties)

    kind = "recursive"
    forward = True

    def output_schema(self) -> pa.Schema:
        return self.payload

    @property
    def opens(self) -> str:
        return self.loop

    @property
    def time(self) -> pa.DataType:
        return self.time_type

    def derive(self, *inputs: Properties) -> Properties:
        return self.known

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def holds(self) -> tuple[Holding, ...]:
        return ()

    def operator(self) -> Operator:
        return Turn()

    def describe(self) -> str:
        return f"of loop {self.loop[:6]}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Fixpoint(Node):
    """Everything that follows from a seed by any number of steps."""

    loop: str
    progress: Progress = "hybrid"
    keep: Keep | None = None
    """None where every derivation counts as a row of its own."""
    max_rounds: int | None = None
    because: str = ""
    """Why the loop ends."""
    ranked: bool = False
    """Whether rows of the loop carry the depth of their derivation."""
    across: bool = False
    """Whether the loop's rows may lie in several buckets, and cross between them in every round."""

    kind = "fixpoint"
    partitioning = "one"
    forward = True

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return OnLoop(no_depth="a loop within it derives rows in rounds of its own")

    @property
    def closes(self) -> str:
        return self.loop

    @property
    def crosses(self) -> bool:
        return self.across

    def output_schema(self) -> pa.Schema:
        plain = self.plain
        return plain.append(pa.field(CUT, pa.bool_())) if self.max_rounds is not None else plain

    @property
    def plain(self) -> pa.Schema:
        """The columns that the seed and the loop share."""
        seed, body = self.inputs
        own = pa.schema([f for f in body.schema if f.name != RANK])
        if seed.schema.names != own.names or seed.schema.types != own.types:
            raise PlanError(
                f"the seed has the columns {signature(seed.schema)}, the step gives {signature(own)}.",
                remedy="Bring the step's result to the seed's columns, in their order, with select and cast.",
            )
        return seed.schema

    def derive(self, *inputs: Properties) -> Properties:
        if self.keep is not None:
            return Properties()
        return both(*inputs)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return None if pattern.time_bound is None or pattern.without_time().attributes else pattern

    def holds(self) -> tuple[Holding, ...]:
        held = []
        if self.progress == "high_water":
            why = "with progress='high_water' a loop knows its time only up to the latest row in it"
            unheard = Holding("promises on time", 0, (Need(0, ()),), "forever", holds_back=True, why=why)
            held.append(unheard)
        if self.keep is not None:
            needs = (Need(0, ()), Need(1, ()))
            held += [Holding(w, port, needs, each=3) for port, w in ((0, "seeds"), (1, "derivations"))]
        return tuple(held)

    def keys(self, port: int) -> tuple[str, ...]:
        """A loop that keeps one row per key must see equal keys together."""
        if self.keep is None:
            return ()
        return self.keep.per or tuple(self.inputs[0].schema.names)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Patterns on what goes around unchanged go to the seed; all else is guarded on its way out."""
        from caesura.fixpoint.feedback import loop_rules

        return loop_rules(self)

    def operator(self) -> Operator:
        from caesura.fixpoint.operator import FlyingFixpoint
        from caesura.fixpoint.selected import SelectedFixpoint

        return FlyingFixpoint(self) if self.keep is None else SelectedFixpoint(self)

    def describe(self) -> str:
        parts = [f"loop {self.loop[:6]}", self.progress]
        parts += [str(self.keep)] if self.keep is not None else []
        parts += [f"at most {self.max_rounds} rounds"] if self.max_rounds is not None else []
        parts += ["across buckets"] if self.across else []
        parts += [f"ends because {self.because}"] if self.because else []
        return "; ".join(parts)
