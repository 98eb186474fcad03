"""Whether points of two streams are likely to have the very same times: rows of one source, not moved apart.

     a, a.where(...)              may meet: a row meets itself
     a, a.shift(5).select(...)    moved apart by 5
     a, b                         of two sources
     a.start_at(60), b.start_at(60)   may meet: at round times

Law: where nothing is known of a step's times, they may be those of any other step behind the same source.
"""

from __future__ import annotations

from caesura.plan import Node

Start = tuple[str, int | None]
"""A source, and how much later than its rows these start; None where that is not known."""
ROUND: Start = ("", None)
"""Times that are of no row alone: the multiples of a period."""


def may_meet(left: Node, right: Node) -> bool:
    """Whether some rows of both may well start at the same time, since they are of one row of a source."""
    one, other = starts(left), starts(right)
    return any(a == b and (x is None or y is None or x == y) for a, x in one for b, y in other)


def starts(node: Node) -> frozenset[Start]:
    """Where the times of a stream's rows are from."""
    found: dict[Node, frozenset[Start]] = {}
    todo = [node]
    while todo:
        one = todo[-1]
        missing = [child for child in one.inputs if child not in found]
        todo += missing
        if not missing:
            found[todo.pop()] = _starts(one, frozenset().union(*(found[child] for child in one.inputs)))
    return found[node]


def _starts(node: Node, of_inputs: frozenset[Start]) -> frozenset[Start]:
    if not node.inputs:
        return frozenset({(node.fingerprint, 0)})
    by = node.start_delay
    moved = frozenset((name, None if at is None or by is None else at + by) for name, at in of_inputs)
    return moved | {ROUND} if node.rounds_starts else moved
