"""Accumulators that add and subtract: row counts, value counts, exact sums of whole numbers and decimals.

Each keeps its numbers as fields of the slots it is given, so that they are purged, compacted and
saved together with their slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.columns import taken, words
from caesura.events.nested import validity
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, frozen
from caesura.kernels.sums import add_weights
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.plain_arrays import plain_array

Fields = dict[str, Any]
NONE: I64 = np.zeros(0, np.int64)


WHOLE_DOUBLES, EXACT_POWERS = 1 << 53, 22
"""Whole numbers up to the first, and powers of ten up to the second, are doubles."""


class Accumulator(Protocol):
    """Keeps one quantity per slot."""

    def fields(self) -> Fields: ...
    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]: ...
    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None: ...
    def value(self, slots: RowState, at: I64) -> pa.Array: ...
    def free(self, slots: RowState, at: I64) -> None:
        """Lets go of what slots that are gone have outside of the slots' own fields."""

    def compact(self, keep: I64) -> None: ...
    def states(self) -> dict[str, RowState]: ...
    def rebuild(self, slots: RowState) -> None: ...


@runtime_checkable
class Mergeable(Protocol):
    """An accumulator that adds what another of its kind has, exactly."""

    def merge(self, slots: RowState, at: I64, other: Any, others: RowState, rows: I64) -> None:
        """Adds to slots, each named once, what the other has in these rows of its own."""


class Wide(NamedTuple):
    """Integers of 128 bits, and how often they have wrapped, where they may: decimals, of 127 bits each."""

    low: U64
    high: I64
    wraps: I64


@kernel
def wrap_of(before: int, added: int, after: int) -> int:
    """Whether the high half of a sum, a carry included, went over the top (1) or below the bottom (-1)."""
    if before >= 0 and added >= 0 and after < 0:
        return 1
    if before < 0 and added < 0 and after >= 0:
        return -1
    return 0


@kernel
def add_wide(at: I64, weights: I64, low: U64, high: I64, t_low: U64, t_high: I64, wraps: I64) -> None:
    """Adds 128-bit integers, as often as their weight says, to totals; small ones need no ``wraps``."""
    may_wrap = len(wraps) > 0
    for i in range(len(at)):
        s = at[i]
        a = low[i]
        b = high[i]
        times = weights[i]
        if times < 0:
            times = -times
            a = ~a + np.uint64(1)
            b = ~b
            if a == np.uint64(0):
                b += 1
        for _ in range(times):
            before = t_low[s]
            t_low[s] = before + a
            was = t_high[s]
            t_high[s] += b
            if t_low[s] < before:
                t_high[s] += 1
            if may_wrap:
                wraps[s] += wrap_of(was, b, t_high[s])


class Stateless:
    """What accumulators without rows of their own share."""

    def free(self, slots: RowState, at: I64) -> None:
        return None

    def compact(self, keep: I64) -> None:
        return None

    def states(self) -> dict[str, RowState]:
        return {}

    def rebuild(self, slots: RowState) -> None:
        return None


