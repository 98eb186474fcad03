"""The whole automaton of a query, made small: unread slots and known values go, registers are given out.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> from caesura.qre.language.build import atom, iter_, split
>>> from caesura.qre.language.folds import sum_
>>> from caesura.qre.language.items import items
>>> of = items(pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.int64(), False)]))
>>> a, b = atom(col("k") == 1, col("v"), items=of), atom(col("k") == 2, items=of)
>>> query = split(iter_(a, sum_()), b, op=col("_0"))
>>> auto, _ = automaton(query)
>>> len(auto.masks), len(auto.states), auto.registers
(2, 3, {'s2': 'i', 's2!': 'i'})
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from caesura.qre.checking.checking import letters_of
from caesura.qre.checking.minterms import Alphabet
from caesura.qre.compiler import ir
from caesura.qre.compiler.inputs import Inputs
from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import ScalarTerm, leaves
from caesura.qre.compiler.merging import merge
from caesura.qre.compiler.states import START, AutomatonState, States, together
from caesura.qre.compiler.threads import (
    BEGIN,
    STORE,
    Assign,
    AutomatonPiece,
    Builder,
    Refold,
    Stacks,
    WindowRing,
)
from caesura.qre.language.query import Query
from caesura.qre.language.types import ValueType

Made = TypeVar("Made", bound=Builder)
PAIRS_EACH = 40
"""So many pairs per position are looked at to find slots that two threads hold at once."""
SPARE = "spare"
"""A ring for what is on its way."""


@dataclass(eq=False)
class Move:
    """What one thread does on one item."""

    source: int
    target: int
    put: Assign
    mask: int = 0
    """The letters that it reads."""
    accepts: bool = False
    answer: list[ScalarTerm] = field(default_factory=list)
    """The scalars of the value if the move accepts."""


@dataclass
class PatternAutomaton:
    """A query as kernels run it."""

    type: ValueType
    alphabet: Alphabet
    inputs: Inputs
    masks: dict[int, int]
    moves: dict[int, list[Move]]
    """Per position (and START) where a thread may go."""
    last: dict[int, list[ScalarTerm]]
    """Per accepting position the scalars of the value."""
    rings: list[WindowRing]
    kinds: dict[str, str]
    coded: set[str]
    """The slots that hold codes of texts."""
    making: States = field(init=False, repr=False)
    grows: bool = False
    """Whether states are made as the stream leads to them."""
    shared: dict[str, bool] = field(default_factory=dict)
    """Per slot whether one register serves all positions."""
    registers: dict[str, str] = field(default_factory=dict)
    """Kinds of registers by name."""
    need: dict[int, set[str]] = field(default_factory=dict)
    refolds: list[Refold] = field(default_factory=list)
    stacks: list[Stacks] = field(default_factory=list)
    parted: frozenset[str] = frozenset()
    """The rings of which every position has its own, since several threads may be in the window at once."""
    inits: Assign = field(default_factory=dict)
    """What folds are before their first value, by slot, where that is known."""

    @property
    def states(self) -> list[AutomatonState]:
        """The states that have numbers."""
        return self.making.all

    def register(self, position: int, slot: str) -> str:
        """The register of a slot while a thread stands at a position."""
        return slot if self.shared.get(slot) else f"{slot}@{position}"

    def holds(self, position: int, ring: WindowRing) -> bool:
        """Whether a thread at a position is in a window."""
        return bool(self.need[position] & ring.slots)

    @property
    def tabled(self) -> bool:
        """Whether only tables will do: windows need loops, or states are made as they are needed."""
        return bool(self.refolds or self.stacks or self.parted or self.grows)


def automaton(
    query: Query,
    *,
    make: type[Made] = Builder,  # type: ignore[assignment]
    restarts: bool = False,
) -> tuple[PatternAutomaton, Made]:
    """Compiles a query, with maps if the builder knows them; `restarts` lets threads begin at any time.

    Raises `NotCompiled` where only the twin will do.
    """
    assert query.items is not None
    inputs = Inputs(query.items)
    letters = letters_of(query)
    builder = make(inputs, letters.mask)
    fragment = builder.build(query)
    for predicate in letters.exprs:
        inputs.truth(predicate)
    last = {p: leaves(v) for p, v in fragment.last.items()}
    moves: dict[int, list[Move]] = {START: [Move(START, q, put) for q, put in fragment.first.items()]}
    for (p, q), put in fragment.follow.items():
        moves.setdefault(p, []).append(Move(p, q, put))
    auto = PatternAutomaton(
        *(builder.type(query), letters, inputs, fragment.masks, moves, last),
        *(builder.rings, builder.kinds, builder.coded),
    )
    auto.refolds, auto.stacks = builder.refolds, builder.stacks
    _trim(auto, fragment)
    _fold_constants(auto)
    _find_needs(auto)
    auto.inits = builder.inits
    merge(auto)
    _determinise(auto, restarts)
    _allot(auto)
    return auto, builder


def _trim(auto: PatternAutomaton, fragment: AutomatonPiece) -> None:
    """Drops positions from which no word ends, as products may have."""
    before: dict[int, set[int]] = {}
    for p, some in auto.moves.items():
        for m in some:
            before.setdefault(m.target, set()).add(p)
    useful, todo = set(auto.last), list(auto.last)
    while todo:
        for p in before.get(todo.pop(), ()):
            if p not in useful:
                useful.add(p)
                todo.append(p)
    useful.add(START)
    auto.masks = {p: m for p, m in auto.masks.items() if p in useful}
    auto.moves = {p: [m for m in some if m.target in useful] for p, some in auto.moves.items() if p in useful}


def _fold_constants(auto: PatternAutomaton) -> None:
    """Finds slots that hold one known value at a position, and writes the value where they are read."""
    wanted = _needs(auto)
    for p, words in auto.last.items():
        wanted[p] = wanted[p].union(*(ir.slots(t) for w in words for t in w.terms))
    value: dict[int, dict[str, Term | None]] = {p: {} for p in wanted}
    sticky = frozenset(s for ring in auto.rings if ring.sticky for s in ring.slots)
    reached, todo = {START}, deque([START])
    while todo:
        p = todo.popleft()
        for move in auto.moves.get(p, ()):
            q = move.target
            changed = _flow(value[p], value[q], move, wanted[q] - sticky)
            if changed or q not in reached:
                reached.add(q)
                todo.append(q)
    known = {p: {s: t for s, t in held.items() if t is not None} for p, held in value.items()}
    for p, some in auto.moves.items():
        for move in some:
            put = {s: _reading(t, known[p]) for s, t in move.put.items()}
            move.put = {s: t for s, t in put.items() if s not in known[move.target]}
    for p, words in auto.last.items():
        auto.last[p] = [w.mapped(partial(_reading, known=known[p])) for w in words]


def _reading(t: Term, known: dict[str, Term]) -> Term:
    return ir.substitute(t, lambda x: known.get(x.payload))


def _flow(held: dict[str, Term | None], there: dict[str, Term | None], move: Move, wanted: set[str]) -> bool:
    """One move's share: a slot is known at its target if every move there gives it the same constant."""
    changed = False
    for s in wanted:
        if s in move.put:
            got: Term | None = ir.substitute(move.put[s], lambda x: held.get(x.payload))
            got = got if got is not None and got.op == "const" else None
        elif s in held:
            got = held[s]
        else:
            continue
        if s not in there:
            there[s] = got
            changed = True
        elif there[s] is not None and there[s] != got:
            there[s] = None
            changed = True
    return changed


