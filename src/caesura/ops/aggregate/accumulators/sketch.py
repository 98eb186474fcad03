"""How many different values there are, within a known error: HyperLogLog, one byte per register.

The estimate is Ertl's (New cardinality estimation algorithms for HyperLogLog sketches, 2017, algorithm 6),
which needs no table of corrections. A sketch depends on the set of values alone, not on their order or
copies, so sketches of parts make that of the whole. The hash is fixed: whoever supplies rows can aim at it.

>>> registers = sketched(np.zeros(3, np.int64), pa.array(["a", "b", "a"]), 1, 12)
>>> estimates(registers).tolist()
[2]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.identity import Secret, identity, plain_zero
from caesura.events.rows import RowState
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, U8, U64, Mask
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.slide import GIVE
from caesura.ops.aggregate.accumulators.sums import Fields, Stateless, present

FIXED = Secret(b"caesura sketches")
LEAST, MOST = 4, 16
"""Bits of a register's number: errors from 26 % down to 0.41 %."""


def precision(error: float) -> int:
    """The bits that registers are numbered with, for a standard error of at most so much."""
    return max(LEAST, math.ceil(2 * math.log2(1.04 / error)))


@kernel
def rank_of(h: int, bits: int) -> int:
    """The place of the first 1 behind the first bits of a hash."""
    rank = 1
    probe = np.uint64(1) << np.uint64(63 - bits)
    while probe != np.uint64(0) and (h & probe) == np.uint64(0):
        rank += 1
        probe = probe >> np.uint64(1)
    return rank


@kernel
def add_hashes(at: I64, hashes: U64, bits: int, registers: U8) -> None:
    """Raises the register that the first bits of a hash name to the place of the first 1 behind them."""
    low = np.uint64(64 - bits)
    for i in range(len(at)):
        register = np.int64(hashes[i] >> low)
        rank = rank_of(hashes[i], bits)
        if rank > registers[at[i], register]:
            registers[at[i], register] = rank


@kernel
def estimate_counts(counts: I64, m: int) -> float:
    """Ertl's estimate, from how many of the m registers have each value."""
    top = len(counts) - 1
    if counts[0] == m:
        return 0.0
    z = m * _tau(1.0 - counts[top] / m)
    for k in range(top - 1, 0, -1):
        z = 0.5 * (z + counts[k])
    z += m * _sigma(counts[0] / m)
    return m * m / (2.0 * math.log(2.0) * z)


@kernel
def estimate_each(counts: I64, m: int, out: F64) -> None:
    """The estimate of each sketch."""
    for s in range(counts.shape[0]):
        out[s] = estimate_counts(counts[s], m)


@kernel
def count_registers(registers: U8, counts: I64) -> None:
    """How many registers of each row have each value."""
    for s in range(registers.shape[0]):
        for i in range(registers.shape[1]):
            counts[s, registers[s, i]] += 1


@kernel
def run_sketch(
    kind: I64, who: I64, row: I64, hashes: U64, valid: Mask, bits: int, registers: U8, counts: I64, out: F64
) -> None:
    """The estimate of each group so far, of rows that only come."""
    given = 0
    low = np.uint64(64 - bits)
    for i in range(len(kind)):
        g = who[i]
        if kind[i] == GIVE:
            out[given] = estimate_counts(counts[g], 1 << bits)
            given += 1
        elif len(valid) == 0 or valid[row[i]]:
            register = np.int64(hashes[row[i]] >> low)
            rank = rank_of(hashes[row[i]], bits)
            before = registers[g, register]
            if rank > before:
                registers[g, register] = rank
                counts[g, before] -= 1
                counts[g, rank] += 1


@kernel
def _sigma(x: float) -> float:
    """The sum of x**(2**k) * 2**(k - 1) from k = 1 on, and x; of x below 1."""
    y = 1.0
    z = x
    before = -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


@kernel
def _tau(x: float) -> float:
    """A third of 1 - x less the sum of (1 - x**(2**-k))**2 * 2**-k."""
    if x == 0.0 or x == 1.0:
        return 0.0
    y = 1.0
    z = 1.0 - x
    before = -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
    return z / 3.0


def hashed(values: pa.Array) -> U64:
    """A hash of each value, the same everywhere."""
    return identity([plain_zero(values)], len(values), FIXED)[0]


def counted(registers: U8) -> I64:
    """How many registers of each sketch have each value."""
    bits = (registers.shape[1] - 1).bit_length()
    counts = np.zeros((len(registers), 64 - bits + 2), np.int64)
    count_registers(registers, counts)
    return counts


def estimates(registers: U8) -> I64:
    """The whole numbers nearest to the estimates."""
    out = np.zeros(len(registers))
    estimate_each(counted(registers), registers.shape[1], out)
    return np.rint(out).astype(np.int64)


def sketched(owner: I64, values: pa.Array, count: int, bits: int) -> U8:
    """The registers of so many sketches over these values."""
    registers = np.zeros((count, 1 << bits), np.uint8)
    add_hashes(owner, hashed(values), bits, registers)
    return registers


class Sketch(Stateless):
    """A sketch per slot, of values that only come."""

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits = f"{name}_registers", bits

    def fields(self) -> Fields:
        return {self.name: np.dtype((np.int64, ((1 << self.bits) // 8,)))}

    def zeros(self, count: int) -> dict[str, np.ndarray[Any, Any]]:
        return {self.name: np.broadcast_to(np.int64(0), (count, (1 << self.bits) // 8))}

    def add(self, slots: RowState, at: I64, weights: I64, values: pa.Array | None) -> None:
        assert values is not None
        at, _, values = present(at, weights, values)
        add_hashes(at, hashed(values), self.bits, slots.get(self.name).view(np.uint8))

    def registers(self, slots: RowState, at: I64) -> U8:
        """The registers of some slots."""
        found: U8 = slots.get(self.name)[at].view(np.uint8)
        return found

    def value(self, slots: RowState, at: I64) -> pa.Array:
        return pa.array(estimates(self.registers(slots, at)))
