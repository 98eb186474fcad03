"""`AsOf`: each left event beside the right event with equal keys whose start is nearest to its own.

     trades                quotes               join_asof(quotes, on="id")
      3 4 | id=7 | +        1 9 | 7 a | +         3 4 | 7 b | +
      9 10 | id=7 | +       2 3 | 7 b | +         9 10 | 7 b | +

Only starts count on the right: a quote that has ended is still the last one. Of right events that start
together, the last in order of values is taken looking backward, the first looking forward; as near on both
sides, the one before. A null key meets nothing.

Law: every left event gives at most one row, with the left event's lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.kernels.ticks import FIRST
from caesura.ops.join.node import Join
from caesura.plan import FeedbackRule, Holding, Need, Operator, Properties, Translation, shown
from caesura.plan.roles import OnLoop, PunctuatedBy
from caesura.punctuation import INFINITY, Image, Pattern, SchemaMapping, lt

Direction = Literal["backward", "forward", "nearest"]
DIRECTIONS: tuple[Direction, ...] = ("backward", "forward", "nearest")


@dataclass(frozen=True, eq=False, kw_only=True)
class AsOf(Join):
    """Left events with their nearest right ones. Keys, columns and checks are a join's."""

    direction: Direction = "backward"
    tolerance: int | None = None
    """How many ticks apart the starts may lie; None for any."""
    exact: bool = True
    """Whether an event that starts at the same time counts."""

    kind = "join_asof"
    forward = False
    loop_remedy = "Join what comes out of the loop."

    @property
    def caution(self) -> str:
        """Starts need not be the same, nor rows live at once."""
        return ""

    @property
    def punctuated_by(self) -> PunctuatedBy:  # type: ignore[override]
        return "rows" if self.waits_for_rows else "slowest"

    @property
    def waits_for_rows(self) -> bool:
        """Whether a left event may wait for ever for the right one behind it."""
        return self.direction != "backward" and self.tolerance is None

    def output_schema(self) -> pa.Schema:
        if self.how not in ("inner", "left"):
            raise PlanError(
                f"an as-of join is 'left' or 'inner'; got '{self.how}'.",
                remedy="Take how='inner' to leave out left events without a match; to keep right ones, "
                "swap the streams.",
            )
        if self.direction not in DIRECTIONS:
            raise PlanError(
                f"there is no direction '{self.direction}'.",
                remedy=f"Choose one of: {', '.join(DIRECTIONS)}.",
            )
        if self.tolerance is not None and self.tolerance < 0:
            raise PlanError(
                "a tolerance below zero lets nothing match.",
                remedy='Give how far apart two starts may lie, like tolerance="5m"; '
                "direction= says on which side.",
            )
        return super().output_schema()

    def derive(self, *inputs: Properties) -> Properties:
        left = inputs[0]
        return Properties(
            points=left.points,
            aligned=left.fixed_ends,
            max_duration=left.max_duration,
            endless=left.endless,
        )

    @property
    def mappings(self) -> tuple[SchemaMapping, SchemaMapping]:
        """A late right row of one value may take the place of another: on the right only keys speak."""
        left = {name: Image(name) for name in self.inputs[0].schema.names}
        return SchemaMapping(left), SchemaMapping({a: Image(b) for a, b in self.on})

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """The slower side's time; looking forward, the right side's less the tolerance.

        Without a tolerance the output waits for rows, and only time passes.
        """
        bound = pattern.time_bound
        if bound is None or (self.waits_for_rows and pattern.without_time().attributes):
            return None
        if port == 1 and self.direction != "backward" and bound != INFINITY and self.tolerance:
            pattern = pattern.replace("time", lt(max(FIRST, bound - self.tolerance)))
        return self.mappings[port].down(pattern)

    def holds(self) -> tuple[Holding, ...]:
        """Left rows until their match and their end are settled; the last right row of every key."""
        left, right = (Need(port, self.keys(port)) for port in (0, 1))
        own = Need(0, tuple(self.inputs[0].schema.names))
        reach = self.tolerance or 0
        until: Literal["start", "end"] = "start" if self.inputs[0].properties.fixed_ends else "end"
        rows = Holding("left rows", 0, (own, right), until)
        if self.waits_for_rows:
            why = "the next event of the right may come at any time"
            rows = Holding("left rows", 0, (own, right), "forever", holds_back=True, why=why)
        elif self.direction != "backward":
            rows = Holding("left rows", 0, (own, right), until, size=reach)
        if self.direction == "forward":
            return rows, Holding("right rows", 1, (left, right), "start")
        if self.tolerance is not None:
            return rows, Holding("right rows", 1, (left, right), "start", size=2 * reach)
        return rows, Holding("the last right rows", 1, (left, right), "forever", one_per=self.keys(1))

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """A left row is its own result; a right row stands before others, so nothing is sent to the right."""
        left = Translation.of(self.inputs[0].schema.names, self.inputs[0].properties)
        return (FeedbackRule((left, None), "rows", "input"),)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        """All columns of the right: rows that start together are told apart by them."""
        return super().needs(port, wanted) if port == 0 else set(self.inputs[1].schema.names)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return OnLoop(monotone=False)

    def looks_up(self, port: int) -> bool:
        return False

    @property
    def ends_with_first(self) -> bool:
        return True

    @property
    def shows_all(self) -> bool:
        return False

    def operator(self) -> Operator:
        from caesura.ops.asof.physical import AsOfOperator

        return AsOfOperator(self)

    def describe(self) -> str:
        keys = ", ".join(a if a == b else f"{a} = {b}" for a, b in self.on)
        near = f", within {shown(self.tolerance, self.time)}" if self.tolerance is not None else ""
        other = "" if self.exact else ", never at the same time"
        return f"{self.how}, {self.direction} on {keys or 'nothing'}{near}{other}"
