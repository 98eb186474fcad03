"""How consistent an output state is, from the weakest level to the strongest.

An output state is the folded history of what has left so far. An input prefix takes so many items of each
source, events and punctuations alike, from its beginning.

>>> Level.PREFIX_CONSISTENT >= Level.UPDATE_COMPLETE
True
>>> print(Level.PREFIX_CONSISTENT.meaning)
the state is what the query gives on one prefix of every source, computed from scratch
"""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """The definitions of section 3; each asks for more than the one before it."""

    UPDATE_COMPLETE = 1
    PREFIX_UPDATE_COMPLETE = 2
    PREFIX_CONSISTENT = 3
    SYNCHRONISED = 4

    @property
    def meaning(self) -> str:
        """The definition in words."""
        return MEANINGS[self]

    def __str__(self) -> str:
        return NAMES[self]


NAMES = {
    Level.UPDATE_COMPLETE: "update-complete",
    Level.PREFIX_UPDATE_COMPLETE: "input-prefix update-complete",
    Level.PREFIX_CONSISTENT: "input-prefix consistent",
    Level.SYNCHRONISED: "synchronised input-prefix consistent",
}
MEANINGS = {
    Level.UPDATE_COMPLETE: "of each input event, all rows that it actively derives are there, or none is",
    Level.PREFIX_UPDATE_COMPLETE: (
        "the rows are all, and only, those that the events of one prefix of every source actively derive"
    ),
    Level.PREFIX_CONSISTENT: (
        "the state is what the query gives on one prefix of every source, computed from scratch"
    ),
    Level.SYNCHRONISED: (
        "the prefixes end where each source has promised the same time t, and the state is theirs"
    ),
}
