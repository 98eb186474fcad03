"""`Alive` at work: per group what was summed up before the CTI, and the points where rows come and go.

A page touches groups from some time on. From what is summed up their points are followed in order of time,
and the chain of results behind that time takes the place of the one that was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.delta import deltas
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.referred import ReferredStore
from caesura.events.rows import SMALL, RowState
from caesura.kernels import kernel
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, Mask, mix_int
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, distinct, least_at
from caesura.ops.aggregate.accumulators.along import AlongPoints, EnteringRows, PointSteps, runs
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE, LEAVE
from caesura.ops.aggregate.alive import Alive
from caesura.ops.aggregate.alive_forward import NO_LINK, Forward
from caesura.ops.aggregate.result_chain import ChainChange, ResultChain, change_links, joined
from caesura.ops.aggregate.slots import Slots
from caesura.ops.ordered import sorting
from caesura.plan import GivenUp, Operator, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern


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


class AliveOperator(Operator):
    """A slot per group, points behind the CTI, and the results sent that end there or later."""

    def __init__(self, node: Alive) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0]
        known = source.properties
        self.slots = self._made(insert_only=known.insert_only and known.endless)
        self._runs = all(
            len(parts) < 2 or runs(parts[-1], counts_values=a.rule.counts_values)
            for (_, a), parts in zip(node.aggregates, self.slots.plans, strict=True)
        )
        if not self._runs:  # values are put in and taken out again to read them
            self.slots = self._made(insert_only=False)
        self._keys = [source.schema.get_field_index(name) for name in node.group]
        self.points = RowState(
            {"slot": np.int64, "time": np.int64, "n": np.int64}, pa.schema(self.slots.value_types)
        )
        """Where so many rows with these values come or, below zero, go."""
        self._counted = not known.insert_only
        own = {"slot": np.int64, "le": np.int64, "re": np.int64}
        self.sent = RowState(own, node.schema, store=ReferredStore)
        begins = known.insert_only and known.endless and self._runs
        self._forward = Forward(self.slots, self.points, self.sent) if begins else None
        self._follow()

    def _made(self, *, insert_only: bool) -> Slots:
        source = self.node.inputs[0]
        return Slots(
            self.node.aggregates,
            source.schema,
            self.node.group,
            time=self.node.time,
            insert_only=insert_only,
            fields={},
        )

    def _follow(self) -> None:
        """Chains points and results by slot; from what is live alone."""
        for state in (self.points, self.sent):
            if state.live < state.size:
                state.compact()
        self._point_chains, self._sent_chains = Chains(), Chains()
        self._known = KeyTable()
        if self._counted and self.points.size:
            values = self.points.payload.all().columns if len(self.points.schema) else []
            self._known.encode(*self._ids(self.points.get("slot"), self.points.get("time"), values))
        if self._forward is not None:
            self._forward.reset()

    def _link(self) -> None:
        """Chains the points and results that came since the last time."""
        for state, chains in ((self.points, self._point_chains), (self.sent, self._sent_chains)):
            if chains.size < state.size:
                chains.add(state.get("slot")[chains.size :])

    def _file(self) -> None:
        """Keeps what the last page brought."""
        if self._forward is not None:
            self._forward.file(self.promises[0].cti if self.promises[0].size == 0 else MIN_TIME)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        self._file()
        if self._forward is not None and (page.le[1:] < page.le[:-1]).any():
            page = page.take(np.argsort(page.le, kind="stable"))
        keys = plain_zeros(page.payload.select(self._keys))
        h1, h2 = identity(keys.columns, len(page), self.secret)
        at, fresh = self.slots.find(h1, h2)
        if len(fresh):
            self.slots.open(h1[fresh], h2[fresh], take_rows(keys, fresh), {})
        values = [make(page.payload, page.le, page.re) for make in self.slots.makers]
        items = self._taken(page, at, values)
        if any(state.size > 2 * state.live + SMALL for state in (self.points, self.sent)):
            self._file()
            self._follow()
        return items

    def _taken(self, page: Page, at: I64, values: list[pa.Array]) -> list[Item]:
        """The changes by groups that go forward in time, and by the others."""
        forward = self._forward
        if forward is None:
            return [self._looked_at(page, at, values)]
        behind = forward.behind(at, page.le)
        if not behind.any():
            return [self._carried_on(forward, at, page.le, values)]
        late, rest = np.flatnonzero(behind), np.flatnonzero(~behind)
        items: list[Item] = []
        if len(rest):
            own = [value.take(pa.array(rest)) for value in values]
            items.append(self._carried_on(forward, at[rest], page.le[rest], own))
        own = [value.take(pa.array(late)) for value in values]
        items.append(self._looked_at(page.take(late), at[late], own))
        touched = distinct(at[late], self.slots.rows.size)
        owner, row = self._sent_chains.gather(touched)
        holds = self.sent.alive[row] & (self.sent.get("re")[row] == INFINITY)
        link = np.full(len(touched), NO_LINK)
        link[owner[holds]] = row[holds]
        forward.refresh(at[late], page.le[late], touched, link)
        return items

    def _carried_on(self, forward: Forward, at: I64, le: I64, values: list[pa.Array]) -> Page:
        """The change by points behind all others of their groups, in order of time."""
        touched = distinct(at, self.slots.rows.size)
        self.slots.rows.keep(touched, np.ones(len(touched), np.bool_))
        points = forward.new_points(touched, at, le, values)
        _, columns = self._run(touched, points.rows, points.values)
        keys = self.slots.rows.payload.take(points.slot).columns if self._keys else []
        change = forward.changed(points.slot, points.time, keys, columns)
        forward.hold(at, le, values)
        return change

    def _looked_at(self, page: Page, at: I64, values: list[pa.Array]) -> Page:
        """The change by points wherever they lie."""
        self._link()
        self._add(page, at, values)
        times = np.full(self.slots.rows.size, INFINITY, np.int64)
        least_at(at, page.sync, times)
        touched = np.flatnonzero(times < INFINITY)
        self.slots.rows.keep(touched, np.ones(len(touched), np.bool_))
        return self._changed(touched, times[touched])

    def _add(self, page: Page, at: I64, values: list[pa.Array]) -> None:
        change = deltas(page)
        ends = np.flatnonzero(change.re != INFINITY)
        rows = np.concatenate([change.rows, change.rows[ends]])
        columns = [value.take(pa.array(rows)) if len(rows) != len(page) else value for value in values]
        time = np.concatenate([change.le, change.re[ends]])
        self._put(at[rows], time, np.concatenate([change.weight, -change.weight[ends]]), columns)

    def _put(self, slot: I64, time: I64, n: I64, values: list[pa.Array]) -> None:
        """Takes points; those that come and go again are none."""
        batch = pa.RecordBatch.from_arrays(values, schema=self.points.schema) if values else None
        if not self._counted:
            self.points.append({"slot": slot, "time": time, "n": n}, batch)
            self._point_chains.add(slot)
            return
        at, fresh = self._known.encode(*self._ids(slot, time, values))
        if len(fresh):
            fields = {"slot": slot[fresh], "time": time[fresh], "n": np.zeros(len(fresh), np.int64)}
            self.points.append(fields, None if batch is None else take_rows(batch, fresh))
            self._point_chains.add(slot[fresh])
        add_weights(at, n, self.points.get("n"))
        some = np.unique(at)
        self.points.touch(some)
        self.points.keep(some, self.points.get("n")[some] != 0)

    def _ids(self, slot: I64, time: I64, values: list[pa.Array]) -> tuple[U64, U64]:
        every = np.arange(len(slot))
        a, b = identity(values, len(slot), self.secret)
        h1, h2 = np.empty(len(slot), np.uint64), np.empty(len(slot), np.uint64)
        mix_int(a, b, every, slot, h1, h2)
        mix_int(h1, h2, every, time, h1, h2)
        return h1, h2

    def _changed(self, touched: I64, since: I64) -> Page:
        """The change of the results of these groups from these times on."""
        owner, row = _oldest_first(self._sent_chains, touched)
        old = self.sent.alive[row] & (self.sent.get("re")[row] >= since[owner])
        owner, row = owner[old], row[old]
        le, re = self.sent.get("le")[row], self.sent.get("re")[row]
        order = sorting(owner, le)
        if order is not None:
            owner, row, le, re = owner[order], row[order], le[order], re[order]
        chain = self._followed(touched, since)
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
        self.sent.append(fields, payload if len(fresh) == len(slot) else take_rows(payload, fresh))
        self._sent_chains.add(slot[fresh])

    def _before(self, owner: I64, row: I64, since: I64) -> ResultChain:
        """What was sent before a time and holds up to it, as the first links."""
        width = len(self._keys)
        columns = self.sent.payload.take(row).columns[width:]
        le = self.sent.get("le")[row]
        return ResultChain(owner, le, since[owner], np.ones(len(row), np.bool_), columns)

    def _payload(self, touched: I64, chain: ResultChain) -> pa.RecordBatch:
        keys = self.slots.rows.payload.take(touched[chain.group]).columns if self._keys else []
        return pa.RecordBatch.from_arrays([*keys, *chain.columns], schema=self.node.schema)

    def _followed(self, touched: I64, since: I64) -> ResultChain:
        """The results of these groups at every point from these times on."""
        owner, row = _oldest_first(self._point_chains, touched)
        live = self.points.alive[row]
        owner, row = owner[live], row[live]
        time = self.points.get("time")[row]
        order = sorting(owner, time)
        if order is not None:
            owner, row, time = owner[order], row[order], time[order]
        sign = self.points.get("n")[row]
        if self._counted and (np.abs(sign) != 1).any():
            owner, row, time, sign = (np.repeat(v, np.abs(sign)) for v in (owner, row, time, np.sign(sign)))
        n = len(row)
        kind, who, which = (np.empty(2 * n, np.int64) for _ in range(3))
        group, start = np.empty(n, np.int64), np.empty(n, np.int64)
        given = plan_steps(owner, time, sign, since, kind, who, which, group, start)
        steps = PointSteps(kind[: n + given], who[: n + given], which[: n + given], given)
        group, start = group[:given], start[:given]
        values = self.points.payload.take(row).columns if len(self.points.schema) else []
        if self._runs:
            count, columns = self._run(touched, steps, values)
        else:
            count, columns = self._read(touched, steps, owner, time, sign, values)
        re = np.full(given, INFINITY, np.int64)
        next_in_group = np.flatnonzero(group[1:] == group[:-1])
        re[next_in_group] = start[next_in_group + 1]
        return ResultChain(group, start, re, count > 0, columns)

    def _run(
        self, touched: I64, steps: PointSteps | EnteringRows, values: list[pa.Array]
    ) -> tuple[I64, list[pa.Array]]:
        rows = self.slots.rows
        known: dict[tuple[Any, ...], AlongPoints] = {(): AlongPoints(steps, rows, touched, (), None)}
        columns = []
        for (_, a), parts in zip(self.slots.aggregates, self.slots.plans, strict=True):
            if a.value is not None and parts not in known:
                known[parts] = AlongPoints(steps, rows, touched, parts, values[self.slots.place(a)])
                known[parts].given = values[self.slots.own_place(a)]
            columns.append(a.rule.finish(a, known[parts]))
        return known[()].n, columns

    def _read(
        self, touched: I64, steps: PointSteps, owner: I64, time: I64, sign: I64, values: list[pa.Array]
    ) -> tuple[I64, list[pa.Array]]:
        """The same from slots: the first time of every group, then the second, and all back in the end."""
        new = np.ones(len(owner), np.bool_)
        new[1:] = (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])
        number = np.cumsum(new) - 1
        first = np.searchsorted(owner, owner)
        turn = number - number[first] if len(owner) else number
        order = np.argsort(turn, kind="stable")
        ends = np.searchsorted(turn[order], np.arange(int(turn.max(initial=-1)) + 2))
        found: list[Any] = []
        for a, b in pairwise(ends.tolist()):
            some = order[a:b]
            groups = np.unique(owner[some])
            self.slots.add(touched[owner[some]], sign[some], [v.take(pa.array(some)) for v in values])
            at = touched[groups]
            found.append((groups, self.slots.rows.get("rows")[at].copy(), self.slots.results(at)))
        self.slots.add(touched[owner], -sign, values)
        return self._in_order(found, steps, owner, time)

    def _in_order(
        self, found: list[Any], steps: PointSteps, owner: I64, time: I64
    ) -> tuple[I64, list[pa.Array]]:
        """What was read turn by turn, by group and time; those that are given."""
        if not found:
            types = [field.type for field in self.node.schema][len(self._keys) :]
            return np.zeros(0, np.int64), [pa.array([], t) for t in types]
        turns = np.repeat(np.arange(len(found)), [len(groups) for groups, _, _ in found])
        groups = np.concatenate([groups for groups, _, _ in found])
        order = np.lexsort((turns, groups))
        new = np.ones(len(owner), np.bool_)
        new[:-1] = (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])
        gives = np.flatnonzero(steps.kind == GIVE)
        points = steps.row[gives - 1]
        last = np.cumsum(new)[points] - 1
        pick = order[last]
        count = np.concatenate([n for _, n, _ in found])[pick]
        columns = [
            pa.concat_arrays([results[k] for _, _, results in found]).take(pa.array(pick))
            for k in range(len(self.node.aggregates))
        ]
        return count, columns

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
        self._file()
        self._settle()
        return definite(self.node.carry(port, pattern))

    def _settle(self) -> None:
        """Sums up the points before the bound, and lets go of results that end before it."""
        rows = self.slots.rows
        slots = np.flatnonzero(rows.alive)
        bound = np.full(rows.size, MIN_TIME, np.int64)
        bound[slots] = self._bound(slots)
        passed = self._behind(self.points, "time", bound)
        if len(passed):
            values = self.points.payload.take(passed).columns if len(self.points.schema) else []
            at = self.points.get("slot")[passed]
            self.slots.add(at, self.points.get("n")[passed], values)
            self.slots.rows.touch(at)
            self.points.get("n")[passed] = 0
            self.points.kill(passed)
        self.sent.kill(self._behind(self.sent, "re", bound))
        self._drop(slots, bound)

    def _behind(self, state: RowState, field: str, bound: I64) -> I64:
        """The live rows that lie before the bound of their group, or whose group is over."""
        time = state.get(field)
        if self.promises[0].size == 0:
            cti = self.promises[0].cti
            before = state.alive if cti == INFINITY else state.alive & (time < cti)
        else:
            limit = bound[state.get("slot")]
            before = state.alive & ((time < limit) | (limit == INFINITY))
        return np.flatnonzero(before)

    def _drop(self, slots: I64, bound: I64) -> None:
        """Lets go of groups without rows and points, and of those that are over."""
        needed = self.slots.rows.get("rows") != 0
        for state in (self.points, self.sent):
            mark_slots(state.get("slot"), state.alive, needed)
        gone = slots[~needed[slots] | (bound[slots] == INFINITY)]
        if len(gone):
            self._forget(gone)
        self._tidy()

    def _forget(self, slots: I64) -> None:
        self.slots.drop(slots)
        if self._forward is not None:
            self._forward.forget(slots)

    def _tidy(self) -> None:
        keep = self.slots.tidy()
        if keep is not None:
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            for state in (self.points, self.sent):
                live = np.flatnonzero(state.alive)
                state.get("slot")[live] = new[state.get("slot")[live]]
                state.touch(live)
        if keep is not None or self.points.wasteful or self.sent.wasteful:
            self._follow()

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the groups that match, unless a result of one began in the settled past."""
        self._file()
        self._link()
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        keys = rows.payload.take(live).columns if self._keys else []
        columns = {**dict(zip(self.node.group, keys, strict=True)), "LE": np.zeros(len(live), np.int64)}
        gone = live[pattern.matches(columns)]
        _, at = self._sent_chains.gather(gone)
        at = at[self.sent.alive[at]]
        le, re = self.sent.get("le")[at], self.sent.get("re")[at]
        if (le < self._bound(self.sent.get("slot")[at])).any() or rows.get("rows")[gone].any():
            return None
        page = Page.of(self.sent.payload.take(at), le=le, re=re, re_new=le)
        until = int(re.max(initial=MIN_TIME))
        _, point = self._point_chains.gather(gone)
        point = point[self.points.alive[point]]
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
            for state in (self.points, self.sent):
                live = np.flatnonzero(state.alive)
                state.get("slot")[live] = new[state.get("slot")[live]]
        self._follow()


def _oldest_first(chains: Chains, keys: I64) -> tuple[I64, I64]:
    """(place in ``keys``, row) of every row of these keys, in order of the keys and then as they came."""
    owner, row = chains.gather(keys[::-1])
    return len(keys) - 1 - owner[::-1], np.ascontiguousarray(row[::-1])
