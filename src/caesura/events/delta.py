"""Weighted rows, and the smallest page of inserts and retracts that says the same.

A retract is -(LE, RE, p) + (LE, RE_new, p). `net_page` goes back: it cancels what cancels, joins a
loss and a gain with equal payload and start into one retract (so that a change of an end past the
CTI never touches the past), and leaves the rest as inserts and full retracts.

>>> batch = pa.record_batch({"id": [7, 7]})
>>> page = net_page(batch, np.array([1, 1]), np.array([9, 5]), np.array([-1, 1]))
>>> page.rows()
[(1, 9, 5, (7,))]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.identity import LOCAL, identity
from caesura.events.page import NO_NEW_END, Page, take_rows
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable

FEW_ENDS = 8
"""Rows with up to so many ends are looked for by their ends first."""


class Deltas(NamedTuple):
    """Weighted lifetimes; ``rows`` says which row of a page each belongs to."""

    rows: I64
    le: I64
    re: I64
    weight: I64


def deltas(page: Page) -> Deltas:
    """A page as weighted rows: an insert is one gain, a retract a loss and perhaps a gain."""
    every = np.arange(len(page))
    if page.re_new is None or page.retracts is None:
        return Deltas(every, page.le, page.re, np.ones(len(page), np.int64))
    again = page.retracts & (page.re_new > page.le)
    rows = np.repeat(every, 1 + again)
    gains = np.flatnonzero(again)
    at = gains + np.arange(1, len(gains) + 1)  # right behind the loss
    re, weight = page.re[rows], np.where(page.retracts, -1, 1)[rows]
    re[at], weight[at] = page.re_new[gains], 1
    return Deltas(rows, page.le[rows], re, weight)


@kernel
def pair_changes(
    group: I64, le: I64, re: I64, weight: I64, o_row: I64, o_re: I64, o_new: I64, loss: I64
) -> int:
    """Rows sorted by (group, re): cancels, pairs losses with gains, and writes what is left.

    ``o_row`` receives row numbers, ``o_re`` and ``o_new`` the ends; ``loss`` is scratch space.
    """
    n = len(group)
    out = 0
    i = 0
    while i < n:
        g = group[i]
        losses = 0
        begin = out
        while i < n and group[i] == g:
            end = re[i]
            first = i
            total = 0
            while i < n and group[i] == g and re[i] == end:
                total += weight[i]
                i += 1
            for _ in range(-total):
                loss[losses] = first
                losses += 1
            for _ in range(total):
                o_row[out] = first
                o_re[out] = end
                o_new[out] = NO_NEW_END
                out += 1
        used = 0
        for k in range(begin, out):
            if used < losses:
                o_new[k] = o_re[k]
                o_re[k] = re[loss[used]]
                o_row[k] = loss[used]
                used += 1
        while used < losses:
            o_row[out] = loss[used]
            o_re[out] = re[loss[used]]
            o_new[out] = le[loss[used]]
            out += 1
            used += 1
    return out


def net_rows(ids: tuple[U64, U64], le: I64, re: I64, weight: I64) -> tuple[I64, I64, I64]:
    """The net change of weighted rows: (row number, RE, RE_new) of each item that is left."""
    group, _ = KeyTable().encode(*mixed(ids, le))
    order = np.lexsort((re, group))
    size = int(np.abs(weight).sum())
    row, o_re, o_new = (np.empty(size, np.int64) for _ in range(3))
    count = pair_changes(
        group[order], le[order], re[order], weight[order], row, o_re, o_new, np.empty(size, np.int64)
    )
    return order[row[:count]], o_re[:count], o_new[:count]


def net_page(payload: pa.RecordBatch, le: I64, re: I64, weight: I64) -> Page:
    """The smallest page that changes a history by these weighted rows.

    Retracts come first: within a page no key is present twice on account of order.
    """
    if len(weight) == 0 or weight.min() > 0:
        rows = np.repeat(np.arange(len(le)), weight)
        whole = len(rows) == len(le)
        return Page(le[rows], re[rows], payload if whole else take_rows(payload, rows))
    lost = le[weight < 0]
    near = (le >= lost.min()) & (le <= lost.max())
    if 2 * int(near.sum()) < len(le) and bool((weight[~near] == 1).all()):
        some, apart = np.flatnonzero(near), np.flatnonzero(~near)
        rows, ends, new = _netted(take_rows(payload, some), le[some], re[some], weight[some])
        rows, ends = np.concatenate([some[rows], apart]), np.concatenate([ends, re[apart]])
        new = np.concatenate([new, np.full(len(apart), NO_NEW_END)])
    else:
        rows, ends, new = _netted(payload, le, re, weight)
    return Page.of(take_rows(payload, rows), le=le[rows], re=ends, re_new=new)


def _netted(payload: pa.RecordBatch, le: I64, re: I64, weight: I64) -> tuple[I64, I64, I64]:
    """The items of `net_rows`, retracts in front."""
    rows, ends, new = net_rows(identity(payload.columns, len(le), LOCAL), le, re, weight)
    order = np.argsort(new == NO_NEW_END, kind="stable")
    return rows[order], ends[order], new[order]


def fold(page: Page) -> tuple[Page, Mask]:
    """The history of a page: its live rows as inserts; and which input rows retract nothing.

    A retract counts as unmatched when the sum of its row's weights stays negative.
    """
    unmatched = np.zeros(len(page), np.bool_)
    if page.retracts is None or page.re_new is None:
        return page.as_inserts(), unmatched
    ends = np.where(page.retracts, page.re_new, page.re)
    live = ~page.retracts | (ends > page.le)
    losses = np.flatnonzero(page.retracts)
    gains = np.flatnonzero(live & _among(ends, page.re[losses]))
    lost, taken_back = _matched(page, losses, gains, ends)
    live[gains[taken_back]] = False
    unmatched[losses[lost]] = True
    rows = np.flatnonzero(live)
    return page.inserts(rows, page.le[rows], ends[rows]), unmatched


def _among(ends: I64, some: I64) -> Mask:
    """Which ends are one of these; all, where these are many."""
    values = np.unique(some)
    if len(values) > FEW_ENDS:
        return np.ones(len(ends), np.bool_)
    found = np.zeros(len(ends), np.bool_)
    for value in values.tolist():
        found |= ends == value
    return found


def _matched(page: Page, losses: I64, gains: I64, ends: I64) -> tuple[Mask, Mask]:
    """Which losses have no gain, of equal ones all; and which gains have a loss, of equal ones the first."""
    known = page.own_ids
    rows, count = np.concatenate([losses, gains]), len(losses)
    re = np.concatenate([page.re[losses], ends[gains]])
    if known is None:
        ids = mixed(identity(page.payload_of(rows).columns, len(rows), LOCAL), page.le[rows], re)
    else:
        ids = mixed(known[1], page.le[rows], re, rows=rows)
    number, first = KeyTable().encode(*ids)
    lost = np.bincount(number[:count], minlength=len(first))
    own = number[count:]
    short = lost > np.bincount(own, minlength=len(first))
    hit = np.flatnonzero(lost[own])
    order = hit[np.argsort(own[hit], kind="stable")]
    nth = np.arange(len(order)) - np.searchsorted(own[order], own[order])
    taken_back = np.zeros(len(gains), np.bool_)
    taken_back[order] = nth < lost[own[order]]
    return short[number[:count]], taken_back
