"""Everything in a stream that is not an event: a pattern, and what is meant by it.

>>> print(cti(20))
definite: time < 20
>>> Punctuation(Pattern(id=4), Intent.ASSUMED).direction
'up'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from caesura.misuse import checked_methods
from caesura.punctuation import kinds
from caesura.punctuation.pattern import Pattern

Direction = Literal["down", "up"]


class Intent(Enum):
    """What a punctuation says of the items that match its pattern."""

    DEFINITE = "definite"  # none follows
    SPECULATIVE = "speculative"  # none is expected to follow
    PROGRESS = "progress"  # none follows from outside the loop
    TOKEN = "token"  # those before it are one consistent prefix
    ASSUMED = "assumed"  # none is wanted
    DESIRED = "desired"  # they are wanted first
    DEMANDED = "demanded"  # they are wanted now, as they are

    @property
    def direction(self) -> Direction:
        """Feedback flows up, the rest flows down with the stream."""
        return "up" if self in (Intent.ASSUMED, Intent.DESIRED, Intent.DEMANDED) else "down"

    def __str__(self) -> str:
        return self.value


@checked_methods
@dataclass(frozen=True)
class Punctuation:
    """A pattern with an intent, and notes such as a token's id or a loop's name."""

    pattern: Pattern
    intent: Intent = Intent.DEFINITE
    note: tuple[tuple[str, Any], ...] = ()

    @property
    def direction(self) -> Direction:
        """Which way it travels."""
        return self.intent.direction

    def noted(self, name: str) -> Any:
        """What a note says.

        Parameters
        ----------
        name
            The note's name.

        Returns
        -------
        object
            The note's content, or None.

        Examples
        --------
        >>> from caesura.punctuation import Intent, Pattern, Punctuation
        >>> Punctuation(Pattern(), Intent.TOKEN, (("token", 7),)).noted("token")
        7
        """
        return dict(self.note).get(name)

    def __str__(self) -> str:
        notes = "".join(f" ({name})" if said is True else f" ({name} {said})" for name, said in self.note)
        return f"{self.intent}: {self.pattern}{notes}"

    def to_json(self) -> dict[str, Any]:
        """The punctuation as data that JSON can hold.

        Returns
        -------
        dict
            What `from_json` makes an equal one of.

        Examples
        --------
        >>> from caesura.punctuation import Punctuation, cti
        >>> Punctuation.from_json(cti(5).to_json()) == cti(5)
        True
        """
        note = [[name, kinds.to_json(content)] for name, content in self.note]
        return {"intent": self.intent.value, "pattern": self.pattern.to_json(), "note": note}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Punctuation:
        """The punctuation that `to_json` wrote.

        Parameters
        ----------
        data
            What `to_json` gave.

        Returns
        -------
        Punctuation
            The punctuation.

        Examples
        --------
        >>> from caesura.punctuation import Punctuation, cti
        >>> print(Punctuation.from_json(cti(5).to_json()))
        definite: time < 5
        """
        note = tuple((name, kinds.from_json(content)) for name, content in data["note"])
        return Punctuation(Pattern.from_json(data["pattern"]), Intent(data["intent"]), note)


def cti(t: int) -> Punctuation:
    """The promise on time alone: nothing before this time will start or change.

    Parameters
    ----------
    t
        The time, in ticks.

    Returns
    -------
    Punctuation
        An item of a stream: feed it, or give it to `from_items`.

    See Also
    --------
    definite : promises on other columns.
    Pattern.before : the same as a pattern.

    Examples
    --------
    >>> import caesura as cz
    >>> print(cz.cti(5))
    definite: time < 5
    """
    return Punctuation(Pattern.before(t), Intent.DEFINITE)


def definite(**constraints: Any) -> Punctuation:
    """The promise that no more rows come that match.

    Parameters
    ----------
    **constraints
        For each attribute a value, a collection of values, or a set such as ``lt(5)``.

    Returns
    -------
    Punctuation
        An item of a stream: feed it, or give it to `from_items`.

    See Also
    --------
    cti : the promise on time alone.

    Examples
    --------
    >>> import caesura as cz
    >>> print(cz.definite(id=4))
    definite: id = 4
    """
    return Punctuation(Pattern(**constraints), Intent.DEFINITE)
