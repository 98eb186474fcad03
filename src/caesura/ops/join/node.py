"""The join as a step of a plan: its columns, its checks, and how punctuation passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, attributes, reads_time, type_of
from caesura.ops.join.meeting import may_meet
from caesura.plan import (
    FeedbackRule,
    Holding,
    Need,
    Node,
    Operator,
    OwnFeedback,
    Properties,
    Translation,
)
from caesura.plan.lifetimes import Inside, Whole
from caesura.plan.roles import WHOLE, OnLoop, PunctuatedBy
from caesura.punctuation import INFINITY, MIN_TIME, TIME, Image, Pattern, SchemaMapping, ge, le, lt

How = Literal["inner", "left", "right", "full", "semi", "anti"]
HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True, eq=False, kw_only=True)
class Join(Node):
    """Events of two streams with equal keys (and a residual predicate), where both live."""

    on: tuple[tuple[str, str], ...]
    how: How = "inner"
    residual: Expr | None = None
    thrifty: bool = False
    """Whether it tells one side where the other has nothing for certain."""
    impatient: bool = False
    """Whether it asks one side first for what the other has."""
    delays: bool = False
    """Whether it passes on what one side alone promises, once none of the rows that it speaks of is held."""

    kind = "join"
    partitioning = "key"
    forward = True
    punctuated_by: ClassVar[PunctuatedBy] = "slowest"

    def output_schema(self) -> pa.Schema:
        self._check()
        left, right = self.inputs
        if self.how in ("semi", "anti"):
            return left.schema
        kept = [right.schema.field(name) for name in self.right_columns]
        doubled = [f.name for f in kept if f.name in left.schema.names]
        if doubled:
            raise PlanError(
                f"both sides have a column '{doubled[0]}' that is not a key.",
                remedy=f"Rename one first, for example select(..., right_{doubled[0]}=col('{doubled[0]}')).",
            )
        return pa.schema([*left.schema, *kept])

    def _check(self) -> None:
        if self.how not in HOWS:
            raise PlanError(f"there is no join '{self.how}'.", remedy=f"Choose one of: {', '.join(HOWS)}.")
        if (self.thrifty or self.impatient) and self.how != "inner":
            raise PlanError(
                f"a thrifty or impatient join is an inner one; this is '{self.how}'.",
                remedy="Rows that meet nothing are part of the others' results: leave the option out.",
            )
        if self.delays and (self.how != "inner" or self.sends_feedback):
            raise PlanError(
                "a join that delays its promises is a plain inner one.",
                remedy="Leave delays out, or take how='inner' without thrifty and impatient.",
            )
        left, right = self.inputs
        for l_name, r_name in self.on:
            l_type, r_type = self.column(l_name, 0).type, self.column(r_name, 1).type
            if l_type != r_type:
                raise PlanError(
                    f"the key '{l_name}' is {l_type} on the left and '{r_name}' is {r_type} on the right.",
                    remedy=f"Cast one side first, for example col('{r_name}').cast('{l_type}').",
                )
        if left.time != right.time:
            raise PlanError(
                f"the left stream's time is {left.time}, the right one's is {right.time}.",
                remedy="Read both with integers, or both with timestamps, as their time column.",
            )
        if self.residual is not None:
            self._check_residual(self.residual)

    def _check_residual(self, residual: Expr) -> None:
        if reads_time(residual):
            raise PlanError(
                f"the predicate '{residual}' reads start() or end(), which differ on the two sides.",
                remedy="Select them into columns before the join.",
            )
        got = type_of(residual, self.pair_schema)
        if not pa.types.is_boolean(got):
            raise PlanError(
                f"the predicate '{residual}' is of type {got}; wanted boolean.", remedy="Compare two columns."
            )

    @cached_property
    def right_columns(self) -> list[str]:
        """The right columns that are not keys."""
        keys = {r for _, r in self.on}
        return [name for name in self.inputs[1].schema.names if name not in keys]

    @cached_property
    def pair_schema(self) -> pa.Schema:
        """The columns that a pair has, which the residual predicate may read."""
        left, right = self.inputs
        return pa.schema([*left.schema, *(right.schema.field(n) for n in self.right_columns)])

    @cached_property
    def preserved(self) -> tuple[bool, bool]:
        """Which sides' events are told where they are matched or not."""
        return self.how in ("left", "full", "semi", "anti"), self.how in ("right", "full")

    def derive(self, *inputs: Properties) -> Properties:
        left, right = inputs
        if self.how != "inner":
            return Properties(
                points=left.points and not self.preserved[1], max_duration=self._longest(*inputs)
            )
        return Properties(
            insert_only=left.insert_only and right.insert_only,
            points=left.points or right.points,
            aligned=left.fixed_ends and right.fixed_ends,
            max_duration=self._longest(left, right),
            endless=left.endless and right.endless,
        )

    def _longest(self, left: Properties, right: Properties) -> int | None:
        if self.how in ("left", "semi", "anti"):
            return left.max_duration
        known = [p.max_duration for p in (left, right) if p.max_duration is not None]
        if self.how == "inner":
            return min(known, default=None)
        return max(known) if len(known) == 2 else None

    @cached_property
    def mappings(self) -> tuple[SchemaMapping, SchemaMapping]:
        """How each side's attributes appear in the output."""
        left = {name: Image(name) for name in self.inputs[0].schema.names}
        right = {l_name: Image(r_name) for l_name, r_name in self.on}
        if self.how not in ("semi", "anti"):
            right.update({name: Image(name) for name in self.right_columns})
        return SchemaMapping(left), SchemaMapping(right)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """One side's share of a promise: what it says about the output, should the other agree.

        Where a side may be padded with nulls, a pattern that allows null in one of its own columns
        would speak of padded rows, which are the other side's; it does not pass.
        """
        if pattern.time_bound is None:
            return None
        if self.preserved[1 - port] and self.how not in ("semi", "anti"):
            keys = {TIME, *(pair[port] for pair in self.on)}
            if any(pattern[a].contains(None) for a in pattern.attributes if a not in keys):
                return None
        return self.mappings[port].down(pattern)

    def counts(self, name: str) -> bool:
        return super().counts(name) and (name != "delays" or self.delays)

    def alone(self, port: int, pattern: Pattern) -> Pattern | None:
        if not self.delays or pattern.time_bound != INFINITY or not pattern.without_time().attributes:
            return None
        return self.mappings[port].down(pattern)

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        """A row that meets nothing may go when the loop finds more, and one from outside has no round."""
        padded = {"left": (1,), "right": (0,), "full": (0, 1), "anti": (1,)}.get(self.how, ())
        adds = self.how == "inner" or (self.how in ("semi", "anti", "left") and ports == (0,))
        return OnLoop(adds, monotone=not set(ports) & set(padded), no_depth=self._no_depth(ports, once))

    def _no_depth(self, ports: tuple[int, ...], once: bool) -> str:
        if self.how == "inner" or (self.how == "semi" and (once or ports == (0,))):
            return ""
        if self.how == "semi":
            return WHOLE
        if self.how == "full":
            return "a row from outside that meets nothing has no round"
        alone = (1,) if self.how == "right" else (0,)
        return "" if ports == alone else "a row that meets nothing has no round"

    @cached_property
    def caution(self) -> str:
        """Points of two sources, or of one at two times, seldom meet; within= looks for what is near."""
        left, right = self.inputs
        if not (left.properties.points and right.properties.points):
            return ""
        if any(side.kind == "set_duration" for side in self.inputs):
            return ""  # so somebody, or within=, has said how long they live
        if may_meet(left, right):
            return ""
        return (
            "pairs rows of the very same time only, because both sides are points: no others can be alive "
            "at once. Give within=(before, after), or set_duration on a side"
        )

    @property
    def shows_all(self) -> bool:
        return self.how == "inner" and all(child.properties.insert_only for child in self.inputs)

    def holds(self) -> tuple[Holding, ...]:
        """A row goes when nothing it could meet can come; a preserved row, when it cannot change either."""
        held = []
        for port, word in enumerate(("left rows", "right rows")):
            needs = {Need(1 - port, self.keys(1 - port))}
            if self.preserved[1 - port]:
                needs.add(Need(port, self.keys(port)))
            elif self.preserved[port]:
                needs.add(Need(port, tuple(self.inputs[port].schema.names)))
            order = tuple(sorted(needs, key=lambda need: need.port))
            held.append(Holding(word, port, order, each=2 if self.preserved[port] else 1))
        return tuple(held)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """The five cases of the thesis (4.2.5): what one side knows whole is sent to that side.

        Patterns on both sides' own columns have no translation and are guarded behind. Where a side is
        preserved, rows of the other side decide how it is cut: they are left out only for whole keys, once
        nothing of those keys is held.
        """
        preserved, known = self.preserved, [child.properties for child in self.inputs]
        inner = not any(preserved)
        sides = tuple(
            None if preserved[1 - port] else Translation(self.mappings[port], Inside(), known[port])
            for port in (0, 1)
        )
        own = FeedbackRule(sides, "sides", purges=inner and all(p.insert_only for p in known))
        if inner:
            return (own,)
        keys = (
            SchemaMapping({a: Image(a) for a, _ in self.on}),
            SchemaMapping({a: Image(b) for a, b in self.on}),
        )
        ports = tuple(
            Translation(mapping, Whole(1), props) for mapping, props in zip(keys, known, strict=True)
        )
        return FeedbackRule(ports, "groups", purges=True), own

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        if not self.thrifty:
            return ()
        found = [(port, self.gap(port, MIN_TIME, 0)) for port in (0, 1)]
        return tuple(OwnFeedback(port, pattern) for port, pattern in found if pattern is not None)

    def gap(self, port: int, begin: int, settled: int) -> Pattern | None:
        """The rows of an input on a stretch where the other has none; None where ends may change."""
        known = self.inputs[port].properties
        if settled == INFINITY or not known.fixed_ends:
            return None
        within = {"LE": lt(settled)} if known.points else {"RE": le(settled)}
        if begin > MIN_TIME:
            within["LE"] = ge(begin).intersect(within["LE"]) if "LE" in within else ge(begin)
        return Pattern(**within)

    def keys(self, port: int) -> tuple[str, ...]:
        return tuple(pair[port] for pair in self.on)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        read = wanted if self.residual is None else wanted | attributes(self.residual)
        keys = {pair[port] for pair in self.on}
        return keys | {name for name in self.inputs[port].schema.names if name in read}

    def looks_up(self, port: int) -> bool:
        return self.how == "inner"

    @property
    def sends_feedback(self) -> bool:  # type: ignore[override]
        return self.thrifty or self.impatient

    def operator(self) -> Operator:
        from caesura.ops.join.delaying import DelayingJoin
        from caesura.ops.join.physical import JoinOperator
        from caesura.ops.join.thrifty import SeekingJoin

        if self.delays:
            return DelayingJoin(self)
        return SeekingJoin(self) if self.sends_feedback else JoinOperator(self)

    def describe(self) -> str:
        keys = ", ".join(a if a == b else f"{a} = {b}" for a, b in self.on)
        where = f" and {self.residual}" if self.residual is not None else ""
        how = "; delays promises" if self.delays else ""
        return f"{self.how} on {keys or 'nothing'}{where}{how}"
