"""A query on several threads: one reads and routes, the others each work on the rows of some keys.

     read, route | bucket 0: steps, deliver |
                 | bucket 1: steps, deliver |  -> pages of all buckets, then what all of them promise

The sources are read, and rows made legal or late, in one place, as on one thread. A round is what was read at
once; while the buckets work on one, the next is read. Kernels and Arrow let go of Python's lock.

Law: histories and late rows are those of the query on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from caesura.errors import StreamError, looked_up
from caesura.events import Item, Page
from caesura.events.identity import Secret
from caesura.io.sinks.rows import history_table
from caesura.misuse import checked_methods
from caesura.ops.observe import refuse_observed_twice
from caesura.plan import Counters, Speculate, here, walk
from caesura.plan.step_log import StepLog
from caesura.plan.tally import together as all_tallied
from caesura.punctuation import Alignment
from caesura.runtime.graph.edge import merged
from caesura.runtime.graph.rejected import noted_by, together, untold
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.graph.source_reader import refused_by
from caesura.runtime.query.closing import Closing
from caesura.runtime.query.query import Query
from caesura.runtime.threads.bucket import Inbox, Sent, ThreadBucket, joined, promised
from caesura.runtime.threads.dealing import Dealer
from caesura.runtime.threads.round_size import RoundSize
from caesura.runtime.threads.spreading import SpreadPlan

T = TypeVar("T")


@checked_methods
class ThreadedQuery(Closing):
    """A plan whose stages run in buckets, each on a thread; it is run or stepped, and its output taken."""

    def __init__(
        self,
        plan: SpreadPlan,
        threads: int,
        *,
        speculate: Speculate,
        schedule: Schedule | ScheduleName | None = None,
    ) -> None:
        stages, count = plan.stages, plan.buckets
        refuse_observed_twice(walk(*stages.outputs.values()))
        self.threads, self.outputs = threads, dict(stages.outputs)
        self._stages, self._count, self._secret = stages, count, Secret.drawn()
        departures = stages.stages[0].departures
        self.reading = Query({d.label: d.producer for d in departures}, secret=self._secret)
        options: dict[str, Any] = {"speculate": speculate, "schedule": schedule}
        self.buckets = [
            [ThreadBucket(stages, n, number, count, self._secret, **options) for number in range(count)]
            for n in range(1, len(stages.stages))
        ]
        """By stage."""
        self._dealer = None if plan.dealt is None else Dealer(plan.dealt, count, self._secret)
        if plan.dealt is not None:
            for bucket in self.buckets[plan.dealt.edge.target_stage - 1]:
                bucket.deal(plan.dealt)
        self._taps: dict[str, list[Item]] = {name: [] for name in self.outputs}
        self._alignments = {name: Alignment(range(count)) for name in self.outputs}
        self._given: set[str] = set()

    @property
    def works_to_budgets(self) -> bool:
        """Whether a step has work for every epoch, of which a round is not one."""
        return any(bucket.query.runner.budgets.cells for stage in self.buckets for bucket in stage)

    def run(self) -> None:
        """Works until every source is at its end."""
        with self._working() as workers, ThreadPoolExecutor(1) as reader:
            size = RoundSize(self.reading.parts.readers.values())
            ahead = reader.submit(self._read, size)
            while (boxes := ahead.result()) is not None:
                size.follow(boxes, gains=self._gains_by_large_rounds)
                ahead = reader.submit(self._read, size)
                self._round(workers, boxes)

    @property
    def _gains_by_large_rounds(self) -> bool:
        """Whether a round costs more than its rows: windows change hands, or one thread brings them in."""
        if self._dealer is not None:
            return self._dealer.deals_now
        return self._count == 1 and any(bucket.is_fused for stage in self.buckets for bucket in stage)

    def step(self) -> bool:
        """Reads one batch and works it off; False when every source is at its end."""
        boxes = self._read(None)
        if boxes is None:
            return False
        with self._working() as workers:
            self._round(workers, boxes)
        return True

    @contextmanager
    def _working(self) -> Iterator[Executor]:
        """The threads that buckets work on besides this one; an only bucket has them help with its pages."""
        with ThreadPoolExecutor(self.threads) as workers:
            if self._count == 1:
                for stage in self.buckets:
                    stage[0].divide(workers, self.threads)
            yield workers

    def close(self) -> None:
        """Releases what its sources hold open."""
        self.reading.close()

    def _read(self, size: RoundSize | None) -> Sent | None:
        """The rows of a round, or of one batch, by exchange, in the order of their coming; None at the end.

        Fewer where no source has more now.
        """
        came: dict[str, list[Item]] = {d.label: [] for d in self._stages.stages[0].departures}
        order: dict[str, int] = {}
        count, going = 0, True
        while going and (count == 0 if size is None else size.go_on(count)):
            going = self.reading.step()
            while self.reading.graph.deepest() is not None:
                self.reading.step()
            for label, items in came.items():
                fresh = self.reading.take(label)
                if fresh:
                    order.setdefault(label, len(order))
                count += sum(len(item) for item in fresh if isinstance(item, Page))
                items += fresh
            readers = self.reading.parts.readers.values()
            if not any(reader.poll() for reader in readers if not reader.done):
                break
        if not going and not any(came.values()):
            return None
        read = sorted(came, key=lambda label: order.get(label, 0))
        return {label: joined(merged(came[label])) for label in read}

    def _round(self, workers: Executor, read: Sent) -> None:
        """Lets every stage work on what came, one behind the other."""
        waiting = {label: [items] for label, items in read.items()}
        left: dict[str, list[list[Item]]] = {name: [] for name in self.outputs}
        for stage in self.buckets:
            labels = {a.label for a in stage[0].stage.arrivals}
            inbox = {label: origins for label, origins in waiting.items() if label in labels}
            for sent, results in self._stepped(workers, stage, inbox):
                for label, items in sent.items():
                    waiting.setdefault(label, []).append(items)
                for name, items in results.items():
                    left[name].append(items)
        for name, origins in left.items():
            pages = [item for items in origins for item in items if isinstance(item, Page)]
            self._taps[name] += [*pages, *promised(self._alignments[name], origins)]

    def _stepped(
        self, workers: Executor, stage: list[ThreadBucket], inbox: Inbox
    ) -> Iterator[tuple[Sent, Sent]]:
        """Lets the buckets of a stage work, side by side, and gives what leaves each."""
        if self._dealer is not None and self._dealer.label in inbox:
            [items] = inbox[self._dealer.label]
            if self._dealer.deals(items):
                yield from self._dealt(workers, stage, self._dealer, items)
                return
        yield from side_by_side(workers, [partial(bucket.step, inbox) for bucket in stage])

    def _dealt(
        self, workers: Executor, stage: list[ThreadBucket], dealer: Dealer, items: Sequence[Item]
    ) -> Iterator[tuple[Sent, Sent]]:
        """The same where rows come in any bucket: all take theirs before any takes over from others."""
        parts = zip(stage, dealer.hands(items), strict=True)
        side_by_side(workers, [partial(bucket.take_any, dealer.label, part) for bucket, part in parts])
        dealer.note(items, sum(bucket.dealt.windows.count for bucket in stage))
        rest = {dealer.label: [[item for item in items if not isinstance(item, Page)]]}
        yield from side_by_side(workers, [partial(bucket.take_over, stage, rest) for bucket in stage])

    # What came of it.

    def take(self, output: str) -> list[Item]:
        """What came out since the last call."""
        tap = looked_up(self._taps, output, "output", "take")
        self._given.add(output)
        items = tap[:]
        tap.clear()
        return items

    def table(self, output: str = "out") -> pa.Table:
        """What came out so far, as a history with LE and RE: an Arrow table; a null RE never ends."""
        node = looked_up(self.outputs, output, "output", "table")
        if output in self._given:
            raise StreamError(
                f"what came out at '{output}' was taken, and is not kept here too.",
                remedy="Ask for table() in place of take().",
            ).at("query", here())
        return history_table(self._taps[output], node.schema, node.time)

    def late(self) -> dict[str, pa.Table]:
        """Rows that sources refused, or that steps speak of, since the last call."""
        found: dict[str, list[pa.Table]] = {}
        tables = [self.reading.late()]
        for stage in self.buckets:
            for number, bucket in enumerate(stage):
                bucket.query.settle()
                cells = bucket.query.graph.cells
                elsewhere = untold(self._stages, bucket.stage.number, number)
                refused, own = refused_by(cells), noted_by(cells, but=elsewhere)
                tables.append(own if number else refused | own)  # a table that every bucket holds
        for some in tables:
            for name, table in some.items():
                found.setdefault(name, []).append(table)
        return {name: table for key, some in found.items() for name, table in together(key, some)}

    def counters(self) -> dict[str, Counters]:
        """What each step has done and holds, over all buckets."""
        counted: dict[str, Counters] = {}
        for node in walk(*self.outputs.values()):
            label, number = node.step, 2
            while label in counted:
                label, number = f"{node.step}-{number}", number + 1
            some = self._counters_of(node.fingerprint)
            if some:
                counted[label] = added(some)
        return counted

    def _counters_of(self, fingerprint: str) -> list[Counters]:
        cell = self.reading.parts.cells.get(fingerprint)
        if cell is not None:
            return [cell.operator.measure()]
        for stage in self.buckets:
            own = [b.query.parts.cells.get(b.plan.name_of(fingerprint)) for b in stage]
            copies = stage[0].query.parts.cells.get(fingerprint)  # a table that every bucket holds
            found = [cell.operator.measure() for cell in (own if any(own) else [copies]) if cell is not None]
            if found:
                return found
        return []

    def log(self, *steps: str) -> StepLog:
        """What these steps, or all, have counted, with the keys that functions of the user's `note`."""
        return StepLog(self.counters(), steps)

    @property
    def state_rows(self) -> int:
        return sum(c.state_rows for c in self.counters().values())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Query, name):
            raise AttributeError(name)
        raise StreamError(
            f"a query on {self.threads} threads is run or stepped, and its output taken; '{name}' is for one "
            "thread.",
            remedy="Make it without threads=.",
        ).at("query", here())


def side_by_side(workers: Executor, tasks: Sequence[Callable[[], T]]) -> list[T]:
    """What tasks give that are done at the same time, the first of them here."""
    others = [workers.submit(task) for task in tasks[1:]]
    return [tasks[0](), *(other.result() for other in others)]


def added(some: list[Counters]) -> Counters:
    """What the buckets count, together; pages and sweeps are those of one."""
    whole, first = Counters(), some[0]
    for counters in some:
        for name in ("rows_in", "rows_out", "state_rows", "state_bytes"):
            setattr(whole, name, getattr(whole, name) + getattr(counters, name))
        for name in ("extra", "feedback"):
            mine: dict[str, int] = getattr(whole, name)
            for key, count in getattr(counters, name).items():
                mine[key] = mine.get(key, 0) + count
        whole.observed = all_tallied(whole.observed, counters.observed)
    for name in ("pages_in", "sweeps", "held_by", "punctuation_in", "punctuation_out"):
        setattr(whole, name, getattr(first, name))
    return whole
