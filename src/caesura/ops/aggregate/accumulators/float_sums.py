"""The exact sums of doubles per slot: in few limbs, or in all where those are too short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask, frozen
from caesura.kernels.sums import each_once
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
from caesura.ops.aggregate.accumulators.sums import Fields, present

Put = Callable[..., int]
"""Adds some rows to slots: which, where, how often, to which limbs; writes those that do not fit."""
CARRY_AFTER = 1 << 30


class LimbSums(NamedTuple):
    """Exact float sums on their way to be added to others."""

    first: I64
    """The number of the lowest limb; -1 where nothing was added."""
    odd: I64
    """How many values were NaN, infinity and -infinity, along the second axis."""
    limbs: I64


def whole_number(limbs: np.ndarray[Any, Any]) -> int:
    """A sum in limbs as a whole number of its least bit."""
    return sum(int(limbs[i]) << (32 * int(i)) for i in np.flatnonzero(limbs))


class FloatSum:
    """The exact sum of doubles: a short accumulator per slot, a full one for the few that need it."""

    below, width = 0, FULL
    """Limbs that full sums have below the least double, and in all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._added = 0
        self.full = RowState({"limbs": np.dtype((np.int64, (self.width,)))}, grown_by={"limbs": self.below})
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
        if self.below and given.shape[1] == self.width:
            self._add_full_sums(slots, at, weights, sums)
            return
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
        where, unfit = self._opened(slots, at[rows]), np.empty(len(rows), np.int64)
        limbs = self._middle(self.full.get("limbs"))
        put(rows, where, weights[rows], limbs, np.zeros(self.full.size, np.int32), unfit)

    def _opened(self, slots: RowState, at: I64) -> I64:
        """The full sums of these slots, made where there are none."""
        full = slots.get(f"{self.name}_full")
        fresh = each_once(at[full[at] < 0])
        if len(fresh):
            full[fresh] = np.arange(len(fresh)) + self.full.append({"limbs": self._moved(slots, fresh)})
        where: I64 = full[at]
        self.full.touch(each_once(where))
        return where

    def _middle(self, limbs: I64) -> I64:
        """The limbs of full sums that those of doubles have."""
        return limbs[:, self.below : self.below + FULL] if self.below else limbs

    def _add_full_sums(self, slots: RowState, at: I64, weights: I64, sums: LimbSums) -> None:
        """Adds full sums that have more limbs than those of doubles."""
        raise NotImplementedError

    def _moved(self, slots: RowState, at: I64) -> I64:
        """The short sums of these slots, laid out in full."""
        wide = np.zeros((len(at), self.width), np.int64)
        limbs, base = slots.get(f"{self.name}_limbs"), slots.get(f"{self.name}_base")
        for row, slot in enumerate(at):
            if base[slot] >= 0:
                first = self.below + base[slot]
                wide[row, first : first + SPAN] = limbs[slot]
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
            middle = np.ascontiguousarray(self._middle(self.full.get("limbs"))[rows])
            round_limbs(middle, np.zeros(len(rows), np.int32), exact)
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
        wide[full >= 0] = self._middle(self.full.get("limbs"))[full[full >= 0]]
        return wide, slots.get(f"{self.name}_odd")[at]

    def in_all_limbs(self, slots: RowState, at: I64) -> I64:
        """The sums in as many limbs as full ones have."""
        middle, _ = self.in_full(slots, at)
        if not self.below:
            return middle
        limbs = np.zeros((len(at), self.width), np.int64)
        limbs[:, self.below : self.below + FULL] = middle
        full = slots.get(f"{self.name}_full")[at]
        limbs[full >= 0] = self.full.get("limbs")[full[full >= 0]]
        return limbs

    def is_full(self, slots: RowState, at: I64) -> Mask:
        """Which sums need all limbs."""
        needs: Mask = slots.get(f"{self.name}_full")[at] >= 0
        return needs

    def as_sums(self, slots: RowState, at: I64, *, full: bool) -> LimbSums:
        """The sums as others can add them, settled; in all limbs, or in few, which must be enough."""
        if full:
            limbs, odd = self.in_all_limbs(slots, at), slots.get(f"{self.name}_odd")[at]
            first: I64 = np.zeros(len(at), np.int64)
        else:
            limbs, odd = slots.get(f"{self.name}_limbs")[at], slots.get(f"{self.name}_odd")[at]
            first = slots.get(f"{self.name}_base")[at].astype(np.int64)
        carry_limbs(limbs)
        return LimbSums(first, odd, limbs)

    def as_terms(self, slots: RowState, at: I64, count: int) -> F64:
        """The sums in doubles, along the second axis: the nearest one, that of the rest, and so on.

        Where a value was not finite, all but the first are NaN.
        """
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
        if self.has_odd:
            terms[slots.get(f"{self.name}_odd")[at].any(axis=1), 1:] = np.nan
        return terms

    def as_numbers(self, slots: RowState, at: I64) -> list[int]:
        """The sums as whole numbers of their least bit."""
        return [whole_number(limbs) for limbs in self.in_all_limbs(slots, at)]

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
        there = at[full[at] >= 0]
        self.full.kill(full[there])
        full[there] = -1
        slots.get(f"{self.name}_base")[there] = -1
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
