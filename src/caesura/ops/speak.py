"""Steps that pass their rows on and speak to those above: `instrument`, `feedback_from`, `deadline`.

instrument(every=n)       after every n rows says that some rows will be ignored (thesis, 6.3 and 7.3)
feedback_from(control)    every row of another stream is feedback on this one, until it is retracted
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
from caesura.feedback.responder import STANDING, WITHDRAWN, assumed
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
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Punctuation, Values, one_of, value

Wish = Literal["assumed", "desired", "demanded"]


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
    def lets_go(self) -> bool:  # type: ignore[override]
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
                self.unsaid.append(page)
            else:
                first = node.every - 1 - seen % node.every
                self.unsaid.append(page.take(np.arange(first, len(page), node.every)))
        return [page]

    def words(self, page: Page) -> list[Punctuation]:
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
    """What is said of a row that is taken back; by default its feedback is withdrawn."""

    kind = "feedback_from"
    partitioning = "one"

    @property
    def lets_go(self) -> bool:  # type: ignore[override]
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
    """Data goes through; control rows become messages."""

    speaks = True

    def __init__(self, node: FeedbackFrom) -> None:
        super().__init__(2)
        self.node = node

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if port == 0:
            return [page]
        gone = np.zeros(len(page), np.bool_)
        if page.re_new is not None and page.retracts is not None:
            gone = page.retracts & (page.re_new <= page.le)
            inserts = ~page.retracts
        else:
            inserts = np.ones(len(page), np.bool_)
        columns = [page.payload.column(name).to_pylist() for name in self.node.on]
        for row in np.flatnonzero(gone | inserts).tolist():
            about = Pattern(**{n: value(c[row]) for n, c in zip(self.node.on, columns, strict=True)})
            self._say(about, leaving=bool(gone[row]))
        return []

    def _say(self, about: Pattern, *, leaving: bool) -> None:
        node = self.node
        if not leaving:
            if node.leaving == "assumed":
                self._tell(about, "assumed", withdrawn=True)
            self._tell(about, node.intent)
            return
        if node.intent != "demanded":
            self._tell(about, node.intent, withdrawn=True)
        if node.leaving is not None:
            self._tell(about, node.leaving)

    def _tell(self, about: Pattern, wish: Wish, *, withdrawn: bool = False) -> None:
        notes: tuple[tuple[str, Any], ...] = ((STANDING, True), *(((WITHDRAWN, True),) if withdrawn else ()))
        self.up.append((0, Punctuation(about, Intent(wish), notes)))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        return definite(self.node.carry(port, pattern))


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

    def feedback(self) -> tuple[FeedbackRule, ...]:
        return (FeedbackRule((Translation.of(self.schema.names, self.inputs[0].properties), None)),)

    def says(self) -> tuple[Said, ...]:
        """Of the source only the time is read."""
        return (Said(1, Pattern()),)

    def operator(self) -> Operator:
        return Waiting(self)

    def describe(self) -> str:
        return shown(self.after, self.time)


class Waiting(Operator):
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
