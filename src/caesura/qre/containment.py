"""Containment of rates, in polynomial time, with a shortest word that is missing.

A runs letter by letter, and beside it the set of B's live positions, as a vector over the field of two
elements: B is unambiguous, so the parity of its accepting runs says whether it accepts. All words that
lead A to one state accept in B exactly if a basis of their vectors does (Schützenberger), and a basis
has no more vectors than B has positions. No length is bounded.

>>> from caesura.expr import col
>>> from caesura.qre.positions import positions
>>> from caesura.qre.regex import letter, seq, star
>>> a, b = letter(col("k") == 1), letter(col("k") == 2)
>>> masks = {a.predicate.key: 1, b.predicate.key: 2}
>>> one, two = (positions(r, masks.__getitem__) for r in (star(a | b), star(a)))
>>> missing_word(two, one) is None, missing_word(one, two)
(True, [1])
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from caesura.qre.positions import Positions, bits


def missing_word(a: Positions, b: Positions) -> list[int] | None:
    """A shortest word of the first language that the second, which is unambiguous, lacks; else None."""
    if a.nullable and not b.nullable:
        return []
    found: list[tuple[int, int, int, int]] = [(a.size, 1 << b.size, -1, -1)]
    """(state of A, vector of B, where it came from, letter); bit |B| of a vector is the start."""
    spans = {a.size: _Span()}
    todo = deque([0])
    while todo:
        at = todo.popleft()
        p, live, _, _ = found[at]
        for letter, targets in a.by_letter[p].items():
            after = _moved(b, live, letter)
            for q in bits(targets):
                if not spans.setdefault(q, _Span()).grows(after << 1 | 1):
                    continue
                found.append((q, after, at, letter))
                if a.last >> q & 1 and not (after & b.last).bit_count() & 1:
                    return _word(found, len(found) - 1)
                todo.append(len(found) - 1)
    return None


def _moved(b: Positions, live: int, letter: int) -> int:
    after = 0
    for q in bits(live):
        after ^= b.by_letter[q].get(letter, 0)
    return after


def _word(found: list[tuple[int, int, int, int]], at: int) -> list[int]:
    word: list[int] = []
    while found[at][2] >= 0:
        word.append(found[at][3])
        at = found[at][2]
    return word[::-1]


@dataclass
class _Span:
    """A basis of vectors of bits, each by its highest bit."""

    basis: dict[int, int] = field(default_factory=dict)

    def grows(self, vector: int) -> bool:
        """Adds a vector unless it is a sum of others."""
        while vector:
            top = vector.bit_length()
            if top not in self.basis:
                self.basis[top] = vector
                return True
            vector ^= self.basis[top]
        return False