def _needs(auto: PatternAutomaton) -> dict[int, set[str]]:
    """Which slots a thread at each position may still read."""
    need: dict[int, set[str]] = {p: set() for p in [*auto.masks, START]}
    before: dict[int, set[int]] = {}
    for p, some in auto.moves.items():
        for move in some:
            before.setdefault(move.target, set()).add(p)
            for w in answer(auto, move):
                need[p] |= {s for t in w.terms for s in ir.slots(t)}
    todo = deque(sorted(need))
    waiting = set(todo)
    while todo:
        p = todo.pop()
        waiting.discard(p)
        more = {s for move in auto.moves.get(p, ()) for s in _reads(move, need[move.target])}
        if more <= need[p]:
            continue
        need[p] |= more
        todo.extend(q for q in before.get(p, ()) if q not in waiting)
        waiting |= before.get(p, set())
    return need


def _find_needs(auto: PatternAutomaton) -> None:
    """What threads hold where, and the answers that moves bring."""
    need = _needs(auto)
    auto.need = need
    for some in auto.moves.values():
        for move in some:
            move.answer = answer(auto, move)
            move.accepts, move.mask = move.target in auto.last, auto.masks[move.target]
            needed = need[move.target]
            move.put = {s: t for s, t in move.put.items() if s in needed or s.startswith((STORE, BEGIN))}


def answer(auto: PatternAutomaton, move: Move) -> list[ScalarTerm]:
    """The value after a move that accepts, in terms of what its thread held before; else nothing."""

    def before(x: Term) -> Term | None:
        return move.put.get(x.payload)

    words = auto.last.get(move.target, [])
    return [w.mapped(lambda t: ir.substitute(t, before)) for w in words]


def _reads(move: Move, wanted: set[str]) -> set[str]:
    out: set[str] = set()
    for s in wanted:
        out |= set(ir.slots(move.put[s])) if s in move.put else {s}
    for s, t in move.put.items():
        if s.startswith(STORE):
            out |= set(ir.slots(t))
    return out


def _determinise(auto: PatternAutomaton, restarts: bool) -> None:
    """The sets of positions that words lead to: all of them, or as many as streams will need."""
    auto.making = States(auto, restarts)
    auto.grows = not auto.making.expand_all()


def _apart(auto: PatternAutomaton, ring: WindowRing) -> list[WindowRing]:
    """A ring for all threads, or one for each position where a thread may be in the window."""
    if ring.name not in auto.parted:
        return [ring]
    inside = [p for p in auto.need if auto.holds(p, ring)]
    return [replace(ring, name=f"{ring.name}@{p}") for p in inside]


def _allot(auto: PatternAutomaton) -> None:
    """One register per slot where only one thread at a time holds it, else one per position."""
    crowded = _crowded(auto)
    auto.parted = frozenset(ring.name for ring in auto.rings if ring.slots & crowded)
    auto.rings = [one for ring in auto.rings for one in _apart(auto, ring)]
    if auto.parted:
        auto.rings.append(WindowRing(SPARE, max(r.size for r in auto.rings)))
    slots = sorted({s for need in auto.need.values() for s in need})
    auto.shared = {s: s not in crowded for s in slots}
    for p, need in auto.need.items():
        for s in sorted(need):
            auto.registers[auto.register(p, s)] = auto.kinds[s]


def _crowded(auto: PatternAutomaton) -> set[str]:
    """The slots that several threads may hold at once."""
    pairs: set[tuple[int, int]] | None = set()
    if auto.grows:
        pairs = together(auto, PAIRS_EACH * (len(auto.masks) + 10))
    else:
        pairs = {(p, q) for state in auto.states for p in state.positions for q in state.positions}
    if pairs is None:
        return {s for need in auto.need.values() for s in need}
    return {s for p, q in pairs if p != q for s in auto.need[p] & auto.need[q]}
