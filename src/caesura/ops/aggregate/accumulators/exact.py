"""Float sums that are exact: order, paging and retractions never show in them.

A sum is a fixed-point number in limbs of 32 bits, held in 64-bit words so that carries wait. Most
sums fit five limbs around their first value (160 bits); one that does not moves to a full
accumulator that spans every double. The result is the exact sum, rounded once, half to even.

>>> limbs, base = np.zeros((1, SPAN), np.int64), np.full(1, -1, np.int32)
>>> for x in (1e9, 1.0, -1e9):
...     _ = add_floats(np.zeros(1, np.int64), np.array([x]), np.ones(1, np.int64), limbs, base, NONE)
>>> out = np.zeros(1); round_limbs(limbs, base, out); out.tolist()
[1.0]
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, NOTHING, ONE, TWO

F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
SPAN = 5
FULL = 68
LOW32 = np.int64(0xFFFFFFFF)
FRACTION = np.int64((1 << 52) - 1)
NONE: I64 = np.zeros(0, np.int64)
HALF, LAST_BIT = np.uint64(32), np.uint64(63)
LEAST_POWER, GREATEST_POWER = -1074, 950
"""Powers of two by which 64 bits become a sum that is neither too small for a double's 53 nor too large."""
POWERS: F64 = np.ldexp(1.0, np.arange(LEAST_POWER, GREATEST_POWER + 1))


@kernel
def add_floats(slots: I64, values: F64, weights: I64, limbs: I64, base: I32, unfit: I64) -> int:
    """Adds finite values to their slots; writes the rows that do not fit their slot's span.

    ``base`` is the number of a slot's lowest limb, -1 before its first value. Values that are not
    finite are passed over.
    """
    missed = 0
    width = limbs.shape[1]
    bits = values.view(np.int64)
    for i in range(len(slots)):
        place = (bits[i] >> 52) & 2047
        normal = np.int64(place > 0)
        mantissa = (bits[i] & FRACTION) | (normal << 52)
        if place == 2047 or mantissa == 0:
            continue
        place -= normal
        limb = place >> 5
        shift = place & 31
        slot = np.uint64(slots[i])  # without a sign nothing is asked of it
        if base[slot] < 0:
            base[slot] = max(0, min(limb - 1, FULL - width)) if width < FULL else 0
        at = limb - base[slot]
        if at < 0 or at + 2 >= width:
            unfit[missed] = i
            missed += 1
            continue
        sign = weights[i] * (1 | (bits[i] >> 63))
        low = (mantissa & LOW32) << shift
        rest = (low >> 32) + ((mantissa >> 32) << shift)
        first = np.uint64(at)
        limbs[slot, first] += sign * (low & LOW32)
        limbs[slot, first + ONE] += sign * (rest & LOW32)
        limbs[slot, first + TWO] += sign * (rest >> 32)
    return missed


@kernel
def add_limbs(slots: I64, given: I64, first: I64, weights: I64, limbs: I64, base: I32, unfit: I64) -> int:
    """Adds settled sums to their slots; writes the rows that do not fit their slot's span.

    ``first`` is the number of a given sum's lowest limb, -1 where nothing was added to it.
    """
    missed = 0
    width = limbs.shape[1]
    for i in range(len(slots)):
        if first[i] < 0:
            continue
        slot = slots[i]
        fits = given.shape[1] <= width
        if fits and base[slot] < 0:
            base[slot] = first[i]
        shift = first[i] - base[slot]
        for k in range(given.shape[1]):
            if given[i, k] != 0 and not 0 <= k + shift < width:
                fits = False
        if not fits:
            unfit[missed] = i
            missed += 1
            continue
        for k in range(given.shape[1]):
            if given[i, k] != 0:
                limbs[slot, k + shift] += weights[i] * given[i, k]
    return missed


@kernel
def merge_limbs(at: I64, rows: I64, given: I64, first: I32, limbs: I64, base: I32, unfit: I64) -> int:
    """Adds the sums in some rows, as they lie, to slots that begin with the same limb; writes the others."""
    missed = 0
    for i in range(len(at)):
        slot, row = at[i], rows[i]
        if first[row] < 0:
            continue
        if base[slot] < 0:
            base[slot] = first[row]
        if base[slot] != first[row]:
            unfit[missed] = i
            missed += 1
            continue
        for k in range(SPAN):
            limbs[slot, k] += given[row, k]
    return missed


