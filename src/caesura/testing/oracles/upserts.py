"""A table by key, from the rows of a history.

>>> current([(1, 4, {"id": 7, "v": 5}), (4, None, {"id": 7, "v": 6})], ["id"])
[{'id': 7, 'v': 6}]
"""

from __future__ import annotations

from collections.abc import Sequence

from caesura.ops.upserts import Upserts
from caesura.punctuation import INFINITY
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.steps import StepInputs, recomputes


@recomputes(Upserts)
def _passed(node: Upserts, given: StepInputs) -> Rows:
    return given.rows[0]


def current(rows: Rows, key: Sequence[str]) -> list[Payload]:
    """What a table holds: rows without an end, or with 'LE' in the key all, with their lifetimes."""
    if "LE" in key:
        return [{"LE": a, "RE": None if b == INFINITY else b, **p} for a, b, p in rows]
    return [p for _, b, p in rows if b in (None, INFINITY)]
