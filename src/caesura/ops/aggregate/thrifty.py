"""Windows that say which values can no longer count: below the k greatest, on inserts alone.

     tumbling(10, thrifty=True).agg(top=top_k("speed", 2))

     0 1 | 60 | +   0 1 | 70 | +   1 2 | 50 | +   2 3 | 65 | +     ->     up: LE in [0..9], speed <= 65

A window speaks when twice as many rows have come to it as it keeps, and again when twice as many have
come as when it last spoke: of n rows at most log2(n) times. What is below its threshold does not come
any more, so a window that is heard speaks less often still. One page makes at most `AT_ONCE` speak,
those with the most rows; the others speak behind a later page.

Law: the result is the same whether the rows spoken of come or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.expr import is_column
from caesura.feedback.messages import assumed
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.aggregate.tumbling_operator import TumblingOperator
from caesura.plan import OwnFeedback
from caesura.plan.samples import sample
from caesura.punctuation import Pattern, Values, le, value

AT_ONCE = 64
"""So many windows speak behind one page."""
REMEDY = "Take other aggregates in a window step of their own, or leave thrifty out."


def check_thrifty(node: Tumbling) -> None:
    """Refuses aggregates that small values count for."""
    if node.every != node.size:
        raise PlanError(
            "windows that overlap share their rows, so none can do without one.",
            remedy="Take tumbling windows, or leave thrifty out.",
        )
    for name, a in node.aggregates:
        column = is_column(a.value) if a.value is not None else None
        if a.rule.threshold is None:
            raise PlanError(f"'{name}' is {a}, for which every row counts.", remedy=REMEDY)
        if column is None or column in node.group:
            raise PlanError(
                f"'{name}' is over {a.value}, and thrifty windows need a plain column that is no key.",
                remedy="Compute the column before the window, with select, and filter with where.",
            )
        t = node.inputs[0].schema.field(column).type
        if not (pa.types.is_integer(t) or pa.types.is_floating(t)):
            raise PlanError(f"'{name}' is over the type {t}, not over numbers.", remedy=REMEDY)


def threshold(
    node: Tumbling, group: Mapping[str, Values], start: int, least: Mapping[str, Any]
) -> Pattern | None:
    """The input rows of a window's own with none of these values above its threshold; None if unsayable."""
    translation = node.feedback()[0].ports[0]
    assert translation is not None
    rows = translation.up(Pattern(**group, LE=value(start))) if translation.known.insert_only else None
    return None if rows is None else Pattern(**dict(rows.items()), **{n: le(v) for n, v in least.items()})


def feedback_sent(node: Tumbling) -> tuple[OwnFeedback, ...]:
    """The form of what such windows say."""
    columns = [is_column(a.value) for _, a in node.aggregates if a.value is not None]
    group = dict(sample(node.schema, node.group).items())
    pattern = threshold(node, group, node.offset, {c: 0 for c in columns if c is not None})
    return () if pattern is None else (OwnFeedback(0, pattern),)


class ThriftyTumbling(TumblingOperator):
    """Windows with thresholds."""

    extra = ("sent_at",)
    """How many rows a window had when it last sent a threshold."""

    def __init__(self, node: Tumbling) -> None:
        super().__init__(node)
        self._keeps = int(max(a.option or 1 for _, a in node.aggregates))

    def _came(self, touched: I64) -> list[Item]:
        if len(touched):
            self._send_thresholds(touched)
        return super()._came(touched)

    def _send_thresholds(self, touched: I64) -> None:
        rows = self.slots.rows
        came = rows.get("rows")[touched]
        due = np.flatnonzero(came >= 2 * np.maximum(rows.get("sent_at")[touched], self._keeps))
        if len(due) > AT_ONCE:
            due = due[np.argsort(-came[due], kind="stable")[:AT_ONCE]]
        if len(due) == 0:
            return
        at = touched[due]
        rows.get("sent_at")[at] = came[due]
        starts, payload = self._span(at)[0], self._payload(at)
        groups = [payload.column(name).to_pylist() for name in self.node.group]
        bounds = [_least(a, payload.column(name)) for name, a in self.node.aggregates]
        for i, start in enumerate(starts.tolist()):
            group = {n: value(g[i]) for n, g in zip(self.node.group, groups, strict=True)}
            least = self._thresholds([b[i] for b in bounds])
            pattern = None if least is None else threshold(self.node, group, start, least)
            if pattern is not None:
                self.outbox.send(0, assumed(pattern))
                self.counters.count_feedback("thresholds sent")

    def _thresholds(self, found: list[Any]) -> dict[str, Any] | None:
        """Per column the least of its thresholds; None where some aggregate has room left, or NaN."""
        least: dict[str, Any] = {}
        for (_, a), bound in zip(self.node.aggregates, found, strict=True):
            if bound is None or bound != bound:
                return None
            name = is_column(a.value)  # type: ignore[arg-type]
            assert name is not None
            least[name] = min(bound, least.get(name, bound))
        return least


def _least(a: Aggregate, results: pa.Array) -> list[Any]:
    """Per result the least value that it keeps; None where there are fewer than it may keep."""
    assert a.rule.threshold is not None
    return a.rule.threshold(a, results).to_pylist()  # type: ignore[no-any-return]
