"""Snapshots in one sweep over end points: members come and go, and no list of them is made.

     LE RE           end points   0   2   4   6
      0  4 | 1       comes        1   2
      2  6 | 2       goes                 1   2
                     sum          1   3   2

Counts and sums run along and take back what goes. The least (or greatest) of what covers a snapshot is
painted: events in the order of their values, each over the snapshots that none before it has covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.events.nested import validity
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.ops.aggregate.accumulators.exact import F64, FULL, add_floats, round_digits
from caesura.ops.aggregate.accumulators.extremes import ranked, unranked
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE, LEAVE, slide_counts, slide_wide
from caesura.ops.aggregate.accumulators.sums import (
    NONE,
    Wide,
    wide_as_float,
    wide_values,
    wide_words,
    wide_zeros,
)
from caesura.ops.aggregate.kinds.extremes import GREATEST, LEAST
from caesura.ops.aggregate.kinds.record import Aggregate, State
from caesura.ops.aggregate.kinds.sums import FLOAT_SUM, WIDE_SUM, sum_type
from caesura.ops.aggregate.slots import Slots
from caesura.ops.ordered import in_order, sorting
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.regions import Regions, around, last_point
from caesura.punctuation import INFINITY, MIN_TIME


class Swept(NamedTuple):
    """Snapshots with how many members each has; the steps that lead to them; where members lie."""

    region: I64
    start: I64
    end: I64
    many: I64
    example: I64
    """A row of the group of each snapshot."""
    kind: I64
    who: I64
    member: I64
    row: I64
    """The row of each member."""
    first: I64
    last: I64
    """The snapshots that each member covers, [first, last)."""


class EndPoints(NamedTuple):
    """Times, each of a region."""

    owner: I64
    time: I64

    def in_order(self) -> EndPoints:
        """By region and time, with no word of where each lay; times may be sorted where they are."""
        owner, time = self
        if len(time) < 2 or in_order(owner, time):
            return self
        if owner[0] == owner[-1] and (owner == owner[0]).all():
            time.sort()
            return self
        order = sorting(owner, time)
        return self if order is None else EndPoints(owner[order], time[order])


@kernel
def plan_sweep(
    owner: I64, le: I64, re: I64, begin: I64, leave: I64, n: I64, lo: I64, hi: I64, kind: I64, who: I64,
    which: I64, o_region: I64, o_start: I64, o_end: I64, count: I64, first: I64, last: I64, counts: I64,
) -> None:  # fmt: skip
    """The steps of a sweep, and the snapshots on the way.

    ``begin`` names members by (region, start), ``leave`` those that end within reach by (region, end).
    ``counts`` says whether steps are wanted, and receives how many steps and snapshots there are.
    """
    steps = 0
    given = 0
    inside = 0
    i = 0
    j = 0
    r = -1
    before = 0
    while i < len(begin) or j < len(leave):
        enters = j >= len(leave)
        if not enters and i < len(begin):
            a = owner[begin[i]]
            b = owner[leave[j]]
            enters = a < b or (a == b and le[begin[i]] <= re[leave[j]])
        m = begin[i] if enters else leave[j]
        time = le[m] if enters else re[m]
        if owner[m] != r:
            r = owner[m]
            inside = 0
        elif before < time and inside > 0 and lo[r] <= before < hi[r]:
            if counts[0]:
                kind[steps] = GIVE
                who[steps] = r
                which[steps] = 0
                steps += 1
            o_region[given] = r
            o_start[given] = before
            o_end[given] = time
            count[given] = inside
            given += 1
        before = time
        if counts[0]:
            kind[steps] = ENTER if enters else LEAVE
            who[steps] = r
            which[steps] = m
            steps += 1
            if enters:
                first[m] = given
            else:
                last[m] = given
        if enters:
            inside += n[m]
            i += 1
        else:
            inside -= n[m]
            j += 1
    counts[0] = steps
    counts[1] = given


@kernel
def end_points(
    alive: Mask, group: I64, where: I64, le: I64, re: I64, n: I64, lo: I64, last: I64, begin: EndPoints,
    leave: EndPoints, example: I64, counts: I64,
) -> None:  # fmt: skip
    """The starts and ends of the live rows that overlap their group's region [lo, last].

    ``counts`` receives how many starts and ends there are; and 1 where a row counts otherwise than once.
    """
    b = 0
    e = 0
    for i in range(len(alive)):
        g = where[group[i]]
        if not alive[i] or g < 0 or le[i] > last[g] or re[i] < lo[g]:
            continue
        if n[i] != 1:
            counts[2] = 1
        begin.owner[b] = g
        begin.time[b] = max(le[i], max(lo[g], MIN_TIME + 1) - 1)
        b += 1
        if re[i] <= last[g]:
            leave.owner[e] = g
            leave.time[e] = re[i]
            e += 1
        example[g] = i
    counts[0] = b
    counts[1] = e


@kernel
def sweep_counts(
    begin: EndPoints, leave: EndPoints, lo: I64, hi: I64, o_region: I64, o_start: I64, o_end: I64, many: I64
) -> int:
    """The snapshots between end points in order, and how many rows each has: `plan_sweep` without members.

    Starts and ends interleave at random, so that a step is chosen without a branch on which comes next.
    """
    given = 0
    i = 0
    j = 0
    while i < len(begin.time):
        r = begin.owner[i]
        i_end = i
        while i_end < len(begin.time) and begin.owner[i_end] == r:
            i_end += 1
        j_end = j
        while j_end < len(leave.time) and leave.owner[j_end] == r:
            j_end += 1
        inside = 0
        before = MIN_TIME
        while i < i_end or j < j_end:
            starts = begin.time[i] if i < i_end else INFINITY
            ends = leave.time[j] if j < j_end else INFINITY
            enters = 1 if (starts <= ends) & (i < i_end) else 0
            time = min(starts, ends)
            o_region[given] = r
            o_start[given] = before
            o_end[given] = time
            many[given] = inside
            given += 1 if (inside > 0) & (before < time) & (lo[r] <= before) & (before < hi[r]) else 0
            before = time
            inside += 2 * enters - 1
            i += enters
            j += 1 - enters
    return given


@kernel
def sweep_floats(kind: I64, who: I64, which: I64, values: F64, n: I64, valid: Mask, out: F64) -> None:
    """Exact float sums along a sweep, each rounded once; NaN and infinities count apart."""
    limbs = np.zeros((1, FULL), np.int64)
    digits = np.zeros(FULL + 1, np.int64)
    base = np.zeros(1, np.int32)
    slot = np.zeros(1, np.int64)
    weight = np.zeros(1, np.int64)
    unfit = np.zeros(1, np.int64)
    odd = np.zeros(3, np.int64)
    given = 0
    now = -1
    for i in range(len(kind)):
        if who[i] != now:
            now = who[i]
            limbs[:] = 0
            odd[:] = 0
        if kind[i] == GIVE:
            for k in range(FULL):
                digits[k] = limbs[0, k]
            out[given] = round_digits(digits, 0)
            if odd[0] > 0 or (odd[1] > 0 and odd[2] > 0):
                out[given] = np.nan
            elif odd[1] > 0:
                out[given] = np.inf
            elif odd[2] > 0:
                out[given] = -np.inf
            given += 1
            continue
        m = which[i]
        if len(valid) > 0 and not valid[m]:
            continue
        weight[0] = n[m] if kind[i] == ENTER else -n[m]
        x = values[m]
        if np.isnan(x):
            odd[0] += weight[0]
        elif np.isinf(x):
            odd[1 if x > 0 else 2] += weight[0]
        else:
            add_floats(slot, values[m : m + 1], weight, limbs, base, unfit)


@kernel
def paint(order: I64, first: I64, last: I64, word: I64, skip: I64, out: I64) -> None:
    """Gives each snapshot the word of the first member, in this order, that covers it."""
    for i in range(len(order)):
        m = order[i]
        w = first[m]
        while True:
            root = w
            while skip[root] != root:
                root = skip[root]
            while skip[w] != root:
                w, skip[w] = skip[w], root
            if root >= last[m]:
                break
            out[root] = word[m]
            skip[root] = root + 1
            w = root + 1


def sweep(events: WindowEvents, regions: Regions, *, steps: bool, dense: bool) -> Swept:
    """Sweeps over the snapshots of some regions; without ``steps``, to count their members only.

    ``dense`` says that there is at most one region per group, and that most events may lie in them.
    """
    if dense and not steps and (counted := _counted(events, regions)) is not None:
        return counted
    end, owner, row = around(events, regions, dense=dense)
    le, re, n = (events.rows.get(f)[row] for f in ("le", "re", "n"))
    # whoever is there before the region is there when it begins
    le = np.maximum(le, np.maximum(regions.lo, MIN_TIME + 1)[owner] - 1)
    stays = np.flatnonzero(re <= end[owner])
    begin, leave = sorting(owner, le), sorting(owner[stays], re[stays])
    begin = np.arange(len(row)) if begin is None else begin
    leave = stays if leave is None else stays[leave]
    points = len(begin) + len(leave)
    kind, who, which = (np.empty(2 * points if steps else 0, np.int64) for _ in range(3))
    region, start, close, many = (np.empty(points, np.int64) for _ in range(4))
    counts = np.array([int(steps), 0])
    first, last = (np.full(len(row) if steps else 0, -1, np.int64) for _ in range(2))
    plan_sweep(
        owner, le, re, begin, leave, n, regions.lo, regions.hi, kind, who, which, region, start, close, many,
        first, last, counts,
    )  # fmt: skip
    count, given = counts.tolist()
    if steps:
        last[last < 0] = given
        bounds = np.searchsorted(region[:given], np.arange(1, len(regions.group) + 1))
        last = np.minimum(last, bounds[owner])
    example = np.zeros(len(regions.group), np.int64)
    example[owner] = row
    windows = region[:given], start[:given], close[:given], many[:given], example[region[:given]]
    return Swept(*windows, kind[:count], who[:count], which[:count], row, first, last)


def _counted(events: WindowEvents, regions: Regions) -> Swept | None:
    """The sweep where every row counts once: over sorted times, whosever they are."""
    size = events.rows.live
    begin, leave = (EndPoints(np.empty(size, np.int64), np.empty(size, np.int64)) for _ in range(2))
    example, counts = np.zeros(len(regions.group), np.int64), np.zeros(3, np.int64)
    own, n = events.placed(regions.group), events.rows.get("n")
    last = last_point(events, regions, dense=True)
    end_points(*own, n, regions.lo, last, begin, leave, example, counts)
    starts, ends, repeated = counts.tolist()
    if repeated:
        return None
    begin = EndPoints(*(field[:starts] for field in begin)).in_order()
    leave = EndPoints(*(field[:ends] for field in leave)).in_order()
    region, start, end, many = (np.empty(starts + ends, np.int64) for _ in range(4))
    given = sweep_counts(begin, leave, regions.lo, regions.hi, region, start, end, many)
    windows = region[:given], start[:given], end[:given], many[:given], example[region[:given]]
    return Swept(*windows, *(NONE,) * 6)


class Along:
    """What one aggregate accumulates along a sweep, one value per snapshot."""

    def __init__(self, swept: Swept, state: State | None, own: pa.Array | None, n: I64) -> None:
        self._swept, self._state, self._own, self._n = swept, state, own, n
        self._valid = validity(own) if own is not None else np.zeros(0, np.bool_)

    @cached_property
    def n(self) -> I64:
        swept = self._swept
        if len(self._valid) == 0:
            return swept.many
        some = np.empty(len(swept.start), np.int64)
        running = np.zeros(int(swept.who.max(initial=0)) + 1, np.int64)
        slide_counts(swept.kind, swept.who, swept.member, np.where(self._valid, self._n, 0), running, some)
        return some

    def values(self) -> pa.Array:
        own = self._own
        assert own is not None
        if self._state is FLOAT_SUM:
            return pa.array(self.floats())
        if self._state is WIDE_SUM:
            return wide_values(self._wide(own), sum_type(own.type))
        return _painted(self._swept, own, self._valid, self.n, least=self._state is LEAST)

    def floats(self) -> F64:
        own = self._own
        assert own is not None
        if self._state is WIDE_SUM:
            return wide_as_float(self._wide(own), sum_type(own.type))
        swept, out = self._swept, np.empty(len(self._swept.start))
        values = words(own).astype(np.float64)
        sweep_floats(swept.kind, swept.who, swept.member, values, self._n, self._valid, out)
        return out

    def _wide(self, own: pa.Array) -> Wide:
        """128-bit sums; copies of a member count one by one."""
        swept, t = self._swept, sum_type(own.type)
        low, high = wide_words(own)
        if len(self._valid):
            low, high = np.where(self._valid, low, 0).astype(np.uint64), np.where(self._valid, high, 0)
        times = np.where(swept.kind == GIVE, 1, self._n[swept.member])
        kind, who, member = (np.repeat(f, times) for f in (swept.kind, swept.who, swept.member))
        running, out = wide_zeros(int(swept.who.max(initial=0)) + 1, t), wide_zeros(len(swept.start), t)
        slide_wide(kind, who, member, frozen(low), high, NONE, *running, *out)
        return out


SWEPT = (None, FLOAT_SUM, WIDE_SUM, LEAST, GREATEST)
"""The states that follow a sweep; an aggregate that keeps another one is computed from lists of members."""


class Sweep:
    """The columns of aggregates over snapshots, from one sweep."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.steps = any(a.value is not None for _, a in slots.aggregates)
        self._plans = [self._plan(a) for _, a in slots.aggregates]

    def _plan(self, a: Aggregate) -> tuple[Aggregate, State | None, int | None]:
        """An aggregate, its state, and which of the value columns it reads."""
        if a.value is None:
            return a, None, None
        return a, self.slots.state_of(a), self.slots.place(a)

    @staticmethod
    def fits(aggregates: Sequence[Any], slots: Slots) -> bool:
        """Whether every aggregate can follow a sweep."""
        return bool(aggregates) and all(
            isinstance(a, Aggregate) and (a.value is None or slots.state_of(a) in SWEPT) for a in aggregates
        )

    def columns(self, swept: Swept, values: Sequence[pa.Array], n: I64) -> list[pa.Array]:
        """One column per aggregate, one value per snapshot."""
        return [
            a.rule.finish(a, Along(swept, state, None if place is None else values[place], n))
            for a, state, place in self._plans
        ]


def _painted(swept: Swept, own: pa.Array, valid: Mask, n: I64, *, least: bool) -> pa.Array:
    word = ranked(own)
    order = np.argsort(word if least else ~word, kind="stable")
    order = order[valid[order]] if len(valid) else order
    out = np.zeros(len(swept.start), np.int64)
    paint(order, swept.first, swept.last, word, np.arange(len(out) + 1), out)
    return unranked(out, n > 0, own.type)
