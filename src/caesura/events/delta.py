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
    first = np.where(page.retracts, -1, 1)
    again = np.flatnonzero(page.retracts & (page.re_new > page.le))
    rows = np.concatenate([every, again])
    order = np.argsort(rows, kind="stable")
    return Deltas(
        rows[order],
        np.concatenate([page.le, page.le[again]])[order],
        np.concatenate([page.re, page.re_new[again]])[order],
        np.concatenate([first, np.ones(len(again), np.int64)])[order],
    )


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
    rows, ends, new = net_rows(identity(payload.columns, len(le), LOCAL), le, re, weight)
    order = np.argsort(new == NO_NEW_END, kind="stable")
    rows, ends, new = rows[order], ends[order], new[order]
    return Page.of(take_rows(payload, rows), le=le[rows], re=ends, re_new=new)


def fold(page: Page) -> tuple[Page, Mask]:
    """The history of a page: its live rows as inserts; and which input rows retract nothing.

    A retract counts as unmatched when the sum of its row's weights stays negative.
    """
    d = deltas(page)
    known = page.own_ids
    ids = page.ids(LOCAL) if known is None else known[1]
    number, first = KeyTable().encode(*mixed(ids, d.le, d.re, rows=d.rows))
    total = np.zeros(len(first), np.int64)
    np.add.at(total, number, d.weight)
    keep = np.repeat(first, np.maximum(total, 0))
    live = page.inserts(d.rows[keep], d.le[keep], d.re[keep])
    unmatched = np.zeros(len(page), np.bool_)
    lost = d.rows[(total[number] < 0) & (d.weight < 0)]
    unmatched[lost] = True
    return live, unmatched
