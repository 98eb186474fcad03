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
the whole stream, so all rows meet in one bucket. With `by` a column takes the place of the start: any that
rows come in the order of, more or less, such as a number of sequence or a time of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError
from caesura.events.item import Item
from caesura.events.noted import NotedRows
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.feedback.bag import RowBag
from caesura.feedback.messages import assumed
from caesura.kernels.hashing import I64
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
    by: str = ""
    """The column of which rows may be so far behind; empty for their starts."""

    kind = "pace"
    partitioning = "one"
    sends_feedback = True
    arrival_dependent = True
    punctuated_by: ClassVar[PunctuatedBy] = "rows"

    def output_schema(self) -> pa.Schema:
        if self.within < 0:
            raise PlanError(f"a bound of {self.within} lets nothing pass.", remedy="Give 0 or more.")
        schema = super().output_schema()
        if self.by and not _counts(self.column(self.by).type):
            raise PlanError(
                f"'{self.by}' is {self.column(self.by).type}, whose values have no distance.",
                remedy="Give a column of whole numbers, timestamps or dates.",
            )
        return schema

    def holds(self) -> tuple[Holding, ...]:
        if self.properties.insert_only:
            return ()
        names = tuple(self.schema.names)
        return tuple(
            Holding("rows that were too late", port, (Need(port, names),)) for port in range(len(self.inputs))
        )

    @property
    def remark(self) -> str:
        return (
            f"'{self.step}' keeps the rows that were too late until somebody asks for them, as late() does: "
            f"{KEEP:,} at most, also in its checkpoints."
        )

    def feedback_sent(self) -> tuple[OwnFeedback, ...]:
        if self.tells == "nobody":
            return ()
        ports = range(len(self.inputs))
        others = [tuple(other for other in ports if other != port) for port in ports]
        return tuple(OwnFeedback(port, self.too_late(0), moved_by=others[port]) for port in ports)

    def too_late(self, bound: int) -> Pattern:
        """The feedback that is sent to the inputs."""
        return Pattern(LE=lt(bound)) if not self.by else Pattern(**{self.by: lt(self.value(bound))})

    def value(self, number: int) -> Any:
        """A number as the column has it."""
        return pa.scalar(number, pa.int64()).cast(self.column(self.by).type).as_py()

    @property
    def distance(self) -> str:
        """The bound in words."""
        return shown(self.within, self.column(self.by).type if self.by else self.time)

    def reason(self) -> str:
        """Why a row is left out."""
        return f"more than {self.distance} behind the furthest {repr(self.by) if self.by else 'start'}"

    def operator(self) -> Operator:
        return Pacing(self)

    def describe(self) -> str:
        return f"within {self.distance}" + (f" by {self.by}" if self.by else "")


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
        self._sent_bound = self._promised = MIN_TIME
        self._closes = node.properties.insert_only

    @property
    def bound(self) -> int:
        """Rows that start before this are too late."""
        return MIN_TIME if self.mark < MIN_TIME + self.node.within else self.mark - self.node.within

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        places = self._places(page)
        starts = places if page.retracts is None else np.where(page.retracts, MIN_TIME, places)
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

    def _places(self, page: Page) -> I64:
        """Where rows stand in the order that is kept to; those with a null nowhere, so that they pass."""
        if not self.node.by:
            return page.le
        column = page.payload.column(self.node.by)
        narrow = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        return pc.fill_null(column.cast(narrow).cast(pa.int64()), MIN_TIME).to_numpy()  # type: ignore[no-any-return]

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
        if self.node.by:
            before, self._promised = self._promised, self.bound
            late = Punctuation(self.node.too_late(self.bound), Intent.DEFINITE)
            return [late] if self.bound > before else []
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
        come = self._come(pattern)
        if come <= self.mark:
            return items
        self.mark = come
        return [*items, *self._moved()]

    def _come(self, pattern: Pattern) -> int:
        """How far punctuation says that a stream has come."""
        by = self.node.by
        if not by:
            return max(
                (promises.cti for promises in self.promises if promises.cti < INFINITY), default=MIN_TIME
            )
        below = pattern[by] if [name for name, _ in pattern.items()] == [by] else None
        if below is None or not below.low or len(below.cuts) != 1:
            return MIN_TIME
        at = pa.scalar(below.cuts[0][0], self.node.column(by).type)
        narrow = pa.int32() if pa.types.is_date32(at.type) else pa.int64()
        return int(at.cast(narrow).as_py())

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
        marks = {"mark": self.mark, "sent": self._sent_bound, "promised": self._promised}
        return {**super().meta(), **marks, "late": counted}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self.mark, self._sent_bound, self._promised = (meta[name] for name in ("mark", "sent", "promised"))
        self.counters.extra[TOO_LATE] = meta["late"]


def _counts(t: pa.DataType) -> bool:
    """Whether values of a type are numbers that may be so far apart."""
    return bool(pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date32(t))
