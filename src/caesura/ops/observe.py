"""`observe("seen", n=count())` lets all rows pass and counts them, for whoever watches the query.

     LE  RE | id speed |           observe("seen", n=count(), fast=count(where="speed > 60"))
     10  20 | 3  51    | +    ->    the same rows; seen: n 2, fast 1
     12  22 | 4  70    | +

A row that is taken back as a whole is no longer counted; one whose end moves still is. So what is observed in
the end is a function of the history: order, paging, hosts and buckets never show in it.

Law: what is observed of a stream is the aggregate over the rows of its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.nested import validity
from caesura.events.page import Page
from caesura.expr import compile_expr, type_of
from caesura.kernels.hashing import I64, frozen
from caesura.ops.aggregate.accumulators.exact import FULL, NONE, add_floats
from caesura.ops.aggregate.accumulators.sums import wide_words
from caesura.ops.aggregate.kinds import Aggregate, read_by
from caesura.ops.timed import refuse_moving_ends
from caesura.plan import (
    Counters,
    FeedbackRule,
    Holding,
    Node,
    Operator,
    Properties,
    definite,
    row_rule,
)
from caesura.plan.roles import PunctuatedBy
from caesura.plan.tally import COUNTING, FLOAT_UNITS, Tallies, Tally, together
from caesura.punctuation import Pattern

RESERVED = "caesura"
"""What Spark's ``observedMetrics`` calls what every query of ours says."""
LOW32, BITS = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Observe(Node):
    """Lets all rows pass and counts them."""

    aggregates: tuple[tuple[str, Aggregate], ...]

    kind = "observe"
    punctuated_by: ClassVar[PunctuatedBy] = "rule"
    loop_remedy = "Observe what comes out of the loop."

    def output_schema(self) -> pa.Schema:
        if self.name in ("", RESERVED):
            raise PlanError(
                f"an observation is called {self.name!r}.",
                remedy=f"Give it another name, as in observe('seen', n=cz.count()); '{RESERVED}' is the one "
                "that every query on Spark has.",
            )
        if not self.aggregates:
            raise PlanError("nothing is observed.", remedy="Write observe('seen', n=cz.count()).")
        for name, aggregate in self.aggregates:
            self._check(name, aggregate)
        return self.inputs[0].schema

    def _check(self, name: str, aggregate: Any) -> None:
        if not isinstance(aggregate, Aggregate) or aggregate.kind not in COUNTING:
            raise PlanError(
                f"'{name}' is {aggregate}, which cannot be observed.",
                remedy="Observe count, sum, avg, min and max; for other aggregates take a window.",
            )
        if aggregate.value is None:
            return
        got = type_of(aggregate.value, self.inputs[0].schema, time=self.time)
        plain = pa.types.is_integer(got) or pa.types.is_floating(got) or pa.types.is_decimal(got)
        if aggregate.kind != "count" and not plain:
            raise PlanError(
                f"'{name}' is {aggregate}, over the type {got}; what is observed is a number.",
                remedy="Observe a count of it, or cast it.",
            )
        refuse_moving_ends(aggregate.value, self.inputs[0])
        if aggregate.kind in ("min", "max") and not self.inputs[0].properties.insert_only:
            raise PlanError(
                f"'{name}' is {aggregate}, and rows here may be taken back: the next {aggregate.kind} would "
                "not be known.",
                remedy="Observe it directly behind the source, or observe counts and sums.",
            )

    def whole(self, aggregate: Aggregate) -> bool:
        """Whether a quantity is a whole number."""
        if aggregate.value is None or aggregate.kind == "count":
            return True
        got = type_of(aggregate.value, self.inputs[0].schema, time=self.time)
        return aggregate.kind != "avg" and bool(pa.types.is_integer(got))

    def counts(self, name: str) -> bool:
        """Under which name it is seen counts: two observations of the same rows are two steps."""
        return name == "name" or super().counts(name)

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def holds(self) -> tuple[Holding, ...]:
        return ()

    @property
    def shows_all(self) -> bool:
        return True

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """What is covered is not looked at."""
        return row_rule(self.schema.names, self.inputs[0].properties, guard="input")

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        return wanted | read_by(self.aggregates)

    def operator(self) -> Operator:
        return Observer(self)

    def describe(self) -> str:
        return ", ".join(f"{name} = {aggregate}" for name, aggregate in self.aggregates)


