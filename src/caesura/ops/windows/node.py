"""`Windows`: a computation over the windows of each group, as a step of a plan.

      LE  RE | id v |      group_by("id").snapshot().agg(n=count())
       0   4 | 7  1 | +         0   2 | 7 1 | +
       2   6 | 7  2 | +   ->    2   4 | 7 2 | +
                                4   6 | 7 1 | +

Laws: CTIs as in `liveness`; empty windows give nothing; neighbours with equal results stay apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import attributes
from caesura.ops.aggregate.kinds import Aggregate, read_by, result_field
from caesura.ops.aggregate.shape import of_groups
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.timed import refuse_moving_ends
from caesura.ops.top import First
from caesura.ops.windows.filters import passed, pushed
from caesura.ops.windows.frames import Count, Frame, Grid, Session
from caesura.ops.windows.liveness import to_come
from caesura.ops.windows.policy import Clip, Stamp, check, reads_ends
from caesura.plan import FeedbackRule, Holding, Need, Node, Operator, Properties, Translation, lifetimes
from caesura.plan.roles import OnLoop
from caesura.punctuation import INFINITY, Image, Pattern, SchemaMapping, lt
from caesura.udm import Use
from caesura.udm.define import reads_window
from caesura.udm.mapping import check_types, mapping

Output = Aggregate | Use


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows(Node):
    """Aggregates, or one user-defined operator, over the windows of each group."""

    group: tuple[str, ...] = ()
    frame: Frame
    outputs: tuple[tuple[str, Output], ...] = ()
    apply: Use | None = None
    first: First | None = None
    """The first rows of each window, in the place of what is computed."""
    clip: Clip = "none"
    stamp: Stamp = "aligned"
    past: Any = None
    """A monotone result above this is of no use: a filter behind takes it away, and it will not come back."""
    scattered: bool = False
    """Whether rows are taken wherever they lie, so that every bucket has a share of the result."""
    skewed: bool = False
    """Whether a key may have so many rows that buckets shall have shares of its results."""
    prompt: bool = False
    """Whether rows leave as they come, although the query as a whole waits for the watermark."""

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.frame.kind

    @property
    def forward(self) -> bool:  # type: ignore[override]
        """Snapshots change from the time of a change on; all other windows also where they begin."""
        return self.frame.kind == "snapshot" and self.stamp == "aligned" and not self.timed

    @property
    def loop_remedy(self) -> str:  # type: ignore[override]
        if isinstance(self.frame, Grid):
            return Tumbling.loop_remedy
        before = "Window the input before it enters the loop."
        return before if isinstance(self.frame, Session) else Node.loop_remedy

    def on_loop(self, ports: tuple[int, ...], *, once: bool) -> OnLoop:
        return OnLoop(monotone=self.frame.kind != "snapshot")

    @property
    def uses(self) -> tuple[Use, ...]:
        """The user-defined modules at work."""
        own = () if self.apply is None else (self.apply,)
        return (*own, *(o for _, o in self.outputs if isinstance(o, Use)))

    @property
    def timed(self) -> bool:
        """Whether results depend on lifetimes."""
        return any(use.module.timed for use in self.uses)

    @property
    def reads_ends(self) -> bool:
        """Whether results depend on ends beyond their window."""
        return reads_ends(self.clip, self.timed)

    @property
    def stepwise(self) -> bool:
        """Whether modules are told what changes, window by window: all incremental, over a grid."""
        mine = self.uses
        return (
            isinstance(self.frame, Grid)
            and self.stamp != "time_bound"
            and 0 < len(mine) == len(self.outputs) + (self.apply is not None)
            and all(use.module.incremental for use in mine)
        )

    @property
    def slides(self) -> bool:
        """Whether, for final output, one state per group may slide over the windows."""
        return (
            self._overlaps
            and (not self.timed or self.clip == "none")
            and not any(reads_window(step) for use in self.uses for step in use.module.steps)
        )

    @property
    def merges(self) -> bool:
        """Whether, for final output, the states of panes may merge to those of windows."""
        points = self.inputs[0].properties.points and not self.timed
        return self._overlaps and points and all(use.module.traits.mergeable for use in self.uses)

    @property
    def _overlaps(self) -> bool:
        """Whether events that only come are in several windows of modules that are told what changes."""
        overlap = isinstance(self.frame, Grid) and self.frame.hop < self.frame.size
        return self.stepwise and overlap and self.inputs[0].properties.insert_only

    @property
    def form(self) -> str:
        """How the states of modules are kept, in words."""
        if not self.stepwise:
            return ""
        if self.merges:
            return "final: states of panes merge"
        return "final: a state slides per group" if self.slides else "a state per window"

    @property
    def partitioning(self) -> str:  # type: ignore[override]
        return "any" if self.scattered else "key"

    def combined(self) -> Node | None:
        from caesura.ops.windows.combine import combined

        return combined(self)

    @property
    def spreads(self) -> bool:
        return self.scattered and self.skewed

    def counts(self, name: str) -> bool:
        """Skew says where rows lie once a plan is cut, and nothing before."""
        return self.spreads if name == "skewed" else super().counts(name)

    def output_schema(self) -> pa.Schema:
        self.frame.check()
        if self.skewed and not self.scattered:
            from caesura.ops.windows.combine import check_skewed

            check_skewed(self)
        if not self.outputs and self.apply is None and self.first is None:
            raise PlanError("nothing is computed.", remedy="Name an aggregate, for example n=cz.count().")
        schema = self.inputs[0].schema
        for use in self.uses:
            self._check_use(use, schema)
        bound = all(use.module.traits.time_bound for use in self.uses)
        stamps = self.apply is not None and self.apply.module.stamps
        check(self.frame, self.clip, self.stamp, timed=self.timed, stamps=stamps, bound=bound)
        fields = [self.column(name) for name in self.group]
        if self.first is not None:
            rest = self.first.schema(schema, self.time)
            return pa.schema([*fields, *(field for field in rest if field.name not in self.group)])
        if self.apply is not None:
            return pa.schema([*fields, *self.apply.module.gives])
        for name, output in self.outputs:
            if isinstance(output, Use):
                fields.append(pa.field(name, output.module.gives.field(0).type))
            else:
                fields.append(result_field(name, output, schema, self.time))
        return pa.schema(fields)

    def _check_use(self, use: Use, schema: pa.Schema) -> None:
        kind = "uda" if use is not self.apply else "udo"
        if use.module.kind != kind:
            way = "agg(x=...)" if use.module.kind == "uda" else "apply(...)"
            raise PlanError(
                f"'{use.module.name}' is a {use.module.kind}, used as a {kind}.", remedy=f"Use it with {way}."
            )
        if unset := use.module.unset(use.params):
            raise PlanError(
                f"'{use.module.name}' has parameters without a value: {', '.join(unset)}.",
                remedy=f"Set them where it is used: {use.module.name}(..., {unset[0]}=...).",
            )
        for _, expr in mapping(use, schema):
            refuse_moving_ends(expr, self.inputs[0])
        check_types(use, schema, self.time)

    def derive(self, *inputs: Properties) -> Properties:
        if self.stamp == "point_at_end":
            return Properties(aligned=True, points=True, max_duration=1)
        if self.stamp == "aligned" and isinstance(self.frame, Grid):
            return Properties(aligned=True, max_duration=self.frame.size)
        return Properties()

    @property
    def results_end(self) -> bool:
        return isinstance(self.frame, Count) and self.stamp == "aligned"

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        bound = pattern.time_bound
        if bound is None or not of_groups(pattern, self.group):
            return None
        if bound == INFINITY:
            return pattern
        return pattern.replace("time", lt(self.promised(bound)))

    def promised(self, c: int) -> int:
        """The output CTI at an input CTI, as far as no group holds it back."""
        start, end = (int(t[0]) for t in to_come(self.frame, np.array([c])))
        if self.eager:
            return max(c, start)  # in a gap nothing changes before the next window
        return end if self.stamp == "point_at_end" else start

    @property
    def eager(self) -> bool:
        """Whether output CTIs keep step with input: only ends of rows may change past them."""
        if self.stamp == "time_bound":
            return True
        return self.frame.kind == "snapshot" and not self.timed and self.stamp != "point_at_end"

    def in_front_of_final(self) -> Node:
        """Rows that keep step with input must leave at once: kept back, they would hold every group back."""
        return replace(self, prompt=True) if self.eager else self

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        if self.first is not None:
            return set(self.inputs[0].schema.names)
        plain = tuple((n, o) for n, o in self.outputs if isinstance(o, Aggregate))
        mapped = [attributes(e) for use in self.uses for _, e in mapping(use, self.inputs[0].schema)]
        return {*self.group, *read_by(plain)}.union(*mapped)

    def push_filter(self, where: Node) -> Node | None:
        return pushed(self, where)

    def holds(self) -> tuple[Holding, ...]:
        need = (Need(0, self.group),)
        size = self.frame.size if isinstance(self.frame, Grid) else 0
        if isinstance(self.frame, Session):
            size = self.frame.gap
        waits = isinstance(self.frame, Count | Session) or self.reads_ends
        if isinstance(self.frame, Count):  # a window that is not full yet stays until its group is over
            what = "events of windows that are not full"
            full = Holding(what, 0, need, "forever", holds_back=True, one_per=self.group, each=3)
            ends = Holding("events before their ends", 0, need, "end", holds_back=True, each=3)
            return (full, ends) if self.frame.by == "end" else (full,)
        if isinstance(self.frame, Session) and self.frame.longest is None:
            why = "a session goes on for as long as events come within its gap"
            return (Holding("events of sessions", 0, need, "forever", holds_back=True, each=3, why=why),)
        return (
            Holding("events of open windows", 0, need, "end", size=size, holds_back=waits),
            Holding("results of open windows", 0, need, "end", size=size, each=2),
        )

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """A group's windows are given up whole; where windows lie on a grid, also by their times.

        A module that a filter commutes with gives up single rows, with the events that they come from.
        """
        known = self.inputs[0].properties
        translation = Translation.of(self.group, known, self._lifetimes())
        rule = FeedbackRule((translation,), "groups", purges=True)
        columns = passed(self)
        if not columns:
            return (rule,)
        images = {name: Image(column) for name, column in columns}
        images |= {name: Image(name) for name in self.group}
        rows = Translation(SchemaMapping(images, time=None), self._lifetimes(), known)
        return (rule, FeedbackRule((rows,), "groups", purges=True))

    def given_up(self, pattern: Pattern) -> tuple[Pattern, Pattern]:
        """What the events have, of keys and values and of lifetimes, that no result besides these needs."""
        events = next(up[0] for rule in self.feedback() if (up := rule.up(pattern)) is not None)
        own = Pattern(**{name: v for name, v in pattern.items() if name not in ("LE", "RE")})
        times = {} if events is None else {name: events[name] for name in ("LE", "RE") if name in events}
        return own, Pattern(**times)

    def _lifetimes(self) -> lifetimes.Lifetimes:
        if isinstance(self.frame, Grid) and self.stamp == "aligned":
            return lifetimes.OverlappedWindows(self.frame.size, self.frame.hop, self.frame.offset)
        if self.stamp != "aligned" or isinstance(self.frame, Grid):
            return lifetimes.Whole()
        return lifetimes.Whole(self.frame.gap + 1 if isinstance(self.frame, Session) else 1)

    def operator(self) -> Operator:
        from caesura.ops.windows.physical import WindowsOperator

        return WindowsOperator(self)

    @cached_property
    def waits_for(self) -> str:
        """What output CTIs wait for, in words."""
        if self.eager:
            return "keeps step with input"
        until = "until its members end" if self.reads_ends else "until it can no longer change"
        what = "end" if self.stamp == "point_at_end" else "start"
        return f"CTI at the {what} of the earliest open window; open {until}"

    def describe(self) -> str:
        by = f"by {', '.join(self.group)}; " if self.group else ""
        by += "in each bucket; " if self.scattered else ""
        frame = self.frame.describe(self.time)
        what = ", ".join(f"{n}={o}" for n, o in self.outputs) or str(self.apply or self.first)
        how = "" if self.clip == "none" else f"; clip {self.clip}"
        how += "" if self.stamp == "aligned" else f"; stamp {self.stamp}"
        how += "; skewed" if self.skewed else ""
        known = "; ".join(
            f"{use.module.name} is {use.module.traits}" for use in self.uses if str(use.module.traits)
        )
        past = "" if self.past is None else f"windows past {self.past} are let alone"
        parts = [f"{by}{frame + '; ' if frame else ''}{what}{how}", self.waits_for, known, self.form, past]
        return "; ".join(part for part in parts if part)
