"""The same queries as hand-written numba kernels over dense key numbers: what a specialist would write.

Each gives the same answers as the query (the benchmark compares them) as (times, columns), and like the
query takes fresh memory for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.qre_data import BID, CLOSE, DAY, ITEM, MEASURE, PERSON, PURCHASE, SECOND, VIEW, Data

TEN_MINUTES = 600 * SECOND
UNITS = 144
Answer = tuple[Any, ...]
Work = Callable[[], Answer]
compiled = numba.njit(cache=True, error_model="numpy")


@compiled
def _y1(kind: Any, campaign: Any, time: Any, out_t: Any, out_c: Any, out_v: Any) -> int:
    counts, seen = np.zeros(100, np.int64), np.zeros(100, np.int64)
    edge = (time[0] // SECOND + 1) * SECOND
    n = 0
    for i in range(len(kind) + 1):
        while i == len(kind) or time[i] >= edge:
            for c in range(100):
                out_t[n] = edge
                out_c[n] = c
                out_v[n] = counts[c]
                n += seen[c]
                counts[c] = 0
                seen[c] = 0
            edge += SECOND
            if i == len(kind):
                return n
        counts[campaign[i]] += 1 if kind[i] == VIEW else 0
        seen[campaign[i]] = 1
    return n


@compiled
def _y2(kind: Any, ad: Any, campaign: Any, user: Any, rows: Any, out_c: Any, out_a: Any, out_s: Any) -> int:
    viewed = np.zeros((1000, 100), np.int8)
    score, best, top = np.zeros(1000, np.int64), np.zeros(100, np.int64), np.zeros(100, np.int64)
    n = 0
    for i in range(len(kind)):
        a, u = ad[i], user[i]
        if kind[i] == VIEW and viewed[a, u] == 0:
            viewed[a, u] = 1
        elif kind[i] == PURCHASE and viewed[a, u] == 1:
            viewed[a, u] = 2
            c = campaign[i]
            score[a] += 1
            if score[a] > top[c]:
                top[c] = score[a]
                best[c] = a
            rows[n] = i
            out_c[n] = c
            out_a[n] = best[c]
            out_s[n] = top[c]
            n += 1
    return n


@compiled
def _n1(kind: Any, rows: Any, out: Any) -> int:
    n = 0
    live = 0
    for i in range(len(kind)):
        if kind[i] == ITEM or kind[i] == CLOSE:
            live += 1 if kind[i] == ITEM else -1
            rows[n] = i
            out[n] = live
            n += 1
    return n


@compiled
def _n2(kind: Any, item: Any, price: Any, prices: Any, rows: Any, out: Any) -> int:
    n = 0
    total = 0.0
    for i in range(len(kind)):
        if kind[i] == BID:
            prices[item[i]] += price[i]
        elif kind[i] == ITEM:
            prices[item[i]] = price[i]
        elif kind[i] == CLOSE:
            total += prices[item[i]]
            n += 1
            rows[n - 1] = i
            out[n - 1] = total / n
    return n


@compiled
def _n3(kind: Any, item: Any, price: Any, category: Any, prices: Any, rows: Any, out_c: Any, out: Any) -> int:
    n = 0
    totals, counts, of = np.zeros(10), np.zeros(10, np.int64), np.zeros(len(prices), np.int32)
    for i in range(len(kind)):
        if kind[i] == BID:
            prices[item[i]] += price[i]
        elif kind[i] == ITEM:
            prices[item[i]] = price[i]
            of[item[i]] = category[i]
        elif kind[i] == CLOSE:
            c = of[item[i]]
            totals[c] += prices[item[i]]
            counts[c] += 1
            rows[n] = i
            out_c[n] = c
            out[n] = totals[c] / counts[c]
            n += 1
    return n


@compiled
def _n4(kind: Any, item: Any, price: Any, time: Any, prices: Any, out_t: Any, out: Any) -> int:
    edge = (time[0] // TEN_MINUTES + 1) * TEN_MINUTES
    n = 0
    best = -np.inf
    for i in range(len(kind) + 1):
        while i == len(kind) or time[i] >= edge:
            out_t[n] = edge
            out[n] = best
            n += 1
            best = -np.inf
            edge += TEN_MINUTES
            if i == len(kind):
                return n
        if kind[i] != PERSON:
            prices[item[i]] += price[i] if kind[i] != CLOSE else 0.0
            best = max(best, prices[item[i]])
    return n


@compiled
def _n5(kind: Any, item: Any, time: Any, ring: Any, total: Any, out_t: Any, out_i: Any, out_n: Any) -> int:
    edge = (time[0] // TEN_MINUTES + 1) * TEN_MINUTES
    n = 0
    at = 0
    for i in range(len(kind) + 1):
        while i == len(kind) or time[i] >= edge:
            most = -1
            for k in range(len(total)):
                total[k] += ring[at, k]
                if total[k] > most:
                    most = total[k]
                    out_i[n] = k
            out_t[n] = edge
            out_n[n] = most
            n += 1
            at = (at + 1) % UNITS
            for k in range(len(total)):
                total[k] -= ring[at, k]
                ring[at, k] = 0
            edge += TEN_MINUTES
            if i == len(kind):
                return n
        if kind[i] == BID:
            ring[at, item[i]] += 1
    return n


@compiled
def _p6(kind: Any, rows: Any, out: Any) -> int:
    tally = np.zeros(4096, np.int64)
    n = today = below = 0
    median = 0
    for i in range(len(kind)):
        if kind[i] != DAY:
            today += 1 if kind[i] == MEASURE else 0
            continue
        tally[today] += 1
        below += today < median
        n += 1
        rank = (n + 1) // 2
        while below + tally[median] < rank:
            below += tally[median]
            median += 1
        while below >= rank:
            median -= 1
            below -= tally[median]
        rows[n - 1] = i
        out[n - 1] = median
        today = 0
    return n


@compiled
def _p7(kind: Any, value: Any, ring: Any, out: Any) -> None:
    count = 0
    at = 0
    for i in range(len(kind)):
        hit = kind[i] == MEASURE and value[i] > 60.0
        count += hit - ring[at]
        ring[at] = hit
        at += 1
        if at == len(ring):
            at = 0
        out[i] = count


def _columns(of: Data, *names: str) -> list[Any]:
    return [of.batch.column(n).to_numpy() for n in names]


def _room(of: Data, *types: Any) -> list[Any]:
    return [np.empty(len(of.time) + 200, t) for t in types]


def _at_rows(of: Data, count: int, rows: Any, *columns: Any) -> Answer:
    return of.time[rows[:count]], *(c[:count] for c in columns)


def y1(of: Data) -> Work:
    kind, campaign = _columns(of, "kind", "campaign")

    def work() -> Answer:
        room = _room(of, np.int64, np.int32, np.int64)
        n = _y1(kind, campaign, of.time, *room)
        return tuple(r[:n] for r in room)

    return work


def y2(of: Data) -> Work:
    columns = _columns(of, "kind", "ad", "campaign", "user")

    def work() -> Answer:
        room = _room(of, np.int64, np.int32, np.int64, np.int64)
        return _at_rows(of, _y2(*columns, *room), *room)

    return work


def n1(of: Data) -> Work:
    (kind,) = _columns(of, "kind")

    def work() -> Answer:
        room = _room(of, np.int64, np.int64)
        return _at_rows(of, _n1(kind, *room), *room)

    return work


def n2(of: Data) -> Work:
    kind, item, price = _columns(of, "kind", "item", "price")
    items = int(item.max()) + 1

    def work() -> Answer:
        room = _room(of, np.int64, np.float64)
        return _at_rows(of, _n2(kind, item, price, np.zeros(items), *room), *room)

    return work


def n3(of: Data) -> Work:
    kind, item, price, category = _columns(of, "kind", "item", "price", "category")
    items = int(item.max()) + 1

    def work() -> Answer:
        room = _room(of, np.int64, np.int32, np.float64)
        return _at_rows(of, _n3(kind, item, price, category, np.zeros(items), *room), *room)

    return work


def n4(of: Data) -> Work:
    kind, item, price = _columns(of, "kind", "item", "price")
    items = int(item.max()) + 1

    def work() -> Answer:
        room = _room(of, np.int64, np.float64)
        n = _n4(kind, item, price, of.time, np.zeros(items), *room)
        return tuple(r[:n] for r in room)

    return work


def n5(of: Data) -> Work:
    kind, item = _columns(of, "kind", "item")
    items = int(item.max()) + 1

    def work() -> Answer:
        room = _room(of, np.int64, np.int64, np.int64)
        n = _n5(kind, item, of.time, np.zeros((UNITS, items), np.int64), np.zeros(items, np.int64), *room)
        return tuple(r[:n] for r in room)

    return work


def p6(of: Data) -> Work:
    (kind,) = _columns(of, "kind")

    def work() -> Answer:
        room = _room(of, np.int64, np.float64)
        return _at_rows(of, _p6(kind, *room), *room)

    return work


def p7(size: int) -> Callable[[Data], Work]:
    def prepare(of: Data) -> Work:
        kind, value = _columns(of, "kind", "value")

        def work() -> Answer:
            out = np.empty(len(kind), np.int64)
            _p7(kind, value, np.zeros(size, np.uint8), out)
            return of.time, out

        return work

    return prepare


HAND: dict[str, Callable[[Data], Work]] = {
    "Y1": y1,
    "Y2": y2,
    "N1": n1,
    "N2": n2,
    "N3": n3,
    "N4": n4,
    "N5": n5,
    "P6": p6,
    "P7 w=10^4": p7(10_000),
    "P7 w=10^7": p7(10_000_000),
}
