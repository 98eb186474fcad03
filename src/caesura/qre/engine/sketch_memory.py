"""What sketches and sliding windows hold, as arrays that kernels know: one class for each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from caesura.events.chunks import ChunkFormat
from caesura.kernels.hashing import I64, Mask
from caesura.qre.engine.registers import F64, Array
from caesura.qre.kernels.sketches import count_events, exact_rank, running_rank, slide
from caesura.qre.language.folds import Fold
from caesura.qre.language.sketches import EventCount, Histogram, Quantile, added

SLIDING = {"min": 0, "max": 1, "sum": 2, "avg": 2}
"""The folds that kernels slide, by number."""
ROOM = 16
"""For so many values there is room at first: there may be a sketch for each of many keys."""


class Memory(Protocol):
    """The memory of one sketch."""

    @property
    def held(self) -> int:
        """How many values it holds besides a fixed number of registers."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""

    def answers(self, values: Array, there: Mask) -> tuple[Array, Mask]:
        """The answer after each value, of those that are there, and whether there is one."""

    def save(self) -> bytes:
        """Everything that must survive a restart."""

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave."""


def memory_of(fold: Fold, window: int, kind: Any) -> Memory:
    """The empty memory of a sketch, or of a sliding window over numbers of a kind."""
    known = fold.structure
    if isinstance(known, Quantile):
        return Ranks(known) if known.epsilon is None else Buckets(known)
    return EventGroups(known) if isinstance(known, EventCount) else SlidingNumbers(fold.name, window, kind)


@dataclass
class SlidingState:
    """What is saved of a sliding window."""

    ring: Array
    seen: I64
    back: Array
    meta: I64


SLIDING_WINDOW = ChunkFormat("a sliding window", SlidingState)


class SlidingNumbers:
    """The last values, and what is folded of them."""

    held = 0

    def __init__(self, fold: str, window: int, kind: Any) -> None:
        self.fold, self.window = fold, window
        room = window + 1
        self.ring: Array = np.zeros(room, kind)
        self.seen: I64 = np.zeros(room, np.int64)
        self.back: Array = np.zeros(2, kind)
        self.meta: I64 = np.zeros(3, np.int64)

    def answers(self, values: Array, there: Mask) -> tuple[Array, Mask]:
        out, found = np.empty(len(values), values.dtype), np.empty(len(values), np.int64)
        own = (self.ring, self.seen, self.back, self.meta)
        slide(values, there, self.window, SLIDING[self.fold], *own, out, found)
        if self.fold == "avg":
            out = out / np.maximum(found, 1)
        if self.fold == "sum":
            return np.where(found > 0, out, 0.0), np.ones(len(out), np.bool_)
        return out, found > 0

    @property
    def nbytes(self) -> int:
        return self.ring.nbytes + self.seen.nbytes + self.back.nbytes + self.meta.nbytes

    def save(self) -> bytes:
        return SLIDING_WINDOW.write(SlidingState(self.ring, self.seen, self.back, self.meta))

    def load(self, saved: bytes) -> None:
        state = SLIDING_WINDOW.read(saved)
        self.ring, self.seen, self.back, self.meta = state.ring, state.seen, state.back, state.meta


@dataclass
class GroupsState:
    """What is saved of an exponential histogram."""

    ends: I64
    firsts: I64
    sizes: I64
    meta: I64


GROUPS = ChunkFormat("an exponential histogram", GroupsState)


class EventGroups:
    """Datar's exponential histogram: by size of group the last positions, as a ring each."""

    held = 0

    def __init__(self, known: EventCount) -> None:
        self.window = known.size
        levels = max(2, known.size.bit_length() + 1)
        self.ends: I64 = np.zeros((levels, known.per_size + 1), np.int64)
        self.firsts: I64 = np.zeros(levels, np.int64)
        self.sizes: I64 = np.zeros(levels, np.int64)
        self.meta: I64 = np.zeros(3, np.int64)

    def answers(self, values: Array, there: Mask) -> tuple[Array, Mask]:
        out = np.empty(len(values), values.dtype)
        count_events(values != 0, self.window, self.ends, self.firsts, self.sizes, self.meta, out)
        return out, np.ones(len(out), np.bool_)

    @property
    def nbytes(self) -> int:
        return self.ends.nbytes + self.firsts.nbytes + self.sizes.nbytes + self.meta.nbytes

    def save(self) -> bytes:
        return GROUPS.write(GroupsState(self.ends, self.firsts, self.sizes, self.meta))

    def load(self, saved: bytes) -> None:
        state = GROUPS.read(saved)
        self.ends, self.firsts, self.sizes, self.meta = state.ends, state.firsts, state.sizes, state.meta


