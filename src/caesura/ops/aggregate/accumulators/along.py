"""What aggregates give along points in time at which rows come and go, beginning with what slots hold.

Counts, sums, means, variances, covariances and counts of different values run along; the least and
the greatest do where rows only come. An aggregate that does not run is read from slots instead, one point
of every group after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.events.columns import words
from caesura.events.nested import NO_MASK, validity
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U64, Mask, frozen
from caesura.ops.aggregate.accumulators.comoments import Comoments, PairSums
from caesura.ops.aggregate.accumulators.covariance import TERMS, Sums
from caesura.ops.aggregate.accumulators.exact import F64, add_floats, limbs_needed, round_digits
from caesura.ops.aggregate.accumulators.extremes import Grows, ranked_as_they_lie, unranked
from caesura.ops.aggregate.accumulators.float_sums import FloatSum
from caesura.ops.aggregate.accumulators.leading import Leading
from caesura.ops.aggregate.accumulators.moments import Moments, Spread, squares_of
from caesura.ops.aggregate.accumulators.multiset import Multiset
from caesura.ops.aggregate.accumulators.products import (
    PRODUCT_UNIT,
    UNIT,
    ProductSum,
    products,
    whole_units,
)
from caesura.ops.aggregate.accumulators.sketch import Sketch, counted, hashed, run_sketch
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE, LEAVE, slide_counts, slide_wide
from caesura.ops.aggregate.accumulators.sums import (
    NONE,
    Wide,
    WideSum,
    wide_as_float,
    wide_values,
    wide_words,
    wide_zeros,
    wrap_of,
)

NO_FLOATS: F64 = np.zeros(0)
NO_REST: F64 = np.zeros((0, 0))


class PointSteps(NamedTuple):
    """Rows that come and go, group by group in order of time, and where values are given."""

    kind: I64
    who: I64
    """The group, counted from 0."""
    row: I64
    """Which of the values."""
    given: int


@dataclass(frozen=True)
class EnteringRows:
    """The same for rows in order of time, with a value each: group, and whether one is given behind it."""

    who: I64
    gives: Mask
    given: int
    leaves: Mask
    """Which of them go; empty where all come."""

    @cached_property
    def steps(self) -> PointSteps:
        """All steps, one by one."""
        times = 1 + self.gives
        kind = np.full(len(self.who) + self.given, GIVE, np.int64)
        kind[np.cumsum(times) - times] = np.where(self.leaves, LEAVE, ENTER) if len(self.leaves) else ENTER
        row = np.repeat(np.arange(len(self.who)), times)
        return PointSteps(kind, np.repeat(self.who, times), row, self.given)


@kernel
def enter_counts(who: I64, gives: Mask, leaves: Mask, valid: Mask, running: I64, out: I64) -> None:
    """Running counts of valid rows; with an empty ``valid`` all are, with an empty ``leaves`` all come."""
    given = 0
    for i in range(len(who)):
        g = who[i]
        if len(valid) == 0 or valid[i]:
            running[g] += -1 if len(leaves) > 0 and leaves[i] else 1
        if gives[i]:
            out[given] = running[g]
            given += 1


@kernel
def enter_wide(
    who: I64, gives: Mask, leaves: Mask, low: U64, high: I64, r_low: U64, r_high: I64, r_wraps: I64,
    o_low: U64, o_high: I64, o_wraps: I64,
) -> None:  # fmt: skip
    """Running 128-bit sums of rows that come, and of those that go, as `slide_wide`."""
    given = 0
    may_wrap = len(r_wraps) > 0
    for i in range(len(who)):
        g = who[i]
        before = r_low[g]
        was = r_high[g]
        if len(leaves) > 0 and leaves[i]:
            r_low[g] = before - low[i]
            r_high[g] -= high[i]
            if r_low[g] > before:
                r_high[g] -= 1
            if may_wrap:
                r_wraps[g] += wrap_of(was, ~high[i], r_high[g])
        else:
            r_low[g] = before + low[i]
            r_high[g] += high[i]
            if r_low[g] < before:
                r_high[g] += 1
            if may_wrap:
                r_wraps[g] += wrap_of(was, high[i], r_high[g])
        if gives[i]:
            o_low[given] = r_low[g]
            o_high[given] = r_high[g]
            if may_wrap:
                o_wraps[given] = r_wraps[g]
            given += 1


@kernel
def enter_extremes(
    who: I64, gives: Mask, word: I64, valid: Mask, sign: int, best: I64, seen: I64, out: I64, moves: Mask
) -> None:
    """The least (sign 1) or greatest (sign -1) word so far, of rows that only come, in their order.

    With an empty ``gives`` nothing is given; ``moves``, unless it is empty, is set where a row changes it.
    """
    given = 0
    for i in range(len(who)):
        g = who[i]
        if len(valid) == 0 or valid[i]:
            if seen[g] == 0 or (sign > 0 and word[i] < best[g]) or (sign < 0 and word[i] > best[g]):
                best[g] = word[i]
                if len(moves) > 0:
                    moves[i] = True
            seen[g] += 1
        if len(gives) > 0 and gives[i]:
            out[given] = best[g]
            given += 1


@kernel
def run_extremes(
    kind: I64, who: I64, row: I64, word: I64, valid: Mask, sign: int, best: I64, seen: I64, out: I64
) -> None:
    """The least (sign 1) or greatest (sign -1) word so far, of rows that only come."""
    given = 0
    for i in range(len(kind)):
        g = who[i]
        if kind[i] == GIVE:
            out[given] = best[g]
            given += 1
        elif len(valid) == 0 or valid[row[i]]:
            w = word[row[i]]
            if seen[g] == 0 or (sign > 0 and w < best[g]) or (sign < 0 and w > best[g]):
                best[g] = w
            seen[g] += 1


@kernel
def run_floats(
    kind: I64, who: I64, row: I64, values: F64, more: F64, valid: Mask, limbs: I64, first: int, odd: I64,
    out: F64, rest: F64,
) -> None:  # fmt: skip
    """Exact float sums from what groups begin with, each rounded once; NaN and infinities count apart.

    ``first`` is the number of the lowest limb; all that are needed are there. ``more`` has a second part of
    each value, or nothing; ``rest`` takes as many doubles as it has room for of what rounding left out.
    """
    width = limbs.shape[1]
    digits = np.zeros(width + 1, np.int64)
    left = np.zeros((1, width), np.int64)
    base = np.full(len(limbs), first, np.int32)
    slot = np.zeros(1, np.int64)
    one = np.zeros(1, np.float64)
    weight = np.ones(1, np.int64)
    unfit = np.zeros(1, np.int64)
    given = 0
    for i in range(len(kind)):
        g = who[i]
        if kind[i] == GIVE:
            for k in range(width):
                digits[k] = limbs[g, k]
            out[given] = round_digits(digits, first)
            if rest.shape[1] > 0:
                for k in range(width):
                    left[0, k] = limbs[g, k]
                slot[0] = 0
                weight[0] = 1
                one[0] = -out[given]
                for term in range(rest.shape[1]):
                    add_floats(slot, one, weight, left, base[:1], unfit)
                    for k in range(width):
                        digits[k] = left[0, k]
                    rest[given, term] = round_digits(digits, first)
                    one[0] = -rest[given, term]
                if odd[g].any():
                    rest[given, :] = np.nan
            if odd[g, 0] > 0 or (odd[g, 1] > 0 and odd[g, 2] > 0):
                out[given] = np.nan
            elif odd[g, 1] > 0:
                out[given] = np.inf
            elif odd[g, 2] > 0:
                out[given] = -np.inf
            given += 1
            continue
        m = row[i]
        if len(valid) > 0 and not valid[m]:
            continue
        weight[0] = 1 if kind[i] == ENTER else -1
        slot[0] = g
        for part in range(1 if len(more) == 0 else 2):
            one[0] = values[m] if part == 0 else more[m]
            if np.isnan(one[0]):
                odd[g, 0] += weight[0]
            elif np.isinf(one[0]):
                odd[g, 1 if one[0] > 0 else 2] += weight[0]
            else:
                add_floats(slot, one, weight, limbs, base, unfit)


@kernel
def turn_copies(kind: I64, row: I64, number: I64, valid: Mask, copies: I64, turns: I64) -> None:
    """Marks with 1 the rows with which a value comes first, or goes last."""
    for i in range(len(kind)):
        if kind[i] == GIVE or (len(valid) > 0 and not valid[row[i]]):
            continue
        v = number[row[i]]
        if kind[i] == ENTER:
            copies[v] += 1
            turns[row[i]] = 1 if copies[v] == 1 else 0
        else:
            copies[v] -= 1
            turns[row[i]] = 1 if copies[v] == 0 else 0


def extremes_of(part: Grows, slots: RowState, at: I64) -> tuple[I64, I64]:
    """The words of the extremes of slots, and of how many values, to go on from."""
    return slots.get(f"{part.name}_best")[at], slots.get(f"{part.name}_seen")[at]


def mark_moves(part: Grows, known: tuple[I64, I64], who: I64, values: pa.Array, moves: Mask) -> None:
    """Marks the rows, of which none is null, that change the extreme of their group, and goes on from it."""
    best, seen = known
    nothing = np.zeros(0, np.int64)
    word = frozen(ranked_as_they_lie(values))
    enter_extremes(who, NO_MASK, word, frozen(NO_MASK), part.sign, best, seen, nothing, moves)


def runs(part: Any, *, counts_values: bool) -> bool:
    """Whether what an accumulator keeps can run along; of a bag of values only their number does."""
    if isinstance(part, Multiset):
        return counts_values and not part.timed
    return isinstance(part, FloatSum | WideSum | Grows | Leading | Moments | Comoments | Sketch)


class AlongPoints:
    """One aggregate along some steps; a `Reading`."""

    def __init__(
        self,
        steps: PointSteps | EnteringRows,
        slots: RowState,
        at: I64,
        parts: tuple[Any, ...],
        values: pa.Array | None,
        counts: dict[str, I64],
    ) -> None:
        self._along, self._slots, self._at, self._values = steps, slots, at, values
        self._counts = counts
        """What was counted along the same steps, by the name of the count: aggregates of a value share it."""
        self.given = values
        """The values as the accumulator takes them, perhaps with starts."""
        self._count = parts[0] if parts else None
        self._part = parts[-1] if parts else None
        self._valid = validity(values) if values is not None else np.zeros(0, np.bool_)
        self._numbers: dict[str, list[int]] = {}
        """Sums as whole numbers, one for each result, where doubles do not do."""

    @property
    def _steps(self) -> PointSteps:
        return self._along.steps if isinstance(self._along, EnteringRows) else self._along

    @property
    def counted_as(self) -> str:
        """The field of the slots that counts its values; of no value, rows."""
        return "rows" if self._count is None else str(self._count.name)

    @cached_property
    def n(self) -> I64:
        name = self.counted_as
        if name not in self._counts:
            self._counts[name] = self._counted(name)
        return self._counts[name]

    def _counted(self, name: str) -> I64:
        along, running = self._along, self._slots.get(name)[self._at]
        whole = self._counts.get("rows") if len(self._valid) == 0 else None
        if whole is not None and np.array_equal(running, self._slots.get("rows")[self._at]):
            return whole  # no value is null, and none was
        out = np.empty(along.given, np.int64)
        if isinstance(along, EnteringRows):
            enter_counts(along.who, along.gives, along.leaves, frozen(self._valid), running, out)
            return out
        number = self._valid.astype(np.int64)
        if len(number) == 0:
            number = np.ones(int(along.row.max(initial=-1)) + 1, np.int64)
        slide_counts(*along[:3], number, running, out)
        return out

    def values(self) -> pa.Array:
        if isinstance(self._part, FloatSum):
            return pa.array(self.floats())
        if isinstance(self._part, WideSum):
            return wide_values(self._wide, self._part.result)
        if isinstance(self._part, Multiset):
            return self._distinct(self._part)
        if isinstance(self._part, Sketch):
            return self._estimates(self._part)
        return self._leading(self._part) if isinstance(self._part, Leading) else self._extreme(self._part)

    def floats(self) -> F64:
        assert self._values is not None
        if isinstance(self._part, WideSum):
            return wide_as_float(self._wide, self._part.result)
        assert isinstance(self._part, FloatSum)
        return self._sums(self._part, words(self._values).astype(np.float64))

    def spread(self) -> Spread:
        assert isinstance(self._part, Moments) and self._values is not None
        part = self._part
        x = pc.cast(self._values, pa.float64(), safe=False).fill_null(0.0).to_numpy()
        sums, columns = {"x": part.first, "xx": part.second}, {"x": x}

        def terms(some: I64) -> tuple[F64, F64]:
            read = {name: self._terms(sums, columns, name, TERMS)[some] for name in sums}
            return read["x"], read["xx"]

        def exact(some: I64) -> Sums:
            return squares_of(*(self._exactly(sums, columns, name, some) for name in sums))

        first, second = (self._terms(sums, columns, name, 2) for name in sums)
        pairs = [(np.ascontiguousarray(t[:, 0]), np.ascontiguousarray(t[:, 1])) for t in (first, second)]
        return Spread(self.n, pairs[0], pairs[1], terms, exact)

    def pair_sums(self) -> PairSums:
        assert isinstance(self._part, Comoments) and self._values is not None
        sums, columns = self._part.sums, self._part.columns(self._values)
        terms = {name: self._terms(sums, columns, name, TERMS) for name in sums}
        return PairSums(self.n, terms, lambda name, some: self._exactly(sums, columns, name, some))

    def _terms(self, sums: dict[str, FloatSum], columns: dict[str, F64], name: str, count: int) -> F64:
        """A sum of values, or of products, in so many doubles."""
        part, terms = sums[name], np.empty((self._steps.given, count))
        values, more, far = columns[name[0]], NO_FLOATS, NO_MASK
        if len(name) > 1:
            values, more, far = products(columns[name[0]], columns[name[1]])
        terms[:, 0] = self._sums(part, values, more, terms[:, 1:])
        if far.any() or (isinstance(part, ProductSum) and part.beyond(self._slots, self._at).any()):
            terms[:, count - 1] = np.where(np.isnan(terms[:, 1]), np.nan, np.inf)  # there is more than that
        return terms

    def _exactly(self, sums: dict[str, FloatSum], columns: dict[str, F64], name: str, some: I64) -> list[int]:
        """A sum as whole numbers, for some of the results: step by step, where doubles do not do."""
        if name not in self._numbers:
            unit = [whole_units(columns[letter]) for letter in name]
            values = (
                [one << PRODUCT_UNIT - 2 * UNIT for one in map(int.__mul__, *unit)] if unit[1:] else unit[0]
            )
            running = sums[name].as_numbers(self._slots, self._at)
            given: list[int] = []
            for kind, who, row in zip(*(field.tolist() for field in self._steps[:3]), strict=True):
                if kind == GIVE:
                    given.append(running[who])
                elif len(self._valid) == 0 or self._valid[row]:
                    running[who] += values[row] if kind == ENTER else -values[row]
            self._numbers[name] = given
        return [self._numbers[name][place] for place in some.tolist()]

    def _sums(self, part: FloatSum, values: F64, more: F64 = NO_FLOATS, rest: F64 = NO_REST) -> F64:
        limbs, odd = part.in_full(self._slots, self._at)
        out, needed = np.empty(self._steps.given), limbs_needed(limbs, values, more)
        limbs = np.ascontiguousarray(limbs[:, needed])
        run_floats(*self._steps[:3], values, more, self._valid, limbs, needed.start, odd, out, rest)
        return out

    @cached_property
    def _wide(self) -> Wide:
        assert isinstance(self._part, WideSum) and self._values is not None
        low, high = wide_words(self._values)
        if len(self._valid):
            low, high = np.where(self._valid, low, 0).astype(np.uint64), np.where(self._valid, high, 0)
        held = self._part.halves(self._slots)
        wraps = held.wraps[self._at] if len(held.wraps) else held.wraps
        running = Wide(held.low[self._at], held.high[self._at], wraps)
        along = self._along
        out = wide_zeros(along.given, self._part.result)
        if isinstance(along, EnteringRows):
            enter_wide(along.who, along.gives, along.leaves, frozen(low), high, *running, *out)
        else:
            slide_wide(*along[:3], frozen(low), high, NONE, *running, *out)
        return out

    def _extreme(self, part: Any) -> pa.Array:
        assert isinstance(part, Grows)
        if isinstance(self._along, EnteringRows) and len(self._valid) == 0:
            return unranked(self._best, NO_MASK, part.type)  # none is given before a value has come
        return unranked(self._best, self.n > 0, part.type)

    @cached_property
    def _best(self) -> I64:
        """The words of an extreme."""
        part = self._part
        assert isinstance(part, Grows) and self._values is not None
        best, seen = extremes_of(part, self._slots, self._at)
        along, word, valid = self._along, frozen(ranked_as_they_lie(self._values)), frozen(self._valid)
        out = np.empty(along.given, np.int64)
        if isinstance(along, EnteringRows):
            enter_extremes(along.who, along.gives, word, valid, part.sign, best, seen, out, NO_MASK)
        else:
            run_extremes(*along[:3], word, valid, part.sign, best, seen, out)
        return out

    def fields_after(self, given: I64, fields: dict[str, Any]) -> None:
        """Adds what the slots' fields are behind these results, of accumulators that are what they give."""
        count, part = self.counted_as, self._part
        if count not in fields:
            fields[count] = self.n[given]
        if isinstance(part, WideSum):
            halves = self._wide if len(self._wide.wraps) else self._wide[:2]
            fields.update(zip(part.fields(), (half[given] for half in halves), strict=True))
        elif isinstance(part, Grows):
            fields.update({f"{part.name}_best": self._best[given], f"{part.name}_seen": fields[count]})

    def _distinct(self, part: Multiset) -> pa.Array:
        assert self._values is not None
        steps, turns = self._steps, np.zeros(len(self._values), np.int64)
        points = steps.kind != GIVE
        slot = np.zeros(len(self._values), np.int64)
        slot[steps.row[points]] = self._at[steps.who[points]]
        number, copies = part.copies(slot, self._values)
        turn_copies(steps.kind, steps.row, number, self._valid, copies, turns)
        running, out = part.value(self._slots, self._at).to_numpy().copy(), np.empty(steps.given, np.int64)
        slide_counts(*steps[:3], turns, running, out)
        return pa.array(out)

    def _estimates(self, part: Sketch) -> pa.Array:
        assert self._values is not None
        registers, out = part.registers(self._slots, self._at).copy(), np.empty(self._steps.given)
        hashes, counts = hashed(self._values), counted(registers)
        run_sketch(*self._steps[:3], hashes, self._valid, part.bits, registers, counts, out)
        return pa.array(np.rint(out).astype(np.int64))

    def _leading(self, part: Leading) -> pa.Array:
        """The leader is found by its place among all values that there are."""
        assert self.given is not None
        held = part.value(self._slots, self._at)
        every = pa.concat_arrays([self.given, held])
        place = part.order(every)
        best, seen = place[len(self.given) :].copy(), 1 - np.asarray(held.is_null()).astype(np.int64)
        out = np.zeros(self._steps.given, np.int64)
        run_extremes(*self._steps[:3], frozen(place), frozen(self._valid), 1, best, seen, out)
        order = np.argsort(place, kind="stable")
        rows = order[np.searchsorted(place[order], out)] if len(order) else out
        return every.take(pa.array(rows, mask=self.n == 0))


def given_along(
    slots: Any, at: I64, steps: PointSteps | EnteringRows, values: list[pa.Array]
) -> tuple[dict[tuple[Any, ...], AlongPoints], list[pa.Array]]:
    """What slots' accumulators give along these steps, () for the number of rows, and the aggregates."""
    counts: dict[str, I64] = {}
    known: dict[tuple[Any, ...], AlongPoints] = {(): AlongPoints(steps, slots.rows, at, (), None, counts)}
    columns = []
    for (_, a), parts in zip(slots.aggregates, slots.plans, strict=True):
        if a.value is not None and parts not in known:
            own = values[slots.place(a)]
            known[parts] = AlongPoints(steps, slots.rows, at, parts, own, counts)
            known[parts].given = values[slots.own_place(a)]
        columns.append(a.rule.finish(a, known[parts]))
    return known, columns
