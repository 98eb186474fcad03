"""`pace` merges streams and keeps to a bound behind the furthest time seen: what is later is left out.

      LE  RE | id |      pace(within=5)
      10  11 | 1  | +           10  11 | 1 | +
       3   4 | 2  | +    ->                       3 < 10 - 5: too late, and the inputs are told so
       6   7 | 3  | +            6   7 | 3 | +

It depends on arrival, and obeys this law instead of the first: the output is a part of the union, no row
starts more than the bound before the furthest start of a row before it, and what was left out is counted
and can be asked for, also what steps above stop because they were told. A retract is left out exactly with
its insert. (The PACE of the feedback thesis, 7.4.)

Punctuation moves the mark as rows do, so that it moves on while no row comes. The furthest start is that of
the whole stream, so all rows meet in one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.noted import NotedRows
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.feedback.bag import RowBag
from caesura.feedback.messages import assumed
from caesura.ops.union import Merge, Union
from caesura.plan import Counters, Holding, Need, Operator, OwnFeedback, shown
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import INFINITY, MIN_TIME, Intent, Pattern, Punctuation, lt

TOO_LATE = "too late"
KEEP = 10_000
"""So many rows that were too late are kept until they are asked for; all are counted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pace(Union):
    """All events of some streams that are not too far behind the furthest."""

    within: int
    tells: Literal["upstream", "nobody"] = "upstream"
    """Whether feedback on what is too late is sent to the inputs."""

    kind = "pace"
    partitioning = "one"
    sends_feedback = True
    arrival_dependent = True
    punctuated_by: ClassVar[PunctuatedBy] = "rows"

    def output_schema(self) -> pa.Schema:
        if self.within < 0:
            raise PlanError(f"a bound of {self.within} lets nothing pass.", remedy="Give 0 or more.")
        return super().output_schema()

    def holds(self) -> tuple[Holding, ...]:
        if self.properties.insert_only:
            return ()
        names = tuple(self.schema.names)
        return tuple(
            Holding("rows that were too late", port, (Need(port, names),)) for port in range(len(self.inputs))
        )

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        if self.tells == "nobody":
            return ()
        ports = range(len(self.inputs))
        others = [tuple(other for other in ports if other != port) for port in ports]
        return tuple(OwnFeedback(port, self.too_late(0), moved_by=others[port]) for port in ports)

    def too_late(self, bound: int) -> Pattern:
        """The feedback that is sent to the inputs."""
        return Pattern(LE=lt(bound))

    def reason(self) -> str:
        """Why a row is left out."""
        return f"more than {shown(self.within, self.time)} behind the furthest start"

    def operator(self) -> Operator:
        return Pacing(self)

    def describe(self) -> str:
        return f"within {shown(self.within, self.time)}"


class Pacing(Merge):
    """The furthest start so far, and the rows left out that may still be retracted."""

    def __init__(self, node: Pace) -> None:
        super().__init__(len(node.inputs))
        self.node = node
        self.mark = MIN_TIME
        """The furthest start seen, or time that punctuation has come to."""
        self.bags = [
            None if child.properties.insert_only else RowBag(node.schema, fixed=child.properties.fixed_ends)
            for child in node.inputs
        ]
        self._left_out = NotedRows(node.schema, limit=KEEP)
        """The rows left out that nobody has asked for yet."""
        self._sent_bound = MIN_TIME
        self._closes = node.properties.insert_only

    @property
    def bound(self) -> int:
        """Rows that start before this are too late."""
        return MIN_TIME if self.mark < MIN_TIME + self.node.within else self.mark - self.node.within

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        starts = page.le if page.retracts is None else np.where(page.retracts, MIN_TIME, page.le)
        marks = np.maximum(np.maximum.accumulate(starts), self.mark)
        late = (
            (starts < marks - self.node.within) & (starts > MIN_TIME) & (marks > MIN_TIME + self.node.within)
        )
        self.mark = int(marks[-1])
        bag = self.bags[port]
        if bag is not None:
            late = bag.take(page, late)
        items: list[Item] = []
        if late.any():
            self._leave_out(page.filter(late))
        timely = page.filter(~late)
        if len(timely):
            items.append(timely)
        return [*items, *self._moved()]

    def _moved(self) -> list[Item]:
        """What follows from how far the mark is now."""
        self._send()
        return self._progress() if self._closes and self.bound > MIN_TIME else []

    def _leave_out(self, page: Page) -> None:
        extra = self.counters.extra
        extra[TOO_LATE] = extra.get(TOO_LATE, 0) + len(page)
        self._left_out.add(page, [self.node.reason()] * len(page))

    def _send(self) -> None:
        """Tells the inputs how far behind is too late, when that has moved."""
        if self.bound <= self._sent_bound:
            return
        self._sent_bound = self.bound
        why = f"{self.node.reason()}: '{self.node.step}' ignores it"
        message = assumed(self.node.too_late(self.bound), why=why)
        for sent in self.node.feedback_sent():
            self.outbox.send(sent.port, message)

    def _progress(self) -> list[Item]:
        """On inserts alone the bound is a promise: nothing before it leaves any more."""
        last = self.counters.punctuation_out
        known = last.pattern.time_bound if last is not None else MIN_TIME
        if known is not None and self.bound <= max(known, self.alignment.held.cti):
            return []
        return [Punctuation(Pattern.before(self.bound), Intent.DEFINITE)]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        for bag, promises in zip(self.bags, self.promises, strict=True):
            if bag is not None:
                bag.settle(promises)
        items = list(super().definite(port, pattern))
        come = max((promises.cti for promises in self.promises if promises.cti < INFINITY), default=MIN_TIME)
        if come <= self.mark:
            return items
        self.mark = come
        return [*items, *self._moved()]

    def drain_notes(self) -> pa.Table | None:
        """The rows left out since the last call, with the reason, as far as they were kept."""
        return self._left_out.taken(self.node.time)

    def states(self) -> dict[str, RowState]:
        bags = {f"late{port}": bag.rows for port, bag in enumerate(self.bags) if bag is not None}
        return {**bags, "left_out": self._left_out.rows}

    def measure(self) -> Counters:
        """What is kept for who asks is bounded and no state of the stream."""
        counted = super().measure()
        counted.state_rows -= self._left_out.rows.live
        counted.state_bytes -= self._left_out.rows.nbytes
        return counted

    def rebuild(self) -> None:
        for bag in self.bags:
            if bag is not None:
                bag.rebuild()

    def meta(self) -> dict[str, Any]:
        counted = self.counters.extra.get(TOO_LATE, 0)
        return {**super().meta(), "mark": self.mark, "sent": self._sent_bound, "late": counted}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self.mark, self._sent_bound = meta["mark"], meta["sent"]
        self.counters.extra[TOO_LATE] = meta["late"]
