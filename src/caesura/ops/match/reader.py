"""The grammar of row patterns: from words and signs to the tree that they mean.

>>> str(pattern_of("strt down{2,} (up | flat)*?"))
'STRT DOWN{2,} (UP | FLAT)*?'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from caesura.errors import CaesuraError, PlanError
from caesura.ops.match.pattern import (
    Alternatives,
    Anchor,
    Concat,
    EmptyPattern,
    Excluded,
    Permute,
    Repeat,
    RowPattern,
    RowVariable,
)


class PatternWord(NamedTuple):
    """A word or a sign of a pattern, and where it stands."""

    text: str
    start: int
    named: bool = False


FORM = "Write variables with * + ? {2,3} behind and | between; (A B), ^, $, {- A -}, PERMUTE(A, B)."


def pattern_of(text: str) -> RowPattern:
    """The pattern that a text is."""
    words = [
        PatternWord(w[0], w.start(), w[0][0].isalpha() or w[0][0] == "_")
        for w in re.finditer(r"\w+|\S", text)
    ]

    def wrong(word: PatternWord) -> CaesuraError:
        return PlanError(f"a pattern is not written like {text!r} at {word.text!r}.", remedy=FORM)

    return PatternReader(words, wrong).whole()


class PatternReader:
    """PATTERN, by recursive descent."""

    def __init__(self, words: list[PatternWord], wrong: Callable[[PatternWord], CaesuraError]) -> None:
        self._words, self._at, self._wrong = words, 0, wrong

    def whole(self) -> RowPattern:
        """All of it."""
        made = self._choice()
        if self._at < len(self._words):
            raise self._unread()
        return made

    def _unread(self) -> CaesuraError:
        word = self._words[min(self._at, len(self._words) - 1)] if self._words else PatternWord("", 0)
        return self._wrong(word)

    def _next(self, *texts: str) -> bool:
        """Takes these signs where they come next."""
        found = [word.text for word in self._words[self._at : self._at + len(texts)]]
        if found != list(texts):
            return False
        self._at += len(texts)
        return True

    def _take(self, *texts: str) -> None:
        if not self._next(*texts):
            raise self._unread()

    def _choice(self) -> RowPattern:
        parts = [self._row()]
        while self._next("|"):
            parts.append(self._row())
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _row(self) -> RowPattern:
        parts = []
        while (part := self._part()) is not None:
            parts.append(self._quantified(part))
        if not parts:
            return EmptyPattern()
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def _part(self) -> RowPattern | None:
        if self._next("("):
            made = self._choice()
            self._take(")")
            return made
        if self._next("{", "-"):
            made = Excluded(self._choice())
            self._take("-", "}")
            return made
        if self._next("^"):
            return Anchor("^")
        if self._next("$"):
            return Anchor("$")
        if self._at == len(self._words) or not self._words[self._at].named:
            return None
        name = self._words[self._at].text
        self._at += 1
        if name.upper() == "PERMUTE" and self._next("("):
            parts = [self._choice()]
            while self._next(","):
                parts.append(self._choice())
            self._take(")")
            return Permute(tuple(parts))
        return RowVariable(name.upper())

    def _quantified(self, part: RowPattern) -> RowPattern:
        for sign, low, high in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._next(sign):
                return Repeat(part, low, high, not self._next("?"))
        if self._at + 1 < len(self._words) and self._words[self._at + 1].text == "-":
            return part
        if not self._next("{"):
            return part
        least = self._number()
        most = least
        if self._next(","):
            most = self._number()
            if most is not None and most < max(1, least or 0):
                raise self._unread()
        elif least is None:
            raise self._unread()
        self._take("}")
        return Repeat(part, least or 0, most, not self._next("?"))

    def _number(self) -> int | None:
        if self._at < len(self._words) and self._words[self._at].text.isdigit():
            self._at += 1
            return int(self._words[self._at - 1].text)
        return None
