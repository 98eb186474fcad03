"""What oracles work on: plain rows of a history, and the equality of payloads.

A row is `(LE, RE, {column: value})`; a history is a list of rows, as a bag.

>>> same({"x": float("nan"), "y": -0.0}) == same({"x": float("nan"), "y": 0.0})
True
>>> same({"x": {"best": float("nan")}}) == same({"x": {"best": float("nan")}})
True
>>> maximal([(1, 3), (3, 5), (7, 8)])
[(1, 5), (7, 8)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Payload: TypeAlias = dict[str, Any]
Row: TypeAlias = tuple[int, int, Payload]
Rows: TypeAlias = list[Row]
Span: TypeAlias = tuple[int, int]


def canonical(value: Any) -> Any:
    """A value that equals another exactly when the engine calls them equal."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, Mapping):
        return tuple((name, canonical(each)) for name, each in value.items())
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return frozenset((canonical(name), canonical(each)) for name, each in value)  # a map
    if isinstance(value, list | tuple):
        return tuple(canonical(each) for each in value)
    return value


def place(value: Any) -> tuple[Any, ...]:
    """A value's place in the canonical order: null, then values, then NaN, at every depth.

    >>> sorted([[2], [1, 5], [1], [], [1, None]], key=place)
    [[], [1], [1, None], [1, 5], [2]]
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if value != value else (1, value)
    if isinstance(value, Mapping):
        return (1, tuple(place(each) for each in value.values()))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        value = sorted(value, key=lambda entry: place(entry[0]))
    return (1, tuple(place(each) for each in value)) if isinstance(value, list | tuple) else (1, value)


def same(payload: Mapping[str, Any]) -> tuple[Any, ...]:
    """A payload as a key: null equals null, NaN equals NaN, -0.0 equals 0.0."""
    return tuple((name, canonical(value)) for name, value in sorted(payload.items()))


def key(payload: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    """The values of some columns as a key."""
    return tuple(canonical(payload[name]) for name in names)


def maximal(spans: Iterable[Span]) -> list[Span]:
    """The maximal intervals of the union of spans."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def outside(span: Span, holes: Sequence[Span]) -> list[Span]:
    """The maximal intervals of a span that no hole touches.

    >>> outside((0, 10), [(2, 4), (9, 12)])
    [(0, 2), (4, 9)]
    """
    start, end = span
    out: list[Span] = []
    for low, high in maximal(holes):
        if start < min(low, end):
            out.append((start, min(low, end)))
        start = max(start, high)
    return [*out, (start, end)] if start < end else out
