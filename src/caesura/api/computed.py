"""Outputs of `agg` that are computed from aggregates: hidden aggregates, and a select behind them.

>>> from caesura.ops.aggregate.kinds import max, min
>>> plan = reckoned({"span": max("v") - min("v")}, ("k",), "agg")
>>> list(plan.aggregates), plan.columns
(['max(v)', 'min(v)'], {'span': Expr(`max(v)` - `min(v)`)})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caesura.errors import PlanError
from caesura.expr import Column, Expr, children, col, with_children
from caesura.expr.nodes import AggregateValue
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.select import Select
from caesura.plan import here
from caesura.udm import Use

if TYPE_CHECKING:
    from caesura.api.stream import Stream

Output = Aggregate | Use


@dataclass
class Reckoning:
    """The aggregates that a window computes, and the columns that are made of them."""

    aggregates: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Expr] = field(default_factory=dict)
    """All outputs in order; empty where each is an aggregate of its own."""

    def finished(self, stream: Stream) -> Stream:
        """The stream of a window's results, with the columns that are wanted."""
        if not self.columns:
            return stream
        keys = [name for name in stream.columns if name not in self.aggregates]
        pairs = [*((name, col(name)) for name in keys), *self.columns.items()]
        return stream._then(Select(inputs=(stream.node,), columns=tuple(pairs)))

    def hidden(self, aggregate: Aggregate, taken: Mapping[str, object]) -> str:
        """The name under which an aggregate is computed once."""
        name = str(aggregate)
        while name in taken or (name in self.aggregates and self.aggregates[name].key != aggregate.key):
            name += "'"
        self.aggregates[name] = aggregate
        return name


def reckoned(outputs: Mapping[str, Any], keys: tuple[str, ...], step: str) -> Reckoning:
    """What is computed for some outputs; refuses an expression that is not of aggregates and keys."""
    made = Reckoning()
    if not any(isinstance(output, Expr) for output in outputs.values()):
        return Reckoning(dict(outputs))
    taken = {**outputs, **dict.fromkeys(keys)}
    for name, output in outputs.items():
        if isinstance(output, Expr):
            made.columns[name] = _over(output, made, taken, name, step)
            _check(made.columns[name], made, keys, name, step)
        else:
            made.aggregates[name], made.columns[name] = output, col(name)
    return made


def _over(expr: Expr, plan: Reckoning, taken: Mapping[str, object], name: str, step: str) -> Expr:
    """The expression over the columns of hidden aggregates."""
    if isinstance(expr, AggregateValue):
        return col(plan.hidden(expr.aggregate, taken))
    parts = children(expr)
    return with_children(expr, [_over(part, plan, taken, name, step) for part in parts]) if parts else expr


def _check(expr: Expr, plan: Reckoning, keys: tuple[str, ...], name: str, step: str) -> None:
    read = _columns(expr)
    if not read & set(plan.aggregates):
        raise PlanError(
            f"'{name}' is {expr!r}, which is no aggregate.",
            remedy=f"Write {name}=cz.count(), or {name}=my_uda('column').",
        ).at(step, here())
    loose = sorted(read - set(plan.aggregates) - set(keys))
    if loose:
        raise PlanError(
            f"'{name}' reads '{loose[0]}', of which a group has many values.",
            remedy=f"Aggregate it, for example cz.max('{loose[0]}'), or group by it too.",
        ).at(step, here())


def _columns(expr: Expr) -> set[str]:
    if isinstance(expr, Column):
        return {expr.name}
    return set().union(*(_columns(part) for part in children(expr)))
