"""Aggregates over all rows, taken in every bucket first and then combined.

      bucket 1:  0 10 | 3 |       bucket 2:  0 10 | 4 |        ->     0 10 | 7 |

Only aggregates that combine exactly: counts, extremes, and sums and means of whole numbers, and users'
modules that are declared mergeable. Sums of floats are exact to the last bit (ADR 4), and a rounded
share of one is not; they stay in one bucket. The share of a sum may be beyond 64 bits where the sum is
not, so shares are decimals, and only what they make together is held against 64 bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from caesura.expr import Expr, col, type_of
from caesura.ops.aggregate.functions import Aggregate
from caesura.ops.aggregate.functions import count as counted
from caesura.ops.aggregate.functions import sum as summed
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.windows.frames import Grid
from caesura.ops.windows.node import Windows
from caesura.plan import Node
from caesura.udm import Use
from caesura.udm.shares import meeting, share_of

Named = tuple[tuple[str, Aggregate], ...]
Step = TypeVar("Step", Tumbling, Totals)


def combined(node: Node) -> Node | None:
    """The same rows from one aggregate per bucket and one over those; None where that is not exact."""
    if isinstance(node, Tumbling) and not node.group and not node.scattered:
        return _windows(node)
    if isinstance(node, Totals) and not node.group and not node.scattered:
        shares = _shares(node, node.aggregates)
        return None if shares is None else _joined(node, shares, _scattered(node, shares))
    if isinstance(node, Windows) and not node.group and not node.scattered:
        return _modules(node)
    return None


def _modules(node: Windows) -> Node | None:
    """Mergeable modules over a grid: states first, then what they make together."""
    frame = node.frame
    plain = node.apply is None and node.stamp == "aligned" and not node.timed
    if not plain or not isinstance(frame, Grid) or not node.stepwise:
        return None
    uses = [(name, one) for name, one in node.outputs if isinstance(one, Use)]
    if len(uses) < len(node.outputs) or not all(one.module.traits.mergeable for _, one in uses):
        return None
    parts = tuple((name, share_of(one)) for name, one in uses)
    meet = tuple((name, meeting(one, name)) for name, one in uses)
    each: Node = replace(node, outputs=parts, scattered=True)
    if frame.hop == frame.size:
        return replace(node, inputs=(each,), outputs=meet)
    each = Lifetime(inputs=(each,), rule="points_at_start", name=node.step, place=node.place)
    met = replace(node, inputs=(each,), outputs=meet, frame=Grid(frame.hop, frame.hop, frame.offset))
    return Lifetime(inputs=(met,), rule="set_duration", amount=frame.size, name=node.step, place=node.place)


def _windows(node: Tumbling) -> Node | None:
    """A window of which every bucket has a share lies under its start until the shares have met."""
    shares = _shares(node, node.aggregates)
    if shares is None:
        return None
    each: Node = _scattered(node, shares)
    if node.every == node.size:
        return _joined(node, shares, each)
    each = Lifetime(inputs=(each,), rule="points_at_start", name=node.step, place=node.place)
    met = _joined(replace(node, size=node.every, hop=None), shares, each)
    return Lifetime(inputs=(met,), rule="set_duration", amount=node.size, name=node.step, place=node.place)


class _Share:
    """What a bucket gives of an aggregate, how the shares meet, and what they make."""

    def __init__(self, parts: Named, meet: Named, made: Expr) -> None:
        self.parts = parts
        self.meet = meet
        self.made = made


def _shares(node: Node, aggregates: Named) -> dict[str, _Share] | None:
    found: dict[str, _Share] = {}
    for name, one in aggregates:
        share = _share(name, one, node)
        if share is None:
            return None
        found[name] = share
    return found


def _share(name: str, one: Aggregate, node: Node) -> _Share | None:
    if one.kind == "count":
        return _Share(((name, one),), ((name, summed(name)),), col(name))
    if one.kind in ("min", "max"):
        return _Share(((name, one),), ((name, Aggregate(one.kind, col(name))),), col(name))
    assert one.value is not None
    whole = pa.types.is_integer(type_of(one.value, node.inputs[0].schema, time=node.time))
    if one.kind == "sum" and whole:
        return _Share(((name, _wide(one.value)),), ((name, Aggregate("whole_sum", col(name))),), col(name))
    if one.kind == "avg" and whole:
        total, number = f"{name} sum", f"{name} count"
        parts = ((total, _wide(one.value)), (number, counted(one.value)))
        meet = ((total, summed(total)), (number, summed(number)))
        return _Share(parts, meet, col(total).cast(pa.float64()) / col(number))
    return None


def _wide(value: Expr) -> Aggregate:
    return summed(value.cast(pa.decimal128(20, 0)))


def _scattered(node: Step, shares: dict[str, _Share]) -> Step:
    parts = tuple(part for share in shares.values() for part in share.parts)
    return replace(node, aggregates=parts, scattered=True)


def _joined(node: Step, shares: dict[str, _Share], each: Node) -> Node:
    meet = tuple(one for share in shares.values() for one in share.meet)
    met = replace(node, inputs=(each,), aggregates=meet)
    columns = tuple((name, share.made) for name, share in shares.items())
    if met.schema.names == [name for name, _ in columns]:
        return met
    return Select(inputs=(met,), columns=columns, name=node.step, place=node.place)
