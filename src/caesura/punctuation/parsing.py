"""Punctuation in words: what patterns print as, read again.

A text that is not a pattern is refused; nothing is guessed. The work is linear in the text.

>>> str(parse_punctuation("assumed: speed >= 50, id in {1, 3}"))
'assumed: id in {1, 3}, speed >= 50'
>>> parse_punctuation("")
Traceback (most recent call last):
...
caesura.errors.DataError: there is no condition in ''.
Write '*' where nothing at all follows, or conditions like 'id < 4'.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from caesura.errors import DataError, PatternError, closest
from caesura.punctuation.pattern import Pattern
from caesura.punctuation.punctuation import Intent, Punctuation, cti
from caesura.punctuation.text import LONGEST, NOTHING_AT_ALL, excerpt
from caesura.punctuation.time import INFINITY
from caesura.punctuation.values import (
    NOT_NULL,
    NOTHING,
    NULL,
    Values,
    between,
    ge,
    gt,
    le,
    lt,
    one_of,
    union_of,
    value,
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
    | (?P<sign><=|>=|!=|\.\.|[<>=,{}\[\]()*])
    | (?P<word>(?:(?!\.\.)[^\s'"<>=!,{}\[\]()*])+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_INTENT = re.compile(r"\s*([^\W\d]\w*)\s*:")  # a colon further on is a time's
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_COMPARE: dict[str, Callable[[Any], Values]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "=": value,
    "!=": lambda v: lt(v).union(gt(v)),
}
_CLOSED = {"[]": "both", "[)": "left", "(]": "right", "()": "neither"}
_KNOWN = {"null": None, "true": True, "True": True, "false": False, "False": False}
_TIMES = ("time", "LE", "RE")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_punctuation(text: str, schema: pa.Schema | None = None) -> Punctuation:
    """``definite: time < 20, id = 4`` or a bare ``20`` for a CTI; ``*`` is everything.

    With a ``schema``, numbers that are compared with a column of decimals are read exactly.
    """
    if not isinstance(text, str):
        raise PatternError(
            f"a pattern is written as a text; got {text!r}.",
            remedy="Write 'id = 4, time < 20', or a Pattern.",
        )
    bare = text.strip()
    if bare in ("inf", "∞") or _WHOLE.fullmatch(bare):
        return cti(drawn_time(bare))
    found = _INTENT.match(text)
    intent = _intent(found[1]) if found else Intent.DEFINITE
    return Punctuation(_Reading(text, found.end() if found else 0, schema).pattern(), intent)


def _intent(text: str) -> Intent:
    known = [intent.value for intent in Intent]
    if text not in known:
        raise DataError(f"there is no punctuation '{excerpt(text)}'.", remedy=closest(text[:LONGEST], known))
    return Intent(text)


class _Reading:
    """A text, read from left to right, one token ahead."""

    def __init__(self, text: str, at: int, schema: pa.Schema | None) -> None:
        self.text, self.at, self.schema = text, at, schema
        self.shown = excerpt(text[at:].strip())
        self.kind, self.token, self.begin = "", "", at
        self.name = ""
        """The attribute whose condition is being read."""
        self.step()

    def step(self) -> str:
        """Takes the token; gives it."""
        taken = self.token
        found = _TOKEN.match(self.text, self.at)
        if found is not None:
            self.kind, self.begin = str(found.lastgroup), found.start(str(found.lastgroup))
            self.token, self.at = found[self.kind], found.end()
        elif self.text[self.at :].strip():
            raise self.wrong()
        else:
            self.kind, self.token, self.begin = "end", "", len(self.text)
        return taken

    def wrong(self) -> DataError:
        """What is told where the text goes on as no pattern does."""
        rest = excerpt(self.text[self.begin : self.begin + 2 * LONGEST].strip())
        what = f"at '{rest}'" if rest else "at its end"
        return DataError(
            f"cannot read the condition {self.shown!r} {what}.",
            remedy="Write conditions like 'id < 4', 'id in {1, 3}', 'id in [1..5)' or 'id is null'.",
        )

    def takes(self, *signs: str) -> bool:
        """Whether one of some signs or words comes next; it is taken."""
        if self.kind == "text" or self.token not in signs:
            return False
        self.step()
        return True

    def pattern(self) -> Pattern:
        if self.kind == "end":
            raise DataError(
                f"there is no condition in {self.shown!r}.",
                remedy="Write '*' where nothing at all follows, or conditions like 'id < 4'.",
            )
        found: dict[str, Values] = {}
        if not self.takes("*"):
            self.condition(found)
            while self.takes(","):
                self.condition(found)
        if self.kind != "end":
            raise self.wrong()
        return Pattern.of(found)

    def condition(self, found: dict[str, Values]) -> None:
        """One attribute and its values."""
        if self.kind not in ("word", "text"):
            raise self.wrong()
        self.name = self.constant() if self.kind == "text" else self.token
        if not isinstance(self.name, str) or (self.kind == "word" and not re.fullmatch(r"\w+", self.name)):
            raise self.wrong()
        if self.name in found:
            raise DataError(f"'{excerpt(self.name)}' is named twice.", remedy="Join the two: 'id in [1..5)'.")
        self.step()
        if self.takes("is"):
            found[self.name] = self.nullness()
        elif self.takes("in") or self.token in _COMPARE:
            parts = [self.part()]
            while self.takes("or"):
                parts.append(self.part())
            found[self.name] = union_of(parts)
        else:
            raise self.wrong()

    def nullness(self) -> Values:
        held = NOT_NULL if self.takes("not") else NULL
        if not self.takes("null"):
            raise self.wrong()
        return held

    def part(self) -> Values:
        """``{1, 3}``, ``[1..5)``, ``>= 4``, ``null``, or one value."""
        if self.takes(NOTHING_AT_ALL):
            return NOTHING
        if self.takes("{"):
            some = [self.literal()]
            while self.takes(","):
                some.append(self.literal())
            if not self.takes("}"):
                raise self.wrong()
            return one_of(some)
        if self.kind == "sign" and self.token in _COMPARE:
            return _COMPARE[self.step()](self.literal())
        if self.kind == "sign" and self.token in "[(":
            return self.stretch(self.step())
        return value(self.literal())

    def stretch(self, begin: str) -> Values:
        low = self.literal()
        if not self.takes(".."):
            raise self.wrong()
        high, end = self.literal(), self.token
        if not self.takes("]", ")"):
            raise self.wrong()
        return between(low, high, closed=_CLOSED[begin + end])  # type: ignore[arg-type]

    def literal(self) -> Any:
        """One constant; of times, in ticks."""
        if self.kind not in ("text", "word"):
            raise self.wrong()
        made = self.constant() if self.kind == "text" else self.plain()
        self.step()
        return self.moment(made) if self.name in _TIMES else made

    def constant(self) -> Any:
        """A text in quotes, as Python writes it."""
        try:
            return ast.literal_eval(self.token)
        except (SyntaxError, ValueError):
            raise self.wrong() from None

    def plain(self) -> Any:
        """A word: a number, a known one, a moment in two words, or a text of one word."""
        word = self.token
        if word in _KNOWN:
            return _KNOWN[word]
        if word in ("inf", "∞", "-inf", "nan"):
            return float(word.replace("∞", "inf"))
        if _DAY.fullmatch(word):
            behind = _TOKEN.match(self.text, self.at)
            clock = behind["word"] if behind is not None else None
            return f"{word} {self.following()}" if clock is not None and ":" in clock else word
        return self.number(word) if _NUMBER.fullmatch(word) else word

    def following(self) -> str:
        self.step()
        return self.token

    def number(self, word: str) -> Any:
        known = self.schema is not None and self.name in self.schema.names
        if self.schema is not None and known and pa.types.is_decimal(self.schema.field(self.name).type):
            return Decimal(word)
        try:
            return int(word) if _WHOLE.fullmatch(word) else float(word)
        except ValueError:  # more digits than Python reads
            raise self.wrong() from None

    def moment(self, made: Any) -> int:
        """A time in ticks: a whole number, infinity, or a moment in microseconds."""
        if isinstance(made, float) and made == float("inf"):
            return INFINITY
        if isinstance(made, str):
            made = _microseconds(made)
        if isinstance(made, bool) or not isinstance(made, int) or abs(made) > INFINITY:
            raise DataError(
                f"{self.name} is compared with {excerpt(str(made))!r}, which is no time.",
                remedy="Write a whole number of ticks, a moment like 2024-05-01 12:00, or inf.",
            )
        return made


def _microseconds(text: str) -> int | str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def drawn_time(text: str) -> int:
    """A time as it is drawn, in ticks."""
    if text in ("inf", "∞"):
        return INFINITY
    if not reads(int, text) or abs(int(text)) > INFINITY:
        raise DataError(
            f"'{excerpt(text)}' is no time in a drawn stream.", remedy="Write whole numbers of ticks, or inf."
        )
    return int(text)


def reads(test: Callable[[str], object], cell: str) -> bool:
    """Whether a text can be read so."""
    try:
        test(cell)
    except ValueError:
        return False
    return True
