"""The position automaton of a rate: one state per letter occurrence, sets of states as bit masks.

Two ways of going from one position to another (a double edge) are kept apart from one way, since
they are two parses of the same word.

>>> from caesura.expr import col
>>> from caesura.qre.language.regex import letter, seq, star
>>> a = letter(col("k") == 1)
>>> auto = positions(seq(star(a), a), {a.predicate.key: 1}.__getitem__)
>>> auto.size, bin(auto.first), bin(auto.last), [bin(f) for f in auto.follow]
(2, '0b11', '0b10', ['0b11', '0b0'])
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from caesura.qre.language.regex import Choice, Letter, Regex, Sequence, Star


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass
class Positions:
    """Glushkov's automaton over letters given as masks of minterms."""

    masks: list[int]
    first: int
    last: int
    follow: list[int]
    nullable: bool
    double: list[int]
    """Per position the followers that two paths lead to."""

    @property
    def size(self) -> int:
        return len(self.masks)

    @cached_property
    def by_letter(self) -> list[dict[int, int]]:
        """Per position, and for the start at the end, the followers of each letter."""
        return [self._moves[f] for f in [*self.follow, self.first]]

    @cached_property
    def _moves(self) -> dict[int, dict[int, int]]:
        """The followers of each letter by all followers, which many positions of a loop share."""
        return {followers: self._sorted(followers) for followers in {*self.follow, self.first}}

    def _sorted(self, followers: int) -> dict[int, int]:
        out: dict[int, int] = {}
        for q in bits(followers):
            for c in bits(self.masks[q]):
                out[c] = out.get(c, 0) | 1 << q
        return out

    @property
    def deterministic(self) -> bool:
        """Whether no letter ever leads to two positions, nor twice to one."""
        return not any(self.double) and all(
            q & (q - 1) == 0 for moves in self._moves.values() for q in moves.values()
        )

    def accepts(self, word: list[int]) -> bool:
        """Whether a word of letters belongs to the language."""
        if not word:
            return self.nullable
        live = self.by_letter[-1].get(word[0], 0)
        for c in word[1:]:
            after = 0
            for p in bits(live):
                after |= self.by_letter[p].get(c, 0)
            live = after
        return bool(live & self.last)


def positions(rate: Regex, mask: Callable[[Hashable], int]) -> Positions:
    """The automaton of a rate; ``mask`` gives a predicate's letters by its key."""
    auto = Positions([], 0, 0, [], False, [])
    auto.first, auto.last, auto.nullable = _build(rate, auto, mask)
    return auto


def _build(r: Regex, auto: Positions, mask: Callable[[Hashable], int]) -> tuple[int, int, bool]:
    match r:
        case Letter(predicate=predicate):
            here = 1 << auto.size
            auto.masks.append(mask(predicate.key))
            auto.follow.append(0)
            auto.double.append(0)
            return here, here, False
        case Choice(parts=parts):
            first, last, nullable = 0, 0, False
            for part in parts:
                f, la, n = _build(part, auto, mask)
                first, last, nullable = first | f, last | la, nullable or n
            return first, last, nullable
        case Sequence(parts=parts):
            first, last, nullable = 0, 0, True
            for part in parts:
                f, la, n = _build(part, auto, mask)
                _link(auto, last, f)
                first |= f if nullable else 0
                last = la | (last if n else 0)
                nullable = nullable and n
            return first, last, nullable
        case Star(body=body):
            first, last, _ = _build(body, auto, mask)
            _link(auto, last, first)
            return first, last, True
    return 0, 0, True


def _link(auto: Positions, sources: int, targets: int) -> None:
    for p in bits(sources):
        auto.double[p] |= auto.follow[p] & targets
        auto.follow[p] |= targets
