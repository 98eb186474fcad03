"""Rows exploded in plain Python: one for each element of a list, or entry of a map.

>>> explode([(0, 1, {"id": 7, "a": [1, 2]}), (0, 1, {"id": 8, "a": []})], "a", ("x",), position="at")
[(0, 1, {'id': 7, 'at': 0, 'x': 1}), (0, 1, {'id': 7, 'at': 1, 'x': 2})]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caesura.ops.explode import Explode
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.steps import StepInputs, recomputes


def explode(
    rows: Rows, column: str, names: Sequence[str], *, outer: bool = False, position: str = ""
) -> Rows:
    """A row for each element; with ``outer`` one with null for a list without any."""
    made: Rows = []
    for le, re, payload in rows:
        values = payload[column] or []
        if values and isinstance(values[0], tuple):
            values = sorted(values)  # the entries of a map, by key
        some: list[tuple[int | None, Any]] = list(enumerate(values))
        for place, value in some or ([(None, None)] if outer else []):
            parts = value if isinstance(value, tuple) else (value,) * len(names)
            new: Payload = {position: place} if position else {}
            new |= dict(zip(names, parts, strict=True))
            made.append((le, re, _replaced(payload, column, new)))
    return made


def _replaced(payload: Payload, column: str, new: Payload) -> Payload:
    out: Payload = {}
    for name, value in payload.items():
        out |= new if name == column else {name: value}
    return out


@recomputes(Explode)
def _exploded(node: Explode, given: StepInputs) -> Rows:
    return explode(given.rows[0], node.of, node.made, outer=node.outer, position=node.position)
