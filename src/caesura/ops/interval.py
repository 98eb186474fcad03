"""Joins of events that start within an interval of each other, as joins of lifetimes.

     within=(-2, 3)      left at 10:  10 |---| 14      right events that start from 8 to 13
                         right at 8:  8 |--| 11        live until 10 at least

A left event lives as long as a right one may still follow, a right one as long as a left one may: they
overlap exactly if their starts lie within the interval, from the later start on. That start is the result, a
point, so that punctuation passes at once. Where left events are told apart by whether they meet any (left,
semi, anti), each is a point, and right events lie about it: the result starts with the left event.
"""

from __future__ import annotations

from caesura.errors import PlanError
from caesura.ops.join.node import How
from caesura.ops.lifetimes import Lifetime
from caesura.plan import Node

BY_LEFT: tuple[How, ...] = ("left", "semi", "anti")


def interval_sides(left: Node, right: Node, low: int, high: int, how: How) -> tuple[Node, Node]:
    """Both sides with lifetimes that overlap where the right start lies in [left + low, left + high]."""
    if low > high:
        raise PlanError(
            f"no start lies from {low} to {high} ticks behind another.",
            remedy='Give the lesser bound first: within=("-5m", "1h").',
        )
    if how not in ("inner", *BY_LEFT):
        raise PlanError(
            f"a join within an interval is inner, left, semi or anti; got '{how}'.",
            remedy="Swap the streams, and the bounds with their signs: within=(low, high) is "
            "within=(-high, -low).",
        )
    if how in BY_LEFT or high < 0:
        return _points(left), lasting(moved(right, -high), high - low + 1)
    if low > 0:
        return lasting(moved(left, low), high - low + 1), _points(right)
    return lasting(left, high + 1), lasting(right, 1 - low)


def lasting(node: Node, ticks: int) -> Node:
    """Events that live so long from their starts."""
    return Lifetime(inputs=(node,), rule="set_duration", amount=ticks)


def moved(node: Node, by: int) -> Node:
    """Events that start so much later."""
    return Lifetime(inputs=(node,), rule="shift", amount=by) if by else node


def _points(node: Node) -> Node:
    return Lifetime(inputs=(node,), rule="points_at_start")


def at_later_start(joined: Node) -> Node:
    """Pairs as points where both have begun."""
    return joined if joined.properties.points else _points(joined)
