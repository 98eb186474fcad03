"""An automaton as its kernels run it: tables, scratch memory, letters; states are made as they are needed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.kernels.hashing import I64, Mask
from caesura.qre.compiler.automaton import PatternAutomaton
from caesura.qre.compiler.bytecode import tables
from caesura.qre.compiler.columns import PageColumns
from caesura.qre.compiler.packing import column_of
from caesura.qre.kernels.letters import Refinement
from caesura.qre.language.types import ValueType

Array = np.ndarray[Any, Any]


class Program:
    """What kernels read of an automaton, whatever the keys hold."""

    def __init__(self, auto: PatternAutomaton) -> None:
        self.auto, self.tables = auto, tables(auto)
        self.refinement = Refinement([m.truth for m in auto.alphabet.minterms], len(auto.alphabet.exprs))
        self._scratch()

    def _scratch(self) -> None:
        """Places for what a step works out, behind the constants."""
        self.si = np.zeros(self.tables.scratch + 2, np.int64)
        self.sf = np.zeros(self.tables.scratch + 2, np.float64)
        self.si[: len(self.tables.consts_i)] = self.tables.consts_i
        self.sf[: len(self.tables.consts_f)] = self.tables.consts_f

    def expand(self, state: int) -> None:
        """Makes a state known to the kernel."""
        self.auto.making.expand(state)
        self.tables.grow(self.auto)
        self._scratch()

    @property
    def known(self) -> list[list[int]] | None:
        """The states by number, where numbers depend on the stream."""
        return [sorted(s.positions) for s in self.auto.states] if self.auto.grows else None

    @known.setter
    def known(self, states: list[list[int]] | None) -> None:
        if states is not None:
            self.auto.making.begin([frozenset(s) for s in states])
            self.tables = tables(self.auto)
            self.expand(0)

    @property
    def never_departs(self) -> bool:
        """Whether every item leads on, whatever came before."""
        if self.auto.grows:
            return False
        steps = self.tables.steps[:, :-1, 0]  # the last letter is that of items which there are none of
        ended = self.tables.resting[steps.clip(0)] == 2
        return bool((steps >= 0).all()) and not bool(ended.any())

    def always_rests(self, *, again: bool) -> bool:
        """Whether every item of a key ends its pattern, or leaves it."""
        ends = (1, 2) if again else (1,)
        return all(
            after < 0 or int(self.tables.resting[after]) in ends for after in self.tables.steps[0, :, 0]
        )

    # Pages as kernels read them, and values as they leave.

    def letters(self, page: PageColumns, seen: Mask | None) -> I64:
        """The letter of each item; -1 for those that are not seen."""
        masks = [page.mask(e) for e in self.auto.alphabet.exprs]
        letters = self.refinement.letters(masks, page.batch.num_rows)
        return letters if seen is None else np.where(seen, letters, -1)

    def gathered(self, arrays: list[Array], lo: int, hi: int) -> tuple[Array, Array, I64]:
        """A chunk's columns side by side, whole numbers and doubles, and how many constants there are."""
        t = self.tables
        whole = np.zeros((len(t.columns_i), hi - lo), np.int64)
        real = np.zeros((len(t.columns_f), hi - lo), np.float64)
        for into, names in ((whole, t.columns_i), (real, t.columns_f)):
            for j, number in enumerate(names):
                into[j] = arrays[number][lo:hi]
        return whole, real, np.array([len(t.consts_i), len(t.consts_f), int(self.auto.grows)], np.int64)

    def arrow(self, t: ValueType, leaves: list[Array], flags: list[Array | None], rows: int) -> pa.Array:
        """Registers' values as a column of a type, taken off the lists; without flags all are there."""
        return column_of(t, leaves, flags, rows, self.auto.inputs.texts)


class GroupedProgram(Program):
    """The same for a map inside a pattern, whose threads begin when the pattern around says so."""

    def __init__(self, auto: PatternAutomaton) -> None:
        super().__init__(auto)
        self._look_up()

    def _look_up(self) -> None:
        """What is known of the states: which has no threads, and which each is when one begins."""
        states = self.auto.states
        numbers = self.auto.making.numbers
        self.void = numbers.get(frozenset(), len(states) if not self.auto.grows else -2)
        self.restart: I64 = np.array([s.restart for s in states], np.int64)
        self.__dict__.pop("needs", None)

    def expand(self, state: int) -> None:
        super().expand(state)
        self._look_up()

    @cached_property
    def needs(self) -> tuple[Array, Array]:
        """Per state which registers its threads may still read."""
        t = self.tables
        wanted = [
            {self.auto.register(p, s) for p in state.positions for s in self.auto.need[p]}
            for state in self.auto.states
        ]
        whole, real = (
            np.array([[n in some for n in names] for some in wanted], np.bool_).reshape(
                len(wanted), len(names)
            )
            for names in (t.registers_i, t.registers_f)
        )
        return whole, real
