"""Letters: which of the tests of items alone hold; the arcs of an automaton by letter.

>>> from caesura.expr import col
>>> from caesura.fixpoint.automaton.arcs import Arc, Automaton
>>> auto = Automaton((Arc("S", "A", col("up") == 1), Arc("A", "A", col("up") == 1)), {}, within=5)
>>> [str(test) for test in predicates(auto)]
['up = 1']
"""

from __future__ import annotations

from collections.abc import Sequence

from caesura.expr import Constant, Expr, same
from caesura.expr.rewrite import strip
from caesura.fixpoint.automaton.arcs import Arc, Automaton, split


def predicates(auto: Automaton) -> list[Expr]:
    """The distinct tests of the item alone, over all arcs."""
    found: list[Expr] = []
    for arc in auto.arcs:
        for test in split(arc, auto.registers)[0]:
            if not _is_true(test) and not any(same(test, known) for known in found):
                found.append(test)
    return found


def _is_true(test: Expr) -> bool:
    bare = strip(test)
    return isinstance(bare, Constant) and bare.value is True


def firing(auto: Automaton, tests: Sequence[Expr], letter: int) -> list[Arc]:
    """The arcs whose tests of the item hold for a letter: bit j says that test j is true."""

    def holds(arc: Arc) -> bool:
        own = [t for t in split(arc, auto.registers)[0] if not _is_true(t)]
        return all(any(same(t, known) and letter >> j & 1 for j, known in enumerate(tests)) for t in own)

    return [arc for arc in auto.arcs if holds(arc)]


def asked_by(auto: Automaton, tests: Sequence[Expr], arc: Arc) -> list[int]:
    """The numbers of the tests of an item that an arc asks for."""
    own = [t for t in split(arc, auto.registers)[0] if not _is_true(t)]
    return [next(j for j, known in enumerate(tests) if same(t, known)) for t in own]
