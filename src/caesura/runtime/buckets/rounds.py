"""Loops that cross buckets: one guess per epoch for all of them, and the least of their answers decides.

At the end of an epoch every bucket sends its guess around its own steps, where the inputs from outside
lower it; what leaves is the bucket's report: that, or the earliest row that it sends to another bucket
or has not sent yet. In the next epoch all reports are there, and everything before the least of them
is definite: no row before it is on its way, and none can come in.

Law: one bucket alone never confirms anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from caesura.events import Item, Page
from caesura.events.chunks import Chunks, SavedJson
from caesura.fixpoint.operator import FlyingFixpoint
from caesura.plan.cut import LOOP
from caesura.plan.ring import bound
from caesura.punctuation import INFINITY, Intent, Pattern, Punctuation
from caesura.runtime.graph.cell import Cell
from caesura.runtime.packets.packet import Packet

Feed = Callable[[str, Item], None]


class Rounds:
    """The loops of one fragment that cross buckets, and what each bucket last reported."""

    def __init__(self, heads: Mapping[str, Cell], feed: Feed, work: Callable[[], None], buckets: int) -> None:
        self._heads, self._feed, self._work, self.buckets = heads, feed, work, buckets
        self.reported: dict[str, dict[str, tuple[int, bool]]] = {loop: {} for loop in heads}
        """By loop and bucket: up to where its guess reaches, and whether it has lost rows."""
        self.own: dict[str, list[Any]] = {loop: [] for loop in heads}
        """What this bucket last reported."""
        self._saved = SavedJson("rounds")

    def _head(self, loop: str) -> FlyingFixpoint:
        operator = self._heads[loop].operator
        assert isinstance(operator, FlyingFixpoint)
        return operator

    def arrive(self, loop: str, packets: Sequence[Packet]) -> None:
        """What the buckets sent in the epoch before: their reports first, they speak of the rows too."""
        rows: list[Page] = []
        news = False
        for packet in packets:
            for item in packet.items:
                if isinstance(item, Page):
                    rows.append(item)
                else:
                    self.reported[loop][packet.origin] = (bound(item), bool(item.noted("lost")))
                    news = True
        if news and len(self.reported[loop]) == self.buckets:
            least = min(t for t, _ in self.reported[loop].values())
            note = (("loop", loop),)
            self._feed(LOOP + loop, Punctuation(Pattern.before(least), Intent.SPECULATIVE, note))
        for page in rows:
            self._feed(LOOP + loop, page)

    def end(self) -> None:
        """Everything of this epoch has run its course here: the guesses leave."""
        for loop, reports in self.reported.items():
            head = self._heads[loop]
            losing = any(lost for _, lost in reports.values())
            head.send(self._head(loop).end_epoch(losing=losing))
            head.go_around()
        if self.reported:
            self._work()

    def leave(self, loop: str, items: Sequence[Item]) -> list[Item]:
        """The rows that cross, and this bucket's report if it says anything new."""
        rows = [item for item in items if isinstance(item, Page) and len(item)]
        guesses = [i for i in items if not isinstance(i, Page) and i.intent is Intent.SPECULATIVE]
        for item in items:
            if not isinstance(item, Page) and item.intent is Intent.PROGRESS:
                self._head(loop).guessing.external(item.noted("at"), bound(item))
        unsent, lost, more = self._head(loop).report
        sent = min((int(page.sync.min()) for page in rows), default=INFINITY)
        share = min([unsent, sent, *(bound(guess) for guess in guesses[-1:])])
        report = [share, lost]
        if report == self.own[loop] and not rows and not more:
            return []
        self.own[loop] = report
        note = (("loop", loop), ("lost", lost))
        return [*rows, Punctuation(Pattern.before(share), Intent.SPECULATIVE, note)]

    def snapshot(self) -> Chunks:
        """What the buckets reported, where it changed."""
        return self._saved.changed({"reported": self.reported, "own": self.own} if self.reported else None)

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes back what `snapshot` gave."""
        saved = self._saved.read(chunks)
        if saved is not None:
            self.own = saved["own"]
            self.reported = {
                loop: {origin: (t, lost) for origin, (t, lost) in reports.items()}
                for loop, reports in saved["reported"].items()
            }
