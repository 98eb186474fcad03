"""Containment and equivalence of unambiguous rates, in polynomial time, by counting words.

Products of unambiguous automata are unambiguous, so accepting runs count words: L(A) lies in L(B)
exactly if A and A x B accept equally many words of every length up to the sum of their sizes
(Stearns and Hunt 1985). Counts are taken modulo two primes; the first length at which they differ
leads, letter by letter, to a word that only one of them has.

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

from dataclasses import dataclass

import numpy as np

from caesura.kernels.hashing import I64
from caesura.qre.positions import Positions, bits

PRIMES = np.array([2147483629, 2147483587], np.int64)


@dataclass
class Edges:
    """A weighted graph: how many letters lead from state to state, where words start and end."""

    source: I64
    target: I64
    letters: list[list[tuple[int, int]]]
    """Per state its (letter, target) moves."""
    final: I64
    start: int
    nullable: bool

    def completions(self, longest: int) -> list[I64]:
        """Per length, how many words lead from each state to the end, modulo the primes."""
        rows = [np.repeat(self.final[:, None], 2, axis=1) % PRIMES]
        for _ in range(longest):
            after = np.zeros_like(rows[-1])
            np.add.at(after, self.source, rows[-1][self.target])
            rows.append(after % PRIMES)
        return rows


def missing_word(a: Positions, b: Positions) -> list[int] | None:
    """A shortest word of the first language that the second lacks; None when it lies inside."""
    if a.nullable and not b.nullable:
        return []
    longest = a.size + b.size + 2
    alone, both = _graph(a), _product(a, b)
    mine, shared = alone.completions(longest), both.completions(longest)
    for length in range(1, longest + 1):
        if (mine[length][alone.start] != shared[length][both.start]).any():
            return _spelled(alone, both, mine, shared, length)
    return None


def _spelled(alone: Edges, both: Edges, mine: list[I64], shared: list[I64], length: int) -> list[int]:
    """Follows the letters along which the two counts keep differing."""
    here, there = {alone.start: 1}, {both.start: 1}
    word: list[int] = []
    for left in range(length - 1, -1, -1):
        ours, theirs = _moved(alone, here), _moved(both, there)
        for c in sorted(ours):
            a, b = _count(mine[left], ours[c]), _count(shared[left], theirs.get(c, {}))
            if (a != b).any():
                word.append(c)
                here, there = ours[c], theirs.get(c, {})
                break
    return word


def _moved(graph: Edges, live: dict[int, int]) -> dict[int, dict[int, int]]:
    out: dict[int, dict[int, int]] = {}
    for state, times in live.items():
        for c, target in graph.letters[state]:
            runs = out.setdefault(c, {})
            runs[target] = runs.get(target, 0) + times
    return out


def _count(row: I64, live: dict[int, int]) -> I64:
    total = np.zeros(2, np.int64)
    for state, times in live.items():
        total = (total + times * row[state]) % PRIMES
    return total


def _graph(a: Positions) -> Edges:
    moves = [[(c, q) for c, m in a.by_letter[p].items() for q in bits(m)] for p in range(a.size + 1)]
    final = [a.last >> p & 1 for p in range(a.size)] + [int(a.nullable)]
    return _edges(moves, final, a.size, a.nullable)


def _product(a: Positions, b: Positions) -> Edges:
    numbers: dict[tuple[int, int], int] = {(a.size, b.size): 0}
    todo = [(a.size, b.size)]
    moves: list[list[tuple[int, int]]] = []
    final: list[int] = []
    for p, q in todo:
        theirs = b.by_letter[q]
        mine: list[tuple[int, int]] = []
        for c, targets in a.by_letter[p].items():
            others = theirs.get(c, 0)
            if not others:
                continue
            for i in bits(targets):
                for j in bits(others):
                    if (i, j) not in numbers:
                        numbers[i, j] = len(todo)
                        todo.append((i, j))
                    mine.append((c, numbers[i, j]))
        moves.append(mine)
        ends_a = a.nullable if p == a.size else a.last >> p & 1
        ends_b = b.nullable if q == b.size else b.last >> q & 1
        final.append(int(ends_a and ends_b))
    return _edges(moves, final, 0, a.nullable and b.nullable)


def _edges(moves: list[list[tuple[int, int]]], final: list[int], start: int, nullable: bool) -> Edges:
    source = np.array([p for p, some in enumerate(moves) for _ in some], np.int64)
    target = np.array([q for some in moves for _, q in some], np.int64)
    return Edges(source, target, moves, np.array(final, np.int64), start, nullable)
