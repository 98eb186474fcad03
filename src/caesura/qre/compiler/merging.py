"""Positions with one future become one: a fold that has not begun is a fold of its first value.

In ``split(a, iter(b, sum), c)`` a thread behind ``a`` and one behind some ``b`` read the same items next
and do the same with them, if the sum is set to 0 on the way to the former. They are never both there,
since then some stream would have two readings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caesura.qre.compiler import ir
from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import ScalarTerm
from caesura.qre.compiler.threads import BEGIN, STORE

if TYPE_CHECKING:
    from caesura.qre.compiler.automaton import Move, PatternAutomaton

MAX_POSITIONS = 60
"""Above so many positions nothing is merged: pairs are compared."""


def merge(auto: PatternAutomaton) -> None:
    """Merges as long as two positions have one future."""
    while len(auto.masks) <= MAX_POSITIONS:
        found = next(_pairs(auto), None)
        if found is None:
            return
        removed, remaining, filled = found
        for some in auto.moves.values():
            for move in some:
                if move.target == removed:
                    move.target = remaining
                    move.put = _entering(auto, move.put, remaining, filled)
        for held in (auto.moves, auto.masks, auto.need):
            held.pop(removed, None)


def _pairs(auto: PatternAutomaton) -> Any:
    """(position that goes, position that stays, what its slots are set to)."""
    able = [p for p in auto.masks if auto.moves.get(p)]
    for removed in able:
        for remaining in able:
            if removed == remaining or len(auto.moves[removed]) != len(auto.moves[remaining]):
                continue
            filled = _filled(auto, removed, remaining)
            if filled is None:
                continue
            own = {_shape(auto, m, {}, removed, remaining, filled) for m in auto.moves[removed]}
            if own == {_shape(auto, m, filled, removed, remaining, filled) for m in auto.moves[remaining]}:
                yield removed, remaining, filled


def _filled(auto: PatternAutomaton, removed: int, remaining: int) -> dict[str, Term] | None:
    """What the slots of the one are at the other: what a fold begins with, or a copy that is made later."""
    copies = {s: t for m in auto.moves[removed] for s, t in m.put.items() if t.op == "slot"}
    lacking = auto.need[remaining] - auto.need[removed]
    known = {**copies, **auto.inits}
    return None if lacking - known.keys() else {s: known[s] for s in lacking}


def _entering(
    auto: PatternAutomaton, put: dict[str, Term], remaining: int, filled: dict[str, Term]
) -> dict[str, Term]:
    """The assignment of a move that led to the one, when it leads to the other."""
    more = {s: ir.substitute(t, lambda x: put.get(x.payload)) for s, t in filled.items()}
    return {
        s: t for s, t in {**put, **more}.items() if s in auto.need[remaining] or s.startswith((STORE, BEGIN))
    }


def _shape(
    auto: PatternAutomaton,
    move: Move,
    known: dict[str, Term],
    removed: int,
    remaining: int,
    filled: dict[str, Term],
) -> Any:
    """What a move does once the two are one, with what is known of the slots before it."""
    put, rest = does(auto, move, known)
    target = move.target
    if target == removed:
        target = remaining
        put = _entering(auto, put, remaining, filled)
    return target, move.mask, *rest, frozenset(put.items())


def does(auto: PatternAutomaton, move: Move, known: dict[str, Term]) -> tuple[dict[str, Term], Any]:
    """What a move assigns, and its answer, where some slots are known before it."""

    def given(x: Term) -> Term | None:
        return known.get(x.payload)

    def word(w: ScalarTerm) -> ScalarTerm:
        return w.mapped(lambda t: ir.substitute(t, given))

    put = {s: ir.substitute(t, given) for s, t in move.put.items()}
    put |= {s: t for s, t in known.items() if s in auto.need[move.target] and s not in put}
    return put, (move.accepts, tuple(word(w) for w in move.answer))
