"""The shares that buckets have of aggregates which keep exact float sums; users do not write them.

A share is the sums themselves with the number of values (`accumulators/shares.py`), so that what is made of
all shares is what the values would have made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from caesura.expr import col
from caesura.ops.aggregate.accumulators.shares import MergedSums, OfFloatSums, packed
from caesura.ops.aggregate.kinds.record import (
    KINDS,
    Aggregate,
    AggregateKind,
    InSlots,
    PartialAggregate,
    State,
    define,
)

MAKERS: dict[str, Callable[[str], OfFloatSums]] = {}
"""What keeps the sums of each kind of aggregate, from a name for its fields."""


@dataclass(frozen=True)
class SharedKind:
    """The aggregate that shares are of."""

    kind: str
    option: int

    def state(self, t: pa.DataType, insert_only: bool) -> State:
        return State(f"share_{self.kind}", lambda name, t: MAKERS[self.kind](name))

    def merged_state(self, t: pa.DataType, insert_only: bool) -> State:
        return State(f"merged_{self.kind}", lambda name, t: MergedSums(name, MAKERS[self.kind](name)))


def shared_sums(
    kind: str, make: Callable[[str], OfFloatSums]
) -> Callable[[str, Aggregate, pa.DataType], PartialAggregate]:
    """How results of an aggregate of float sums combine."""
    MAKERS[kind] = make

    def share(name: str, one: Aggregate, t: pa.DataType) -> PartialAggregate:
        of = SharedKind(kind, int(one.option))
        parts = ((name, Aggregate("float_sums", one.value, of)),)
        combined = ((name, Aggregate("merged_float_sums", col(name), of)),)
        return PartialAggregate(parts, combined, col(name), on_request=True)

    return share


def _share(_: Aggregate, reading: InSlots) -> pa.Array:
    made = packed(reading.part.float_sums, reading.n, reading.slots, reading.at)
    some = reading.n > 0
    return made if some.all() else pc.if_else(pa.array(some), made, pa.scalar(None, made.type))


def _merged(aggregate: Aggregate, reading: InSlots) -> pa.Array:
    of, part = aggregate.option, reading.part
    whole = InSlots((part.counted, part.whole), reading.slots, reading.at)
    return KINDS[of.kind].finish(Aggregate(of.kind, None, of.option), whole)


define(AggregateKind("float_sums", lambda *_: pa.binary(), _share, state_for=lambda of: of.state))
define(
    AggregateKind("merged_float_sums", lambda *_: pa.float64(), _merged, state_for=lambda of: of.merged_state)
)
