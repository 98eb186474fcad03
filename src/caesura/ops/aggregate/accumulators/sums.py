"""Accumulators that add and subtract: row counts, value counts, exact integer and float sums.

Each keeps its numbers as fields of the slots it is given, so that they are purged, compacted and
saved together with their slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.columns import taken, words
from caesura.events.nested import validity
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, frozen
from caesura.kernels.sums import add_weights, each_once
from caesura.ops.aggregate.accumulators.exact import (
    F64,
    FULL,
    SPAN,
    add_floats,
    add_limbs,
    carry_limbs,
    merge_limbs,
    round_limbs,
    round_slots,
)
from caesura.plain_arrays import plain_array

Fields = dict[str, Any]
Put = Callable[..., int]
"""Adds some rows to slots: which, where, how often, to which limbs; writes those that do not fit."""
CARRY_AFTER = 1 << 30
NONE: I64 = np.zeros(0, np.int64)


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
    """Sums as doubles."""
    low, high, wraps = sums
    small = high == (low.view(np.int64) >> 63)
    if len(wraps):
        small &= wraps == 0
    out = low.view(np.int64).astype(np.float64)
    for i in np.flatnonzero(~small):
        out[i] = float((int(wraps[i] if len(wraps) else 0) << 128) + (int(high[i]) << 64) + int(low[i]))
    scale = result.scale if pa.types.is_decimal(result) else 0
    return out / float(10**scale)


def wide_words(values: pa.Array) -> tuple[U64, I64]:
    """Integers or decimals as the low and high halves of 128-bit integers."""
    if pa.types.is_decimal(values.type):
        halves = np.ascontiguousarray(words(values)).view(np.int64)
        return np.ascontiguousarray(halves[0::2]).view(np.uint64), np.ascontiguousarray(halves[1::2])
    if pa.types.is_uint64(values.type):
        return np.ascontiguousarray(words(values)), np.zeros(len(values), np.int64)
    plain = words(values).astype(np.int64, copy=False)
    return plain.view(np.uint64), plain >> 63


class LimbSums(NamedTuple):
    """Exact float sums on their way to be added to others."""

    first: I64
    """The number of the lowest limb; -1 where nothing was added."""
    odd: I64
    """How many values were NaN, infinity and -infinity, along the second axis."""
    limbs: I64


class FloatSum:
    """The exact sum of doubles: a short accumulator per slot, a full one for the few that need it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._added = 0
        self.full = RowState({"limbs": np.dtype((np.int64, (FULL,)))})
        self.has_odd = False
        """Whether a value that is not finite has ever come."""

    @property
    def float_sums(self) -> tuple[FloatSum, ...]:
        return (self,)

    def fields(self) -> Fields:
        return {
            f"{self.name}_limbs": np.dtype((np.int64, (SPAN,))),
            f"{self.name}_base": np.int32,
            f"{self.name}_odd": np.dtype((np.int64, (3,))),
            f"{self.name}_full": np.int64,
        }

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {
            f"{self.name}_limbs": np.broadcast_to(np.int64(0), (count, SPAN)),
            f"{self.name}_base": np.broadcast_to(np.int32(-1), count),
            f"{self.name}_odd": np.broadcast_to(np.int64(0), (count, 3)),
            f"{self.name}_full": np.broadcast_to(np.int64(-1), count),
        }

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, weights, values = present(at, weights, values)
        plain = words(values).astype(np.float64, copy=False)
        self._settle(slots, len(plain))
        finite = np.isfinite(plain)
        if not finite.all():
            self._add_odd(slots, at[~finite], weights[~finite], plain[~finite])
        put = lambda some, where, *into: add_floats(where, frozen(plain[some]), *into)  # noqa: E731
        self._put(slots, at, weights, put)

    def add_sums(self, slots: RowState, at: I64, weights: I64, sums: LimbSums) -> None:
        """Adds sums of others, as often as their weight says."""
        self._settle(slots, len(at))
        if sums.odd.any():
            self.has_odd = True
            np.add.at(slots.get(f"{self.name}_odd"), at, sums.odd * weights[:, None])
        given, first = sums.limbs, sums.first
        put = lambda some, where, *into: add_limbs(where, given[some], first[some], *into)  # noqa: E731
        self._put(slots, at, weights, put)

    def merge(self, slots: RowState, at: I64, other: FloatSum, others: RowState, rows: I64) -> None:
        if not (self.full.live or other.full.live or other.has_odd):
            self._settle(slots, other._added)
            unfit = np.empty(len(at), np.int64)
            limbs, base = (others.get(f"{other.name}_{what}") for what in ("limbs", "base"))
            into = slots.get(f"{self.name}_limbs"), slots.get(f"{self.name}_base")
            missed = unfit[: merge_limbs(at, frozen(rows), limbs, base, *into, unfit)]
            at, rows = at[missed], rows[missed]
        full = other.is_full(others, rows)
        for some in (np.flatnonzero(~full), np.flatnonzero(full)):
            if len(some):
                given = other.as_sums(others, rows[some], full=bool(full[some[0]]))
                self.add_sums(slots, at[some], np.ones(len(some), np.int64), given)

    def _put(self, slots: RowState, at: I64, weights: I64, put: Put) -> None:
        """Adds rows to the short sums of their slots, and to full ones where those are too short."""
        limbs, base = slots.get(f"{self.name}_limbs"), slots.get(f"{self.name}_base")
        unfit = np.empty(len(at), np.int64)
        if not self.full.live:
            missed = put(slice(None), at, weights, limbs, base, unfit)
            self._put_full(slots, at, weights, put, unfit[:missed])
            return
        full = slots.get(f"{self.name}_full")
        short = np.flatnonzero(full[at] < 0)
        missed = put(short, at[short], weights[short], limbs, base, unfit)
        rest = [short[unfit[:missed]], np.flatnonzero(full[at] >= 0)]
        self._put_full(slots, at, weights, put, np.concatenate(rest))

    def _settle(self, slots: RowState, more: int) -> None:
        """Carries have room for 2**31 additions; settle them well before."""
        self._added += more
        if self._added > CARRY_AFTER:
            carry_limbs(slots.get(f"{self.name}_limbs"))
            carry_limbs(self.full.get("limbs"))
            self._added = more

    def _add_odd(self, slots: RowState, at: I64, weights: I64, plain: np.ndarray[Any, Any]) -> None:
        self.has_odd = True
        kind = np.where(np.isnan(plain), 0, np.where(plain > 0, 1, 2))
        np.add.at(slots.get(f"{self.name}_odd"), (at, kind), weights)

    def _put_full(self, slots: RowState, at: I64, weights: I64, put: Put, rows: I64) -> None:
        if len(rows) == 0:
            return
        full = slots.get(f"{self.name}_full")
        fresh = each_once(at[rows][full[at[rows]] < 0])
        if len(fresh):
            full[fresh] = np.arange(len(fresh)) + self.full.append({"limbs": self._moved(slots, fresh)})
        base = np.zeros(self.full.size, np.int32)
        where = full[at[rows]]
        self.full.touch(each_once(where))
        unfit = np.empty(len(rows), np.int64)
        put(rows, where, weights[rows], self.full.get("limbs"), base, unfit)

    def _moved(self, slots: RowState, at: I64) -> I64:
        """The short sums of these slots, laid out in full."""
        wide = np.zeros((len(at), FULL), np.int64)
        limbs, base = slots.get(f"{self.name}_limbs"), slots.get(f"{self.name}_base")
        for row, slot in enumerate(at):
            if base[slot] >= 0:
                wide[row, base[slot] : base[slot] + SPAN] = limbs[slot]
        limbs[at] = 0
        return wide

    def as_float(self, slots: RowState, at: I64) -> np.ndarray[Any, np.dtype[np.float64]]:
        out = np.zeros(len(at))
        round_slots(slots.get(f"{self.name}_limbs"), slots.get(f"{self.name}_base"), frozen(at), out)
        full = slots.get(f"{self.name}_full")[at] if self.full.live else np.zeros(0, np.int64)
        wide = np.flatnonzero(full >= 0)
        if len(wide):
            exact = np.zeros(len(wide))
            rows = full[wide]
            round_limbs(self.full.get("limbs")[rows], np.zeros(len(rows), np.int32), exact)
            out[wide] = exact
        if not self.has_odd:
            return out
        odd = slots.get(f"{self.name}_odd")[at]
        out[odd[:, 1] > 0] = np.inf
        out[odd[:, 2] > 0] = -np.inf
        out[(odd[:, 0] > 0) | ((odd[:, 1] > 0) & (odd[:, 2] > 0))] = np.nan
        return out

    def in_full(self, slots: RowState, at: I64) -> tuple[I64, I64]:
        """The sums in all limbs, and how many values were NaN, infinity and -infinity."""
        wide = np.zeros((len(at), FULL), np.int64)
        limbs, base = slots.get(f"{self.name}_limbs")[at], slots.get(f"{self.name}_base")[at]
        short = np.flatnonzero(base >= 0)
        for limb in range(SPAN):
            wide[short, base[short] + limb] = limbs[short, limb]
        full = slots.get(f"{self.name}_full")[at]
        wide[full >= 0] = self.full.get("limbs")[full[full >= 0]]
        return wide, slots.get(f"{self.name}_odd")[at]

    def is_full(self, slots: RowState, at: I64) -> Mask:
        """Which sums need all limbs."""
        needs: Mask = slots.get(f"{self.name}_full")[at] >= 0
        return needs

    def as_sums(self, slots: RowState, at: I64, *, full: bool) -> LimbSums:
        """The sums as others can add them, settled; in all limbs, or in few, which must be enough."""
        if full:
            limbs, odd = self.in_full(slots, at)
            first: I64 = np.zeros(len(at), np.int64)
        else:
            limbs, odd = slots.get(f"{self.name}_limbs")[at], slots.get(f"{self.name}_odd")[at]
            first = slots.get(f"{self.name}_base")[at].astype(np.int64)
        carry_limbs(limbs)
        return LimbSums(first, odd, limbs)

    def as_terms(self, slots: RowState, at: I64, count: int) -> F64:
        """The sums in doubles, along the second axis: the nearest one, that of the rest, and so on."""
        wide, _ = self.in_full(slots, at)
        zero, ones = np.zeros(len(at), np.int32), np.ones(len(at), np.int64)
        terms = np.zeros((len(at), count))
        terms[:, 0] = self.as_float(slots, at)
        for k in range(1, count):
            less, unfit = frozen(-terms[:, k - 1]), np.zeros(len(at), np.int64)
            add_floats(np.arange(len(at)), less, ones, wide, zero, unfit)
            rest = np.zeros(len(at))
            round_limbs(wide, zero, rest)
            terms[:, k] = rest
        return terms

    def as_pair(self, slots: RowState, at: I64) -> tuple[F64, F64]:
        """The sums as two doubles each: the nearest one, and what is left, rounded."""
        terms = self.as_terms(slots, at, 2)
        return np.ascontiguousarray(terms[:, 0]), np.ascontiguousarray(terms[:, 1])

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return pa.array(self.as_float(slots, at))

    def compact(self, keep: I64) -> None:
        return None

    def states(self) -> dict[str, RowState]:
        return {"full": self.full}

    def rebuild(self, slots: RowState) -> None:
        """Drops the full sums that no live slot names."""
        self.has_odd = bool(slots.get(f"{self.name}_odd").any())
        full = slots.get(f"{self.name}_full")
        dead = np.setdiff1d(np.flatnonzero(self.full.alive), full[full >= 0])
        if len(dead):
            self.full.kill(dead)
            self._sweep(slots)

    def free(self, slots: RowState, at: I64) -> None:
        if self.full.size == 0:
            return
        full = slots.get(f"{self.name}_full")
        self.full.kill(full[at][full[at] >= 0])
        full[at] = -1
        if 2 * self.full.live < self.full.size:
            self._sweep(slots)

    def _sweep(self, slots: RowState) -> None:
        """Moves the full sums that are left together."""
        full = slots.get(f"{self.name}_full")
        kept = self.full.compact()
        renumber = np.full(int(kept[-1]) + 1 if len(kept) else 1, -1, np.int64)
        renumber[kept] = np.arange(len(kept))
        full[full >= 0] = renumber[full[full >= 0]]
        slots.touch(np.flatnonzero(full >= 0))
