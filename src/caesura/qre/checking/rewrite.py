"""An unambiguous rate for an ambiguous one, where taking letters away is enough (Remark 3).

`(a | b)* b (a | b)*` is natural to write, and reads `bb` in two ways; `a* b (a | b)*` matches the same
streams in one. Candidates take from an iteration the letter that stands beside it, or from a choice those of
the parts before. A candidate matches no more than what was written; it is offered if it matches no less, and
parses everything in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from caesura.qre.checking.ambiguity import ambiguous_word
from caesura.qre.checking.containment import missing_word
from caesura.qre.checking.positions import Positions, positions
from caesura.qre.language.regex import Choice, Letter, Regex, Sequence, Star

Mask = Callable[[Hashable], int]


@dataclass
class Narrowing:
    """Takes letters away, and knows which items the new ones stand for."""

    mask: Mask

    def __post_init__(self) -> None:
        self.made: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> int:
        """The items that a letter stands for."""
        return self.made[key] if key in self.made else self.mask(key)

    def without(self, rate: Regex, other: Letter) -> Regex | None:
        """A rate without the letters of another; None where nothing is left of it."""
        if isinstance(rate, Letter):
            return self._less(rate, other)
        if isinstance(rate, Choice):
            parts = [part for p in rate.parts if (part := self.without(p, other)) is not None]
            return None if not parts else parts[0] if len(parts) == 1 else Choice(tuple(parts))
        if isinstance(rate, Star):
            body = self.without(rate.body, other)
            return None if body is None else Star(body)
        return rate

    def _less(self, rate: Letter, other: Letter) -> Letter | None:
        mine, theirs = self.of(rate.predicate.key), self.of(other.predicate.key)
        if not mine & theirs:
            return rate
        if not mine & ~theirs:
            return None
        less = Letter(rate.predicate & ~other.predicate)
        self.made[less.predicate.key] = mine & ~theirs
        return less


def unambiguous_rate(rate: Regex, auto: Positions, mask: Mask) -> Regex | None:
    """A rate that matches the same streams and parses each in one way; None where none was found."""
    narrowing = Narrowing(mask)
    for candidate in _candidates(rate, narrowing):
        made = positions(candidate, narrowing.of)
        if ambiguous_word(made) is None and missing_word(auto, made) is None:
            return candidate
    return None


def _candidates(rate: Regex, narrowing: Narrowing) -> Iterator[Regex]:
    if isinstance(rate, Choice):
        parts: list[Regex] = []
        for part in rate.parts:
            for before in [p for p in parts if isinstance(p, Letter)]:
                part = narrowing.without(part, before) or part
            parts.append(part)
        yield Choice(tuple(parts))
    if not isinstance(rate, Sequence):
        return
    for step in (1, -1):  # what follows is found at its first place, or at its last
        for place, part in enumerate(rate.parts):
            beside = rate.parts[place + step] if 0 <= place + step < len(rate.parts) else None
            if not isinstance(part, Star) or not isinstance(beside, Letter):
                continue
            less = narrowing.without(part, beside)
            others = list(rate.parts)
            others[place : place + 1] = [] if less is None else [less]
            yield others[0] if len(others) == 1 else Sequence(tuple(others))
