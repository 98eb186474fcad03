"""The pair with the greatest, or least, second part in each slot: of several the one that began first.

Values are structs of `value` and `by`, and come with the starts of their events. Where they only come, one
pair is kept per slot; otherwise all are, and the leading one is found by the order of `by`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.nested import validity
from caesura.events.order import dense_ranks, ranks
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64
from caesura.ops.aggregate.accumulators.leading import Leading
from caesura.ops.aggregate.accumulators.multiset import Gathered, Multiset


def lead(sign: int, le: I64, pairs: pa.Array) -> list[I64]:
    """What pairs are compared by, the first counting most: the one in front leads."""
    value, by = pairs.flatten()
    return [sign * ranks(by), le, ranks(value)]


class LeadingBy(Leading):
    """One pair per slot, of pairs that only come."""

    def __init__(self, name: str, kind: str, t: pa.DataType) -> None:
        super().__init__(name, kind, pa.struct([("le", pa.int64()), ("v", t)]))

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        valid = validity(values.field(1))
        if len(valid):
            at, weights, values = at[valid], weights[valid], values.filter(pa.array(valid))
        super().add(slots, at, weights, values)

    def order(self, values: pa.Array) -> I64:
        le, pairs = values.flatten()
        keys = lead(self.sign, le.fill_null(0).to_numpy(), pairs)
        return dense_ranks(keys, len(values))


class BagBy(Multiset):
    """All pairs of a slot, in the order of what they are compared by."""

    def __init__(self, name: str, kind: str, t: pa.DataType) -> None:
        super().__init__(name, t, timed=True)
        self.sign = 1 if kind == "min" else -1

    @property
    def in_time(self) -> bool:
        return False

    def compared(self, values: pa.Array) -> pa.Array:
        return values.field(1)

    def leading(self, at: I64) -> Gathered:
        """The pair that leads in each slot, in front of others."""
        return self.edge(at, 1, last=self.sign < 0)

    def _sorted(self, owner: I64, row: I64) -> Gathered:
        pairs = self.rows.payload.take(row).column(0)
        keys: list[Any] = [owner, *lead(self.sign, self.rows.get("le")[row], pairs)]
        order = np.lexsort(keys[::-1])
        return Gathered(owner[order], self.rows.get("n")[row[order]], pairs.take(pa.array(order)))
