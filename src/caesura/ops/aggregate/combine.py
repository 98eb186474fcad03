"""Aggregates over all rows, and over keys with very many of them, in every bucket first and then combined.

      bucket 1:  0 10 | 3 |       bucket 2:  0 10 | 4 |        ->     0 10 | 7 |

Only aggregates that combine exactly (see `PartialAggregate`): counts, extremes, sums and means of whole
numbers. Sums of floats are exact to the last bit (ADR 4), and a rounded share of one is not: their shares are
the sums in limbs, which steps over all rows send only where the plan asks for it (ADR 30).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, col, type_of
from caesura.ops.aggregate.kinds.record import Aggregate, PartialAggregate
from caesura.ops.aggregate.totals import Totals
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.plan import Node

Step = TypeVar("Step", Tumbling, Totals)


def combined(node: Tumbling | Totals) -> Node | None:
    """The same rows from one aggregate per bucket and one over those; None where that is not exact."""
    if node.scattered or (node.group and not node.skewed):
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


def check_skewed(node: Tumbling | Totals) -> None:
    """Refuses aggregates that must see all rows of a key in one place."""
    if isinstance(node, Tumbling) and node.thrifty:
        raise PlanError(
            "skewed=True and thrifty=True: a share of a key does not know which values no longer count.",
            remedy="Leave one of them out.",
        )
    alone = next(((name, one) for name, one in node.aggregates if _share(node, name, one) is None), None)
    if alone is not None:
        raise not_split(alone[0], str(alone[1]))


def not_split(name: str, what: str) -> PlanError:
    """Why a key cannot be in several buckets."""
    return PlanError(
        f"skewed=True: '{name}', {what}, cannot be put together from shares of a key's rows.",
        remedy="Take others: count, sum, avg, min, max, variance, stddev, covar_pop, covar_samp, corr, "
        "bool_and, bool_or, approx_count_distinct, a uda that is mergeable; or leave skewed=True out.",
    )


def _shares(node: Tumbling | Totals) -> dict[str, PartialAggregate] | None:
    found: dict[str, PartialAggregate] = {}
    for name, one in node.aggregates:
        share = _share(node, name, one)
        if share is None or (share.on_request and not node.skewed):
            return None
        found[name] = share
    return found


def _share(node: Tumbling | Totals, name: str, one: Aggregate) -> PartialAggregate | None:
    """What buckets give of an aggregate, under names that no key has."""
    if one.rule.share is None:
        return None
    while True:
        found = one.rule.share(name, one, _type_of(one, node))
        if found is None or not any(part in node.group for part, _ in found.parts):
            return found
        name += "'"


def _type_of(one: Aggregate, node: Node) -> pa.DataType:
    return pa.null() if one.value is None else type_of(one.value, node.inputs[0].schema, time=node.time)


def _scattered(node: Step, shares: dict[str, PartialAggregate]) -> Step:
    parts = tuple(part for share in shares.values() for part in share.parts)
    return replace(node, aggregates=parts, scattered=True)


def _joined(node: Step, shares: dict[str, PartialAggregate], each: Node) -> Node:
    combined = tuple(one for share in shares.values() for one in share.combined)
    whole = replace(node, inputs=(each,), aggregates=combined, skewed=False)
    columns: tuple[tuple[str, Expr], ...] = tuple((name, col(name)) for name in node.group)
    columns += tuple((name, share.result) for name, share in shares.items())
    if whole.schema.names == [name for name, _ in columns]:
        return whole
    return Select(inputs=(whole,), columns=columns, name=node.step, place=node.place)
