"""The maps inside one automaton, and the values that are made of them after a page has been read.

The kernel logs, in order, each map that a thread takes and each operation on values made of maps, and
threads hold their numbers. Law: what a value is made of was logged before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from caesura.events.plain import weight
from caesura.kernels.hashing import I64, Mask
from caesura.qre.compiler.automaton import PatternAutomaton
from caesura.qre.compiler.bytecode import CODE, UNKNOWN, Tables
from caesura.qre.compiler.deferral import Later, MapBuilder
from caesura.qre.compiler.lowering import flattened
from caesura.qre.compiler.threads import BEGIN
from caesura.qre.engine.program import Program
from caesura.qre.language.query import Query
from caesura.qre.language.types import Record, ValueType
from caesura.qre.language.whole_numbers import of_words
from caesura.qre.reference.saved_values import codec_for

Array = np.ndarray[Any, Any]


@dataclass
class ItemPage:
    """A page of items, and which of them a pattern reads; without a mask, all."""

    batch: pa.RecordBatch
    le: I64 | None
    re: I64 | None
    seen: Mask | None = None


@dataclass
class MapEvents:
    """What happens to the groups of a map, in order: see `grouped_kernel`."""

    kinds: I64
    items: I64
    groups: I64
    states: I64
    """The state before an item of whom it happens to; the group that is copied."""


class Child(Protocol):
    """A map inside a pattern."""

    def maps(self, page: ItemPage, events: MapEvents, starts: Mask, wants: Mask) -> dict[int, Any]: ...

    def renumber(self, old: I64, new: I64, size: int) -> None: ...

    def alike(self, a: I64, b: I64) -> Mask: ...

    def clear(self, groups: I64) -> None: ...

    def save(self) -> bytes: ...

    def load(self, saved: bytes) -> None: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def held(self) -> int: ...


class DeferredMaps:
    """Log, values and maps of one automaton."""

    def __init__(
        self,
        built: MapBuilder,
        program: Program,
        children: Sequence[Child],
        query: Query,
    ) -> None:
        self.built, self.program, self.children, self.query = built, program, children, query
        self.values: list[Any] = list(built.constants)
        self.columns = [
            1 + j for j, n in enumerate(program.tables.registers_i) if n.split("@")[0] in self.built.numbers
        ]
        """The registers that hold numbers of values."""
        self._logs: list[tuple[Array, Array, Array, Array, int]] = []

    def log(self, steps: int, first: int) -> tuple[Array, Array, Array, Array]:
        """Room to log what so many steps make; their events are counted from ``first``."""
        made, args = _most(self.program.tables)
        log = np.zeros((steps * made + 1, 3), np.int64)
        whole, real = np.zeros(steps * args + 1, np.int64), np.zeros(steps * args + 1)
        known = len(self.values) + sum(int(page[3][0]) for page in self._logs)
        cursor = np.array([0, 0, 0, known], np.int64)
        self._logs.append((log, whole, real, cursor, first))
        return log, whole, real, cursor

    def work_out(self, page: ItemPage, events: MapEvents) -> None:
        """Every logged value, once all items of a page have been read."""
        maps, begins = [], _begins(self.program.auto, len(self.children))
        for number, child in enumerate(self.children):
            wants = np.zeros(len(events.kinds), np.bool_)
            for log, _, _, cursor, first in self._logs:
                some = log[: cursor[0]]
                wants[some[some[:, 0] == -1 - number, 1] + first] = True
            starts = (events.kinds <= 1) & begins[events.states * (events.kinds <= 1), number]
            maps.append(child.maps(page, events, starts, wants))
        for log, whole, real, cursor, first in self._logs:
            self._each(log[: cursor[0]], whole, real, [(m, first) for m in maps])
        self._logs = []

    def _each(self, log: I64, whole: Array, real: Array, maps: list[tuple[dict[int, Any], int]]) -> None:
        plain = {
            int(n): self._plain(self.built.later[n], log[log[:, 0] == n], whole, real)
            for n in np.unique(log[:, 0])
            if n >= 0
        }
        seen = dict.fromkeys(plain, 0)
        for op, row, begin in log.tolist():
            if op < 0:
                found, first = maps[-1 - op]
                self.values.append(found.get(row + first, {}))
                continue
            later = self.built.later[op]
            env, at = {}, begin
            for name, t in later.parts:
                if t is None:
                    env[name] = self.values[whole[at]]
                    at += 1
                else:
                    env[name] = plain[op][name][seen[op]]
                    at += 3 * len(flattened(t))
            seen[op] += 1
            self.values.append(later.run(env))

    def _plain(self, later: Later, nodes: I64, whole: Array, real: Array) -> dict[str, list[Any]]:
        """The plain arguments of all values that one operation makes, by name."""
        out: dict[str, list[Any]] = {}
        at = 0
        for name, t in later.parts:
            if t is None:
                at += 1
                continue
            out[name] = self._unpacked(t, nodes[:, 2] + at, whole, real)
            at += 3 * len(flattened(t))
        return out

    def _unpacked(self, t: ValueType, first: I64, whole: Array, real: Array) -> list[Any]:
        kinds = [kind for _, kind, _ in flattened(t)]
        data = [(real if kind == "f" else whole)[first + 3 * j] for j, kind in enumerate(kinds)]
        flags = [whole[first + 3 * j + 1] != 0 for j in range(len(kinds))]
        counts = [np.where(there, whole[first + 3 * j + 2], 0) for j, there in enumerate(flags)]
        out: list[Any] = self.program.arrow(t, list(data), [*flags], len(first)).to_pylist()
        for row in np.flatnonzero(np.any(counts, axis=0)).tolist() if counts else ():
            found = [(d[row], c[row]) for d, c in zip(data, counts, strict=True)]
            out[row] = _beyond(t, out[row], found)
        return out

    def forget(self, ri: I64) -> None:
        """Keeps the values that threads hold, and numbers them anew."""
        known = len(self.built.constants)
        held = ri[:, self.columns]
        held[ri[:, 0] <= 0] = 0
        used = np.unique(held)
        used = used[used >= known]
        self.values = [*self.values[:known], *(self.values[old] for old in used.tolist())]
        again = held >= known
        held[again] = known + np.searchsorted(used, held[again])
        ri[:, self.columns] = held

    def compare(self, left: I64, right: I64, same: Mask) -> None:
        """Pairs of rows that hold values of different numbers may hold equal values."""
        for column in self.columns:
            for row in np.flatnonzero(~same[:, column - 1]).tolist():
                a, b = (self.values[side[row, column]] for side in (left, right))
                same[row, column - 1] = a == b

    def renumber(self, old: I64, new: I64, size: int) -> None:
        """Those whom the maps are inside of have other numbers; who is not among them is gone."""
        for child in self.children:
            child.renumber(old, new, size)

    def saved(self) -> dict[str, Any]:
        """The values that threads hold, and the maps: two fields of the state around them."""
        values = codec_for(self.query).write(self.values)
        return {"values": values, "maps": [child.save() for child in self.children]}

    def load(self, values: bytes, maps: list[bytes]) -> None:
        """Takes back what `saved` gave."""
        self.values = codec_for(self.query).read(values)
        for child, data in zip(self.children, maps, strict=True):
            child.load(data)

    @property
    def nbytes(self) -> int:
        """Bytes of the values that threads hold, and of the maps."""
        return weight(self.values) + sum(child.nbytes for child in self.children)

    @property
    def held(self) -> int:
        """How many keys the maps hold."""
        return sum(child.held for child in self.children)


def _beyond(t: ValueType, value: Any, words: list[tuple[Any, Any]]) -> Any:
    """A value some scalars of which do not fit into 64 bits, taken off the list."""
    if isinstance(t, Record):
        return {name: _beyond(inner, value[name], words) for name, inner in t.fields}
    word, count = words.pop(0)
    return value if count == 0 else of_words(int(word), int(count))


def _begins(auto: PatternAutomaton, maps: int) -> Array:
    """Per state which maps may begin with its next item."""
    out = np.zeros((len(auto.states) + 1, maps), np.bool_)
    for number, state in enumerate(auto.states):
        for _, moves in state.ahead.values():
            for name in (s for m in moves for s in m.put if s.startswith(BEGIN)):
                out[number, int(name.removeprefix(BEGIN))] = True
    return out


def _with_calls(code: I64, some: Mask) -> I64:
    """How many of some instructions come before each, those that are called with the call."""
    own = np.append(0, np.cumsum(some))
    calls = code[:, 0] == CODE["call"]
    called = np.where(calls, own[code[:, 2] * calls] - own[code[:, 1] * calls], 0)
    return np.append(0, np.cumsum(some + called)).astype(np.int64)


def _most(tables: Tables) -> tuple[int, int]:
    """The most values, and arguments, that one item may log."""
    ops = tables.code[:, 0]
    pushes = (ops == CODE["push_i"]) | (ops == CODE["push_f"])
    made, args = (_with_calls(tables.code, some) for some in (ops == CODE["make"], pushes))
    steps = tables.steps.reshape(-1, 4)
    steps = steps[steps[:, 0] != UNKNOWN]
    return tuple(int((c[steps[:, 2]] - c[steps[:, 1]]).max(initial=0)) for c in (made, args))  # type: ignore[return-value]
