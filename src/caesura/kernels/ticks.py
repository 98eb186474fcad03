"""Arithmetic on times that stops at the ends of time instead of wrapping round.

>>> later(np.array([10, INFINITY - 3, INFINITY]), 5).tolist() == [15, INFINITY, INFINITY]
True
>>> lengthened(np.array([10]), np.array([20]), 3, 2).tolist(), bounded(2**70) == INFINITY
([25], True)
"""

from __future__ import annotations

import numpy as np

from caesura.kernels.hashing import I64, U64
from caesura.punctuation.time import INFINITY, MIN_TIME

FIRST = MIN_TIME + 1
"""The earliest start there is; MIN_TIME itself stands for none."""
LAST = INFINITY - 2
"""The latest start that a step gives: a row there can still live a tick and end."""
_ALL = 2**64 - 1


def bounded(t: int) -> int:
    """A time, or the end of time that it lies beyond."""
    return max(MIN_TIME, min(INFINITY, t))


def later(times: I64, by: int) -> I64:
    """Times moved by any number of ticks; infinity stays, and what would lie beyond it is infinity."""
    if by == 0 or len(times) == 0:
        return times
    if by > 0:
        if by > _ALL:
            return np.full(len(times), INFINITY)
        moved = _sum(times, by)
        return np.where(times > INFINITY - by, INFINITY, moved) if INFINITY - by >= MIN_TIME else moved
    if by < -_ALL:
        return np.where(times == INFINITY, INFINITY, MIN_TIME)
    low = times < MIN_TIME - by if MIN_TIME - by <= INFINITY else np.ones(len(times), np.bool_)
    return np.where(times == INFINITY, INFINITY, np.where(low, MIN_TIME, _sum(times, by)))


def _sum(times: I64, by: int) -> I64:
    return (times.view(np.uint64) + np.uint64(by & _ALL)).view(np.int64)


def started(times: I64) -> I64:
    """Starts that a row can have, from times that may lie at the ends of time."""
    return np.clip(times, FIRST, LAST)


def rounded_up(times: I64, period: int) -> I64:
    """The least multiples of a period that are not earlier; infinity where that lies beyond it."""
    if period > INFINITY:
        return np.where(times <= 0, 0, INFINITY)
    rest = np.remainder(times, period)
    return np.where(rest == 0, times, _after(times, (period - rest).view(np.uint64)))


def lengthened(le: I64, re: I64, factor: int, per: int) -> I64:
    """Ends after which lifetimes are a fraction as long, rounded up to a tick; infinity stays."""
    span = re.view(np.uint64) - le.view(np.uint64)
    whole, part = divmod(factor, per)
    times, rest = np.divmod(span, np.uint64(per))
    own = times * np.uint64(part) + (rest * np.uint64(part) + np.uint64(per - 1)) // np.uint64(per)
    most = np.uint64(_ALL // whole) if whole else np.uint64(_ALL)
    longer = np.where(span > most, np.uint64(_ALL), span * np.uint64(whole & _ALL))
    total = longer + own
    total = np.where(total < own, np.uint64(_ALL), np.maximum(total, np.uint64(1)))
    return np.where(re == INFINITY, INFINITY, _after(le, total))


def _after(times: I64, length: U64) -> I64:
    """Times moved by lengths that may themselves be longer than half of time."""
    room = np.uint64(INFINITY) - times.view(np.uint64)
    return np.where(length >= room, INFINITY, (times.view(np.uint64) + length).view(np.int64))
