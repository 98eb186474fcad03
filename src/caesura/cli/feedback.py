"""Feedback from the command line: patterns as texts, said before the first row."""

from __future__ import annotations

from typing import Protocol

from caesura.punctuation import Pattern
from caesura.punctuation.words import parse_punctuation


def read_pattern(text: str) -> Pattern:
    """The pattern that a text such as 'seg = 1, LE < 20' says."""
    return parse_punctuation(f"assumed: {text}").pattern


class Hears(Protocol):
    """A running query on any host."""

    def assume(self, what: Pattern) -> object: ...
    def desire(self, what: Pattern) -> object: ...


def speak(query: Hears, assume: list[str] | None, desire: list[str] | None) -> None:
    """Says these to a query."""
    for text in assume or []:
        query.assume(read_pattern(text))
    for text in desire or []:
        query.desire(read_pattern(text))
