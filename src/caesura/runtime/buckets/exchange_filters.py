"""What each bucket behind an exchange does not want, though others still may: it is not sent there.

What all buckets assume is left out by the step in front of the exchange; until they agree, rows are
filtered on their way to each bucket by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from caesura.events import Page
from caesura.events.chunks import Chunks, SavedJson, under
from caesura.feedback.guard import Guard
from caesura.feedback.messages import STANDING, WHY, WITHDRAWN
from caesura.plan.cut import Exchange
from caesura.plan.feedback import could_go
from caesura.punctuation import Pattern, Promises, Punctuation

TIME_ONLY = frozenset({("time",)})


class ExchangeFilter:
    """The guard in front of one bucket."""

    def __init__(self, exchange: Exchange) -> None:
        self.guard = Guard(exchange.producer.schema, exchange.producer.properties)
        self.standing: list[Pattern] = []
        """What the bucket ignores until it takes that back."""

    def take(self, message: Punctuation) -> None:
        """Takes what the bucket assumes, or takes back."""
        pattern, standing = message.pattern, bool(message.noted(STANDING))
        if message.noted(WITHDRAWN):
            if pattern in self.standing:
                self.standing.remove(pattern)
            self.guard.watch()
            self.guard.replace([*self.standing])
            return
        if standing:
            self.standing.append(pattern)
        if standing or could_go(pattern, TIME_ONLY):
            self.guard.mount(pattern, message.noted(WHY) or "")

    def start_over(self) -> None:
        """Filters nothing more."""
        self.standing.clear()
        self.guard.watch()
        self.guard.replace([])

    def to_json(self) -> list[Any]:
        return [self.guard.to_json(), [p.to_json() for p in self.standing]]

    def restore(self, saved: Sequence[Any], chunks: dict[str, bytes]) -> None:
        self.guard.restore(saved[0], chunks)
        self.standing = [Pattern.from_json(p) for p in saved[1]]


class ExchangeFilters:
    """The filters of all exchanges that leave a stage, one for each bucket."""

    def __init__(self, departures: Sequence[Exchange], buckets: int) -> None:
        self._exchanges = {d.label: d for d in departures}
        self.filters = {d.label: [ExchangeFilter(d) for _ in range(buckets)] for d in departures}
        self._saved = SavedJson("exchange_filters")

    def take(self, label: str, bucket: int, message: Punctuation) -> None:
        """Takes what a bucket behind an exchange assumes."""
        self.filters[label][bucket].take(message)

    def admitted(self, label: str, bucket: int, page: Page) -> Page:
        """The rows that a bucket wants."""
        guard = self.filters[label][bucket].guard
        return page if guard.idle else guard.stop(page)

    def lost_until(self, label: str, bucket: int) -> int:
        """The latest end of a row that was kept from a bucket."""
        return self.filters[label][bucket].guard.until

    @property
    def moving(self) -> bool:
        """Whether rows that were kept from a bucket before a withdrawal may yet end later."""
        return any(each.guard.moving is not None for _, each in self._all())

    def settle(self, label: str, given: Promises) -> None:
        """Lets filters go that punctuation covers."""
        for each in self.filters[label]:
            if not each.guard.idle:
                each.guard.settle(given)

    def start_over(self) -> None:
        """Forgets what buckets have assumed."""
        for some in self.filters.values():
            for each in some:
                each.start_over()

    def rejected_rows(self) -> Iterator[tuple[Exchange, pa.Table]]:
        """The rows kept from a bucket for a reason that is known, since the last call."""
        for label, exchange in self._exchanges.items():
            for each in self.filters[label]:
                rows = each.guard.take_noted(exchange.producer.time)
                if rows is not None:
                    yield exchange, rows

    def _all(self) -> Iterator[tuple[str, ExchangeFilter]]:
        for label, some in self.filters.items():
            for bucket, each in enumerate(some):
                yield f"exchange_filter/{label}/{bucket}/", each

    def snapshot(self) -> Chunks:
        """What changed since the last snapshot."""
        chunks: Chunks = {}
        for place, each in self._all():
            rows = {} if each.guard.idle else each.guard.snapshot()
            chunks |= {f"{place}{name}": data for name, data in rows.items()}
        own = {label: [each.to_json() for each in some] for label, some in self.filters.items()}
        used = self._saved.last or any(each.guard.hits or each.guard.active for _, each in self._all())
        return chunks | self._saved.changed(own if used else None)

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes back what `snapshot` gave."""
        saved = self._saved.read(chunks) or {}
        for label, some in self.filters.items():
            for bucket, (each, own) in enumerate(zip(some, saved.get(label, ()), strict=False)):
                each.restore(own, under(f"exchange_filter/{label}/{bucket}/", chunks))
