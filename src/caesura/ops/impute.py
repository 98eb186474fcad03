"""`impute` fills missing values by a lookup in an archive or a slow function, to a budget of rows or time.

      LE RE | id mph  |        impute("mph", by=archive, budget=1)
       1  2 | 3  null | +            2  3 | 4 51 | +      what is whole goes through at once
       1  2 | 5  null | +      ->    1  2 | 3 48 | +      the rest waits for its turn
       2  3 | 4  51   | +

Rows that wait are state. Those that will be ignored are struck from the list, which the late table tells;
those that are desired come first; punctuation waits for the rows that it speaks of. (The IMPUTE and EXPENSIVE
of the feedback thesis, 1.2, 7.4.)

A budget counts for every item that is taken, or for an epoch: a micro-batch on Spark, a call of `run` here.
An epoch in which nothing comes is a turn, too.
How many rows fit into a time is not the same in every run. Rows that wait and rows that have left are saved
together, so wherever a run is cut and taken up again each row leaves once.

Law: with feedback or without, and to any budget, each row is filled with the same value, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError, StreamError
from caesura.events.item import Item
from caesura.events.page import Page, concat
from caesura.events.rows import RowState
from caesura.expr import Expr, attributes, compile_predicate
from caesura.kernels.hashing import I64
from caesura.ops.archive import Archive, Fill
from caesura.ops.refused import Refused
from caesura.plan import (
    Counters,
    FeedbackRule,
    GivenUp,
    Holding,
    Need,
    Node,
    Operator,
    Properties,
    definite,
    row_rule,
    shown,
)
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, Promises, lt

Per = Literal["item", "epoch"]
STRUCK = "struck"
KEEP = 10_000
"""So many rows that were struck from the list are kept until they are asked for; all are counted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Impute(Node):
    """Fills one column where it is missing."""

    value: str
    by: Fill
    missing: Expr
    budget: int | timedelta | None = None
    """How many rows are worked on, or for how long, whenever an item is taken; None for all."""
    per: Per = "item"
    """Whether every item brings the budget, or every epoch."""

    kind = "impute"

    def output_schema(self) -> pa.Schema:
        self.column(self.value)
        if self.budget is not None and not _some(self.budget):
            what = f"{self.budget} rows" if isinstance(self.budget, int) else self.budget_text
            raise PlanError(f"a budget of {what} fills nothing.", remedy="Give 1 or more, or none.")
        if self.per not in ("item", "epoch"):
            raise PlanError(f"a budget per {self.per!r} is none.", remedy="Write 'item' or 'epoch'.")
        if self.per != "item" and self.budget is None:
            raise PlanError(
                f"per='{self.per}' says what brings a budget, and there is none.",
                remedy="Give one, like budget=100 or budget='20ms', or leave per= out: all rows are filled "
                "then.",
            )
        if not self.inputs[0].properties.insert_only:
            raise PlanError(
                "impute works on rows that stay; this stream corrects its rows.",
                remedy="Impute right behind the source, before the steps that correct.",
            )
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return None if self.value in pattern else pattern

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Rows that wait are struck from the list; the filled column is guarded behind."""
        names = [name for name in self.schema.names if name != self.value]
        rule = row_rule(names, self.inputs[0].properties, guard="input")[0]
        return (FeedbackRule(rule.ports, "rows", "input", purges=True),)

    def holds(self) -> tuple[Holding, ...]:
        """Without a budget nothing waits; with one, rows are freed by being filled, or struck by feedback."""
        if self.budget is None:
            return ()
        why = f"more of them may come with an {self.per} than its budget of {self.budget_text} fills"
        hold = Holding("rows that wait to be filled", 0, (Need(0, ()),), until="forever", why=why)
        return (replace(hold, holds_back=True, struck=True),)

    def needs(self, port: int, wanted: set[str]) -> set[str]:
        if isinstance(self.by, Archive):
            return {*wanted, self.value, *self.by.on, *attributes(self.missing)}
        return set(self.inputs[0].schema.names)

    def operator(self) -> Operator:
        return Imputing(self)

    def describe(self) -> str:
        if self.budget is None:
            return f"{self.value} where {self.missing}"
        rows = " rows" if isinstance(self.budget, int) else ""
        at = "at a time" if self.per == "item" else "in an epoch"
        return f"{self.value} where {self.missing}; {self.budget_text}{rows} {at}"

    @property
    def budget_text(self) -> str:
        """The budget in words."""
        if isinstance(self.budget, timedelta):
            return shown(self.budget // timedelta(microseconds=1), pa.timestamp("us"))
        return str(self.budget)


class Imputing(Operator):
    """Rows that wait, in the order in which they came."""

    def __init__(self, node: Impute) -> None:
        super().__init__()
        self.node = node
        self.waiting = RowState({"le": np.int64, "re": np.int64}, node.schema)
        self.struck = Refused(node.schema, node.time, limit=KEEP)
        """Rows that waited when feedback came, until they are asked for."""
        self._test = compile_predicate(node.missing, node.schema, time=node.time)
        self._place = node.schema.get_field_index(node.value)
        self._wanted: list[Pattern] = []
        self._owed = Promises()
        """Punctuation that waits for rows."""
        self._left = self._whole
        """What is left of the budget: rows, or nanoseconds."""
        self._turned = False
        """Whether it was its turn in this epoch."""

    clock: Callable[[], int] = staticmethod(time.perf_counter_ns)
    """Tells nanoseconds; budgets of time are measured by it."""

    @property
    def _whole(self) -> int:
        budget = self.node.budget
        if isinstance(budget, timedelta):
            return budget // timedelta(microseconds=1) * 1000
        return 0 if budget is None else budget

    def begin(self) -> None:
        """Another epoch brings its budget."""
        self._left, self._turned = self._whole, False

    def resume(self) -> Iterable[Item]:
        """Without an item, what waits has one turn in an epoch."""
        return [] if self._turned or not self.pending else [*self._spend(), *self._pay()]

    def page(self, port: int, page: Page) -> Iterable[Item]:
        missing = self._test(page.payload, page.le, page.re)
        items: list[Item] = []
        whole = page.filter(~missing)
        if len(whole):
            items.append(whole)
        some = page.filter(missing)
        if len(some):
            self.waiting.append({"le": some.le, "re": some.re}, some.payload)
        return [*items, *self._spend(), *self._pay()]

    def _spend(self) -> Sequence[Item]:
        """Fills what the budget allows."""
        budget = self.node.budget
        if budget is None or self.waiting.live == 0:
            return self._work(None)
        self._turned = True
        if self.node.per == "item":
            self._left = self._whole
        if self._left <= 0:
            return []
        if isinstance(budget, timedelta):
            return self._until()
        before = self.waiting.live
        items = self._work(self._left)
        self._left -= before - self.waiting.live
        return items

    def _until(self) -> list[Page]:
        """Fills rows until the time is over: one, then as many as will fit by what the last ones took."""
        pages: list[Page] = []
        rows = 1
        while self.waiting.live and self._left > 0:
            began = self.clock()
            pages += self._work(rows)
            took = max(1, self.clock() - began)
            self._left -= took
            rows = max(1, min(2 * rows, self._left * rows // took))
        return [concat(pages, self.node.schema)] if pages else []

    def _work(self, limit: int | None) -> list[Page]:
        """Fills rows that wait: wanted ones first, else in their order."""
        live = np.flatnonzero(self.waiting.alive)
        if len(live) == 0:
            return []
        if limit is not None and limit < len(live):
            live = self._first(live, limit)
        batch = self.waiting.payload.take(live)
        page = Page(self.waiting.get("le")[live], self.waiting.get("re")[live], self._filled(batch))
        self.waiting.kill(live)
        if self.waiting.wasteful:
            self.waiting.compact()
        extra = self.counters.extra
        extra["filled"] = extra.get("filled", 0) + len(live)
        return [page]

    def _first(self, live: I64, limit: int) -> I64:
        if not self._wanted:
            return live[:limit]
        mask = np.zeros(len(live), np.bool_)
        columns = self._columns(live)
        for pattern in self._wanted:
            mask |= pattern.matches(columns)
        order = np.argsort(~mask, kind="stable")
        return np.sort(live[order[:limit]])

    def _columns(self, rows: I64) -> dict[str, Any]:
        batch = self.waiting.payload.take(rows)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return {**columns, "LE": self.waiting.get("le")[rows], "RE": self.waiting.get("re")[rows]}

    def _filled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        made = self.node.by(batch)
        wanted = self.node.schema.field(self._place).type
        array = made if isinstance(made, pa.Array) else pa.array(made)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if len(array) != batch.num_rows:
            raise StreamError(
                f"what fills '{self.node.value}' gave {len(array)} values for {batch.num_rows} rows.",
                remedy="Return one value for each row of the batch.",
            )
        filled = array if array.type == wanted else pc.cast(array, wanted)
        return batch.set_column(self._place, self.node.schema.field(self._place), filled)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        items: list[Item] = []
        if pattern.time_bound == INFINITY and not pattern.without_time().attributes:
            items = list(self._work(None))
        carried = self.node.carry(port, pattern)
        if carried is not None:
            self._owed.add(carried)
        return [*items, *self._spend(), *self._pay()]

    def _pay(self) -> list[Item]:
        """The punctuation that no waiting row contradicts; a time bound as far as it can be."""
        owed, self._owed = self._owed.patterns(), Promises()
        if not owed:
            return []
        items: list[Item] = []
        live = np.flatnonzero(self.waiting.alive)
        starts = self.waiting.get("le")[live]
        batch = self.waiting.payload.take(live)
        for pattern in owed:
            bound = pattern.time_bound
            about = pattern.without_time().matches(batch, starts)
            first = int(starts[about].min(initial=INFINITY))
            if bound is None or bound <= first:
                clear = bound is not None or not pattern.matches(batch, starts).any()
                if clear:
                    items += definite(pattern)
                else:
                    self._owed.add(pattern)
                continue
            self._owed.add(pattern)
            self.counters.held_by = f"a row from {first} on waits to be filled"
            items += definite(pattern.replace("time", lt(first)))
        return items

    @property
    def pending(self) -> bool:
        return self.waiting.live > 0

    def flush(self) -> Iterable[Item]:
        """A claim answers for rows that wait too, so they are filled whatever the budget is."""
        return [*self._work(None), *self._pay()]

    def let_go(self, port: int, pattern: Pattern) -> GivenUp:
        """Strikes rows that will be ignored from the list."""
        live = np.flatnonzero(self.waiting.alive)
        struck = live[pattern.matches(self._columns(live))]
        until = int(self.waiting.get("re")[struck].max(initial=MIN_TIME))
        if len(struck):
            le, re = (self.waiting.get(name)[struck] for name in ("le", "re"))
            reason = f"waited to be filled when feedback came: assumed {pattern}"
            self.struck.add(Page(le, re, self.waiting.payload.take(struck)), [reason] * len(struck))
            self.counters.extra[STRUCK] = self.struck.count
        self.waiting.kill(struck)
        if self.waiting.wasteful:
            self.waiting.compact()
        return GivenUp([], until, len(struck))

    def prefer(self, patterns: list[Pattern]) -> None:
        self._wanted = [p for p in patterns if self.node.value not in p]

    def drain_notes(self) -> pa.Table | None:
        """The rows struck from the list since the last call, with the reason, as far as they were kept."""
        return self.struck.drain()

    def states(self) -> dict[str, RowState]:
        return {"waiting": self.waiting, "struck": self.struck.rows}

    def measure(self) -> Counters:
        """What is kept for who asks is bounded and no state of the stream."""
        counted = super().measure()
        counted.state_rows -= self.struck.rows.live
        counted.state_bytes -= self.struck.rows.nbytes
        return counted

    def meta(self) -> dict[str, Any]:
        wanted = [p.to_json() for p in self._wanted]
        owed = self._owed.to_json()
        return {**super().meta(), "owed": owed, "wanted": wanted, STRUCK: self.struck.count}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._owed = Promises.from_json(meta["owed"])
        self._wanted = [Pattern.from_json(p) for p in meta["wanted"]]
        self.struck.count = meta[STRUCK]
        if self.struck.count:
            self.counters.extra[STRUCK] = self.struck.count

    def rebuild(self) -> None:
        if self.waiting.live < self.waiting.size:
            self.waiting.compact()


def _some(budget: int | timedelta) -> bool:
    return budget > timedelta() if isinstance(budget, timedelta) else budget > 0
