"""A plan on plain rows, step by step: what each view must be for the rows of a prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from caesura.audit.values import NotAuditedError, value
from caesura.expr import Expr
from caesura.ops.aggregate import Aggregate, Totals, Tumbling
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.ops.windows import Count, Grid, Session, Windows
from caesura.plan import Node, SourceNode, walk
from caesura.punctuation import INFINITY
from caesura.testing import oracles
from caesura.testing.oracles.rows import Payload, Rows, key, same
from caesura.testing.oracles.windows import aggregates_over, windowed

EXACT = ("count", "sum", "min", "max", "avg", "count_distinct", "first", "last", "median", "collect")


def evaluate(outputs: Mapping[str, Node], given: Callable[[SourceNode], Rows]) -> dict[str, Rows]:
    """The rows of each output, from the rows of each source."""
    known: dict[str, Rows] = {}
    for node in walk(*outputs.values()):
        inputs = [known[child.fingerprint] for child in node.inputs]
        try:
            known[node.fingerprint] = given(node) if isinstance(node, SourceNode) else _step(node, inputs)
        except NotAuditedError as error:
            raise error.at(node.step, node.place) from None
    return {name: known[node.fingerprint] for name, node in outputs.items()}


def _step(node: Node, inputs: list[Rows]) -> Rows:
    rows = inputs[0] if inputs else []
    match node:
        case Where():
            kept = [(a, b, p) for a, b, p in rows if value(node.predicate, p, a, b) is True]
            return [(a, b, {n: p[n] for n in node.keep}) for a, b, p in kept] if node.keep else kept
        case Select():
            return [(a, b, {n: value(e, p, a, b) for n, e in node.columns}) for a, b, p in rows]
        case Union():
            return [row for some in inputs for row in some]
        case Clip():
            return _by_key(inputs, node.on, lambda a, b: oracles.clip(a, b, on=node.on))
        case Join():
            return _join(node, *inputs)
        case Layers():
            return _layers(node, inputs)
        case Lifetime():
            return _moved(node, rows)
        case Chop() if not _endless(rows):
            return oracles.chop(rows, node.period)
        case Totals():
            ready, aggs = _aggregates(node.aggregates, rows)
            return oracles.totals(ready, node.group, aggs)
        case Tumbling() if not _endless(rows):
            ready, aggs = _aggregates(node.aggregates, rows)
            return oracles.tumbling(ready, node.group, node.size, node.offset, aggs, hop=node.hop)
        case Windows() if not _endless(rows) and not node.uses:
            return _windowed(node, rows)
    why = " over events that never end" if _endless(rows) else ""
    raise NotAuditedError(
        f"the audit cannot recompute '{node.kind}'{why}.",
        remedy="Audit the views in front of it, or compare this one by hand.",
    )


def _windowed(node: Windows, rows: Rows) -> Rows:
    """Built-in aggregates over snapshots, counts, sessions and grids."""
    wanted = [(name, a) for name, a in node.outputs if isinstance(a, Aggregate)]
    ready, aggs = _aggregates(wanted, rows)
    frame: tuple[Any, ...]
    match node.frame:
        case Grid(size, hop, offset):
            frame = ("grid", size, hop, offset)
        case Count(n, by):
            frame = (f"count_{by}", n)
        case Session(gap, longest):
            frame = ("session", gap, longest)
        case _:
            frame = ("snapshot",)
    return windowed(ready, node.group, frame, aggregates_over(aggs), clip=node.clip, stamp=node.stamp)


def _endless(rows: Rows) -> bool:
    return any(re == INFINITY for _, re, _ in rows)


def _by_key(
    inputs: Sequence[Rows], on: Sequence[tuple[str, str]], meet: Callable[[Rows, Rows], Rows]
) -> Rows:
    """Two sides, key by key."""
    sides: list[dict[Any, Rows]] = [{}, {}]
    for port in (0, 1):
        names = [pair[port] for pair in on]
        for row in inputs[port]:
            sides[port].setdefault(key(row[2], names), []).append(row)
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    return [row for k in keys for row in meet(sides[0].get(k, []), sides[1].get(k, []))]


def _join(node: Join, left: Rows, right: Rows) -> Rows:
    if node.residual is not None and node.how != "inner":
        raise NotAuditedError(
            f"the audit cannot recompute a {node.how} join with a further predicate.",
            remedy="Audit the views in front of it, or compare this one by hand.",
        )
    names = node.schema.names

    def meet(a: Rows, b: Rows) -> Rows:
        made = oracles.join(a, b, on=list(node.on), how=node.how)
        return [(le, re, {n: p.get(n) for n in names}) for le, re, p in made]

    out = _by_key((left, right), node.on, meet)
    residual = node.residual
    return out if residual is None else [(a, b, p) for a, b, p in out if value(residual, p, a, b) is True]


def _layers(node: Layers, inputs: list[Rows]) -> Rows:
    right = inputs[1] if len(inputs) > 1 else []
    groups: dict[Any, tuple[Rows, Rows]] = {}
    for port, rows in enumerate((inputs[0], right)):
        for row in rows:
            groups.setdefault(same(row[2]), ([], []))[port].append(row)
    if node.count == "distinct":
        return [row for left, _ in groups.values() for row in oracles.distinct(left)]
    mode = node.count
    return [row for a, b in groups.values() for row in oracles.difference(a, b, mode=mode)]


def _moved(node: Lifetime, rows: Rows) -> Rows:
    match node.rule:
        case "shift":
            return oracles.shift(rows, node.amount)
        case "set_duration":
            return oracles.set_duration(rows, node.amount)
        case "extend":
            return oracles.extend(rows, node.amount)
        case "scale":
            return oracles.scale(rows, node.amount, node.per)
        case "start_at":
            return oracles.start_at(rows, node.amount)
        case "points_at_start":
            return oracles.points_at_start(rows)
        case "points_at_end":
            return oracles.points_at_end(rows)


def _aggregates(
    wanted: Sequence[tuple[str, Aggregate]], rows: Rows
) -> tuple[Rows, dict[str, tuple[str, str | None]]]:
    """Rows with a column per aggregated expression, and the aggregates over those."""
    aggs: dict[str, tuple[str, str | None]] = {}
    made: list[tuple[str, Expr]] = []
    for place, (name, aggregate) in enumerate(wanted):
        if aggregate.kind not in EXACT:
            raise NotAuditedError(
                f"the audit cannot recompute the aggregate '{aggregate}'.",
                remedy="Audit the views in front of it, or compare this one by hand.",
            )
        column = None if aggregate.value is None else f"\x00{place}"
        if column is not None and aggregate.value is not None:
            made.append((column, aggregate.value))
        aggs[name] = (aggregate.kind, column)
    ready: Rows = []
    for le, re, p in rows:
        more: Payload = {column: value(expr, p, le, re) for column, expr in made}
        ready.append((le, re, {**p, **more}))
    return ready, aggs
