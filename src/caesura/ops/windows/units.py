"""What is computed together: a window's members, or what was known of them at a moment.

Time-bound results cut each window where something becomes known: an event's start, and, if lifetimes
are read, its end. On each stretch the members that have begun are seen, and ends to come are not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.order import ranks
from caesura.kernels.grid import PIECES_LIMIT, spread
from caesura.kernels.hashing import I64
from caesura.kernels.sums import distinct
from caesura.ops.aggregate.accumulators.extremes import has_words, ranked
from caesura.ops.windows.events import WindowEvents
from caesura.ops.windows.policy import Clip, Stamp, clip
from caesura.ops.windows.regions import Laid
from caesura.punctuation import INFINITY


class Units(NamedTuple):
    """Windows (or stretches of them) and, sorted by unit, their members as they are seen."""

    region: I64
    start: I64
    end: I64
    low: I64
    high: I64
    owner: I64
    row: I64
    le: I64
    re: I64

    def __len__(self) -> int:
        return len(self.start)


def units(laid: Laid, events: WindowEvents, how: Clip, stamp: Stamp, *, timed: bool) -> Units:
    """The units of some windows, their members clipped."""
    le, re = events.rows.get("le")[laid.row], events.rows.get("re")[laid.row]
    if stamp != "time_bound":
        start, end = laid.start[laid.owner], laid.end[laid.owner]
        seen = clip(how, le, re, start, end)
        return Units(laid.region, laid.start, laid.end, laid.start, laid.end, laid.owner, laid.row, *seen)
    window, cut = _cuts(laid, le, re, timed)
    high = np.empty(len(cut), np.int64)
    high[:-1] = np.where(window[1:] == window[:-1], cut[1:], laid.end[window[:-1]])
    high[-1:] = laid.end[window[-1:]]
    owner, pair = _seen(laid, window, cut, le)
    known = np.where(re[pair] <= cut[owner], re[pair], INFINITY)
    start, end = laid.start[window], laid.end[window]
    seen = clip(how, le[pair], known, start[owner], end[owner])
    return Units(laid.region[window], start, end, cut, high, owner, laid.row[pair], *seen)


def _cuts(laid: Laid, le: I64, re: I64, timed: bool) -> tuple[I64, I64]:
    """(window, moment) wherever something becomes known, sorted, once each."""
    owner, moment = laid.owner, np.maximum(le, laid.start[laid.owner])
    if timed:
        ends = (re > laid.start[owner]) & (re < laid.end[owner])
        moment = np.concatenate([moment, re[ends]])
        owner = np.concatenate([owner, owner[ends]])
    order = np.lexsort((moment, owner))
    owner, moment = owner[order], moment[order]
    new = np.ones(len(owner), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (moment[1:] != moment[:-1])
    return owner[new], moment[new]


def _seen(laid: Laid, window: I64, cut: I64, le: I64) -> tuple[I64, I64]:
    """(unit, pair) of every member that has begun when its unit begins."""
    first = np.searchsorted(laid.owner, window)
    count = np.searchsorted(laid.owner, window + 1) - first
    total = int(count.sum())
    if total > PIECES_LIMIT:
        raise StreamError(
            f"time-bound results over the windows of one page look at {total:,} members in all.",
            remedy="Take smaller windows, or stamp='aligned'.",
        )
    owner, pair = spread(first, count)
    begun = le[pair] <= cut[owner]
    return owner[begun], pair[begun]


def ordered(todo: Units, events: WindowEvents, *, timed: bool) -> Units:
    """Members in canonical order: by start, by end as far as it is seen, and by values.

    An end that modules do not see, or see cut to the window, may be another one once the window is closed.
    """
    begun = events.rows.get("le")[todo.row]
    if ((todo.owner[1:] > todo.owner[:-1]) | (begun[1:] > begun[:-1])).all():
        return todo
    rows = distinct(todo.row, events.rows.size)
    place = np.searchsorted(rows, todo.row)
    le = events.rows.get("le")[rows]
    rank = np.arange(len(rows))
    if not (le[1:] > le[:-1]).all():
        values = [_rank(v) for v in events.values_of(rows)][::-1]
        rank[np.lexsort((*values, le))] = np.arange(len(rows))
    rank = rank[place]
    ends = (todo.re,) if timed else ()
    if not timed and ((todo.owner[1:] > todo.owner[:-1]) | (rank[1:] > rank[:-1])).all():
        return todo
    order = np.lexsort((rank, *ends, begun, todo.owner))
    return Units(*todo[:6], *(f[order] for f in todo[6:]))


def _rank(values: pa.Array) -> I64:
    if not has_words(values.type):
        return ranks(values)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, ranked(values), np.iinfo(np.int64).min)
