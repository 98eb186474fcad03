"""The sets of positions where threads stand together, numbered as far as they are needed.

Mostly they are few, and all known beforehand. Where they are many (an item so many places before the end is
one of two kinds) they are made as the stream leads to them: a state is numbered when it is first named, and
expanded, with all that each letter does, when it is first stood in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from caesura.qre.checking.positions import bits
from caesura.qre.compiler import ir

if TYPE_CHECKING:
    from caesura.qre.compiler.automaton import Move, PatternAutomaton

START = -1
"""The position before the first item."""
MAX_STATES = 300
"""So many states are made beforehand."""


@dataclass
class AutomatonState:
    """A set of positions where threads may stand together, and what each letter does."""

    positions: frozenset[int]
    moves: dict[int, tuple[int, list[Move]]] = field(default_factory=dict)
    """Per letter the next state's number and the moves, once it is expanded."""
    resting: bool = False
    """Whether its future is that of the start, and nothing is held."""
    restart: int = 0
    """The state in which a thread stands at the start too."""
    expanded: bool = False
    ahead: dict[int, tuple[frozenset[int], list[Move]]] = field(default_factory=dict)
    """Per letter the positions that it leads to, and the moves."""


class States:
    """Numbers states and expands them."""

    def __init__(self, auto: PatternAutomaton, restarts: bool) -> None:
        self.auto, self.restarts = auto, restarts
        self.by_letter = {p: _sorted(some) for p, some in auto.moves.items()}
        self.begin()

    def begin(self, known: list[frozenset[int]] | None = None) -> None:
        """Starts anew, from the start alone or from states in the order of their numbers."""
        self.numbers: dict[frozenset[int], int] = {}
        self.all: list[AutomatonState] = []
        self.expanded: list[int] = []
        """The states that are expanded, in that order."""
        for positions in known or [frozenset([START])]:
            self.number(positions)

    def number(self, positions: frozenset[int]) -> int:
        """A state's number; a new one if it has none."""
        if positions not in self.numbers:
            self.numbers[positions] = len(self.all)
            self.all.append(self._made(positions))
        return self.numbers[positions]

    def _made(self, positions: frozenset[int]) -> AutomatonState:
        state = AutomatonState(positions)
        letters = {c for p in positions for c in self.by_letter.get(p, {})}
        for c in sorted(letters):
            found = [m for p in sorted(positions) for m in self.by_letter.get(p, {}).get(c, [])]
            moves = list({m.target: m for m in reversed(found)}.values())
            state.ahead[c] = frozenset(m.target for m in moves if self.auto.moves.get(m.target)), moves
        if self.all:
            like = _size(state) == _size(self.all[0])
            state.resting = like and _shape(state) == _shape(self.all[0]) and not self._holds(state)
        return state

    def _holds(self, state: AutomatonState) -> bool:
        """Whether its threads carry or read anything."""
        moves = [m for _, some in state.ahead.values() for m in some]
        if any(s not in m.put for m in moves for s in self.auto.need[m.target]):
            return True
        terms = [t for m in moves for t in m.put.values()]
        terms += [t for m in moves for w in m.answer for t in w.terms]
        return any(True for t in terms for _ in ir.slots(t))

    def expand(self, number: int) -> None:
        """Numbers the states that a state leads to; with restarts, that with the start too is expanded."""
        state = self.all[number]
        if state.expanded:
            return
        state.expanded = True
        self.expanded.append(number)
        state.moves = {c: (self.number(to), moves) for c, (to, moves) in state.ahead.items()}
        if self.restarts:
            state.restart = self.number(state.positions | {START})
            self.expand(state.restart)

    def expand_all(self) -> bool:
        """Expands every state, if they are few; else only the start is."""
        at = 0
        while at < len(self.all):
            self.expand(at)
            at += 1
            if len(self.all) > MAX_STATES:
                self.begin([frozenset([START]), frozenset()])
                self.expand(0)
                return False
        return True


def _sorted(moves: list[Move]) -> dict[int, list[Move]]:
    out: dict[int, list[Move]] = {}
    for m in moves:
        for c in bits(m.mask):
            out.setdefault(c, []).append(m)
    return out


def _size(state: AutomatonState) -> list[tuple[int, int]]:
    return [(c, len(moves)) for c, (_, moves) in state.ahead.items()]


def _shape(state: AutomatonState) -> object:
    """What a state does next; equal shapes that read no slot have equal futures."""
    return {
        c: (to, frozenset((m.target, frozenset(m.put.items()), tuple(m.answer)) for m in moves))
        for c, (to, moves) in state.ahead.items()
    }


def together(auto: PatternAutomaton, limit: int) -> set[tuple[int, int]] | None:
    """The pairs of positions where threads may stand at once, without making states; None if too many."""
    by_letter = {p: _sorted(some) for p, some in auto.moves.items()}
    seen, todo = {(START, START)}, [(START, START)]
    for p, q in todo:
        if len(todo) > limit:
            return None
        for c, moves in by_letter.get(p, {}).items():
            for a in moves:
                for b in by_letter.get(q, {}).get(c, []):
                    pair = (min(a.target, b.target), max(a.target, b.target))
                    if pair not in seen:
                        seen.add(pair)
                        todo.append(pair)
    return seen
