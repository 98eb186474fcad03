"""Batches that enter as one page, with tokens inside it as row positions."""

from __future__ import annotations

import numpy as np

from caesura.consistency import Prefix
from caesura.consistency.token import Marks, token
from caesura.events import Item, Page
from caesura.runtime.claims.claiming import CountedReader, insert_only
from caesura.runtime.graph.emitter import Emitter


def carries(reader: CountedReader) -> bool:
    """Whether a batch of a source enters as one page, in which tokens can stand."""
    return not reader.node.punctuated and insert_only(reader)


def marked(
    reader: CountedReader, emitter: Emitter, items: list[Item], lane: int, cuts: list[int]
) -> list[Item]:
    """The items of a batch, with the next tokens inside its page, or in front where no row entered."""
    place = next((i for i, item in enumerate(items) if isinstance(item, Page)), None)
    entered = reader.ingress.entered if place is not None else None
    positions = np.zeros(len(cuts), np.int64) if entered is None else np.searchsorted(entered, cuts)
    tokens = []
    for number, (cut, position) in enumerate(zip(cuts, positions.tolist(), strict=True), emitter.tokens + 1):
        prefix = Prefix(
            emitter.rows + position,
            emitter.punctuations,
            {**emitter.offsets, lane: cut},
            tuple(emitter.promises.patterns()),
        )
        tokens.append(token(number, {emitter.label: prefix}))
    if place is None:
        return [*tokens, *items]
    page = items[place]
    assert isinstance(page, Page)
    marks = Marks(tuple(positions.tolist()), tuple(tokens))
    whole = Page(page.le, page.re, page.payload, page.re_new, tags=marks)
    return [*items[:place], whole, *items[place + 1 :]]
