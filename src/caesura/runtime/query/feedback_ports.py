"""Feedback at the edges of a query: from its consumers, and to whoever feeds its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.feedback.messages import WITHDRAWN
from caesura.punctuation import INFINITY, Intent, Pattern, Punctuation
from caesura.runtime.feedback.losses import note_losses
from caesura.runtime.query.assembly import Assembly
from caesura.runtime.query.runner import Runner

if TYPE_CHECKING:
    from caesura.runtime.claims.claiming import Claiming

OUTPUT = "output:"


def reader_of(output: str, number: int) -> str:
    """The name of one reader of an output, as a consumer of the step behind it."""
    return f"{OUTPUT}{output}#{number}"


class FeedbackPorts:
    """Lets feedback into a query at its outputs, and out of it at its inputs."""

    def __init__(self, parts: Assembly, runner: Runner, claiming: Claiming | None) -> None:
        self._parts, self._runner, self._claiming = parts, runner, claiming
        self._mailbox = parts.graph.mailbox

    def send(self, output: str, message: Punctuation, reader: int = 0) -> None:
        """Gives a message to the step behind an output, as its consumer, or as one of its readers."""
        if self._mailbox.closed:
            return
        if message.noted(WITHDRAWN):
            note_losses(self._parts.graph.cells)
        if self._claiming is not None:
            self._claiming.take_feedback(message)
        self._parts.behind(output).feedback.take(message, reader_of(output, reader))
        self._runner.deliver()

    def deliver(self) -> None:
        """Delivers feedback that waits for the next page."""
        if self._mailbox.waiting:
            self._runner.deliver()

    def ignored(self, label: str) -> list[Pattern]:
        """What everybody behind an `Input` ignores: rows that need not be fed."""
        self.deliver()
        responder = self._parts.fed_by(label).responder if label in self._parts.inputs else None
        guard = None if responder is None else responder.guards.output
        return guard.patterns if guard is not None and guard.active else []

    def wanted(self, label: str) -> list[Pattern]:
        """What somebody behind an `Input` wants first."""
        return list(self._parts.fed_by(label).feedback.desired) if label in self._parts.inputs else []

    def upstream(self, label: str) -> list[Punctuation]:
        """The feedback for whoever feeds an `Input`, since the last call."""
        if label not in self._parts.inputs:
            return []
        self.deliver()
        messages = self._mailbox.take(self._parts.inputs[label])
        responder = self._parts.fed_by(label).responder
        if responder is not None and any(m.intent is Intent.ASSUMED for m in messages):
            responder.suppression.lost = INFINITY  # what others leave out for it cannot be known here
        return messages