class Observer(Operator):
    """A few sums a page."""

    def __init__(self, node: Observe) -> None:
        super().__init__()
        schema, time = node.inputs[0].schema, node.time
        self._made = [
            (name, one.kind, None if one.value is None else compile_expr(one.value, schema, time=time))
            for name, one in node.aggregates
        ]
        self._saved_until: Tallies = {}
        """All but what is fresh."""
        self._fresh: Tallies = {}

    def page(self, port: int, page: Page) -> Iterable[Item]:
        weights = _weights(page)
        for name, kind, make in self._made:
            values = None if make is None else make(page.payload, page.le, page.re)
            tally = tallied(kind, values, weights)
            self._fresh[name] = self._fresh[name].plus(tally) if name in self._fresh else tally
        return [page]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(pattern)

    def take_fresh(self) -> Tallies:
        """What was observed since the last call: in an epoch."""
        fresh, self._saved_until = self._fresh, together(self._saved_until, self._fresh)
        self._fresh = {}
        return fresh

    def measure(self) -> Counters:
        counted = super().measure()
        empty = {name: Tally(kind) for name, kind, _ in self._made}  # type: ignore[arg-type]
        counted.observed = together(empty, together(self._saved_until, self._fresh))
        return counted

    def meta(self) -> dict[str, Any]:
        observed = together(self._saved_until, self._fresh)
        return {**super().meta(), "observed": {name: t.to_json() for name, t in observed.items()}}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._saved_until = {name: Tally.from_json(t) for name, t in meta["observed"].items()}
        self._fresh = {}


def _weights(page: Page) -> I64:
    """1 for a row that comes, -1 for one that is taken back as a whole, 0 for one whose end moves."""
    if page.re_new is None or page.retracts is None:
        return np.ones(len(page), np.int64)
    return np.where(page.retracts, -(page.re_new <= page.le).astype(np.int64), 1)


def tallied(kind: Any, values: pa.Array | None, weights: I64) -> Tally:
    """What some rows add to a tally."""
    if values is None:
        return Tally(kind, int(weights.sum()))
    valid = validity(values)
    if len(valid):
        values, weights = values.drop_null(), weights[valid]
    n = int(weights.sum())
    if kind == "count":
        return Tally(kind, n)
    if kind in ("min", "max"):
        found = pc.min_max(values)[kind].as_py()
        whole = found is None or isinstance(found, int)
        return Tally(kind, n, extreme=found if whole else float(found))
    return _summed(kind, n, values, weights)


def _summed(kind: Any, n: int, values: pa.Array, weights: I64) -> Tally:
    """The exact sum, in whole units."""
    if pa.types.is_floating(values.type):
        return _float_sum(kind, n, values.to_numpy(zero_copy_only=False).astype(np.float64), weights)
    low, high = wide_words(values)
    parts = ((low & LOW32), (low >> BITS), (high.view(np.uint64) & LOW32), (high >> np.int64(32)))
    units = sum(int(part.astype(np.int64) @ weights) << (32 * place) for place, part in enumerate(parts))
    return Tally(kind, n, units, 10**values.type.scale if pa.types.is_decimal(values.type) else 1)


def _float_sum(kind: Any, n: int, numbers: Any, weights: I64) -> Tally:
    limbs, base = np.zeros((1, FULL), np.int64), np.zeros(1, np.int32)
    add_floats(np.zeros(len(numbers), np.int64), frozen(numbers), weights, limbs, base, NONE)
    units = sum(int(limb) << (32 * place) for place, limb in enumerate(limbs[0]) if limb)
    nan, up, down = np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers)
    odd = (int(weights[nan].sum()), int(weights[up].sum()), int(weights[down].sum()))
    return Tally(kind, n, units, FLOAT_UNITS, odd)


def refuse_observed_twice(nodes: Iterable[Node]) -> None:
    """Refuses a plan with two observations of one name."""
    known: dict[str, Observe] = {}
    for node in nodes:
        if isinstance(node, Observe) and known.setdefault(node.name, node) is not node:
            raise PlanError(
                f"two observations are called '{node.name}'; the other is at {known[node.name].place}.",
                remedy="Give each a name of its own.",
            ).at(node.step, node.place)
