"""The path between two cells, on which items queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from caesura.consistency.token import Marks, is_token, pieces
from caesura.events.item import Item
from caesura.events.page import Page, concat
from caesura.kernels.hashing import Mask
from caesura.punctuation import INFINITY, Intent, Pattern, Punctuation

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.graph.patience import Patience


@dataclass(eq=False)
class Edge:
    """A queue of items to a cell's port."""

    capacity: int
    target: Cell | None = None
    port: int = 0
    back: bool = False
    """Whether the edge closes a cycle; then it never pushes back."""
    items: deque[Item] = field(default_factory=deque)
    merged: int = 0
    merges: bool = True
    """Whether a punctuation may take the place of the one before it."""
    behind: list[Edge] = field(default_factory=list)
    """Edges that must be empty before an item is taken: a loop that is worked off in stages."""
    desired: list[Pattern] = field(default_factory=list)
    """What is wanted first of what waits."""
    moved: int = 0
    """Rows that were taken before others on account of that."""
    source: Cell | None = None
    """The cell above, which takes feedback; None where the edge is fed from outside."""
    patience: Patience | None = None
    """Where items wait because nothing can follow from them yet."""

    @cached_property
    def patient(self) -> bool:
        """Whether the cell above answers by rules: feedback for it then waits for the next page."""
        return self.source is not None and self.source.node.feedback() is not None

    def push(self, item: Item) -> None:
        """Queues an item; a definite punctuation replaces the one before it that it covers."""
        if self.patience is not None and self.patience.holds(item):
            return
        if isinstance(item, Page) and isinstance(item.tags, Marks) and not self.carries:
            self.items.extend(pieces(item))
            return
        if self.merges and self.items and mergeable(self.items[-1], item):
            self.items.pop()
            self.merged += 1
        self.items.append(item)

    def promote(self) -> None:
        """Brings wanted rows of waiting pages to the front, but never past a punctuation.

        A retract stays behind its insert: both match, or neither does.
        """
        run: list[Page] = []
        while self.items and isinstance(self.items[0], Page):
            run.append(self.items.popleft())  # type: ignore[arg-type]
        masks = [wanted(page, self.desired) for page in run]
        first = [page.filter(mask) for page, mask in zip(run, masks, strict=True) if mask.any()]
        if first and not masks[0].all():  # else nothing better waits
            rest = [page.filter(~mask) for page, mask in zip(run, masks, strict=True) if not mask.all()]
            self.moved += sum(map(len, first))
            run = [concat(first, first[0].schema), *rest]
        self.items.extendleft(reversed(run))

    def next_item(self, size: int) -> Item:
        """The next item; pages that wait behind each other are one, up to so many bytes."""
        first = self.items.popleft()
        if not size or not isinstance(first, Page) or first.tags is not None:
            return first
        some, size = [first], size - first.nbytes
        while self.items and isinstance(page := self.items[0], Page) and page.nbytes <= size:
            if page.tags is not None or (page.settled, page.partial) != (first.settled, first.partial):
                break
            some.append(page)
            size -= page.nbytes
            self.items.popleft()
        return first if len(some) == 1 else concat(some, first.schema)

    @property
    def full(self) -> bool:
        return not self.back and len(self.items) >= self.capacity

    @property
    def carries(self) -> bool:
        """Whether the step at the end takes a page with tokens in it whole."""
        return self.target is not None and self.target.carries and self.target.responder is None

    def part(self) -> None:
        """Lets tokens that wait inside pages stand between them."""
        waiting = list(self.items)
        self.items.clear()
        for item in waiting:
            marked = isinstance(item, Page) and isinstance(item.tags, Marks)
            self.items.extend(pieces(item) if marked and isinstance(item, Page) else (item,))

    @property
    def waits(self) -> bool:
        """Whether a token stands here that other inputs of the step have not reached."""
        if self.target is None or not is_token(self.items[0]):
            return False
        return not all(e.items and is_token(e.items[0]) for e in self.target.inputs if not e.back)


def mergeable(before: Item, after: Item) -> bool:
    """Whether a punctuation need not act because the next one says it all.

    The end of a stream never swallows the last time before it: windows over events without end are
    given up to that time.
    """
    if isinstance(before, Page) or isinstance(after, Page):
        return False
    if before.intent is not Intent.DEFINITE or after.intent is not Intent.DEFINITE:
        return False
    if after.pattern.time_bound == INFINITY != before.pattern.time_bound:
        return False
    return after.pattern.covers(before.pattern)


def wanted(page: Page, patterns: Sequence[Pattern]) -> Mask:
    """Which rows match one of some feedback patterns."""
    columns = dict(zip(page.schema.names, page.payload.columns, strict=True))
    columns |= {"LE": page.le, "RE": page.re}
    mask = np.zeros(len(page), np.bool_)
    for pattern in patterns:
        mask |= pattern.matches(columns)
    return mask


def merged(items: list[Item]) -> list[Item]:
    """Items of one step without the punctuations that a later one covers."""
    needed: list[Item] = []
    later: list[Punctuation] = []
    for item in reversed(items):
        if not isinstance(item, Page):
            if any(mergeable(item, after) for after in later):
                continue
            later.append(item)
        needed.append(item)
    return needed[::-1]
