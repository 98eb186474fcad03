"""Containment of rates, in polynomial time, with a shortest word that is missing.

A runs letter by letter, and beside it the set of B's live positions, as a vector over the field of two
elements: B is unambiguous, so the parity of its accepting runs says whether it accepts. All words that
lead A to one state accept in B exactly if a basis of their vectors does (Schützenberger), and a basis
has no more vectors than B has positions. No length is bounded.

>>> from caesura.expr import col
>>> from caesura.qre.checking.positions import positions
>>> from caesura.qre.language.regex import letter, seq, star
>>> a, b = letter(col("k") == 1), letter(col("k") == 2)
>>> masks = {a.predicate.key: 1, b.predicate.key: 2}
>>> one, two = (positions(r, masks.__getitem__) for r in (star(a | b), star(a)))
>>> missing_word(two, one) is None, missing_word(one, two)
(True, [1])
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from caesura.qre.checking.positions import Positions, bits


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


MAX_PAIRS = 20_000
"""So many pairs of states are looked at to tell whether a rate depends on keyed items."""


def dependent_words(rate: Positions, sync: int, count: int) -> tuple[list[int], list[int] | None] | None:
    """A word of a rate and one outside it that differ in what must not matter; None when nothing does.

    That is a keyed item before a synchronisation item, or which synchronisation item it is. A word of the
    rate that ends with a keyed item has no other beside it. There are ``count`` letters; ``sync`` are those
    of synchronisation items. Raises `OverflowError` when there are too many sets of positions to tell.
    """
    start = 1 << rate.size
    found: list[tuple[int, int, int, tuple[list[int], list[int]]]] = [(start, start, -1, ([], []))]
    """Live positions after two words, where they came from, and what each has read since."""
    seen = {(start, start)}
    for at, (one, two, _, _) in enumerate(found):
        if len(found) > MAX_PAIRS:
            raise OverflowError
        for read in _branches(count, sync, one == two):
            pair = tuple(_reached(rate, live, w) for live, w in zip((one, two), read, strict=True))
            a, b = (bool(live & rate.last) for live in pair)
            ends = bool(sync >> read[0][-1] & 1)
            if (ends and a != b) or (a and not ends):
                words = _both(found, at, read)
                return (words[0], None) if not ends else words if a else (words[1], words[0])
            if any(pair) and pair not in seen:
                seen.add(pair)  # type: ignore[arg-type]
                found.append((*pair, at, read))  # type: ignore[arg-type]
    return None


def _branches(count: int, sync: int, same: bool) -> list[tuple[list[int], list[int]]]:
    """What two words may read next: the same, or, as long as they are the same, what must not matter."""
    letters = range(count)
    both = [([c], [c]) for c in letters]
    if not same:
        return both
    keyed, synced = ([c for c in letters if bool(sync >> c & 1) is kind] for kind in (False, True))
    more = [([k, s], [s]) for k in keyed for s in synced]
    return [*both, *more, *(([a], [b]) for a in synced for b in synced if a < b)]


def _reached(rate: Positions, live: int, word: list[int]) -> int:
    for letter in word:
        after = 0
        for p in bits(live):
            after |= rate.by_letter[p].get(letter, 0)
        live = after
    return live


def _both(
    found: list[tuple[int, int, int, tuple[list[int], list[int]]]], at: int, last: tuple[list[int], list[int]]
) -> tuple[list[int], list[int]]:
    one, two = last
    while at >= 0:
        _, _, before, read = found[at]
        one, two, at = read[0] + one, read[1] + two, before
    return one, two


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
