"""The same queries as hand-written numba kernels over dense key numbers: what a specialist would write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.qre_data import BID, CLOSE, ITEM, SECOND, Data

Work = Callable[[], Any]


@numba.njit(cache=True)
def _y1(kind: Any, campaign: Any, time: Any, counts: Any, out: Any) -> int:
    edge = (time[0] // SECOND + 1) * SECOND
    second = 0
    for i in range(len(kind)):
        while time[i] >= edge:
            out[second] = counts
            counts[:] = 0
            second += 1
            edge += SECOND
        counts[campaign[i]] += 1 if kind[i] == 0 else 0
    return second


@numba.njit(cache=True)
def _n1(kind: Any, out: Any) -> int:
    n = 0
    live = 0
    for i in range(len(kind)):
        if kind[i] == ITEM or kind[i] == CLOSE:
            live += 1 if kind[i] == ITEM else -1
            out[n] = live
            n += 1
    return n


@numba.njit(cache=True)
def _n2(kind: Any, item: Any, price: Any, prices: Any, out: Any) -> int:
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
            out[n - 1] = total / n
    return n


@numba.njit(cache=True)
def _p7(kind: Any, value: Any, ring: Any, out: Any) -> None:
    count = 0
    at = 0
    for i in range(len(kind)):
        hit = kind[i] == 1 and value[i] > 60.0
        count += hit - ring[at]
        ring[at] = hit
        at += 1
        if at == len(ring):
            at = 0
        out[i] = count


def _columns(of: Data, *names: str) -> list[Any]:
    return [of.batch.column(n).to_numpy() for n in names]


def y1(of: Data) -> Work:
    kind, campaign = _columns(of, "kind", "campaign")
    out = np.zeros((len(of.time) // 50 + 10, 100), np.int64)
    return lambda: _y1(kind, campaign, of.time, np.zeros(100, np.int64), out)


def n1(of: Data) -> Work:
    (kind,) = _columns(of, "kind")
    out = np.zeros(len(kind), np.int64)
    return lambda: _n1(kind, out)


def n2(of: Data) -> Work:
    kind, item, price = _columns(of, "kind", "item", "price")
    prices, out = np.zeros(int(item.max()) + 1), np.zeros(len(kind))
    return lambda: _n2(kind, item, price, prices, out)


def p7(size: int) -> Callable[[Data], Work]:
    def prepare(of: Data) -> Work:
        kind, value = _columns(of, "kind", "value")
        out = np.zeros(len(kind), np.int64)
        return lambda: _p7(kind, value, np.zeros(size, np.uint8), out)

    return prepare


HAND: dict[str, Callable[[Data], Work]] = {
    "Y1": y1,
    "N1": n1,
    "N2": n2,
    "P7 w=10^4": p7(10_000),
    "P7 w=10^7": p7(10_000_000),
}
