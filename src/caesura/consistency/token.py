"""Tokens: they divide a stream into sections; where one stands at the output, a claim holds.

A token names the prefix of every source behind it. Steps that look at one row at a time carry tokens as
row positions of a page, so that pages stay whole; `pieces` cuts a page where somebody must stop.

>>> import pyarrow as pa
>>> from dataclasses import replace
>>> page = Page.of(pa.record_batch({"id": [1, 2, 3]}), le=[1, 2, 3], re=[2, 3, 4])
>>> marked = replace(page, tags=Marks((2,), (token(1, {}),)))
>>> [len(p) if isinstance(p, Page) else number_of(p) for p in pieces(marked.filter(page.le > 1))]
[1, 1, 1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from caesura.consistency.claim import Prefix
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.kernels.hashing import I64
from caesura.punctuation import Intent, Pattern, Punctuation


def token(number: int, prefix: Mapping[str, Prefix], time: int | None = None) -> Punctuation:
    """A token of a round, with the prefix it ends and the time t where it is synchronised."""
    note: list[tuple[str, Any]] = [("token", number), ("prefix", dict(prefix))]
    if time is not None:
        note.append(("time", time))
    return Punctuation(Pattern(), Intent.TOKEN, tuple(note))


def is_token(item: Item) -> TypeGuard[Punctuation]:
    return isinstance(item, Punctuation) and item.intent is Intent.TOKEN


def number_of(item: Punctuation) -> int:
    return int(item.noted("token"))


def prefix_of(item: Punctuation) -> dict[str, Prefix]:
    """The prefix of every source behind a token."""
    found: dict[str, Prefix] = item.noted("prefix") or {}
    return found


def merged_tokens(tokens: Sequence[Punctuation], more: Mapping[str, Prefix] | None = None) -> Punctuation:
    """One token for those that stand at the head of all inputs."""
    if len(tokens) == 1 and not more:
        return tokens[0]
    prefix: dict[str, Prefix] = {}
    for one in tokens:
        prefix |= prefix_of(one)
    times = [t for one in tokens if (t := one.noted("time")) is not None]
    return token(number_of(tokens[0]), prefix | dict(more or {}), min(times, default=None))


@dataclass(frozen=True)
class Marks:
    """Tokens inside a page: each stands in front of the row with its position."""

    positions: tuple[int, ...]
    tokens: tuple[Punctuation, ...]

    def take(self, rows: I64) -> Marks | None:
        """The tokens among some rows; None where the rows have lost their order."""
        if len(rows) > 1 and not bool((rows[1:] >= rows[:-1]).all()):
            return None
        return Marks(tuple(np.searchsorted(rows, self.positions).tolist()), self.tokens)

    def slice(self, start: int, length: int) -> None:
        """A part of a page has no tokens of its own; `pieces` gives them."""
        return

    def join(self, others: Sequence[Any], lengths: Sequence[int]) -> None:
        """Pages put together have lost where their tokens stood."""
        return


def pieces(page: Page) -> list[Item]:
    """A page with tokens in it as pages and tokens, in order."""
    marks = page.tags
    if not isinstance(marks, Marks):
        return [page]
    out: list[Item] = []
    begin = 0
    for position, mark in zip(marks.positions, marks.tokens, strict=True):
        if position > begin:
            out.append(page.slice(begin, position - begin))
            begin = position
        out.append(mark)
    if begin < len(page):
        out.append(page.slice(begin, len(page) - begin))
    return out
