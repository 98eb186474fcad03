"""The path of a message up through steps that neither act on it nor change it.

They are passed in one go, and counted; a message that nobody acts on need not be put into words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.feedback.responder import SENT

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.graph.edge import Edge

NOT_SENT = "not sent on"
"""What is counted of messages at a step that neither acts on them nor sends them on."""


class Relay:
    """The steps above an edge that only pass messages on these attributes up, and the edge where they end."""

    def __init__(self, edge: Edge, names: tuple[str, ...]) -> None:
        self.end: Edge | None = edge
        """Where a message is delivered; None where one of the steps sends nothing on."""
        self.passed = 0
        """Messages since the steps last counted them."""
        self.broken = False
        """Whether one of the steps has begun to act on messages."""
        self._steps: list[tuple[Cell, str]] = []
        while (cell := edge.source) is not None and cell.feedback.only_relays(names):
            cell.feedback.relays.append(self)
            if not cell.node.switches.propagate:
                self._steps.append((cell, NOT_SENT))
                self.end = None
                return
            self._steps.append((cell, SENT))
            self.end = edge = cell.inputs[0]

    def count(self) -> None:
        """Lets each step count the messages that have passed it."""
        for cell, what in self._steps if self.passed else ():
            cell.operator.counters.count_feedback(what, self.passed)
        self.passed = 0

    def close(self) -> None:
        """The last message has passed."""
        self.count()
        self.broken = True
        for cell, _ in self._steps:
            cell.feedback.relays.remove(self)
