"""`deadline(d)`: demands what there is when nothing came for so much of the stream's time, or the clock's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.messages import assumed
from caesura.ops.pass_through import PassThrough
from caesura.plan import FeedbackRule, Operator, Outbox, OwnFeedback, Translation, definite, shown
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Punctuation


@dataclass(frozen=True, eq=False, kw_only=True)
class Deadline(PassThrough):
    """Demands a result when none has come for so long; further inputs are the sources that tell the time."""

    after: int
    clock: bool = False
    """Whether the further input is the clock, and so is the time of the deadline."""

    kind = "deadline"
    demands = True

    def output_schema(self) -> pa.Schema:
        if self.after <= 0:
            raise PlanError(
                f"a deadline of {self.after} has always passed.",
                remedy="Give a positive time, like 30 ticks.",
            )
        return super().output_schema()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern if port == 0 else None

    def steers(self, port: int) -> bool:
        return port > 0

    def feedback(self) -> tuple[FeedbackRule, ...]:
        own = Translation.of(self.schema.names, self.inputs[0].properties)
        return (FeedbackRule((own, *(None for _ in self.inputs[1:]))),)

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        """Of the sources only the time is read."""
        return tuple(OwnFeedback(port, Pattern()) for port in range(1, len(self.inputs)))

    def operator(self) -> Operator:
        return DeadlineOperator(self)

    def describe(self) -> str:
        if self.clock:
            return f"{shown(self.after, self.inputs[1].time)} of the clock"
        several = f" of {len(self.inputs) - 1} sources" if len(self.inputs) > 2 else ""
        return shown(self.after, self.time) + several


class DeadlineOperator(Operator):
    """Measures the source's time: how far its punctuation has come since the last result."""

    def __init__(self, node: Deadline) -> None:
        super().__init__(len(node.inputs))
        self.node = node
        self._since = MIN_TIME

    def attach(self, outbox: Outbox) -> None:
        super().attach(outbox)
        for sent in self.node.feedback_sent():
            outbox.send(sent.port, assumed(sent.pattern))

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if port > 0:
            return []
        if len(page):
            self._since = max(self._since, self._now)
        return [page]

    @property
    def _now(self) -> int:
        """How far the source has come that has come furthest and is not at its end; else the end of time."""
        going = [promises.cti for promises in self.promises[1:] if promises.cti < INFINITY]
        return max(going, default=INFINITY)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        if port == 0:
            return definite(pattern)
        now = self._now
        if now < INFINITY:
            if self._since == MIN_TIME:
                self._since = now
            elif now - self._since >= self.node.after:
                self._since = now
                self.outbox.send(0, Punctuation(Pattern(), Intent.DEMANDED))
        return []

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "since": self._since}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._since = meta["since"]
