"""A stream item: a page of events, or a punctuation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from caesura.events.page import Page
from caesura.punctuation import Punctuation

Item: TypeAlias = Page | Punctuation


def pages(items: Iterable[Item]) -> list[Page]:
    """The pages among stream items that change the history, in order."""
    return [item for item in items if isinstance(item, Page) and not item.settled]
