"""Symbolic regular expressions: predicates on items instead of letters. Rates are written in them.

>>> from caesura.expr import col
>>> a, b = letter(col("k") == 1), letter(col("k") == 2)
>>> str(seq(star(a | b), b))
'([k = 1] | [k = 2])* [k = 2]'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from caesura.errors import PlanError
from caesura.expr import Expr, lit
from caesura.qre.language.arguments import condition, wrong


class Regex:
    """A set of words of items."""

    def __or__(self, other: Any) -> Regex:
        return any_of(self, other)

    def __add__(self, other: Any) -> Regex:
        return seq(self, other)

    @property
    def nullable(self) -> bool:
        """Whether the empty word belongs to it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Empty(Regex):
    """Only the empty word."""

    nullable = True

    def __str__(self) -> str:
        return "ε"


@dataclass(frozen=True)
class Letter(Regex):
    """One item for which the predicate is true."""

    predicate: Expr

    nullable = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Letter) and self.predicate.key == other.predicate.key

    def __hash__(self) -> int:
        return hash(self.predicate.key)

    def __str__(self) -> str:
        return f"[{self.predicate}]"


@dataclass(frozen=True)
class Choice(Regex):
    """A word of one of the parts."""

    parts: tuple[Regex, ...]

    @property
    def nullable(self) -> bool:
        return any(p.nullable for p in self.parts)

    def __str__(self) -> str:
        return " | ".join(str(p) for p in self.parts)


@dataclass(frozen=True)
class Sequence(Regex):
    """A word of each part, one behind the other."""

    parts: tuple[Regex, ...]

    @property
    def nullable(self) -> bool:
        return all(p.nullable for p in self.parts)

    def __str__(self) -> str:
        return " ".join(_grouped(p, Choice) for p in self.parts)


@dataclass(frozen=True)
class Star(Regex):
    """Any number of words of the body."""

    body: Regex

    nullable = True

    def __str__(self) -> str:
        return _grouped(self.body, Choice, Sequence, Star) + "*"


EMPTY = Empty()
ANYTHING = Letter(lit(True))


def _grouped(r: Regex, *kinds: type[Regex]) -> str:
    return f"({r})" if isinstance(r, kinds) else str(r)


def letter(predicate: Expr) -> Letter:
    """One item that satisfies a predicate.

    Parameters
    ----------
    predicate
        What the item satisfies; null is not true.

    Returns
    -------
    Regex
        A regular expression of one item; a bare predicate means the same.

    Examples
    --------
    >>> from caesura import col, qre
    >>> qre.letter(col("v") > 1)
    Letter(predicate=Expr(v > 1))
    """
    return Letter(condition("letter", predicate))


def as_regex(given: Any) -> Regex:
    """A regex as it is; an expression as one letter."""
    if isinstance(given, Regex):
        return given
    if not isinstance(given, Expr):
        raise PlanError(
            f"{given!r} is no regex.", remedy="Build one from predicates with seq, any_of, star and plus."
        )
    return Letter(given)


def seq(*parts: Any) -> Regex:
    """The parts one behind the other.

    Parameters
    ----------
    *parts
        A predicate, or what these functions make of predicates.

    Returns
    -------
    Regex
        A regular expression; without parts, that of the empty stream.

    Examples
    --------
    >>> from caesura import col, qre
    >>> str(qre.seq(col("v") == 1, col("v") == 2))
    '[v = 1] [v = 2]'
    """
    flat: list[Regex] = []
    for part in map(as_regex, parts):
        if isinstance(part, Sequence):
            flat += part.parts
        elif not isinstance(part, Empty):
            flat.append(part)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat)) if flat else EMPTY


def any_of(*parts: Any) -> Regex:
    """One of the parts.

    Parameters
    ----------
    *parts
        A predicate, or what these functions make of predicates; at least one.

    Returns
    -------
    Regex
        A regular expression of what any of them reads.

    Examples
    --------
    >>> from caesura import col, qre
    >>> str(qre.any_of(col("v") == 1, col("v") == 2))
    '[v = 1] | [v = 2]'
    """
    if not parts:
        raise wrong("any_of", parts, "at least one regex", "Give the choices; seq() is the empty stream.")
    flat: list[Regex] = []
    for part in map(as_regex, parts):
        flat += part.parts if isinstance(part, Choice) else [part]
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))


def star(body: Any) -> Regex:
    """The body any number of times, also never.

    Parameters
    ----------
    body
        A predicate, or what these functions make of predicates.

    Returns
    -------
    Regex
        A regular expression.

    See Also
    --------
    qre.plus : at least once.

    Examples
    --------
    >>> from caesura import col, qre
    >>> str(qre.star(col("v") == 1))
    '[v = 1]*'
    """
    return Star(as_regex(body))


def plus(body: Any) -> Regex:
    """The body at least once.

    Parameters
    ----------
    body
        A predicate, or what these functions make of predicates.

    Returns
    -------
    Regex
        A regular expression.

    See Also
    --------
    qre.star : any number of times.

    Examples
    --------
    >>> from caesura import col, qre
    >>> str(qre.plus(col("v") == 1))
    '[v = 1]* [v = 1]'
    """
    inner = as_regex(body)
    return seq(Star(inner), inner)


def letters(r: Regex) -> list[Letter]:
    """The occurrences of letters, from left to right."""
    match r:
        case Letter():
            return [r]
        case Choice(parts=parts) | Sequence(parts=parts):
            return [found for p in parts for found in letters(p)]
        case Star(body=body):
            return letters(body)
    return []
