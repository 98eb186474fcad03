"""`feedback_from(control)`: a row of another stream is feedback on rows that start in its lifetime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.messages import STANDING, WITHDRAWN
from caesura.feedback.responder import MAX_PATTERNS
from caesura.ops.pass_through import PassThrough
from caesura.plan import FeedbackRule, Operator, OwnFeedback, Translation, definite
from caesura.plan.samples import sample
from caesura.punctuation import (
    INFINITY,
    NOTHING,
    Intent,
    Pattern,
    Punctuation,
    Values,
    between,
    ge,
    gt,
    lt,
    value,
)

FeedbackIntent = Literal["assumed", "desired", "demanded"]

SPANS_LIMIT = 16
"""So many lifetimes of a key's control rows are kept apart, where time does not tell which are over."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FeedbackFrom(PassThrough):
    """Rows of the second input are feedback on the first, by columns that both have."""

    intent: FeedbackIntent
    on: tuple[str, ...]
    leaving: FeedbackIntent | None = None
    """The feedback on the time behind a row's end; by default none."""

    kind = "feedback_from"
    partitioning = "one"

    @property
    def arrival_dependent(self) -> bool:  # type: ignore[override]
        return "assumed" in (self.intent, self.leaving)

    @property
    def demands(self) -> bool:  # type: ignore[override]
        return "demanded" in (self.intent, self.leaving)

    def output_schema(self) -> pa.Schema:
        if not self.on:
            raise PlanError("no column says what the feedback is about.", remedy="Name some with on=.")
        for name in self.on:
            mine, theirs = self.column(name, 0).type, self.column(name, 1).type
            if mine != theirs:
                raise PlanError(
                    f"'{name}' is {mine} in the stream and {theirs} in its feedback.",
                    remedy="Cast one of them.",
                )
        return super().output_schema()

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern if port == 0 else None

    def steers(self, port: int) -> bool:
        return port == 1

    def feedback(self) -> tuple[FeedbackRule, ...]:
        translation = Translation.of(self.schema.names, self.inputs[0].properties)
        return (FeedbackRule((translation, None)),)

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        if "assumed" not in (self.intent, self.leaving):
            return ()
        about, known = sample(self.schema, self.on), self.inputs[1].properties
        if self.leaving is None and (known.points or known.max_duration is not None):
            about = about.replace("LE", lt(0))  # as long as a control row lives
        return (OwnFeedback(0, about, standing=True),)

    def operator(self) -> Operator:
        return Relaying(self)

    def describe(self) -> str:
        return f"{self.intent} by {', '.join(self.on)}"


class Relaying(Operator):
    """Data goes through; control rows become messages about rows that start while they live.

    What is demanded is what is alive then: a result that is open has begun before.
    """

    def __init__(self, node: FeedbackFrom) -> None:
        super().__init__(2)
        self.node = node
        self._spans: dict[Pattern, list[tuple[int, int]]] = {}
        """Per key, the lifetimes of its control rows."""
        self._sent: dict[Pattern, Values] = {}
        """Per key, the times behind them that feedback was sent about."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if port == 0:
            return [page]
        taken = np.zeros(len(page), np.bool_) if page.retracts is None else page.retracts
        news = page.re if page.re_new is None else np.where(taken, page.re_new, page.re)
        columns = [page.payload.column(name).to_pylist() for name in self.node.on]
        for row in range(len(page)):
            about = Pattern(**{n: value(c[row]) for n, c in zip(self.node.on, columns, strict=True)})
            le, re, new = int(page.le[row]), int(page.re[row]), int(news[row])
            self._change(about, le, re if taken[row] else le, max(le, new))
            if self.node.leaving is not None:
                self._leave(about, self.node.leaving, (le, re) if taken[row] else None, (le, max(le, new)))
        return []

    def _change(self, about: Pattern, le: int, before: int, now: int) -> None:
        """A control row from ``le`` on ends at another time now; one that is empty says nothing."""
        intent = self.node.intent
        if intent == "demanded":
            if now > before:
                self._send(about.replace("LE", lt(now)).replace("RE", gt(before)), intent)
            return
        if before > le:
            self._send(about.replace("LE", _from(le, before)), intent, withdrawn=True)
        if now > le:
            self._send(about.replace("LE", _from(le, now)), intent)

    def _leave(
        self, about: Pattern, intent: FeedbackIntent, before: tuple[int, int] | None, now: tuple[int, int]
    ) -> None:
        """Says something of the time after a key's rows, where none of them lives."""
        known = self._spans.get(about, [])
        if not known and len(self._spans) >= MAX_PATTERNS:
            self.counters.count_feedback("too many")
            return
        was, spans = self._sent.get(about, NOTHING), [*known]
        if before in spans:
            spans.remove(before)
        self._spans[about] = spans = [*spans, now]
        then = _behind(spans)
        if was == then:
            return
        self._sent[about] = then
        if intent == "demanded":
            if not then.minus(was).is_empty:
                self._send(about.replace("RE", gt(now[1])), intent)
            return
        if not was.is_empty:
            self._send(about.replace("LE", was), intent, withdrawn=True)
        if not then.is_empty:
            self._send(about.replace("LE", then), intent)

    def _send(self, about: Pattern, intent: FeedbackIntent, *, withdrawn: bool = False) -> None:
        notes: tuple[tuple[str, Any], ...] = ((STANDING, True), *(((WITHDRAWN, True),) if withdrawn else ()))
        self.outbox.send(0, Punctuation(about, Intent(intent), notes))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        if port == 0:
            return definite(pattern)
        self._spans = {a: self._joined(s) for a, s in self._spans.items() if not self.promises[1].covers(a)}
        self._sent = {a: times for a, times in self._sent.items() if a in self._spans}
        return []

    def _joined(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Lifetimes that cannot change, with those that are over as one: no row starts between them any more.

        Of very many those are joined too that rows may start between; no feedback is about these times then.
        """
        bound = self.promises[1].cti
        if len(spans) <= SPANS_LIMIT:
            bound = min(bound, self.promises[0].cti)
        elif self.node.inputs[1].properties.insert_only:
            bound = INFINITY
        over = [span for span in spans if span[1] < bound]
        if len(over) < 2:
            return spans
        whole = min(le for le, _ in over), max(re for _, re in over)
        return [whole, *(span for span in spans if span not in over)]

    def meta(self) -> dict[str, Any]:
        sent = [[a.to_json(), times.to_json()] for a, times in self._sent.items()]
        spans = [[a.to_json(), s] for a, s in self._spans.items()]
        return {**super().meta(), "spans": spans, "sent": sent}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._spans = {Pattern.from_json(a): [(le, re) for le, re in s] for a, s in meta["spans"]}
        self._sent = {Pattern.from_json(a): Values.from_json(v) for a, v in meta["sent"]}


def _from(start: int, end: int) -> Values:
    """The times of a lifetime."""
    return ge(start) if end == INFINITY else between(start, end - 1)


def _behind(spans: list[tuple[int, int]]) -> Values:
    """The times after some lifetimes that none of them holds."""
    ends = [end for _, end in spans if end < INFINITY]
    left = ge(min(ends)) if ends else NOTHING
    for start, end in spans:
        left = left.minus(_from(start, end)) if end > start else left
    return left