class Counted(Stateless):
    """How many values are not null."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fields(self) -> Fields:
        return {self.name: np.int64}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {self.name: np.broadcast_to(np.int64(0), count)}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        valid = validity(values)
        add_weights(at, weights * valid if len(valid) else weights, slots.get(self.name))

    def merge(self, slots: RowState, at: I64, other: Counted, others: RowState, rows: I64) -> None:
        add_weights(at, taken(others.get(other.name), rows), slots.get(self.name))

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return plain_array(taken(slots.get(self.name), at))


def present(at: I64, weights: I64, values: pa.Array) -> tuple[I64, I64, pa.Array]:
    """The rows whose value is not null."""
    valid = validity(values)
    if len(valid) == 0:
        return at, weights, values
    return at[valid], weights[valid], values.drop_null()


class WideSum(Stateless):
    """The exact sum of integers or decimals, in 128 bits, and for decimals how often it has wrapped."""

    def __init__(self, name: str, result: pa.DataType) -> None:
        self.name = name
        self.result = result

    def fields(self) -> Fields:
        own = {f"{self.name}_low": np.uint64, f"{self.name}_high": np.int64}
        return {**own, f"{self.name}_wraps": np.int64} if pa.types.is_decimal(self.result) else own

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {name: np.zeros(count, t) for name, t in self.fields().items()}

    def halves(self, slots: RowState) -> Wide:
        """The sums as they are kept."""
        low, high = slots.get(f"{self.name}_low"), slots.get(f"{self.name}_high")
        return Wide(low, high, slots.get(f"{self.name}_wraps") if pa.types.is_decimal(self.result) else NONE)

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        low, high = wide_words(values)
        add_wide(at, weights, frozen(low), high, *self.halves(slots))

    def merge(self, slots: RowState, at: I64, other: WideSum, others: RowState, rows: I64) -> None:
        mine, given = self.halves(slots), other._at(others, rows)
        add_wide(at, np.ones(len(at), np.int64), given.low, given.high, *mine)
        if len(given.wraps):
            add_weights(at, given.wraps, mine.wraps)

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return wide_values(self._at(slots, at), self.result)

    def as_float(self, slots: RowState, at: I64) -> F64:
        """The sums as doubles, for averages; correctly rounded where 64 bits hold them."""
        return wide_as_float(self._at(slots, at), self.result)

    def _at(self, slots: RowState, at: I64) -> Wide:
        low, high, wraps = self.halves(slots)
        return Wide(low[at], high[at], wraps[at] if len(wraps) else wraps)


def follow_slots(rows: RowState, keep: I64) -> None:
    """Slots were renumbered: rows of slots that are gone go, the others follow."""
    slot = rows.get("slot")
    if int(keep.max(initial=-1)) == len(keep) - 1 and int(slot.max(initial=-1)) < len(keep):
        return  # all are there, under their old numbers
    new = np.full(int(max(slot.max(initial=-1), keep.max(initial=-1))) + 1, -1, np.int64)
    new[keep] = np.arange(len(keep))
    slot[:] = new[slot]
    rows.kill(np.flatnonzero(rows.alive & (slot < 0)))
    rows.compact()


def wide_zeros(count: int, result: pa.DataType) -> Wide:
    """So many sums of nothing."""
    wraps = np.zeros(count if pa.types.is_decimal(result) else 0, np.int64)
    return Wide(np.zeros(count, np.uint64), np.zeros(count, np.int64), wraps)


def wide_values(sums: Wide, result: pa.DataType) -> pa.Array:
    """Sums as a column; an integer that leaves 64 bits, or a decimal of 39 digits, is refused."""
    low, high, wraps = sums
    if pa.types.is_decimal(result):
        if wraps.any() or _too_long(low, high).any():
            raise StreamError(
                "a sum of decimals has more than 38 digits.", remedy="Sum a cast to 'double' instead."
            )
        pairs = np.empty((len(low), 2), np.int64)
        pairs[:, 0], pairs[:, 1] = low.view(np.int64), high
        return pa.Array.from_buffers(result, len(low), [None, pa.py_buffer(pairs)])
    total = low.view(np.int64)
    if (high != (total >> 63)).any():
        raise StreamError(
            "a sum of integers left the range of 64 bits.",
            remedy="Sum a cast to 'decimal(38, 0)' or to 'double' instead.",
        )
    return pa.array(total)


def _too_long(low: U64, high: I64) -> Mask:
    """Where 128 bits hold a number of 39 digits."""
    top, rest = np.int64(10**38 >> 64), np.uint64(10**38 & (2**64 - 1))
    above: Mask = (high > top) | ((high == top) & (low >= rest))
    below: Mask = (high < -top - 1) | ((high == -top - 1) & (low <= ~rest + np.uint64(1)))
    return np.logical_or(above, below)


def wide_as_float(sums: Wide, result: pa.DataType) -> F64:
    """Sums as doubles, rounded once."""
    low, high, wraps = sums
    scale = result.scale if pa.types.is_decimal(result) else 0
    small = high == (low.view(np.int64) >> 63)
    if len(wraps):
        small &= wraps == 0
    plain = low.view(np.int64)
    if scale:  # both numbers of the division have to be doubles
        small &= (
            (np.abs(plain) <= WHOLE_DOUBLES) & (plain != np.iinfo(np.int64).min) & (scale <= EXACT_POWERS)
        )
    out = plain.astype(np.float64) / float(10**scale)
    for i in np.flatnonzero(~small):
        number = (int(wraps[i] if len(wraps) else 0) << 128) + (int(high[i]) << 64) + int(low[i])
        out[i] = number / 10**scale
    return out


def wide_words(values: pa.Array) -> tuple[U64, I64]:
    """Integers or decimals as the low and high halves of 128-bit integers."""
    if pa.types.is_decimal(values.type):
        halves = np.ascontiguousarray(words(values)).view(np.int64)
        return np.ascontiguousarray(halves[0::2]).view(np.uint64), np.ascontiguousarray(halves[1::2])
    if pa.types.is_uint64(values.type):
        return np.ascontiguousarray(words(values)), np.zeros(len(values), np.int64)
    plain = words(values).astype(np.int64, copy=False)
    return plain.view(np.uint64), plain >> 63
