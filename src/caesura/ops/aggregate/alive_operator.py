"""`Alive` at work: per group what was summed up before the CTI, and the points where rows come and go.

A page touches groups from some time on. From what is summed up their points are followed in order of time,
and the chain of results behind that time takes the place of the one that was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import taken
from caesura.events.ending import EndingRows
from caesura.events.identity import plain_zeros
from caesura.events.item import Item
from caesura.events.nested import NO_MASK
from caesura.events.page import Page, take_rows, take_values
from caesura.events.referred import ReferredStore
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.sums import distinct, least_of
from caesura.ops.aggregate.accumulators.along import (
    AlongPoints,
    EnteringRows,
    PointSteps,
    given_along,
    runs,
)
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE, LEAVE
from caesura.ops.aggregate.alive import Alive
from caesura.ops.aggregate.alive_forward import Forward, NewPoints, PageRun
from caesura.ops.aggregate.in_turns import InTurns
from caesura.ops.aggregate.linked_rows import LinkedRows
from caesura.ops.aggregate.points import Points, in_order_of_time
from caesura.ops.aggregate.result_chain import ChainChange, ResultChain, change_links, joined
from caesura.ops.aggregate.slots import PageSlots, Slots
from caesura.ops.ordered import sorting
from caesura.plan import GivenUp, Operator, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

CHANGES = 64
"""Lists of slots that pages changed are one after so many pages."""


@kernel
def mark_slots(slot: I64, alive: Mask, marked: Mask) -> None:
    """Marks the slots that live rows are of."""
    for i in range(len(slot)):
        if alive[i]:
            marked[slot[i]] = True


@kernel
def plan_steps(
    group: I64, time: I64, sign: I64, since: I64, kind: I64, who: I64, row: I64, o_group: I64, o_time: I64
) -> int:
    """PointSteps through points in order of (group, time), which give after every time from ``since`` on."""
    steps = 0
    given = 0
    n = len(group)
    for i in range(n):
        g = group[i]
        kind[steps] = ENTER if sign[i] > 0 else LEAVE
        who[steps] = g
        row[steps] = i
        steps += 1
        last = i + 1 == n or group[i + 1] != g or time[i + 1] != time[i]
        if last and time[i] >= since[g]:
            kind[steps] = GIVE
            who[steps] = g
            row[steps] = 0
            steps += 1
            o_group[given] = g
            o_time[given] = time[i]
            given += 1
    return given


def slots_of(node: Alive) -> tuple[Slots, bool]:
    """The accumulators of a step, and whether what they give runs along points in time."""

    def made(*, insert_only: bool) -> Slots:
        schema = node.inputs[0].schema
        return Slots(node.aggregates, schema, node.group, time=node.time, insert_only=insert_only, fields={})

    known = node.inputs[0].properties
    slots = made(insert_only=known.insert_only and known.endless)
    along = all(
        len(parts) < 2 or runs(parts[-1], counts_values=a.rule.counts_values)
        for (_, a), parts in zip(node.aggregates, slots.plans, strict=True)
    )
    return (slots if along else made(insert_only=False)), along  # to read values they are taken out again


class AliveOperator(Operator):
    """A slot per group, points behind the CTI, and the results sent that end there or later."""

    def __init__(self, node: Alive) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0]
        known = source.properties
        self.slots, self._runs = slots_of(node)
        self._keys = [source.schema.get_field_index(name) for name in node.group]
        self.points = RowState(
            {"slot": np.int64, "time": np.int64, "n": np.int64}, pa.schema(self.slots.value_types)
        )
        """Where so many rows with these values come or, below zero, go."""
        self._points = Points(self.points, self.secret)
        own = {"slot": np.int64, "le": np.int64, "re": np.int64}
        self.sent = RowState(own, node.schema, store=ReferredStore)
        self._by_slot = self._points.linked, LinkedRows(self.sent)
        """Points and results, by the slots of their groups."""
        self._ending = EndingRows()
        """The results that have an end."""
        self._only_begin = known.insert_only and known.endless and self._runs
        ending = None if self._only_begin else self._ending
        self._forward = Forward(self.slots, self._points, self.sent, ending) if self._runs else None
        self._changed_slots: list[I64] | None = None
        """The slots that pages changed since the last sweep; None for all."""
        self._swept = True
        """Whether what lies before the CTI is summed up: when the next page comes, or somebody looks."""
        self._follow()

    def _follow(self) -> None:
        """Chains points and results by slot; from what is live alone."""
        self._points.compact()
        self._follow_results()
        if self._forward is not None:
            self._forward.reset()

    def _follow_results(self) -> None:
        self._by_slot[1].compact()
        self._ending.relist(self.sent.get("re"))
        if self._forward is not None:
            self._forward.relink()

    def _link(self) -> None:
        """Chains the points and results that came since the last time."""
        for rows in self._by_slot:
            rows.link()

    def _file(self) -> None:
        """Keeps what the last page brought, and sums up what punctuation has passed since the last sweep."""
        if self._forward is not None:
            self._forward.file(self.promises[0].cti if self.promises[0].size == 0 else MIN_TIME)
        if not self._swept:
            self._swept = True
            self._settle()

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        self._file()
        if self._only_begin and (page.le[1:] < page.le[:-1]).any():
            page = page.take(np.argsort(page.le, kind="stable"))
        keys = plain_zeros(page.payload.select(self._keys))
        groups = self.slots.of_page(keys, self.secret)
        values = self.slots.values_of(page)
        items = self._taken(page, groups, values, keys)
        points, results = self._by_slot
        if points.crowded or results.crowded:
            self._file()
        if points.crowded:
            self._points.compact()
        if results.crowded:
            self._follow_results()
        return items

    def _taken(
        self, page: Page, groups: PageSlots, values: list[pa.Array], keys: pa.RecordBatch
    ) -> list[Item]:
        """The changes by groups that go forward in time, and by the others."""
        forward = self._forward
        if forward is None:
            return [self._looked_at(page, groups.at(), values)]
        behind = forward.behind(groups, page)
        if not behind.any():
            return [self._carried_on(forward, page, groups, values, keys)]
        if behind.all():
            return [self._again(forward, page, groups.at(), values)]
        apart = behind[groups.who]
        late, rest = np.flatnonzero(apart), np.flatnonzero(~apart)
        own = [value.take(pa.array(late)) for value in values]
        again = self._again(forward, page.take(late), groups.at()[late], own)
        # The others come behind: points may be numbered anew by now.
        own = [value.take(pa.array(rest)) for value in values]
        others = groups.only(~behind, rest)
        return [again, self._carried_on(forward, page.take(rest), others, own, take_rows(keys, rest))]

    def _again(self, forward: Forward, page: Page, at: I64, values: list[pa.Array]) -> Page:
        """The change by points of which some lie before others of their groups."""
        change = self._looked_at(page, at, values)
        forward.went_otherwise(at, page)
        return change

    def _carried_on(
        self, forward: Forward, page: Page, groups: PageSlots, values: list[pa.Array], keys: pa.RecordBatch
    ) -> Page:
        """The change by points behind all others of their groups."""
        touched = groups.slot
        self.slots.rows.keep(touched, np.ones(len(touched), np.bool_))
        forward.hold_again(touched, self._by_slot[1])
        if self._only_begin:
            new = NewPoints(groups.who, page.le, NO_MASK, values)
        else:
            self._note_changed(touched)
            row, time, leaves = in_order_of_time(page)
            own = [take_values(value, row) for value in values]
            new = NewPoints(taken(groups.who, row), time, leaves, own)
        points = forward.new_points(touched, new)
        ran, columns = self._run(touched, points.rows, points.values)
        present = NO_MASK if self._only_begin else ran[()].n > 0
        change = forward.changed(points, present, columns, keys if self._only_begin else None)
        forward.hold(PageRun(points, touched, ran))
        return change

    def _looked_at(self, page: Page, at: I64, values: list[pa.Array]) -> Page:
        """The change by points wherever they lie."""
        fresh = self._points.take(page, at, values)
        touched, since = least_of(at, page.sync, self.slots.rows.size)
        self.slots.rows.keep(touched, np.ones(len(touched), np.bool_))
        self._note_changed(touched)
        return self._changed(touched, since, fresh)

    def _note_changed(self, slots: I64) -> None:
        """The next sweep looks at these slots."""
        if self._changed_slots is None:
            return
        self._changed_slots.append(slots)
        if len(self._changed_slots) > CHANGES:
            self._changed_slots = [distinct(np.concatenate(self._changed_slots), self.slots.rows.size)]

    def _changed(self, touched: I64, since: I64, fresh: int) -> Page:
        """The change of the results of these groups from these times on, by so many new points."""
        self._by_slot[1].link()
        owner, row = self._by_slot[1].oldest_first(touched)
        old = self.sent.alive[row] & (self.sent.get("re")[row] >= since[owner])
        owner, row = owner[old], row[old]
        le, re = self.sent.get("le")[row], self.sent.get("re")[row]
        order = sorting(owner, le)
        if order is not None:
            owner, row, le, re = owner[order], row[order], le[order], re[order]
        chain = self._followed(touched, since, fresh)
        spanning = le < since[owner]
        chain = joined(self._before(owner[spanning], row[spanning], since), chain)
        payload = self._payload(touched, chain)
        change = change_links(owner, le, re, self.sent.payload.take(row), chain, payload)
        self._remember(row, change, touched[chain.group], chain, payload)
        return change.page

    def _remember(
        self, row: I64, change: ChainChange, slot: I64, chain: ResultChain, payload: pa.RecordBatch
    ) -> None:
        """Keeps the links that hold now; ``row`` has the places of the old ones."""
        self.sent.kill(row[change.gone])
        self.sent.get("re")[row[change.moved]] = change.ends
        self.sent.touch(row[change.moved])
        fresh = change.fresh
        fields = {"slot": slot[fresh], "le": chain.le[fresh], "re": chain.re[fresh]}
        first = self.sent.append(fields, payload if len(fresh) == len(slot) else take_rows(payload, fresh))
        self._ending.add(np.arange(first, first + len(fresh)), fields["re"])
        self._ending.add(row[change.moved], change.ends)

    def _before(self, owner: I64, row: I64, since: I64) -> ResultChain:
        """What was sent before a time and holds up to it, as the first links."""
        width = len(self._keys)
        columns = self.sent.payload.take(row).columns[width:]
        le = self.sent.get("le")[row]
        return ResultChain(owner, le, since[owner], np.ones(len(row), np.bool_), columns)

    def _payload(self, touched: I64, chain: ResultChain) -> pa.RecordBatch:
        keys = self.slots.rows.payload.take(touched[chain.group]).columns if self._keys else []
        return pa.RecordBatch.from_arrays([*keys, *chain.columns], schema=self.node.schema)

    def _followed(self, touched: I64, since: I64, fresh: int) -> ResultChain:
        """The results of these groups at every point from these times on."""
        owner, row = self._points.of(touched, slots=self.slots.rows.size, fresh=fresh)
        time = self.points.get("time")[row]
        order = sorting(owner, time)
        if order is not None:
            owner, row, time = owner[order], row[order], time[order]
        sign = self.points.get("n")[row]
        if (np.abs(sign) != 1).any():
            owner, row, time, sign = (np.repeat(v, np.abs(sign)) for v in (owner, row, time, np.sign(sign)))
        n = len(row)
        kind, who, which = (np.empty(2 * n, np.int64) for _ in range(3))
        group, start = np.empty(n, np.int64), np.empty(n, np.int64)
        given = plan_steps(owner, time, sign, since, kind, who, which, group, start)
        steps = PointSteps(kind[: n + given], who[: n + given], which[: n + given], given)
        group, start = group[:given], start[:given]
        values = self.points.payload.take(row).columns if len(self.points.schema) else []
        if self._runs:
            ran, columns = self._run(touched, steps, values)
            count = ran[()].n
        else:
            points = InTurns(touched, owner, time, sign, values)
            count, columns = points.read(self.slots, steps, self.node.schema.types[len(self._keys) :])
        re = np.full(given, INFINITY, np.int64)
        next_in_group = np.flatnonzero(group[1:] == group[:-1])
        re[next_in_group] = start[next_in_group + 1]
        return ResultChain(group, start, re, count > 0, columns)

    def _run(
        self, touched: I64, steps: PointSteps | EnteringRows, values: list[pa.Array]
    ) -> tuple[dict[tuple[Any, ...], AlongPoints], list[pa.Array]]:
        """What the accumulators give along these steps."""
        return given_along(self.slots, touched, steps, values)

    def _bound(self, at: I64) -> I64:
        """The time before which each slot's group is settled."""
        known = self.promises[0]
        if known.size == 0:
            return np.full(len(at), known.cti)
        keys = self.slots.rows.payload.take(at).columns if self._keys else []
        columns = dict(zip(self.node.group, keys, strict=True))
        return np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(at))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        self._swept = self.promises[0].cti == INFINITY
        if self._swept:
            self._clear()
        return definite(self.node.carry(port, pattern))

    def _clear(self) -> None:
        """Lets go of everything: nothing comes any more."""
        if self._forward is not None:
            self._forward.drop_page()
        for state in (self.points, self.sent):
            state.kill(np.flatnonzero(state.alive))
        self._forget(np.flatnonzero(self.slots.rows.alive))
        self._tidy()

    def _settle(self) -> None:
        """Sums up the points before the bound, and lets go of results that end before it."""
        known, changed = self.promises[0], self._changed_slots
        if changed is None or known.size:
            self._settle_all()
        elif self._only_begin:  # no group is without rows again
            self._sum_up(self._behind(self.points, "time"))
            self.sent.kill(self._behind(self.sent, "re"))
        else:
            passed = np.flatnonzero(self.points.alive & (self.points.get("time") < known.cti))
            changed.append(self.points.get("slot")[passed])
            self._sum_up(passed)
            ended = self._ended(known.cti)
            changed.append(self.sent.get("slot")[ended])
            self.sent.kill(ended)
            self._drop_empty(distinct(np.concatenate(changed), self.slots.rows.size))
        self._tidy()
        self._changed_slots = []

    def _settle_all(self) -> None:
        """The same for all groups, by the bound of each."""
        rows = self.slots.rows
        slots = np.flatnonzero(rows.alive)
        bound = np.full(rows.size, MIN_TIME, np.int64)
        bound[slots] = self._bound(slots)
        by_group = None if self.promises[0].size == 0 else bound
        self._sum_up(self._behind(self.points, "time", by_group))
        self.sent.kill(self._behind(self.sent, "re", by_group))
        needed = rows.get("rows") != 0
        for state in (self.points, self.sent):
            mark_slots(state.get("slot"), state.alive, needed)
        self._forget(slots[~needed[slots] | (bound[slots] == INFINITY)])

    def _sum_up(self, passed: I64) -> None:
        """Adds points to their slots for good."""
        if len(passed) == 0:
            return
        values = self.points.payload.take(passed).columns if len(self.points.schema) else []
        at = self.points.get("slot")[passed]
        self.slots.add(at, self.points.get("n")[passed], values)
        self.slots.rows.touch(at)
        self.points.get("n")[passed] = 0
        self.points.kill(passed)

    def _ended(self, cti: int) -> I64:
        """The live results that end before a time."""
        near, ends = self._ending.rows(self.sent.size), self.sent.get("re")
        if near is None:
            return np.flatnonzero(self.sent.alive & (ends < cti))
        near = near[self.sent.alive[near]]
        over = ends[near] < cti
        self._ending.keep(near[~over])
        return near[over]

    def _behind(self, state: RowState, field: str, bound: I64 | None = None) -> I64:
        """The live rows that lie before the CTI, or the bound of their group, or whose group is over."""
        time = state.get(field)
        if bound is None:
            before = state.alive & (time < self.promises[0].cti)
        else:
            limit = bound[state.get("slot")]
            before = state.alive & ((time < limit) | (limit == INFINITY))
        return np.flatnonzero(before)

    def _drop_empty(self, slots: I64) -> None:
        """Lets go of those of some groups that have no rows, points and results."""
        rows = self.slots.rows
        empty = slots[rows.alive[slots] & (rows.get("rows")[slots] == 0)]
        for linked in self._by_slot:
            empty = empty[~linked.has(empty)]
        self._forget(empty)

    def _forget(self, slots: I64) -> None:
        if len(slots) == 0:
            return
        self.slots.drop(slots)
        if self._forward is not None:
            self._forward.forget(slots)

    def _tidy(self) -> None:
        keep = self.slots.tidy()
        if keep is not None:
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            for rows in self._by_slot:
                rows.renumber(new)
            self._changed_slots = None
            self._follow()
            return
        if self.points.wasteful:
            self._points.compact()
        if self.sent.wasteful:
            self._follow_results()

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the groups that match, unless a result of one began in the settled past."""
        self._file()
        self._link()
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        keys = rows.payload.take(live).columns if self._keys else []
        columns = {**dict(zip(self.node.group, keys, strict=True)), "LE": np.zeros(len(live), np.int64)}
        gone = live[pattern.matches(columns)]
        at = self._by_slot[1].live_of(gone)
        le, re = self.sent.get("le")[at], self.sent.get("re")[at]
        if (le < self._bound(self.sent.get("slot")[at])).any() or rows.get("rows")[gone].any():
            return None
        page = Page.of(self.sent.payload.take(at), le=le, re=re, re_new=le)
        point = self._by_slot[0].live_of(gone)
        until = max(int(some.max(initial=MIN_TIME)) for some in (re, self.points.get("time")[point]))
        self.sent.kill(at)
        self.points.get("n")[point] = 0
        self.points.kill(point)
        self._forget(gone)
        self._tidy()
        return GivenUp([page], until, len(at) + len(gone))

    def states(self) -> dict[str, RowState]:
        self._file()
        return {**self.slots.states(), "points": self.points, "sent": self.sent}

    def rebuild(self) -> None:
        self._file()
        rows = self.slots.rows
        keep = np.flatnonzero(rows.alive) if rows.live < rows.size else None
        self.slots.rebuild()
        if keep is not None:
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            for linked in self._by_slot:
                linked.renumber(new)
        self._changed_slots = None
        self._follow()
