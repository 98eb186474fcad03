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
from caesura.kernels.hashing import I64, U8, U64
from caesura.ops.aggregate.accumulators.exact import F64
from caesura.ops.aggregate.accumulators.sums import Fields, Stateless, present

FIXED = Secret(b"caesura sketches")
LEAST, MOST = 4, 16
"""Bits of a register's number: errors from 26 % down to 0.41 %."""


def precision(error: float) -> int:
    """The bits that registers are numbered with, for a standard error of at most so much."""
    return max(LEAST, math.ceil(2 * math.log2(1.04 / error)))


@kernel
def add_hashes(at: I64, hashes: U64, bits: int, registers: U8) -> None:
    """Raises the register that the first bits of a hash name to the place of the first 1 behind them."""
    low = np.uint64(64 - bits)
    for i in range(len(at)):
        h = hashes[i]
        register = np.int64(h >> low)
        rank = 1
        probe = np.uint64(1) << np.uint64(63 - bits)
        while probe != np.uint64(0) and (h & probe) == np.uint64(0):
            rank += 1
            probe = probe >> np.uint64(1)
        if rank > registers[at[i], register]:
            registers[at[i], register] = rank


@kernel
def estimate_registers(registers: U8, out: F64) -> None:
    """Ertl's estimate of each row of registers."""
    m = registers.shape[1]
    bits = 0
    while (1 << bits) < m:
        bits += 1
    top = 64 - bits + 1
    counts = np.zeros(top + 1, np.int64)
    for s in range(registers.shape[0]):
        counts[:] = 0
        for i in range(m):
            counts[registers[s, i]] += 1
        z = m * _tau(1.0 - counts[top] / m)
        for k in range(top - 1, 0, -1):
            z = 0.5 * (z + counts[k])
        if counts[0] == m:
            out[s] = 0.0
            continue
        z += m * _sigma(counts[0] / m)
        out[s] = m * m / (2.0 * math.log(2.0) * z)


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


def estimates(registers: U8) -> I64:
    """The whole numbers nearest to the estimates."""
    out = np.zeros(len(registers))
    estimate_registers(registers, out)
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