class RunningQuantile:
    """A quantile of all values so far; nulls repeat the answer before them."""

    held = 0

    def __init__(self, known: Quantile) -> None:
        self.known = known
        self.last: float | None = None

    def ranked(self, values: Array) -> Array:
        """The quantile after each value."""
        raise NotImplementedError

    def answers(self, values: Array, there: Mask) -> tuple[Array, Mask]:
        ranked = self.ranked(values[there])
        before = self.last
        at = np.cumsum(there) - 1
        earlier = np.nan if before is None else before
        out = np.where(at >= 0, ranked[np.maximum(at, 0)] if len(ranked) else earlier, earlier)
        if len(ranked):
            self.last = float(ranked[-1])
        return out, (at >= 0) | (before is not None)


@dataclass
class RanksState:
    """What is saved of an exact quantile."""

    values: F64
    last: float | None


RANKS = ChunkFormat("an exact quantile", RanksState)


class Ranks(RunningQuantile):
    """All values, in order."""

    def __init__(self, known: Quantile) -> None:
        super().__init__(known)
        self.values: Array = np.zeros(ROOM)
        self.size = 0

    def ranked(self, values: Array) -> Array:
        if self.size + len(values) > len(self.values):
            more = max(self.size, len(values)) + ROOM
            self.values = np.append(self.values[: self.size], np.zeros(more))
        out = np.empty(len(values))
        self.size = exact_rank(values, self.values, self.size, self.known.q, out)
        return out

    @property
    def held(self) -> int:  # type: ignore[override]
        return self.size

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def save(self) -> bytes:
        return RANKS.write(RanksState(self.values[: self.size], self.last))

    def load(self, saved: bytes) -> None:
        state = RANKS.read(saved)
        self.values, self.size, self.last = state.values, len(state.values), state.last


@dataclass
class BucketState:
    """What is saved of a histogram."""

    low: list[int]
    sizes: list[int]
    counts: I64
    pointer: I64
    last: float | None


BUCKETS = ChunkFormat("a histogram", BucketState)


