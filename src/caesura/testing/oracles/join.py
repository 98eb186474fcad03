"""Joins by looking at every pair.

>>> left, right = [(0, 9, {"k": 1})], [(3, 5, {"k": 1, "b": "y"})]
>>> join(left, right, on=[("k", "k")], how="left")
[(3, 5, {'k': 1, 'b': 'y'}), (0, 3, {'k': 1, 'b': None}), (5, 9, {'k': 1, 'b': None})]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from caesura.testing.oracles.rows import Payload, Row, Rows, Span, key, maximal, outside

How: TypeAlias = Literal["inner", "semi", "anti", "left", "right", "full"]
On: TypeAlias = Sequence[tuple[str, str]]
Residual: TypeAlias = Callable[[Payload, Payload], bool | None]


def join(left: Rows, right: Rows, *, on: On, how: How, residual: Residual | None = None) -> Rows:
    """The joined history; a column of a side that has no row at all is missing instead of null."""

    def meets(a: Payload, b: Payload) -> bool:
        ours, theirs = key(a, [x for x, _ in on]), key(b, [y for _, y in on])
        return None not in ours and ours == theirs and (residual is None or bool(residual(a, b)))

    extra = [n for n in (right[0][2] if right else ()) if n not in {y for _, y in on}]
    inner = [
        (max(al, bl), min(ar, br), a | {n: b[n] for n in extra})
        for al, ar, a in left
        for bl, br, b in right
        if meets(a, b) and max(al, bl) < min(ar, br)
    ]
    if how == "inner":
        return inner
    if how == "semi":
        return [(s, e, a) for row in left for a in [row[2]] for s, e in maximal(_shared(row, right, meets))]
    lonely = [(s, e, p) for s, e, p in _unmatched(left, right, meets)]
    if how == "anti":
        return lonely
    stray = _unmatched(right, left, lambda b, a: meets(a, b))
    out = list(inner)
    if how in ("left", "full"):
        out += [(s, e, a | dict.fromkeys(extra)) for s, e, a in lonely]
    if how in ("right", "full"):
        blank = dict.fromkeys(left[0][2] if left else ())
        out += [(s, e, blank | {x: b[y] for x, y in on} | {n: b[n] for n in extra}) for s, e, b in stray]
    return out


def _shared(row: Row, others: Rows, meets: Callable[[Payload, Payload], bool]) -> list[Span]:
    le, re, payload = row
    spans = [(max(le, s), min(re, e)) for s, e, other in others if meets(payload, other)]
    return [(s, e) for s, e in spans if s < e]


def _unmatched(rows: Rows, others: Rows, meets: Callable[[Payload, Payload], bool]) -> Rows:
    return [(s, e, row[2]) for row in rows for s, e in outside((row[0], row[1]), _shared(row, others, meets))]
