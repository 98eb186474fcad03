"""All feedback of a running query that waits to be delivered: one place, and two flags to ask.

Messages wait at the edge that they climb. Rows that a step has feedback for wait as a page until the next
page comes, so that punctuation may overtake them for the price of one comparison. Demands wait until they
have climbed to the sources, since each step gives what it has after those above it.

Law: before a step takes a page, every step above it has got the messages that were sent before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from caesura.events.page import Page
from caesura.feedback.messages import WITHDRAWN, can_wait
from caesura.punctuation import Intent, Pattern, Punctuation
from caesura.runtime.feedback.losses import narrow, note_losses

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.graph.edge import Edge


MAX_UNREAD = 1024
"""So many messages wait for whoever feeds an input; where nobody asks for them the oldest go."""


class Mailbox:
    """Feedback between being sent and being delivered."""

    def __init__(self) -> None:
        self.waiting = False
        """Whether anything waits for a step; a query without feedback asks no more than this of a page."""
        self.urgent = False
        """Whether some of it may not wait for the next page."""
        self.prompt = False
        """Whether nothing may wait: claims name what feedback each item was worked under."""
        self.closed = False
        """Whether feedback is dropped; a run without it shows what it changes."""
        self._narrows = False
        """Whether rows that were lost before a withdrawal have got their last ends."""
        self.demands: dict[Cell, list[Pattern]] = {}
        """What is wanted now, by step."""
        self._messages: dict[Edge, list[Punctuation]] = {}
        self._pages: dict[Cell, list[Page]] = {}

    def post(self, edge: Edge, message: Punctuation) -> None:
        """Takes a message for the step above an edge, or for whoever feeds it from outside."""
        if self.closed:
            return
        waiting = self._messages.setdefault(edge, [])
        waiting.append(message)
        if edge.source is None and len(waiting) > MAX_UNREAD:
            self._forget_one(edge, waiting)
        if edge.source is not None:
            self.waiting = True
            self.urgent = self.urgent or self.prompt or not (edge.patient and can_wait(message))

    def _forget_one(self, edge: Edge, unread: list[Punctuation]) -> None:
        """Lets the oldest message go for a feeder that asks for none: with what withdraws it, or alone.

        What was assumed saves work and no more. A withdrawal of what was read must stay.
        """
        place = next((n for n, m in enumerate(unread) if not m.noted(WITHDRAWN)), None)
        if place is None:
            return
        oldest = unread.pop(place)
        back = (m for m in unread if m.noted(WITHDRAWN) and m.intent is oldest.intent)
        withdrawal = next((m for m in back if m.pattern == oldest.pattern), None)
        if withdrawal is not None:
            unread.remove(withdrawal)
        if edge.target is not None:
            edge.target.operator.counters.count_feedback("unread")

    def defer(self, cell: Cell, page: Page) -> None:
        """Takes a page whose feedback is made of it before the next page, if it matters then."""
        if self.closed:
            return
        self._pages.setdefault(cell, []).append(page)
        self.waiting = True
        self.urgent = self.urgent or self.prompt

    def demand(self, cell: Cell, pattern: Pattern) -> None:
        """Takes note that a step is to give what it has now."""
        self.demands.setdefault(cell, []).append(pattern)

    def settled(self) -> None:
        """Takes note that the rows which a step has lost before a withdrawal can end no later any more."""
        self.waiting = self.urgent = self._narrows = True

    def take(self, edge: Edge) -> list[Punctuation]:
        """The messages at an edge, which are delivered herewith."""
        return self._messages.pop(edge, [])

    def deliver(self, cells: Sequence[Cell]) -> None:
        """Lets all that waits climb as far as it gets; the cells nearest to the outputs come first."""
        pages, self._pages = self._pages, {}
        for cell, some in pages.items():
            cell.feedback.send_for(some)
        if self._narrows:
            self._narrows = False
            narrow(cells)
        if self._withdraws():
            note_losses(cells)
        if self._climbing():
            for cell in cells:
                for number, edge in enumerate(cell.outputs):
                    if edge in self._messages:
                        cell.feedback.deliver(edge, f"edge {number}", self.take(edge))
        self.waiting = self.urgent = self._narrows or self._climbing()

    def _climbing(self) -> bool:
        return any(edge.source is not None for edge in self._messages)

    def _withdraws(self) -> bool:
        return any(
            message.note and message.intent is Intent.ASSUMED and message.noted(WITHDRAWN)
            for messages in self._messages.values()
            for message in messages
        )
