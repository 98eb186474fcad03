"""`instrument(every=n)`: after every n rows sends feedback that some rows are not needed (thesis, 6.3)."""

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
from caesura.kernels.hashing import I64
from caesura.ops.pass_through import PassThrough
from caesura.plan import Operator, OwnFeedback, definite
from caesura.plan.feedback import check_feedback
from caesura.plan.samples import sample
from caesura.punctuation import Intent, Pattern, Punctuation, Values, one_of, value


@dataclass(frozen=True, eq=False, kw_only=True)
class Instrument(PassThrough):
    """Says the same pattern, or that of the latest row's columns, after every so many rows."""

    every: int
    pattern: Pattern | None = None
    columns: tuple[str, ...] = ()
    tells: Literal["upstream", "nobody"] = "upstream"
    """Whether it speaks at all: the other runs in a comparison count rows and say nothing."""

    kind = "instrument"

    @property
    def arrival_dependent(self) -> bool:  # type: ignore[override]
        return bool(self.feedback_sent())

    def output_schema(self) -> pa.Schema:
        if self.every <= 0:
            raise PlanError(f"every {self.every} rows is never.", remedy="Give 1 or more.")
        if self.pattern is not None:
            check_feedback(self.pattern, self.inputs[0].schema)
        for name in self.columns:
            self.column(name)
        return super().output_schema()

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        if self.tells == "nobody":
            return ()
        if self.pattern is not None:
            return (OwnFeedback(0, self.pattern),)
        return (OwnFeedback(0, sample(self.schema, self.columns).replace("LE", value(0))),)

    def operator(self) -> Operator:
        return Instrumented(self)

    def describe(self) -> str:
        what = ", ".join(self.columns) if self.pattern is None else str(self.pattern)
        return f"every {self.every}: {what}"


class Instrumented(Operator):
    """Counts rows."""

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
                self.outbox.send(0, Punctuation(node.pattern, Intent.ASSUMED))
            elif node.every == 1:
                self.outbox.defer(page)
            else:
                first = node.every - 1 - seen % node.every
                self.outbox.defer(page.take(np.arange(first, len(page), node.every)))
        return [page]

    def feedback_for(self, page: Page) -> list[Punctuation]:
        return [Punctuation(p, Intent.ASSUMED) for p in self._patterns(page)]

    def _patterns(self, page: Page) -> list[Pattern]:
        """The feedback on these rows. Nobody listens between two rows of a page, so it is sent together."""
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
