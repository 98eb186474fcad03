"""Results of groups as chains in time, and the change from the links that were sent to those that hold now.

A link is known by its group and its start, so two chains are compared link by link; only links that meet are
compared by value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import taken, words
from caesura.events.identity import LOCAL, identity
from caesura.events.page import NO_NEW_END, Page, take_rows
from caesura.events.types import is_words
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask
from caesura.punctuation import INFINITY


class ResultChain(NamedTuple):
    """Results of groups, one behind the other: group, from, to, columns; and whether there are rows."""

    group: I64
    le: I64
    re: I64
    present: Mask
    columns: list[pa.Array]


class ChainChange(NamedTuple):
    """What becomes of the links that were sent, and which links are new."""

    page: Page
    gone: I64
    """Which of the old links are no more."""
    moved: I64
    """Which of the old links have another end, and it."""
    ends: I64
    fresh: I64


@kernel
def match_links(old_group: I64, old_le: I64, group: I64, le: I64, partner: I64) -> None:
    """The new link with the group and start of each old one, -1 for none; both in order."""
    j = 0
    for i in range(len(old_group)):
        g = old_group[i]
        while j < len(group) and (group[j] < g or (group[j] == g and le[j] < old_le[i])):
            j += 1
        partner[i] = j if j < len(group) and group[j] == g and le[j] == old_le[i] else -1


@kernel
def join_links(group: I64, le: I64, present: Mask, changes: Mask, links: I64, re: I64) -> int:
    """The first of equal neighbours where there are rows, and where the last of them ends."""
    count = 0
    i = 0
    n = len(group)
    while i < n:
        first = i
        i += 1
        while i < n and group[i] == group[first] and present[i] == present[first] and not changes[i]:
            i += 1
        if present[first]:
            links[count] = first
            re[count] = le[i] if i < n and group[i] == group[first] else INFINITY
            count += 1
    return count


def change_links(
    group: I64, le: I64, re: I64, old: pa.RecordBatch, chain: ResultChain, new: pa.RecordBatch
) -> ChainChange:
    """The change from old links to new ones, both in order of (group, start)."""
    partner = np.empty(len(group), np.int64)
    match_links(group, le, chain.group, chain.le, partner)
    met = np.flatnonzero(partner >= 0)
    same = met[_equal(take_rows(old, met), take_rows(new, partner[met]))]
    moved = same[re[same] != chain.re[partner[same]]]
    gone = np.ones(len(group), np.bool_)
    gone[same] = False
    fresh = np.ones(len(chain.group), np.bool_)
    fresh[partner[same]] = False
    lost, added = np.flatnonzero(gone), np.flatnonzero(fresh)
    ends = chain.re[partner[moved]]
    taken = np.concatenate([moved, lost])
    parts = [take_rows(old, taken), new if len(added) == len(fresh) else take_rows(new, added)]
    page = Page.of(
        pa.concat_batches(parts) if len(taken) else parts[1],
        le=np.concatenate([le[taken], chain.le[added]]),
        re=np.concatenate([re[taken], chain.re[added]]),
        re_new=np.concatenate([ends, le[lost], np.full(len(added), NO_NEW_END, np.int64)]),
    )
    return ChainChange(page, lost, moved, ends, added)


def _equal(a: pa.RecordBatch, b: pa.RecordBatch) -> Mask:
    one, other = identity(a.columns, a.num_rows, LOCAL), identity(b.columns, b.num_rows, LOCAL)
    found: Mask = (one[0] == other[0]) & (one[1] == other[1])
    return found


def joined(before: ResultChain, after: ResultChain) -> ResultChain:
    """Chains behind at most one link per group; equal neighbours are one link, and empty links none."""
    group, le, present, columns = _in_front(before, after)
    changes = np.zeros(len(group), np.bool_)
    for column in columns:
        changes[1:] |= differs(column)
    links, re = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
    count = join_links(group, le, present, changes, links, re)
    if count == len(group):
        return ResultChain(group, le, re, present, columns)
    links = links[:count]
    taken = [column.take(pa.array(links)) for column in columns]
    return ResultChain(group[links], le[links], re[:count], present[links], taken)


def _in_front(before: ResultChain, after: ResultChain) -> tuple[I64, I64, Mask, list[pa.Array]]:
    if len(before.group) == 0:
        return after.group, after.le, after.present, after.columns
    size = len(before.group) + len(after.group)
    first = np.searchsorted(after.group, before.group) + np.arange(len(before.group))
    rest = np.ones(size, np.bool_)
    rest[first] = False
    order = np.empty(size, np.int64)
    order[first] = np.arange(len(before.group))
    order[rest] = np.arange(len(before.group), size)
    columns = [
        pa.concat_arrays([a, b]).take(pa.array(order))
        for a, b in zip(before.columns, after.columns, strict=True)
    ]
    group = np.concatenate([before.group, after.group])[order]
    le = np.concatenate([before.le, after.le])[order]
    return group, le, np.concatenate([before.present, after.present])[order], columns


def differs(values: pa.Array) -> Mask:
    """Which values differ from the one before; null equals null, and NaN equals NaN."""
    return differ(values, np.arange(len(values) - 1), slice(1, None))


def differ(values: pa.Array, others: I64, some: slice = slice(None)) -> Mask:
    """Which values, by default all, differ from others; null equals null, and NaN equals NaN."""
    if is_words(values.type) and values.null_count == 0:
        plain = words(values)
        a, b = plain[some], taken(plain, others)
        found: Mask = a != b
        if pa.types.is_floating(values.type):
            found &= ~(np.isnan(a) & np.isnan(b))
        return found
    h1, h2 = identity([values], len(values), LOCAL)
    other: Mask = (h1[some] != h1[others]) | (h2[some] != h2[others])
    return other