class Buckets(RunningQuantile):
    """The paper's histogram as an array: negative buckets, zero, positive buckets, in order of value."""

    def __init__(self, known: Quantile) -> None:
        super().__init__(known)
        assert known.epsilon is not None
        self.log = float(np.log1p(known.epsilon))
        self.low = [0, 0]
        """The first power held of negative and of positive values."""
        self.sizes = [0, 0]
        self.counts: I64 = np.zeros(2, np.int64)
        self.pointer: I64 = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        return self.counts.nbytes

    def save(self) -> bytes:
        return BUCKETS.write(BucketState(self.low, self.sizes, self.counts, self.pointer, self.last))

    def load(self, saved: bytes) -> None:
        state = BUCKETS.read(saved)
        self.low, self.sizes, self.last = state.low, state.sizes, state.last
        self.counts, self.pointer = state.counts, state.pointer

    def powers(self, values: Array) -> I64:
        """By value the power of its bucket, whatever its sign; refuses values that have no bucket."""
        known = self.known
        if known.nonnegative and len(values) and values.min() < 0:
            added(Histogram(known.epsilon or 0.5), float(values.min()), True)
        if len(values) and not np.isfinite(values).all():
            Histogram(known.epsilon or 0.5).bucket(float(values[~np.isfinite(values)][0]))
        return self._powers(np.abs(values))

    def few(self, values: list[float], powers: list[int]) -> list[float]:
        """The quantile after each of a few values: what `ranked` gives, without arrays of them."""
        found, place, out = [], np.empty(1, np.int64), np.empty(1, np.int64)
        for value, power in zip(values, powers, strict=True):
            side = int(value > 0)
            if value and not 0 <= power - self.low[side] < self.sizes[side]:
                self._cover(side, power, power)
            zero = self.sizes[0]
            place[0] = zero
            if value:
                place[0] = zero + 1 + power - self.low[1] if side else zero - 1 - (power - self.low[0])
            running_rank(place, self.counts, self.pointer, self.known.q, out)
            found.append(self._edge(int(out[0]) - zero))
        self.last = found[-1] if found else self.last
        return found

    def _edge(self, beyond: int) -> float:
        """The value of a bucket by its place from that of zero on."""
        if beyond == 0:
            return 0.0
        if beyond > 0:
            return float(np.exp((beyond - 1 + self.low[1]) * self.log))
        return -float(np.exp((-1 - beyond + self.low[0]) * self.log))

    def ranked(self, values: Array) -> Array:
        known = self.known
        powers = self.powers(values)
        for side, chosen in enumerate((values < 0, values > 0)):
            if chosen.any():
                self._cover(side, int(powers[chosen].min()), int(powers[chosen].max()))
        negative, zero = self.sizes[0], self.sizes[0]
        places = np.full(len(values), zero, np.int64)
        places = np.where(values > 0, zero + 1 + powers - self.low[1], places)
        places = np.where(values < 0, negative - 1 - (powers - self.low[0]), places)
        out = np.empty(len(values), np.int64)
        running_rank(places, self.counts, self.pointer, known.q, out)
        return self._edges(out)

    def _powers(self, sizes: Array) -> I64:
        safe = np.where(sizes > 0, sizes, 1.0)
        powers = np.floor(np.log(safe) / self.log).astype(np.int64)
        powers = np.where(np.exp(powers * self.log) > safe, powers - 1, powers)
        return np.where(np.exp((powers + 1) * self.log) <= safe, powers + 1, powers)

    def _edges(self, places: I64) -> Array:
        zero = self.sizes[0]
        positive = np.exp((places - zero - 1 + self.low[1]) * self.log)
        negative = -np.exp((zero - 1 - places + self.low[0]) * self.log)
        return np.where(places > zero, positive, np.where(places < zero, negative, 0.0))

    def _cover(self, side: int, low: int, high: int) -> None:
        """Makes room for the powers from low to high; the answer's place moves along."""
        if self.sizes[side] == 0:
            self.low[side] = low
        first, last = min(self.low[side], low), max(self.low[side] + self.sizes[side] - 1, high)
        if self.sizes[side] and first == self.low[side] and last < first + self.sizes[side]:
            return
        before, after = self.low[side] - first, last - first + 1 - self.sizes[side] - (self.low[side] - first)
        zero = self.sizes[0]
        if side == 0:
            self.counts = np.concatenate(
                [
                    np.zeros(after, np.int64),
                    self.counts[:zero],
                    np.zeros(before, np.int64),
                    self.counts[zero:],
                ]
            )
            self.pointer[0] += after + (before if self.pointer[0] >= zero else 0)
        else:
            parts = [
                self.counts[: zero + 1],
                np.zeros(before, np.int64),
                self.counts[zero + 1 :],
                np.zeros(after, np.int64),
            ]
            self.counts = np.concatenate(parts)
            self.pointer[0] += before if self.pointer[0] > zero else 0
        self.low[side], self.sizes[side] = first, last - first + 1