def limbs_needed(limbs: I64, *values: F64) -> slice:
    """Which limbs sums use that begin with these and take these values, and what rounds them.

    The double nearest to a sum has up to 52 bits below its first, and many values carry two limbs up.
    """
    used = np.flatnonzero(limbs.any(axis=0))
    ends = [used[[0, -1]]] if len(used) else []
    for some in values:
        place = (some.view(np.int64) >> 52) & 2047
        place = place[(place < 2047) & (some != 0.0)]
        ends += [np.maximum(np.array([place.min(), place.max()]) - 1, 0) >> 5] if len(place) else []
    if not ends:
        return slice(0, 1)
    low, high = int(min(pair[0] for pair in ends)), int(max(pair[1] for pair in ends))
    return slice(max(0, low - 2), min(limbs.shape[1], high + 6))


@kernel
def carry_limbs(limbs: I64) -> None:
    """Settles the carries: all limbs but the top one lie in [0, 2**32)."""
    width = limbs.shape[1]
    for s in range(limbs.shape[0]):
        for i in range(width - 1):
            up = limbs[s, i] >> 32
            limbs[s, i] -= up << 32
            limbs[s, i + 1] += up


@kernel
def round_limbs(limbs: I64, base: I32, out: F64) -> None:
    """The double nearest to each exact sum."""
    width = limbs.shape[1]
    digits = np.zeros(width + 1, np.int64)
    for s in range(limbs.shape[0]):
        for i in range(width):
            digits[i] = limbs[s, i]
        out[s] = round_digits(digits, max(0, base[s]))


@kernel
def round_slots(limbs: I64, base: I32, at: I64, out: F64) -> None:
    """The double nearest to the exact sum of each of these slots, of five limbs.

    Most are positive and of no extreme size: their highest 64 bits, the last of which also stands for all
    below, are converted to a double, which rounds them once.
    """
    digits = np.zeros(SPAN + 1, np.int64)
    for s in range(len(at)):
        slot = at[s]
        one = limbs[slot, 1] + (limbs[slot, 0] >> 32)
        two = limbs[slot, 2] + (one >> 32)
        three = limbs[slot, 3] + (two >> 32)
        high = limbs[slot, 4] + (three >> 32)
        top = np.uint64(two & LOW32) | np.uint64(three & LOW32) << HALF
        rest = np.uint64(limbs[slot, 0] & LOW32) | np.uint64(one & LOW32) << HALF
        power = 32 * max(0, base[slot]) - 1010
        if high != 0 or top == NOTHING or not LEAST_POWER + 64 <= power <= GREATEST_POWER:
            for i in range(SPAN):
                digits[i] = limbs[slot, i]
            out[s] = round_digits(digits, max(0, base[slot]))
            continue
        shift = leading_zeros(top)
        top = top << shift | rest >> (LAST_BIT - shift) >> ONE
        top |= np.uint64(rest << shift != NOTHING)
        out[s] = float(top) * POWERS[power - np.int64(shift) - LEAST_POWER]


@kernel
def leading_zeros(word: np.uint64) -> np.uint64:
    """How many bits of a word, which is not 0, are 0 before the first that is 1."""
    count = NOTHING
    for step in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)):
        more = step * np.uint64(word >> (np.uint64(64) - step) == NOTHING)
        word <<= more
        count += more
    return count


@kernel
def round_digits(digits: I64, base: int) -> float:
    """The double nearest to a sum in limbs, the last of them spare; settles carries in ``digits``."""
    width = len(digits) - 1
    digits[width] = 0
    negative = False
    for _ in range(2):
        for i in range(width):
            up = digits[i] >> 32
            digits[i] -= up << 32
            digits[i + 1] += up
        if digits[width] >= 0:
            break
        negative = True
        for i in range(width + 1):
            digits[i] = -digits[i]
    top = width
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    rounded = _round(digits, top, base)
    return -rounded if negative else rounded


@kernel
def _round(digits: I64, top: int, base: int) -> float:
    """The double nearest to a positive number in settled limbs."""
    length = 0
    for step in (16, 8, 4, 2, 1):
        if (digits[top] >> (length + step)) != 0:
            length += step
    high = 32 * top + length
    cut = max(0, high - 52)
    limb = cut >> 5
    shift = cut & 31
    mantissa = digits[limb] >> shift
    if limb < top:
        mantissa |= digits[limb + 1] << (32 - shift)
    if limb + 1 < top:
        mantissa |= digits[limb + 2] << (64 - shift)
    if cut > 0:
        half = cut - 1
        if (digits[half >> 5] >> (half & 31)) & 1:
            sticky = (digits[half >> 5] & ((1 << (half & 31)) - 1)) != 0
            for below in range(half >> 5):
                if sticky:
                    break
                sticky = digits[below] != 0
            if sticky or (mantissa & 1):
                mantissa += 1
    power = int(cut + 32 * base - 1074)
    if power > 971 or (power == 971 and mantissa >= 2**53):
        return math.inf  # Python's ldexp raises where the machine's gives infinity
    return math.ldexp(float(mantissa), power)
