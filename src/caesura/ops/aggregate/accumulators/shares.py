"""Exact float sums on their way between buckets: a count and some sums in limbs, as bytes.

What is added up there is what would have been added up here: no share is rounded.

    count | lowest limb, NaNs, infinities, -infinities, limbs | the next sum ...       in 64-bit words
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from caesura.events.chunks import damaged
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64
from caesura.kernels.sums import add_weights
from caesura.ops.aggregate.accumulators.exact import FULL, SPAN
from caesura.ops.aggregate.accumulators.float_sums import FloatSum, LimbSums
from caesura.ops.aggregate.accumulators.sums import Accumulator, Counted, Fields, present

OWN = 4
"""Words of a sum in front of its limbs."""


class OfFloatSums(Accumulator, Protocol):
    """An accumulator that is made of exact float sums and nothing else."""

    @property
    def float_sums(self) -> tuple[FloatSum, ...]: ...


def packed(sums: Sequence[FloatSum], counts: I64, slots: RowState, at: I64) -> pa.Array:
    """The sums of these slots with their counts, as bytes."""
    full = np.any([one.is_full(slots, at) for one in sums], axis=0)
    lengths = np.where(full, _words(_widths(sums, full=True)), _words(_widths(sums, full=False)))
    ends = np.concatenate([[0], np.cumsum(lengths)])
    data = np.empty(int(ends[-1]), np.int64)
    for wide in (False, True):
        rows = np.flatnonzero(full == wide)
        given = [one.as_sums(slots, at[rows], full=wide) for one in sums]
        parts = [(one.first[:, None], one.odd, one.limbs) for one in given]
        table = np.concatenate([counts[rows][:, None], *(part for some in parts for part in some)], axis=1)
        data[ends[rows][:, None] + np.arange(table.shape[1])] = table
    offsets = (8 * ends).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(at), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _widths(sums: Sequence[FloatSum], *, full: bool) -> list[int]:
    """How many limbs each sum has, in full or in short."""
    return [one.width if full else SPAN for one in sums]


def _words(limbs: Sequence[int]) -> int:
    return 1 + sum(OWN + each for each in limbs)


def _tables(shares: pa.Array, sums: Sequence[FloatSum]) -> list[tuple[I64, I64, list[int]]]:
    """The rows of each length that shares have, their words, and how many limbs each sum has there."""
    offsets = np.frombuffer(shares.buffers()[1], np.int32)[shares.offset : shares.offset + len(shares) + 1]
    if len(shares) == 0:
        return []
    data = np.frombuffer(shares.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    words = np.frombuffer(data.tobytes(), np.int64)
    ends = (offsets - offsets[0]) // 8
    found = []
    widths = [_widths(sums, full=False), _widths(sums, full=True)]
    before = [FULL] * len(sums)  # up to 0.2, where products had no limbs of their own
    for limbs in [*widths, before] if before not in widths else widths:
        rows = np.flatnonzero(np.diff(ends) == _words(limbs))
        found.append((rows, words[ends[rows][:, None] + np.arange(_words(limbs))], limbs))
    if sum(len(rows) for rows, _, _ in found) < len(shares):
        raise damaged("sums that other buckets sent")
    return found


class MergedSums:
    """What an accumulator of float sums would hold that had seen the values of all shares."""

    def __init__(self, name: str, whole: OfFloatSums) -> None:
        self.counted, self.whole = Counted(f"{name}_n"), whole

    def fields(self) -> Fields:
        return {**self.counted.fields(), **self.whole.fields()}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {**self.counted.zeros(count), **self.whole.zeros(count)}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        for rows, table, limbs in _tables(values, self.whole.float_sums):
            if len(rows):
                self._add(slots, at[rows], weights[rows], table, limbs)

    def _add(self, slots: RowState, at: I64, weights: I64, table: I64, widths: list[int]) -> None:
        add_weights(at, weights * table[:, 0], slots.get(self.counted.name))
        end = 1
        for one, width in zip(self.whole.float_sums, widths, strict=True):
            own = table[:, end : end + OWN + width]
            end += OWN + width
            limbs = np.ascontiguousarray(own[:, OWN:])
            one.add_sums(slots, at, weights, LimbSums(own[:, 0].copy(), own[:, 1:OWN], limbs))

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return self.whole.value(slots, at)

    def free(self, slots: RowState, at: I64) -> None:
        self.whole.free(slots, at)

    def compact(self, keep: I64) -> None:
        self.whole.compact(keep)

    def states(self) -> dict[str, RowState]:
        return self.whole.states()

    def rebuild(self, slots: RowState) -> None:
        self.whole.rebuild(slots)
