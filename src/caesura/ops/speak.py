"""Steps that pass their rows on and speak to those above: `instrument`, `feedback_from`, `deadline`.

instrument(every=n)       after every n rows says that some rows will be ignored (thesis, 6.3 and 7.3)
feedback_from(control)    a row of another stream is feedback on rows that start in its lifetime
deadline(d)               demands what there is when nothing came for so much of the stream's time
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.feedback.messages import STANDING, WITHDRAWN, assumed
from caesura.feedback.responder import MOST
from caesura.kernels.hashing import I64
from caesura.plan import (
    FeedbackRule,
    Holding,
    Node,
    Operator,
    Properties,
    Said,
    Translation,
    definite,
    row_rule,
    shown,
)
from caesura.plan.feedback import check_feedback
from caesura.plan.samples import sample
from caesura.punctuation import (
    INFINITY,
    MIN_TIME,
    NOTHING,
    Intent,
    Pattern,
    Punctuation,
    Values,
    between,
    ge,
    gt,
    lt,
    one_of,
    value,
)

Wish = Literal["assumed", "desired", "demanded"]

MANY_SPANS = 16
"""So many lifetimes of a key's control rows are kept apart, where time does not tell which are over."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Speaks(Node):
    """A step whose first input goes through as it is."""

    speaks = True

    def output_schema(self) -> pa.Schema:
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        return row_rule(self.schema.names, self.inputs[0].properties)

    def holds(self) -> tuple[Holding, ...]:
        return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Instrument(Speaks):
    """Says the same pattern, or that of the latest row's columns, after every so many rows."""

    every: int
    pattern: Pattern | None = None
    columns: tuple[str, ...] = ()
    tells: Literal["upstream", "nobody"] = "upstream"
    """Whether it speaks at all: the other runs in a comparison count rows and say nothing."""

    kind = "instrument"

    @property
    def arrival_dependent(self) -> bool:  # type: ignore[override]
        return bool(self.says())

    def output_schema(self) -> pa.Schema:
        if self.every <= 0:
            raise PlanError(f"every {self.every} rows is never.", remedy="Give 1 or more.")
        if self.pattern is not None:
            check_feedback(self.pattern, self.inputs[0].schema)
        for name in self.columns:
            self.column(name)
        return super().output_schema()

    def says(self) -> tuple[Said, ...]:
        if self.tells == "nobody":
            return ()
        if self.pattern is not None:
            return (Said(0, self.pattern),)
        return (Said(0, sample(self.schema, self.columns).replace("LE", value(0))),)

    def operator(self) -> Operator:
        return Instrumented(self)

    def describe(self) -> str:
        what = ", ".join(self.columns) if self.pattern is None else str(self.pattern)
        return f"every {self.every}: {what}"


class Instrumented(Operator):
    """Counts rows."""

    speaks = True

    def __init__(self, node: Instrument) -> None:
        super().__init__()
        self.node = node
        self.topics = ("LE", *node.columns)
        self._seen = 0

    def page(self, port: int, page: Page) -> Iterable[Item]:
        node, seen = self.node, self._seen
        self._seen = seen + len(page)
        if node.tells == "upstream" and self._seen // node.every > seen // node.every:
            if node.pattern is not None:
                self.up.append((0, Punctuation(node.pattern, Intent.ASSUMED)))
            elif node.every == 1:
                self.pending_feedback.append(page)
            else:
                first = node.every - 1 - seen % node.every
                self.pending_feedback.append(page.take(np.arange(first, len(page), node.every)))
        return [page]

    def feedback_for(self, page: Page) -> list[Punctuation]:
        return [Punctuation(p, Intent.ASSUMED) for p in self._patterns(page)]

    def _patterns(self, page: Page) -> list[Pattern]:
        """What is said of these rows. Nobody listens between two rows of a page, so it is said together."""
        names = self.node.columns
        if len(names) == 1 and pa.types.is_integer(page.schema.field(names[0]).type):
            whole = page.payload.column(names[0])
            if whole.null_count == 0:
                return _together(names[0], page.le, whole.to_numpy())
        columns = [page.payload.column(name).to_pylist() for name in self.node.columns]
        if len(columns) != 1:
            cells = zip(page.le.tolist(), *columns, strict=True)
            return [
                Pattern(LE=value(le), **{n: value(v) for n, v in zip(self.node.columns, row, strict=True)})
                for le, *row in cells
            ]
        at: dict[int, list[Any]] = {}
        for le, v in zip(page.le.tolist(), columns[0], strict=True):
            at.setdefault(le, []).append(v)
        alike: dict[tuple[Any, ...], list[int]] = {}
        for le, values in at.items():
            alike.setdefault(tuple(values), []).append(le)
        name = self.node.columns[0]
        return [Pattern(**{name: one_of(values)}, LE=one_of(starts)) for values, starts in alike.items()]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(pattern)

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "seen": self._seen}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._seen = meta["seen"]


