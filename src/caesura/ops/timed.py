"""Which expressions may read a lifetime: `start()` always, `end()` only where ends never change.

A payload that changes with its event's end would have to be taken back from the event's start on,
which a CTI between the two forbids.
"""

from __future__ import annotations

from caesura.errors import PlanError
from caesura.expr import Expr
from caesura.expr.nodes import Boundary
from caesura.expr.rewrite import children
from caesura.plan import Node


def reads_end(expr: Expr) -> bool:
    """Whether an expression reads end()."""
    if isinstance(expr, Boundary):
        return expr.side == "end"
    return any(reads_end(child) for child in children(expr))


def refuse_moving_ends(expr: Expr, source: Node) -> None:
    """Refuses `end()` over a stream whose events may change their ends."""
    if reads_end(expr) and not source.properties.fixed_ends:
        raise PlanError(
            f"'{expr}' reads end(), but events of this stream may still change their ends.",
            remedy="Fix the ends first, for example with set_duration or a window, or use start().",
        )
