"""What the lifetime family does to each row.

>>> shift([(1, 4, {}), (2, INFINITY, {})], 10) == [(11, 14, {}), (12, INFINITY, {})]
True
>>> chop([(3, 11, {})], 5)
[(3, 5, {}), (5, 10, {}), (10, 11, {})]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing.oracles.rows import Payload, Rows, key


def _later(t: int, by: int) -> int:
    return INFINITY if t == INFINITY else min(INFINITY, t + by)


def _longer(t: int, by: int) -> int:
    """An end that lies an infinite length away is none, wherever it is counted from."""
    return INFINITY if by >= INFINITY else _later(t, by)


def _start(t: int) -> int:
    """Starts stop a tick before the last end."""
    return max(MIN_TIME + 1, min(INFINITY - 2, t))


def _living(rows: Rows) -> Rows:
    return [(le, re, p) for le, re, p in rows if le < re]


def shift(rows: Rows, by: int) -> Rows:
    """Both ends move."""
    moved = [(_start(le + by), _later(re, by), p) for le, re, p in rows]
    return [(le, max(le + 1, re), p) for le, re, p in moved]


def set_duration(rows: Rows, duration: int) -> Rows:
    """Every row lives this long."""
    return [(le, _longer(le, duration), p) for le, _, p in rows]


def forever(rows: Rows) -> Rows:
    """No row ends."""
    return [(le, INFINITY, p) for le, _, p in rows]


def extend(rows: Rows, by: int) -> Rows:
    """The end moves; a row with no time left vanishes."""
    return _living([(le, _longer(re, by), p) for le, re, p in rows])


def scale(rows: Rows, num: int, den: int = 1) -> Rows:
    """The length is multiplied and rounded up, to at least one tick."""
    return [
        (le, INFINITY if re == INFINITY else _later(le, max(1, -((le - re) * num // den))), p)
        for le, re, p in rows
    ]


def start_at(rows: Rows, period: int) -> Rows:
    """The start moves up to a multiple of the period."""
    return _living([(_start(-(-le // period) * period), re, p) for le, re, p in rows])


def chop(rows: Rows, period: int, horizon: int | Callable[[Payload], int] = 0) -> Rows:
    """One row per period; of a row that never ends, the pieces that start before the horizon."""
    out: Rows = []
    for le, re, p in rows:
        stop = re if re != INFINITY else (horizon(p) if callable(horizon) else horizon)
        for k in range(le // period, -(-stop // period)):
            if max(le, k * period) < stop:
                out.append((max(le, k * period), min(re, (k + 1) * period), p))
    return _living([(s, e, p) for s, e, p in out])


def points_at_start(rows: Rows) -> Rows:
    """A point where each row starts."""
    return [(le, le + 1, p) for le, _, p in rows]


def points_at_end(rows: Rows) -> Rows:
    """A point where each row ends, if it does."""
    return [(re, re + 1, p) for _, re, p in rows if re != INFINITY]


def clip(left: Rows, right: Rows, *, on: Sequence[tuple[str, str]]) -> Rows:
    """Each left row ends where the next matching right row starts."""
    out: Rows = []
    for le, re, p in left:
        mine = key(p, [x for x, _ in on])
        starts = [
            s for s, _, q in right if s > le and None not in mine and key(q, [y for _, y in on]) == mine
        ]
        out.append((le, min([re, *starts]), p))
    return out