def _together(name: str, le: I64, numbers: Any) -> list[Pattern]:
    """One pattern for all starts that have the same numbers."""
    if np.any(le[1:] < le[:-1]):
        order = np.argsort(le, kind="stable")
        le, numbers = le[order], numbers[order]
    first = [0, *(np.flatnonzero(le[1:] > le[:-1]) + 1).tolist(), len(le)]
    alike: dict[bytes, list[int]] = {}
    for low, high in pairwise(first):
        alike.setdefault(numbers[low:high].tobytes(), []).append(int(le[low]))
    whole: dict[Values, list[int]] = {}
    for same, at in alike.items():
        whole.setdefault(one_of(np.frombuffer(same, numbers.dtype).tolist()), []).extend(at)
    return [Pattern(**{name: values}, LE=one_of(at)) for values, at in whole.items()]


@dataclass(frozen=True, eq=False, kw_only=True)
class FeedbackFrom(Speaks):
    """Rows of the second input are feedback on the first, by columns that both have."""

    intent: Wish
    on: tuple[str, ...]
    leaving: Wish | None = None
    """What is said of the time behind a row's end; by default nothing."""

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
        told = Translation.of(self.schema.names, self.inputs[0].properties)
        return (FeedbackRule((told, None)),)

    def says(self) -> tuple[Said, ...]:
        if "assumed" not in (self.intent, self.leaving):
            return ()
        return (Said(0, sample(self.schema, self.on), standing=True),)

    def operator(self) -> Operator:
        return Relaying(self)

    def describe(self) -> str:
        return f"{self.intent} by {', '.join(self.on)}"


