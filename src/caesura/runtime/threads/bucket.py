"""One bucket of one stage, on a thread: a query of the stage's steps, fed with the rows of its keys.

Nothing is shared between two buckets but what never changes: the plan, pages, the secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import chain

from caesura.events import Item, Page
from caesura.events.identity import Secret
from caesura.events.interleaved import by_time
from caesura.events.page import concat
from caesura.plan import Speculate
from caesura.plan.cut import Stages
from caesura.punctuation import Alignment, Intent, Punctuation
from caesura.runtime.buckets.grafting import StagePlan
from caesura.runtime.buckets.labels import OUT
from caesura.runtime.graph.edge import merged
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.query.query import Query
from caesura.runtime.threads.dealing import DealtPart
from caesura.runtime.threads.routing import part_of
from caesura.runtime.threads.spreading import DealtStep

Sent = dict[str, list[Item]]
"""Items by the label of their exchange, for all buckets."""
Inbox = Mapping[str, Sequence[Sequence[Item]]]
"""By label, what each bucket of the stage before sends; the reading thread is one such."""


class ThreadBucket:
    """The steps of a stage over the rows of one bucket."""

    def __init__(
        self,
        stages: Stages,
        stage: int,
        number: int,
        buckets: int,
        secret: Secret,
        *,
        speculate: Speculate,
        schedule: Schedule | ScheduleName | None,
    ) -> None:
        self.stage, self._secret = stages.stages[stage], secret
        self._number, self._buckets = number, buckets
        self.plan = StagePlan(stages, self.stage)
        self.query = Query(
            self.plan.outputs,
            speculate=speculate,
            schedule=schedule,
            unused=[a.label for a in self.stage.arrivals],
            secret=secret,
        )
        self._arrivals = {a.label: a for a in self.stage.arrivals}
        between = [a.label for a in self.stage.arrivals if a.source_stage > 0]
        self._tables = bool(self.query.parts.readers)
        """Whether there are tables to be read before the first rows look anything up."""
        self._alignments = {label: Alignment(range(buckets)) for label in between}
        self.dealt: DealtPart
        """What came in this bucket whatever its keys, where rows do (see `deal`)."""

    def deal(self, step: DealtStep) -> None:
        """Lets the rows of windows come whatever their keys."""
        cell = self.query.parts.cells[self.plan.name_of(step.node.fingerprint)]
        self.dealt = DealtPart(cell.operator, step.keys)

    @property
    def is_fused(self) -> bool:
        """Whether one pass takes pages past several steps."""
        return any(cell.fused is not None for cell in self.query.graph.cells)

    def divide(self, threads: Executor, count: int) -> None:
        """Has large pages worked on by so many threads, where one pass takes them past several steps."""
        for cell in self.query.graph.cells:
            if cell.fused is not None:
                cell.fused.divide(threads, count)

    def take_any(self, label: str, page: Page | None) -> None:
        """Takes rows of any key into windows that others take over; `take_over` of all buckets follows."""
        self._read_tables()
        self.dealt.windows.clear()
        if page is not None:
            self.dealt.windows.swap()
            try:
                self.query.feed(label, page)
                self.query.run()
            finally:
                self.dealt.windows.swap()
        self.dealt.divide(self._buckets, self._secret)

    def take_over(self, buckets: Sequence[ThreadBucket], inbox: Inbox) -> tuple[Sent, Sent]:
        """Takes the windows of its keys from all buckets, then the punctuation of a round."""
        for bucket in buckets:
            self.dealt.take_over(bucket.dealt, self._number)
        return self.step(inbox)

    def _read_tables(self) -> None:
        if self._tables:
            self._tables = False
            self.query.run()

    def step(self, inbox: Inbox) -> tuple[Sent, Sent]:
        """Takes the items of a round; gives what goes to the next stages, and what leaves the plan."""
        self._read_tables()
        for label, origins in inbox.items():
            if label in self._alignments:
                pages = by_time([list(self._own_pages(label, items)) for items in origins])
                feed: Iterable[Item] = [*pages, *promised(self._alignments[label], origins)]
            else:
                feed = self._own(label, chain(*origins))
            for item in feed:
                self.query.feed(label, item)
            self.query.run()
        sent = {d.label: merged(self.query.take(d.label)) for d in self.stage.departures}
        return sent, {name: merged(self.query.take(OUT + name)) for name in self.stage.outputs}

    def _own(self, label: str, items: Iterable[Item]) -> Iterator[Item]:
        """The rows of this bucket's keys, and all punctuation."""
        for item in items:
            yield from self._own_pages(label, [item]) if isinstance(item, Page) else [item]

    def _own_pages(self, label: str, items: Iterable[Item]) -> Iterator[Page]:
        for page in items:
            if isinstance(page, Page):
                mine = part_of(page, self._arrivals[label], self._buckets, self._number, self._secret)
                if mine is not None:
                    yield mine


def promised(alignment: Alignment, origins: Sequence[Sequence[Item]]) -> list[Item]:
    """The punctuation that holds for all origins after these items."""
    given: list[Item] = []
    for origin, items in enumerate(origins):
        for item in items:
            if not isinstance(item, Page) and item.intent is Intent.DEFINITE:
                given += [Punctuation(p, Intent.DEFINITE) for p in alignment.add(origin, item.pattern)]
    return given


def joined(items: Sequence[Item]) -> list[Item]:
    """The items, pages behind each other as one: each bucket has a part of it, and a part should be large."""
    made: list[Item] = []
    run: list[Page] = []
    for item in items:
        alike = isinstance(item, Page) and (not run or _kind(run[0]) == _kind(item))
        if run and not alike:
            made.append(concat(run, run[0].schema))
            run = []
        if isinstance(item, Page):
            run.append(item)
        else:
            made.append(item)
    return [*made, concat(run, run[0].schema)] if run else made


def _kind(page: Page) -> tuple[bool, bool]:
    return page.settled, page.partial
