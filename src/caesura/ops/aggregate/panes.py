"""Overlapping windows over points from panes: a point is added once, and windows slide over the panes.

A pane is as long as the greatest common divisor of size and hop, so that every window is whole panes.
When the CTI closes windows, each pane enters its group's running values once and leaves them once.

Law: panes give what the windows themselves would; they serve final output of inserted points only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown, gather, taken
from caesura.events.identity import Secret, identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, U64, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.memo import Register, whole_numbers
from caesura.kernels.placing import NO_ROWS, Places
from caesura.kernels.sums import distinct, each_once, order_stretches
from caesura.kernels.ticks import FIRST, bounded, later
from caesura.ops.aggregate.accumulators import slide
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.running import Counts, RunningValue, SlidePlan
from caesura.ops.aggregate.accumulators.sums import Accumulator
from caesura.ops.aggregate.shown import Shown
from caesura.ops.aggregate.slots import Slots, ones
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.aggregate.tumbling_operator import TumblingOperator
from caesura.plan import GivenUp
from caesura.punctuation import MIN_TIME, Pattern

CHUNK = 1 << 18
"""So many windows leave in one page; where there is little, room is made for less."""
LEAST_CHUNK = 256
PLACED = 1 << 13
"""From so many points on they are placed before their slots are looked for."""
FEW_POINTS, PAUSE = 8, 16
"""Unless every pane of a page has so many, points go one by one to their slots, for so many pages."""


class OverPanes:
    """What ran over panes for one aggregate, at the windows given last."""

    def __init__(self, count: Any, own: Any) -> None:
        self._own = own
        self.n: I64 = count.out

    def values(self) -> pa.Array:
        return self._own.values(self.n)

    def floats(self) -> F64:
        found: F64 = self._own.floats()
        return found


def pane_slots(node: Tumbling) -> Slots:
    """Slots for the panes of some windows."""
    schema, fields = node.inputs[0].schema, {"group": np.int64, "w": np.int64}
    return Slots(node.aggregates, schema, (), time=node.time, insert_only=True, fields=fields)


class Panes:
    """The panes of every group, in chains, and the running values over them."""

    def __init__(self, node: Tumbling, secret: Secret) -> None:
        self._secret = secret
        source = node.inputs[0]
        self.length = math.gcd(node.size, node.every)
        self.grid = node.grid
        self.hop, self.size = node.every // self.length, node.size // self.length
        self.slots = pane_slots(node)
        keys = pa.schema([source.schema.field(k) for k in node.group])
        self.groups = RowState({"h1": np.uint64, "h2": np.uint64, "done": np.int64}, keys)
        self._table = KeyTable()
        self._memo = Register()
        self._places, self._unplaced = Places(), 0
        """Places for the points of a page, and for how many pages they are not used."""
        self._cells: I64 = NO_ROWS
        self._ahead, self._behind = Grown(np.int64), Grown(np.int64)
        self._ends: I64 = np.zeros((0, 3), np.int64)
        self._last: I64 = np.zeros((0, 2), np.int64)
        """The pane that each group used last, and its slot."""
        self.numbering = 0
        """How often groups were numbered anew."""
        self._rows = Counts("rows")
        self._running: dict[Accumulator, RunningValue] = self._started()
        self._closed = MIN_TIME

    def _started(self) -> dict[Accumulator, RunningValue]:
        """Running values that no pane has entered yet."""
        return {part: state.running(part) for part, state in self.slots.states_of.items() if state.running}

    # Points come.

    def add(self, keys: pa.RecordBatch, values: list[pa.Array], le: I64) -> I64:
        """Adds each point to its pane; gives their groups, some perhaps once for many."""
        placed = self._placed(keys, values, le)
        if placed is not None:
            return placed
        group = self._grouped(keys)
        pane, at, missed = (np.empty(len(le), np.int64) for _ in range(3))
        count = slide.find_panes(le, self.grid.offset, self.length, group, self._last, pane, at, missed)
        if count:
            owner = group[missed[:count]]
            order = np.argsort(owner)  # so that a slide meets panes as they lie in memory
            slots = np.empty(count, np.int64)
            slots[order] = self._found(owner[order], pane[:count][order])
            slide.settle_slots(at, slots, group, self._last)
        self.slots.add(at, ones(len(le)), values)
        self.slots.rows.touch(at)
        return group

    def _placed(self, keys: pa.RecordBatch, values: list[pa.Array], le: I64) -> I64 | None:
        """Adds many points of few small whole numbers in one pass; gives their groups, None for others."""
        plain = whole_numbers(keys.columns, keys.num_rows) if len(le) >= PLACED else None
        if plain is None or self._unplaced:
            self._unplaced -= plain is not None
            return None
        group = self._place(plain, keys, values, le)
        unfit = group is None or FEW_POINTS * len(group) > len(le)
        self._unplaced = PAUSE if unfit else 0
        return group

    def _place(self, plain: I64, keys: pa.RecordBatch, values: list[pa.Array], le: I64) -> I64 | None:
        """Adds points of small whole numbers; gives the group of each pane, None where they do not fit."""
        cells = self._cells_for(len(le) if values else 0)
        while missing := self._placed_at(plain, le, cells):
            if missing < 0:
                return None
            self._learn(plain, keys)
        group, pane, count = self._places.found()
        self._revive(group)
        slots = self._slots_of(group, pane)
        gather(self._places.named(slots), cells, cells)
        self.slots.add_counted(slots, count, cells, values)
        self.slots.rows.touch(slots)
        return group

    def _cells_for(self, count: int) -> I64:
        if count > len(self._cells):
            self._cells = np.empty(count, np.int64)
        return self._cells[:count]

    def _placed_at(self, plain: I64, le: I64, cells: I64, *, more: bool = False) -> int:
        """Places points, behind others or alone, as `Places` does."""
        return self._places.place(None, plain, le, NO_ROWS, self.grid.offset, self.length, cells, more=more)

    def _learn(self, plain: I64, keys: pa.RecordBatch) -> None:
        """Learns the groups of those keys that have none, of points that were to be placed."""
        rows = self._places.unknown
        self._places.learn(plain[rows], self._searched_for(take_rows(keys, rows)), self.groups.size)

    def _slots_of(self, group: I64, pane: I64) -> I64:
        """The slots of panes, most of which their groups used last."""
        at, missed = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        count = slide.recall_panes(group, pane, self._last, at, missed)
        if count:
            missed = missed[:count]
            order = np.empty(count, np.int64)  # by group, as in `add`
            order_stretches(taken(group, missed), 0, np.zeros(self.groups.size, np.int64), order)
            missed = taken(missed, order)
            found = self._found(taken(group, missed), taken(pane, missed))
            slide.note_panes(missed, found, group, pane, at, self._last)
        return at

    def _grouped(self, keys: pa.RecordBatch) -> I64:
        """The groups of these keys; one whose panes had all gone comes back."""
        plain = whole_numbers(keys.columns, keys.num_rows)
        if plain is None:
            number = self._searched_for(keys)
        else:
            number, missed = self._memo.recall(plain)
            if len(missed):
                found = self._searched_for(take_rows(keys, missed))
                self._memo.learn(plain, number, missed, found)
        self._revive(number)
        return number

    def _revive(self, number: I64) -> None:
        if self.groups.live < self.groups.size:
            some = distinct(number, self.groups.size)
            self.groups.keep(some, np.ones(len(some), np.bool_))

    def groups_like(self, groups: RowState, owner: I64) -> I64:
        """The groups here of some elsewhere, each named once; new ones are opened."""
        k1, k2 = (taken(groups.get(name), owner) for name in ("h1", "h2"))
        group, fresh = self._table.encode(k1, k2)
        if len(fresh):
            self._open(k1[fresh], k2[fresh], groups.payload.take(owner[fresh]))
        return group

    def take_over(self, group: I64, pane: I64, slots: Slots, rows: I64) -> None:
        """Adds panes elsewhere, of the same length, each to that of its group here."""
        self._revive(group)
        at = self._slots_of(group, pane)
        self.slots.merge(at, slots, rows)
        self.slots.rows.touch(at)

    def _searched_for(self, keys: pa.RecordBatch) -> I64:
        """The groups of these keys by their identities; new ones are opened."""
        k1, k2 = identity(keys.columns, keys.num_rows, self._secret)
        number, fresh = self._table.encode(k1, k2)
        if len(fresh):
            self._open(k1[fresh], k2[fresh], take_rows(keys, fresh))
        return number

    def _open(self, k1: U64, k2: U64, keys: pa.RecordBatch) -> None:
        """Makes the groups of these keys."""
        self.groups.append({"h1": k1, "h2": k2, "done": np.full(len(k1), MIN_TIME, np.int64)}, keys)
        self._ends = slide.resized(self._ends, self.groups.size, -1)
        self._last = slide.resized(self._last, self.groups.size, MIN_TIME)

    def _found(self, group: I64, pane: I64) -> I64:
        """The slots of some panes; new ones are opened and hung into their chains."""
        own_ids = taken(self.groups.get("h1"), group), taken(self.groups.get("h2"), group)
        h1, h2 = mixed(own_ids, pane)
        at, fresh = self.slots.find(h1, h2)
        if len(fresh):
            first = self.slots.rows.size
            own = {"group": group[fresh], "w": pane[fresh]}
            self.slots.open(pa.record_batch({}), own)
            self._hang(np.arange(first, self.slots.rows.size))
        return at

    def _hang(self, fresh: I64) -> None:
        none = np.full(len(fresh), -1, np.int64)
        self._ahead.extend(none)
        self._behind.extend(none)
        rows = self.slots.rows
        slide.link_panes(
            fresh, rows.get("group"), rows.get("w"), self._ahead.view, self._behind.view, self._ends
        )

    # Windows close.

    def close(self, due: int | I64) -> Iterable[tuple[I64, I64]]:
        """Slides over what is due per group; after each (group, window) the columns can be taken."""
        if isinstance(due, int):
            if due <= self._closed:
                return
            self._closed = due
        count, first = self.groups.size, 0
        dues = np.broadcast_to(np.asarray(due), count)
        while first < count:
            chunk = min(CHUNK, LEAST_CHUNK + 16 * self.slots.rows.live)
            room = 2 * self.slots.rows.live + chunk
            kind, who, row = (np.empty(room, np.int64) for _ in range(3))
            window, counts = np.empty(chunk, np.int64), np.zeros(2, np.int64)
            rows = self.slots.rows
            first = slide.plan_slide(
                first, self.hop, self.size, self.grid.least, dues, self.groups.get("done"), rows.get("w"),
                self._ahead.view, self._ends, kind, who, row, window, chunk, counts,
            )  # fmt: skip
            steps, given = counts.tolist()
            plan = SlidePlan(kind[:steps], who[:steps], row[:steps], given)
            self._follow(plan)
            if given:
                yield plan.who[plan.kind == slide.GIVE], window[:given]
            self._let_go(plan)
        self._tidy()

    def _follow(self, plan: SlidePlan) -> None:
        for value in (self._rows, *self._running.values()):
            value.run(plan, self.slots.rows, self._behind.view, self.groups.size)

    def columns(self) -> list[pa.Array]:
        """The aggregates over the windows given last."""
        out = []
        for (_, aggregate), parts in zip(self.slots.aggregates, self.slots.plans, strict=True):
            running = [self._running[part] for part in parts] or [self._rows]
            out.append(aggregate.rule.finish(aggregate, OverPanes(running[0], running[-1])))
        return out

    def _let_go(self, plan: SlidePlan) -> None:
        """Panes that have left are gone, and groups without panes."""
        if len(plan.kind) == 0:
            return
        self.slots.drop(plan.row[plan.kind == slide.LEAVE])
        self.groups.touch(plan.who)
        self.groups.kill(np.flatnonzero(self.groups.alive & (self._ends[: self.groups.size, 0] < 0)))

    def _tidy(self) -> None:
        dead = self.slots.rows.size - self.slots.rows.live
        keep = self.slots.tidy() if dead >= self.slots.rows.live or not self.slots.rows.live else None
        if keep is not None:
            new = np.full(self._ahead.size, -1, np.int64)
            new[keep] = np.arange(len(keep))
            self._last[:, 1] = slide.renumbered(self._last[:, 1], new)
            self._last[self._last[:, 1] < 0, 0] = MIN_TIME
            for chain in (self._ahead, self._behind):
                chain.replace(slide.renumbered(chain.view[keep], new))
            self._ends = slide.renumbered(self._ends, new)
            for value in self._running.values():
                value.repane(keep, new)
        if self.groups.wasteful:
            self._regroup()

    def _regroup(self) -> None:
        keep = self._compacted()
        self._table.compact(keep)
        self._memo.clear()
        self._places.forget()
        self._ends, self._last = self._ends[keep], self._last[keep]
        for value in (self._rows, *self._running.values()):
            value.regroup(keep)

    def _compacted(self) -> I64:
        """Moves the live groups together, and lets panes follow; gives old numbers by new number."""
        self.numbering += 1
        new = np.full(self.groups.size, -1, np.int64)
        keep = self.groups.compact()
        new[keep] = np.arange(len(keep))
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        rows.get("group")[live] = new[rows.get("group")[live]]
        rows.touch(live)
        return keep

    def give_up(self, points: Pattern) -> I64:
        """Lets go of the panes whose points match, with all that was made of them; gives their starts."""
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        owner = rows.get("group")[live]
        start = np.maximum(later(rows.get("w")[live] * self.length, self.grid.offset), FIRST)
        keys = self.groups.payload.take(owner)
        columns: dict[str, Any] = dict(zip(keys.schema.names, keys.columns, strict=True))
        some = points.matches({**columns, "LE": start})
        if some.any():
            self.slots.drop(live[some])
            left = np.bincount(owner[~some], minlength=self.groups.size)
            self.groups.kill(np.flatnonzero(self.groups.alive & (left == 0)))
            self.rebuild()
        return start[some]

    def copied(self) -> Panes:
        """Panes that can slide on while these stay."""
        return deepcopy(self)

    # State.

    def states(self) -> dict[str, RowState]:
        return {"groups": self.groups, **{f"pane_{n}": s for n, s in self.slots.states().items()}}

    def rebuild(self) -> None:
        """Chains and running values anew: what had entered enters again."""
        rows, groups = self.slots.rows, self.groups
        self.slots.rebuild()
        if groups.live < groups.size:
            self._compacted()
        self._table = KeyTable()
        self._memo.clear()
        self._places.forget()
        self._table.encode(groups.get("h1"), groups.get("h2"))
        self._ends = np.full((groups.size, 3), -1, np.int64)
        self._last = np.full((groups.size, 2), MIN_TIME, np.int64)
        self._ahead, self._behind = Grown(np.int64), Grown(np.int64)
        order = np.lexsort((rows.get("w"), rows.get("group")))
        inside = rows.get("w")[order] < self._reach(rows.get("group")[order])
        entered = order[inside]
        none = np.full(rows.size, -1, np.int64)
        self._ahead.extend(none)
        self._behind.extend(none)
        chains = self._ahead.view, self._behind.view, self._ends
        slide.link_panes(entered, rows.get("group"), rows.get("w"), *chains)
        self._ends[:, 1] = -1
        slide.link_panes(order[~inside], rows.get("group"), rows.get("w"), *chains)
        self._rows = Counts("rows")
        self._running = self._started()
        steps = np.full(len(entered), slide.ENTER, np.int64)
        self._follow(SlidePlan(steps, rows.get("group")[entered], entered, 0))
        self._closed = MIN_TIME

    def _reach(self, group: I64) -> I64:
        """The panes before this one have entered."""
        done = self.groups.get("done")[group]
        begin = np.where(done > self.grid.least, done, 0) * self.hop
        least = bounded(self.grid.least * self.hop + self.size)
        early = np.where(done < self.grid.least, MIN_TIME, least)
        return np.where(done > self.grid.least, later(begin, self.size), early)


class PaneOperator(TumblingOperator):
    """Panes in watermark mode; with speculation windows are kept as they are."""

    def __init__(self, node: Tumbling) -> None:
        super().__init__(node)
        self.panes = Panes(node, self.secret)
        self.shown = Shown(self.schema, len(self._keys))
        """What was given on demand."""

    @staticmethod
    def fits(operator: TumblingOperator) -> bool:
        """Whether every accumulator merges."""
        return all(state.running is not None for state in operator.slots.states_of.values())

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self.speculate != "watermark":
            return super().page(port, page)
        values = self.panes.slots.values_of(page)
        group = self.panes.add(plain_zeros(page.payload.select(self._keys)), values, page.le)
        if self.watched:
            self._look_ahead(each_once(group))
        return []

    def _look_ahead(self, groups: I64) -> None:
        """Looks for windows of some groups that have crossed a bound before they close."""
        due = np.full(self.panes.groups.size, MIN_TIME)
        due[groups] = self._never
        for page in self._slid(self.panes.copied(), due):
            self._look_out(page.le, page.re, page.payload)

    @property
    def _never(self) -> int:
        """The last window."""
        return self.grid.greatest

    def _close(self) -> list[Item]:
        if self.speculate != "watermark":
            return super()._close()
        changes = (self.shown.close(page) for page in self._slid(self.panes, self._due()))
        return [page for page in changes if len(page)]

    def _slid(self, panes: Panes, due: int | I64) -> Iterator[Page]:
        """The windows up to those that are due."""
        for group, window in panes.close(due):
            keys = panes.groups.payload.take(group).columns if self._keys else []
            le = self.grid.start(window)
            columns = [*keys, *panes.columns()]
            payload = pa.RecordBatch.from_arrays(columns, schema=self.schema)
            yield Page(le, self.grid.close(le), payload)

    def _due(self) -> int | I64:
        """The last window that has closed, for all groups or for each."""
        promises, groups = self.promises[0], self.panes.groups
        if promises.size == 0:
            return self.grid.first(promises.cti) - 1
        bound = self._bound(groups.payload.take(np.arange(groups.size)))
        return self.grid.first(bound) - 1

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Lets panes go that serve no window besides those that match; the others are still needed."""
        if self.speculate != "watermark":
            return super().give_up(pattern)
        points = self.node.feedback()[0].up(pattern)
        assert points is not None and points[0] is not None
        starts = self.panes.give_up(points[0])
        until = self.grid.end(self.grid.last(int(starts.max()))) if len(starts) else MIN_TIME
        return GivenUp(self.shown.take_back(pattern), until, len(starts))

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """What open windows say so far: a copy of the panes slides to the end."""
        if self.speculate != "watermark":
            return super().demand(pattern)
        items: list[Item] = []
        for page in self._slid(self.panes.copied(), self._never):
            columns = dict(zip(page.schema.names, page.payload.columns, strict=True))
            some = page.filter(pattern.matches({**columns, "LE": page.le, "RE": page.re}))
            change = self.shown.renew(some) if len(some) else some
            items += [replace(change, partial=True)] if len(change) else []
        return items

    def states(self) -> dict[str, RowState]:
        return {**super().states(), **self.panes.states(), "shown": self.shown.rows}

    def rebuild(self) -> None:
        super().rebuild()
        self.panes.rebuild()
