"""Positions with one future become one: a fold that has not begun is a fold of its first value.

In ``split(a, iter(b, sum), c)`` a thread behind ``a`` and one behind some ``b`` read the same items next
and do the same with them, if the sum is set to 0 on the way to the former. They are never both there,
since then some stream would have two readings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caesura.qre.compiler import ir
from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import Word
from caesura.qre.compiler.threads import BEGIN, STORE

if TYPE_CHECKING:
    from caesura.qre.compiler.automaton import Automaton, Move

MOST = 60
"""Above so many positions nothing is merged: pairs are compared."""


def merge(auto: Automaton) -> None:
    """Merges as long as two positions have one future."""
    while len(auto.masks) <= MOST:
        found = next(_pairs(auto), None)
        if found is None:
            return
        gone, kept, filled = found
        for some in auto.moves.values():
            for move in some:
                if move.target == gone:
                    move.target = kept
                    move.put = _entering(auto, move.put, kept, filled)
        for held in (auto.moves, auto.masks, auto.need):
            held.pop(gone, None)


def _pairs(auto: Automaton) -> Any:
    """(position that goes, position that stays, what its slots are set to)."""
    able = [p for p in auto.masks if auto.moves.get(p)]
    for gone in able:
        for kept in able:
            if gone == kept or len(auto.moves[gone]) != len(auto.moves[kept]):
                continue
            filled = _filled(auto, gone, kept)
            if filled is None:
                continue
            own = {_shape(auto, m, {}, gone, kept, filled) for m in auto.moves[gone]}
            if own == {_shape(auto, m, filled, gone, kept, filled) for m in auto.moves[kept]}:
                yield gone, kept, filled


def _filled(auto: Automaton, gone: int, kept: int) -> dict[str, Term] | None:
    """What the slots of the one are at the other: what a fold begins with, or a copy that is made later."""
    copies = {s: t for m in auto.moves[gone] for s, t in m.put.items() if t.op == "slot"}
    lacking = auto.need[kept] - auto.need[gone]
    known = {**copies, **auto.inits}
    return None if lacking - known.keys() else {s: known[s] for s in lacking}


def _entering(auto: Automaton, put: dict[str, Term], kept: int, filled: dict[str, Term]) -> dict[str, Term]:
    """The assignment of a move that led to the one, when it leads to the other."""
    more = {s: ir.substitute(t, lambda x: put.get(x.payload)) for s, t in filled.items()}
    return {s: t for s, t in {**put, **more}.items() if s in auto.need[kept] or s.startswith((STORE, BEGIN))}


def _shape(
    auto: Automaton, move: Move, known: dict[str, Term], gone: int, kept: int, filled: dict[str, Term]
) -> Any:
    """What a move does once the two are one, with what is known of the slots before it."""
    put, rest = does(auto, move, known)
    target = move.target
    if target == gone:
        target = kept
        put = _entering(auto, put, kept, filled)
    return target, move.mask, *rest, frozenset(put.items())


def does(auto: Automaton, move: Move, known: dict[str, Term]) -> tuple[dict[str, Term], Any]:
    """What a move assigns, and its answer, where some slots are known before it."""

    def given(x: Term) -> Term | None:
        return known.get(x.payload)

    def word(w: Word) -> Word:
        return w.mapped(lambda t: ir.substitute(t, given))

    put = {s: ir.substitute(t, given) for s, t in move.put.items()}
    put |= {s: t for s, t in known.items() if s in auto.need[move.target] and s not in put}
    return put, (move.accepts, tuple(word(w) for w in move.answer))
