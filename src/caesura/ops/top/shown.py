"""Stretches of rows with their ranks, as they were sent or are to be shown; and their difference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights
from caesura.ops.top.sweep import Course


class RankedRows(NamedTuple):
    """Stretches of rows, with their ranks."""

    family: I64
    """Equal for rows that begin together and are alike."""
    row: I64
    le: I64
    re: I64
    ranks: tuple[I64, ...]

    @property
    def ids(self) -> tuple[U64, U64]:
        """Equal for stretches of one family with equal ranks."""
        none = np.zeros(len(self.family), np.uint64)
        return mixed((none, none), self.family, *self.ranks)

    def take(self, at: I64 | Mask) -> RankedRows:
        """Some of them."""
        ranks = tuple(rank[at] for rank in self.ranks)
        return RankedRows(self.family[at], self.row[at], self.le[at], self.re[at], ranks)


def joined(a: RankedRows, b: RankedRows) -> RankedRows:
    """Both, one behind the other."""
    family, row, le, re = (np.concatenate(pair) for pair in zip(a[:4], b[:4], strict=True))
    ranks = tuple(np.concatenate(pair) for pair in zip(a.ranks, b.ranks, strict=True))
    return RankedRows(family, row, le, re, ranks)


def cancelled(before: RankedRows, after: RankedRows) -> tuple[I64, I64]:
    """What of the one is not in the other, and the other way round; copies count."""
    both = joined(before, after)
    every = np.arange(len(both.row))
    number, first = KeyTable().encode(*mixed(both.ids, both.le, both.re))
    weight = np.ones(len(every), np.int64)
    weight[: len(before.row)] = -1
    net = np.zeros(len(first), np.int64)
    add_weights(number, weight, net)
    order = np.argsort(number, kind="stable")
    place = np.empty(len(every), np.int64)
    starts = np.searchsorted(number[order], number)
    place[order] = every
    olds = np.zeros(len(first), np.int64)
    np.add.at(olds, number[: len(before.row)], 1)
    nth = place - starts  # among its equals, those before first
    old = every < len(before.row)
    gone = old & (nth < -net[number])
    new = ~old & (nth - olds[number] < net[number])
    return np.flatnonzero(gone), np.flatnonzero(new) - len(before.row)


def course_of(owner: I64, tie: I64, le: I64, re: I64, groups: int) -> Course:
    every = np.arange(len(owner))
    group, time = np.concatenate([owner, owner]), np.concatenate([le, re])
    sign = np.ones(2 * len(every), np.int64)
    sign[len(every) :] = -1
    order = np.lexsort((time, group))
    starts = np.arange(groups + 1)
    row = np.concatenate([every, every])[order]
    at, event_at = np.searchsorted(owner, starts), np.searchsorted(group[order], starts)
    return Course(at, tie, event_at, time[order], row, sign[order])
