"""The oracle of as-of joins: every left row looks at every right row of its key, and takes the nearest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caesura.ops.asof import AsOf, Direction
from caesura.testing.oracles.rows import Row, Rows, key
from caesura.testing.oracles.steps import StepInputs, recomputes
from caesura.testing.oracles.top import sortable


def join_asof(
    left: Rows,
    right: Rows,
    on: Sequence[tuple[str, str]],
    added: Sequence[str],
    *,
    direction: Direction = "backward",
    tolerance: int | None = None,
    exact: bool = True,
    how: str = "left",
) -> Rows:
    """Each left row with the columns ``added`` of its match; nulls where it has none."""
    made: Rows = []
    for row in left:
        names = key(row[2], [a for a, _ in on])
        own = [r for r in right if None not in names and key(r[2], [b for _, b in on]) == names]
        near = [r for r in own if tolerance is None or abs(r[0] - row[0]) <= tolerance]
        match = _nearest(row, [r for r in near if exact or r[0] != row[0]], direction)
        if match is not None or how == "left":
            found = {name: None if match is None else match[2][name] for name in added}
            made.append((row[0], row[1], {**row[2], **found}))
    return made


def _nearest(row: Row, right: Rows, direction: Direction) -> Row | None:
    def place(r: Row) -> Any:
        return (r[0], [sortable(v) for v in r[2].values()])

    before = max((r for r in right if r[0] <= row[0]), key=place, default=None)
    after = min((r for r in right if r[0] >= row[0]), key=place, default=None)
    if direction != "nearest":
        return before if direction == "backward" else after
    if before is None or after is None:
        return before or after
    return before if row[0] - before[0] <= after[0] - row[0] else after


@recomputes(AsOf)
def _joined(node: AsOf, given: StepInputs) -> Rows:
    left, right = given.rows
    return join_asof(
        left,
        right,
        node.on,
        node.right_columns,
        direction=node.direction,
        tolerance=node.tolerance,
        exact=node.exact,
        how=node.how,
    )
