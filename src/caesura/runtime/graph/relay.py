"""The way of a message up through steps that neither act on it nor change it.

They are passed in one go, and counted; a message that nobody acts on need not be put into words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.feedback.responder import SENT
from caesura.runtime.graph.edge import Edge

if TYPE_CHECKING:
    from caesura.runtime.graph.graph import Cell

NOT_TOLD = "told nobody"
"""What is counted of messages at a step that neither acts on them nor sends them on."""


class Relay:
    """The steps above an edge that only hand messages on these attributes up, and where they are heard."""

    def __init__(self, edge: Edge, names: tuple[str, ...]) -> None:
        self.end: Edge | None = edge
        """Where a message is heard; None where one of the steps tells nobody."""
        self.taken = 0
        """Messages since the steps were last told to count them."""
        self.broken = False
        """Whether one of the steps has begun to act on messages."""
        self._relays: list[tuple[Cell, str]] = []
        while (cell := edge.source) is not None and cell.relays(names):
            cell.ways.append(self)
            if not cell.node.switches.propagate:
                self._relays.append((cell, NOT_TOLD))
                self.end = None
                return
            self._relays.append((cell, SENT))
            self.end = edge = cell.inputs[0]

    def count(self) -> None:
        """Lets each step count the messages that have passed it."""
        for cell, what in self._relays if self.taken else ():
            told = cell.operator.counters.feedback
            told[what] = told.get(what, 0) + self.taken
        self.taken = 0

    def leave(self) -> None:
        """The last message has taken it."""
        self.count()
        self.broken = True
        for cell, _ in self._relays:
            cell.ways.remove(self)
