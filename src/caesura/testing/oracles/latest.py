"""What `latest` does, key by key.

>>> rows = [(1, 2, {"k": 7, "v": "a"}), (5, 6, {"k": 7, "v": "b"}), (5, 6, {"k": 7, "v": "c"})]
>>> [(le, p["v"]) for le, re, p in latest(rows, ["k"])]
[(1, 'a'), (5, 'c')]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caesura.ops.latest import Latest
from caesura.punctuation import INFINITY
from caesura.testing.oracles.rows import Payload, Rows, key, place
from caesura.testing.oracles.steps import StepInputs, recomputes


def latest(
    rows: Rows,
    group: Sequence[str],
    order: Sequence[str] = (),
    op: str | None = None,
    deletes: Sequence[str] = (),
) -> Rows:
    """Each row until the next start of its key; the last of those that start together; none that deletes."""
    found: dict[Any, dict[int, Payload]] = {}
    for le, _, p in sorted(rows, key=lambda row: [place(row[2][n]) for n in (*order, *row[2])]):
        found.setdefault(key(p, group), {})[le] = p
    out: Rows = []
    for starts in found.values():
        times = sorted(starts)
        for le, re in zip(times, [*times[1:], INFINITY], strict=True):
            if op is None or starts[le][op] not in deletes:
                out.append((le, re, {n: v for n, v in starts[le].items() if n != op}))
    return out


@recomputes(Latest)
def _latest(node: Latest, given: StepInputs) -> Rows:
    names = node.inputs[0].schema.names
    rows = [(le, re, {n: p[n] for n in names}) for le, re, p in given.rows[0]]
    op, deletes = (None, ()) if node.ops is None else (node.ops.column, node.ops.deleted)
    return latest(rows, node.group, node.order, op, deletes)
