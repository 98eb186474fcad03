"""`group_by(k).totals(...)`: one row per group over all its rows, whatever their lifetimes.

     LE  RE | id speed |      group_by("id").totals(n=count())
      3   4 | 7  50    | +
      8  12 | 7  60    | +     ->     3  12 | 7 2 | +        the hull of its rows' lifetimes

Laws: a group is final when punctuation covers it, by key, by part of the key, or by the end of
time. Until then its row may change from its start on, so the output CTI waits for the earliest
group that is open. (The COUNT, SUM and AVERAGE of the feedback thesis.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from caesura.events.delta import deltas
from caesura.events.identity import plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64
from caesura.kernels.sums import each_once
from caesura.ops.aggregate.accumulators.extremes import Grows, RetractableExtreme
from caesura.ops.aggregate.kinds import Aggregate, directions, read_by
from caesura.ops.aggregate.sent_by_slot import SentBySlot
from caesura.ops.aggregate.shape import aggregate_schema, can_name, of_groups
from caesura.ops.aggregate.slots import Slots
from caesura.ops.where import on_keys
from caesura.plan import (
    FeedbackRule,
    GivenUp,
    Holding,
    Need,
    Node,
    Operator,
    Properties,
    Translation,
    definite,
)
from caesura.plan.lifetimes import Whole
from caesura.punctuation import INFINITY, Pattern, lt, value


@dataclass(frozen=True, eq=False, kw_only=True)
class Totals(Node):
    """Aggregates per group, over all time."""

    group: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, Aggregate], ...]
    scattered: bool = False
    """Whether rows are taken wherever they lie, so that every bucket has a share of the result."""
    skewed: bool = False
    """Whether a key may have so many rows that buckets shall have shares of its results."""

    kind = "totals"
    waits = True
    loop_remedy = "Aggregate what comes out of the loop, or use group_by(...).snapshot() inside."

    @property
    def partitioning(self) -> str:  # type: ignore[override]
        return "any" if self.scattered else "key"

    def combined(self) -> Node | None:
        from caesura.ops.aggregate.combine import combined

        return combined(self)

    @property
    def spreads(self) -> bool:
        return self.scattered and self.skewed

    def counts(self, name: str) -> bool:
        """Skew says where rows lie once a plan is cut, and nothing before."""
        return self.spreads if name == "skewed" else super().counts(name)

    def output_schema(self) -> pa.Schema:
        schema = aggregate_schema(self, self.group, self.aggregates)
        if self.skewed and not self.scattered:
            from caesura.ops.aggregate.combine import check_skewed

            check_skewed(self)
        return schema

    def derive(self, *inputs: Properties) -> Properties:
        return Properties()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A pattern on the key passes; a bound on time says only that no group starts before it."""
        return pattern if of_groups(pattern, self.group) else None

    def keys(self, port: int) -> tuple[str, ...]:
        return self.group

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return {*self.group, *read_by(self.aggregates)}

    def push_filter(self, where: Node) -> Node | None:
        return on_keys(where, self, self.group)

    def holds(self) -> tuple[Holding, ...]:
        """A group stays until nothing of it can come at any time."""
        need = (Need(0, self.group),)
        each = 4 + len(self.aggregates)
        return (Holding("open groups", 0, need, until="forever", holds_back=True, each=each),)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Groups are given up whole, by their columns; their hulls are guarded behind."""
        translation = Translation.of(self.group, self.inputs[0].properties, Whole())
        bounds = directions(self.aggregates) if self.inputs[0].properties.insert_only else ()
        return (FeedbackRule((translation,), "groups", purges=True, bounds=bounds, group=self.group),)

    def operator(self) -> Operator:
        return TotalsOperator(self)

    def describe(self) -> str:
        by = f"by {', '.join(self.group)}; " if self.group else ""
        by += "in each bucket; " if self.scattered else ""
        return (
            by + ", ".join(f"{name}={a}" for name, a in self.aggregates) + ("; skewed" if self.skewed else "")
        )


class TotalsOperator(Operator):
    """A slot per group, with its earliest start and latest end; where rows may go, with bags of them."""

    def __init__(self, node: Totals) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0]
        hull = Grows if source.properties.insert_only else RetractableExtreme
        self.starts = hull("le", "min", pa.int64())
        self.ends = hull("re", "max", pa.int64())
        self.slots = Slots(
            node.aggregates,
            source.schema,
            node.group,
            time=node.time,
            insert_only=source.properties.insert_only,
            fields={"sent": np.int64, **self.starts.fields(), **self.ends.fields()},
        )
        self.sent = SentBySlot(self.slots.rows, node.schema)
        self._keys = [source.schema.get_field_index(name) for name in node.group]
        self._group = frozenset(node.group)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        change = deltas(page)
        keys = plain_zeros(page.payload.select(self._keys))
        values = self.slots.values_of(page)
        at = self.slots.of_keys(keys, self.secret, self._opened)
        spread = at[change.rows]
        rows = self.slots.rows
        self.slots.add(spread, change.weight, [v.take(pa.array(change.rows)) for v in values])
        self.starts.add(rows, spread, change.weight, pa.array(change.le))
        self.ends.add(rows, spread, change.weight, pa.array(change.re))
        touched = each_once(at)
        self.slots.settle(touched)
        if self.watched:
            self._look_out(touched)
        if self.speculate == "watermark":  # only what was said on demand is corrected before its end
            touched = touched[rows.get("sent")[touched] >= 0] if self.sent.rows.live else touched[:0]
        return [self._send(touched)] if len(touched) else []

    def _opened(self, count: int) -> dict[str, I64]:
        """The fields of so many new groups."""
        fields = {"sent": np.full(count, -1, np.int64)}
        for hull in (self.starts, self.ends):
            fields.update(hull.zeros(count))
        return fields

    def _look_out(self, touched: I64) -> None:
        """Notes the groups whose values have crossed a bound for good."""
        payload, (le, re) = self._payload(touched), self._hull(touched)
        if not can_name(payload.schema, self.node.group):
            return
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        for pattern in self.watched:
            if "LE" in pattern or "RE" in pattern:
                continue  # a hull may still move
            for row in np.flatnonzero(pattern.matches({**columns, "LE": le, "RE": re})).tolist():
                key = {name: value(columns[name][row].as_py()) for name in self.node.group}
                self.crossed.append(Pattern(**key))

    def _send(self, at: I64) -> Page:
        le, re = self._hull(at)
        present = self.slots.rows.get("rows")[at] > 0
        return self.sent.change(at, le, re, self._payload(at), present)

    def _hull(self, at: I64) -> tuple[I64, I64]:
        rows = self.slots.rows
        le = self.starts.value(rows, at).fill_null(0).to_numpy()
        re = self.ends.value(rows, at).fill_null(1).to_numpy()
        return le, re

    def _payload(self, at: I64) -> pa.RecordBatch:
        keys = self.slots.rows.payload.take(at).columns if self._keys else []
        return pa.RecordBatch.from_arrays([*keys, *self.slots.results(at)], schema=self.node.schema)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        items = self._close() if self._may_close(pattern) else []
        carried = self.node.carry(port, pattern)
        if carried is None:
            return items
        out = self._held_back(carried)
        return [*items, *definite(out)]

    def _may_close(self, pattern: Pattern) -> bool:
        """Whether groups may end.

        Not by what names other columns, nor by a bound on time unless others speak of all times behind it.
        """
        if not self._group.issuperset(pattern.without_time().attributes):
            return False
        bound = pattern.time_bound
        if bound is None or bound == INFINITY:
            return True
        return any(kept.time_bound is None for kept in self.promises[0].others())

    def _held_back(self, pattern: Pattern) -> Pattern | None:
        """A time bound waits for the earliest open group that the pattern speaks of."""
        bound = pattern.time_bound
        assert bound is not None
        if bound == INFINITY:
            return pattern
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive & (rows.get("rows") > 0))
        if len(live) and pattern.without_time().attributes:
            live = live[pattern.without_time().matches(rows.payload.take(live), None)]
        if len(live):
            le, _ = self._hull(live)
            earliest = int(le.min())
            if earliest < bound:
                self.counters.held_by = f"a group that began at {earliest} is open"
                bound = earliest
        return pattern.replace("time", lt(bound))

    def _close(self) -> list[Item]:
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        columns = dict(
            zip(self.node.group, rows.payload.take(live).columns if self._keys else [], strict=True)
        )
        bound = np.broadcast_to(np.asarray(self.promises[0].effective_cti(columns=columns)), len(live))
        closed = live[bound == INFINITY]
        if len(closed) == 0:
            if len(live) == 0:  # what a group without rows has left of a retract that had lost its insert
                self._tidy()
            return []
        items: list[Item] = []
        if self.speculate == "watermark":
            shown = rows.get("sent")[closed] >= 0
            full = closed[(rows.get("rows")[closed] > 0) & ~shown]
            items = [self._final(full)] if len(full) else []
            items += [self._send(closed[shown])] if shown.any() else []
        self.sent.forget(closed)
        self.slots.drop(closed)
        self._tidy()
        return items

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Lets groups go; an open group can always be taken back, since output waits for it."""
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        keys = rows.payload.take(live).columns if self._keys else []
        columns = {**dict(zip(self.node.group, keys, strict=True)), "LE": np.zeros(len(live), np.int64)}
        dropped = live[pattern.matches(columns)]
        items: list[Item] = []
        if (rows.get("sent")[dropped] >= 0).any():
            le, re = self._hull(dropped)
            items = [
                self.sent.change(dropped, le, re, self._payload(dropped), np.zeros(len(dropped), np.bool_))
            ]
        self.slots.drop(dropped)
        self._tidy()
        return GivenUp(items, INFINITY, len(dropped))

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """The results of open groups so far; with speculation they were sent already."""
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive & (rows.get("rows") > 0))
        if self.speculate == "arrival" or len(live) == 0:
            return []
        le, re = self._hull(live)
        payload = self._payload(live)
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        some = pattern.matches({**columns, "LE": le, "RE": re})
        page = self._send(live[some])
        return [replace(page, partial=True)] if len(page) else []

    def _final(self, at: I64) -> Page:
        le, re = self._hull(at)
        return Page(le, re, self._payload(at))

    def _tidy(self) -> None:
        keep = self.slots.tidy()
        self.sent.renumber(keep)
        if keep is not None:
            for hull in (self.starts, self.ends):
                hull.compact(keep)
                hull.rebuild(self.slots.rows)

    def states(self) -> dict[str, RowState]:
        own = {**self.slots.states(), "sent": self.sent.rows}
        for name, hull in (("starts", self.starts), ("ends", self.ends)):
            own.update((name, rows) for rows in hull.states().values())
        return own

    def rebuild(self) -> None:
        rows = self.slots.rows
        keep = np.flatnonzero(rows.alive)
        self.sent.renumber(keep if rows.live < rows.size else None)
        self.slots.rebuild()
        self.sent.rebuild()
        for hull in (self.starts, self.ends):
            hull.compact(keep)
            hull.rebuild(rows)