class Relaying(Operator):
    """Data goes through; control rows become messages about rows that start while they live.

    What is demanded is what is alive then: a result that is open has begun before.
    """

    speaks = True

    def __init__(self, node: FeedbackFrom) -> None:
        super().__init__(2)
        self.node = node
        self._spans: dict[Pattern, list[tuple[int, int]]] = {}
        """Where something is said of what leaves: the lifetimes of a key's control rows."""
        self._said: dict[Pattern, Values] = {}
        """Per key, of which times behind them it was said."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if port == 0:
            return [page]
        taken = np.zeros(len(page), np.bool_) if page.retracts is None else page.retracts
        news = page.re if page.re_new is None else np.where(taken, page.re_new, page.re)
        columns = [page.payload.column(name).to_pylist() for name in self.node.on]
        for row in range(len(page)):
            about = Pattern(**{n: value(c[row]) for n, c in zip(self.node.on, columns, strict=True)})
            le, re, new = int(page.le[row]), int(page.re[row]), int(news[row])
            self._speak(about, le, re if taken[row] else le, max(le, new))
            if self.node.leaving is not None:
                self._leave(about, self.node.leaving, (le, re) if taken[row] else None, (le, max(le, new)))
        return []

    def _speak(self, about: Pattern, le: int, before: int, now: int) -> None:
        """A control row from ``le`` on ends at another time now; one that is empty says nothing."""
        wish = self.node.intent
        if wish == "demanded":
            if now > before:
                self._tell(about.replace("LE", lt(now)).replace("RE", gt(before)), wish)
            return
        if before > le:
            self._tell(about.replace("LE", _from(le, before)), wish, withdrawn=True)
        if now > le:
            self._tell(about.replace("LE", _from(le, now)), wish)

    def _leave(
        self, about: Pattern, wish: Wish, before: tuple[int, int] | None, now: tuple[int, int]
    ) -> None:
        """Says something of the time after a key's rows, where none of them lives."""
        known = self._spans.get(about, [])
        if not known and len(self._spans) >= MOST:
            told = self.counters.feedback
            told["too many"] = told.get("too many", 0) + 1
            return
        was, spans = self._said.get(about, NOTHING), [*known]
        if before in spans:
            spans.remove(before)
        self._spans[about] = spans = [*spans, now]
        then = _behind(spans)
        if was == then:
            return
        self._said[about] = then
        if wish == "demanded":
            if not then.minus(was).is_empty:
                self._tell(about.replace("RE", gt(now[1])), wish)
            return
        if not was.is_empty:
            self._tell(about.replace("LE", was), wish, withdrawn=True)
        if not then.is_empty:
            self._tell(about.replace("LE", then), wish)

    def _tell(self, about: Pattern, wish: Wish, *, withdrawn: bool = False) -> None:
        notes: tuple[tuple[str, Any], ...] = ((STANDING, True), *(((WITHDRAWN, True),) if withdrawn else ()))
        self.up.append((0, Punctuation(about, Intent(wish), notes)))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        if port == 0:
            return definite(pattern)
        self._spans = {a: self._joined(s) for a, s in self._spans.items() if not self.promises[1].covers(a)}
        self._said = {a: times for a, times in self._said.items() if a in self._spans}
        return []

    def _joined(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Lifetimes that cannot change, with those that are over as one: no row starts between them any more.

        Of very many those are joined too that rows may start between; nothing is said of these times then.
        """
        bound = self.promises[1].cti
        if len(spans) <= MANY_SPANS:
            bound = min(bound, self.promises[0].cti)
        elif self.node.inputs[1].properties.insert_only:
            bound = INFINITY
        over = [span for span in spans if span[1] < bound]
        if len(over) < 2:
            return spans
        whole = min(le for le, _ in over), max(re for _, re in over)
        return [whole, *(span for span in spans if span not in over)]

    def meta(self) -> dict[str, Any]:
        said = [[a.to_json(), times.to_json()] for a, times in self._said.items()]
        spans = [[a.to_json(), s] for a, s in self._spans.items()]
        return {**super().meta(), "spans": spans, "said": said}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._spans = {Pattern.from_json(a): [(le, re) for le, re in s] for a, s in meta["spans"]}
        self._said = {Pattern.from_json(a): Values.from_json(v) for a, v in meta["said"]}


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Deadline(Speaks):
    """Demands a result when none has come for so long; the second input is the source that tells the time."""

    after: int

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
        return port == 1

    def feedback(self) -> tuple[FeedbackRule, ...]:
        return (FeedbackRule((Translation.of(self.schema.names, self.inputs[0].properties), None)),)

    def says(self) -> tuple[Said, ...]:
        """Of the source only the time is read."""
        return (Said(1, Pattern()),)

    def operator(self) -> Operator:
        return DeadlineOperator(self)

    def describe(self) -> str:
        return shown(self.after, self.time)


class DeadlineOperator(Operator):
    """Measures the source's time: how far its punctuation has come since the last result."""

    speaks = True

    def __init__(self, node: Deadline) -> None:
        super().__init__(2)
        self.node = node
        self._since = MIN_TIME
        self.up += [(said.port, assumed(said.pattern)) for said in node.says()]

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if port == 1:
            return []
        if len(page):
            self._since = max(self._since, self.promises[1].cti)
        return [page]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        if port == 0:
            return definite(pattern)
        now = self.promises[1].cti
        if now < INFINITY:
            if self._since == MIN_TIME:
                self._since = now
            elif now - self._since >= self.node.after:
                self._since = now
                self.up.append((0, Punctuation(Pattern(), Intent.DEMANDED)))
        return []

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "since": self._since}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._since = meta["since"]
