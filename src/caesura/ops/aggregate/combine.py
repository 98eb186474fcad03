"""Aggregates over all rows, taken in every bucket first and then combined.

      bucket 1:  0 10 | 3 |       bucket 2:  0 10 | 4 |        ->     0 10 | 7 |

Only aggregates that combine exactly (see `PartialAggregate`): counts, extremes, sums and means of whole
numbers. Sums of floats are exact to the last bit (ADR 4), and a rounded share of one is not; they stay in one
bucket.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from caesura.expr import type_of
from caesura.ops.aggregate.kinds.record import Aggregate, PartialAggregate
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.plan import Node

Step = TypeVar("Step", Tumbling, Totals)


def combined(node: Tumbling | Totals) -> Node | None:
    """The same rows from one aggregate per bucket and one over those; None where that is not exact."""
    if node.group or node.scattered:
        return None
    shares = _shares(node)
    if shares is None:
        return None
    if isinstance(node, Totals):
        return _joined(node, shares, _scattered(node, shares))
    each: Node = _scattered(node, shares)
    if node.every == node.size:
        return _joined(node, shares, each)
    # A window of which every bucket has a share lies under its start until the shares are combined.
    each = Lifetime(inputs=(each,), rule="points_at_start", name=node.step, place=node.place)
    whole = _joined(replace(node, size=node.every, hop=None), shares, each)
    return Lifetime(inputs=(whole,), rule="set_duration", amount=node.size, name=node.step, place=node.place)


def _shares(node: Tumbling | Totals) -> dict[str, PartialAggregate] | None:
    found: dict[str, PartialAggregate] = {}
    for name, one in node.aggregates:
        share = None if one.rule.share is None else one.rule.share(name, one, _type_of(one, node))
        if share is None:
            return None
        found[name] = share
    return found


def _type_of(one: Aggregate, node: Node) -> pa.DataType:
    return pa.null() if one.value is None else type_of(one.value, node.inputs[0].schema, time=node.time)


def _scattered(node: Step, shares: dict[str, PartialAggregate]) -> Step:
    parts = tuple(part for share in shares.values() for part in share.parts)
    return replace(node, aggregates=parts, scattered=True)


def _joined(node: Step, shares: dict[str, PartialAggregate], each: Node) -> Node:
    combined = tuple(one for share in shares.values() for one in share.combined)
    whole = replace(node, inputs=(each,), aggregates=combined)
    columns = tuple((name, share.result) for name, share in shares.items())
    if whole.schema.names == [name for name, _ in columns]:
        return whole
    return Select(inputs=(whole,), columns=columns, name=node.step, place=node.place)
