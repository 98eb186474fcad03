"""Every kind of window by listing a group's windows and asking each which rows belong to it.

>>> rows = [(0, 4, {"v": 1}), (2, 6, {"v": 2})]
>>> [(s, e, len(m)) for s, e, m in frames(rows, ("snapshot",))]
[(0, 2, 1), (2, 4, 2), (4, 6, 1)]
>>> [(s, e, len(m)) for s, e, m in frames(rows, ("count_start", 2))]
[(0, 3, 2)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from caesura.punctuation import INFINITY
from caesura.testing.oracles.aggregates import Aggregates, aggregated, grouped
from caesura.testing.oracles.rows import Payload, Row, Rows
from caesura.testing.oracles.tumbling import Horizon, belongs, grid

Frame: TypeAlias = tuple[Any, ...]
"""('grid', size, hop, offset), ('snapshot',), ('count_start' or 'count_end', n), ('session', gap, most)."""
Window: TypeAlias = tuple[int, int, Rows]
Compute: TypeAlias = Callable[[Rows, int, int], Rows]
"""From a window's members, as clipped, to stamped rows without the key columns."""


def frames(rows: Rows, frame: Frame, limit: int = 0) -> list[Window]:
    """The windows of one group, each with its members."""
    match frame:
        case ("grid", size, hop, offset):
            return _grid(rows, size, hop, offset, limit)
        case ("snapshot",):
            times = sorted({t for le, re, _ in rows for t in (le, re)})
            made = [(a, b, [r for r in rows if r[0] <= a < r[1]]) for a, b in pairwise(times)]
            return [w for w in made if w[2]]
        case ("count_start", n):
            return _counted(rows, n, lambda row: row[0])
        case ("count_end", n):
            return _counted([r for r in rows if r[1] != INFINITY], n, lambda row: row[1])
        case ("session", gap, longest):
            return _sessions(rows, gap, longest)
    raise ValueError(f"no oracle for {frame}")


def _grid(rows: Rows, size: int, hop: int, offset: int, limit: int) -> list[Window]:
    until = max([limit, *(re for _, re, _ in rows if re != INFINITY)])
    spans = grid(min(le for le, _, _ in rows), until, size, hop, offset)
    made = [(start, end, [r for r in rows if belongs(r, start, end, limit)]) for start, end in spans]
    return [window for window in made if window[2]]


def _counted(rows: Rows, n: int, point: Callable[[Row], int]) -> list[Window]:
    points = sorted({point(r) for r in rows})
    spans = [(points[i], points[i + n - 1] + 1) for i in range(len(points) - n + 1)]
    return [(s, e, [r for r in rows if s <= point(r) < e]) for s, e in spans]


def _sessions(rows: Rows, gap: int, longest: int | None) -> list[Window]:
    out: list[Window] = []
    for row in sorted(rows, key=lambda r: (r[0], r[1])):
        last = out[-1] if out else None
        late = last is None or row[0] - max(r[1] for r in last[2]) >= gap
        if last is None or late or (longest is not None and row[0] >= last[0] + longest):
            out.append((row[0], row[1], [row]))
        else:
            out[-1] = (last[0], 0, [*last[2], row])
    ends = [max(re for _, re, _ in m) for _, _, m in out]
    cuts = [INFINITY if longest is None else min(INFINITY, s + longest) for s, _, _ in out]
    return [(s, min(e, c), m) for (s, _, m), e, c in zip(out, ends, cuts, strict=True)]


def windowed(
    rows: Rows,
    keys: Sequence[str],
    frame: Frame,
    compute: Compute,
    *,
    clip: str = "none",
    stamp: str = "aligned",
    timed: bool = False,
    horizon: Horizon = lambda _: 0,
    order: Callable[[Row], Any] | None = None,
) -> Rows:
    """What a computation gives over each window of each group.

    Members come in the ``order`` of what they are as they are seen; without it as they are.
    """
    out: Rows = []
    for group in grouped(rows, keys):
        key = {name: group[0][2][name] for name in keys}
        for start, end, members in frames(group, frame, horizon(key)):
            parts = [(start, end, members)]
            if stamp == "time_bound":
                parts = _known(start, end, members, timed)
            for low, high, seen in parts:
                seen = _clipped(seen, start, end, {"left": "none", "full": "right"}.get(clip, clip))
                seen = seen if order is None else sorted(seen, key=order)
                made = compute(_clipped(seen, start, end, clip), start, end)
                out += [(a, b, {**key, **p}) for a, b, p in _stamped(made, stamp, start, end, low, high)]
    return out


def _known(start: int, end: int, members: Rows, timed: bool) -> list[Window]:
    """The stretches of a window on which the same is known; an end to come is not."""
    cuts = {max(start, le) for le, _, _ in members}
    cuts |= {re for _, re, _ in members if timed and start < re < end}
    out = []
    for low, high in pairwise([*sorted(cuts), end]):
        seen = [(le, re if re <= low else INFINITY, p) for le, re, p in members if le <= low]
        out.append((low, high, seen))
    return out


def _clipped(members: Rows, start: int, end: int, clip: str) -> Rows:
    left, right = clip in ("left", "full"), clip in ("right", "full")
    return [(max(le, start) if left else le, min(re, end) if right else re, p) for le, re, p in members]


def _stamped(made: Rows, stamp: str, start: int, end: int, low: int, high: int) -> Rows:
    if stamp == "aligned":
        return [(start, end, p) for _, _, p in made]
    if stamp == "point_at_end":
        return [(end, end + 1, p) for _, _, p in made if end != INFINITY]
    if stamp == "unchanged":
        return made
    a, b = (low, high) if stamp == "time_bound" else (start, end)
    return [(max(le, a), min(re, b), p) for le, re, p in made if max(le, a) < min(re, b)]


def aggregates_over(aggs: Aggregates) -> Compute:
    """Built-in aggregates as a computation over a window."""

    def compute(members: Rows, start: int, end: int) -> Rows:
        return [(start, end, aggregated((), aggs, members))]

    return compute


def payloads(members: Rows) -> list[Payload]:
    """The payloads of members."""
    return [p for _, _, p in members]
