"""A stream that its user feeds: items are judged at the door, by the laws that raw rows obey.

A row that comes after a promise which forbids it is late; a retract waits until its event is there; an
event that is not what the stream was declared to hold is refused. All of them are in the late table.

>>> from caesura.events import draw, parse
>>> ingress = Pushed(label="a", payload=pa.schema([("id", pa.int64())])).operator()
>>> items = parse(" LE RE | id |\\n 3 4 | 7 | +\\n-- 5 --\\n 1 2 | 8 | +")
>>> print(draw([legal for item in items for legal in ingress.enter(item)]))
 LE  RE | id |
  3  4  | 7  | +
-- definite: time < 5 --
>>> ingress.drain_late().column("reason").to_pylist()
['came after definite: time < 5']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.events.page import NO_NEW_END
from caesura.io.ingress import row_kernels
from caesura.io.ingress.ingress import Rules, SourceIngress
from caesura.io.ingress.policy import at_end
from caesura.io.ingress.refusals import Lateness
from caesura.io.ingress.shape import Shape, Shaped
from caesura.kernels.hashing import Mask, frozen
from caesura.ops.input import Input
from caesura.plan import OWN, Holding, Need, Properties, Up, definite
from caesura.punctuation import INFINITY, Intent, Pattern, Punctuation


@dataclass(frozen=True, eq=False, kw_only=True)
class Pushed(Input):
    """An input that anyone may feed; what is fed need not be a legal stream."""

    late: Lateness = "reject"
    trusted: bool = False
    """Whether retracts are known to name events that came before: then these are not kept to look them up."""

    def counts(self, name: str) -> bool:
        return super().counts(name) and (name != "trusted" or self.trusted)

    def holds(self) -> tuple[Holding, ...]:
        """Versions that a retract may still name."""
        if self.known.insert_only or self.trusted:
            return ()
        return (Holding("events that may be retracted", OWN, (Need(OWN, tuple(self.schema.names)),)),)

    def operator(self) -> PushedIngress:
        unmatched = self.known.insert_only or self.trusted
        shape = Shape("interval", "LE", "RE") if unmatched else Shape("full", "LE", "RE", "kind")
        late: Lateness = "error" if self.trusted else self.late  # a retract of a late row would name nothing
        rules = Rules(self.schema, self.time, shape, at_end(), late, punctuates=True)
        return PushedIngress(rules, self.known)


class PushedIngress(SourceIngress):
    """Judges items before they are queued; what has entered passes on."""

    def __init__(self, rules: Rules, known: Properties) -> None:
        super().__init__(rules)
        self._known = known

    def enter(self, item: Item) -> list[Item]:
        """What an item that is fed lets in."""
        self._refuse_misfit(item)
        if isinstance(item, Page):
            return [item] if item.settled else self._finished(self._fed(item))
        if item.intent is not Intent.DEFINITE:
            return [item]
        lane = self.lanes[0]
        return self._finished(self._say(lane, item.pattern, lane.next))

    def _refuse_misfit(self, item: object) -> None:
        """Refuses what is no item of this stream."""
        if isinstance(item, Page):
            wanted, got = _columns(self.rules.schema), _columns(item.schema)
            if got != wanted:
                raise StreamError(
                    f"the events that are fed have the columns: {', '.join(got) or 'none'}.",
                    remedy=f"This stream has: {', '.join(wanted) or 'none'}.",
                )
        elif not isinstance(item, Punctuation):
            raise StreamError(
                f"a stream is fed with pages of events and with punctuation; got {item!r}.",
                remedy="Feed what cz.parse(...) gives, or cz.cti(t).",
            )

    def _fed(self, page: Page) -> Iterator[Item]:
        lane = self.lanes[0]
        offsets = np.arange(lane.next, lane.next + len(page))
        lane.next += len(page)
        flaw = self._flaws(page)
        shaped = Shaped(page.le, page.re, page.re_new, page.payload, flaw, page.le)
        return chain(self._events(lane, shaped, offsets), self._advance())

    def _flaws(self, page: Page) -> row_kernels.I8 | None:
        """What is wrong with each row, by itself or by what the stream was declared to be."""
        new = np.full(len(page), NO_NEW_END) if page.re_new is None else page.re_new
        retracts = new != NO_NEW_END
        codes = np.where(retracts, row_kernels.RETRACT, row_kernels.INSERT).astype(np.int8)
        flaw = np.empty(len(page), np.int8)
        lifetimes = (frozen(page.le), frozen(page.re), frozen(new))
        row_kernels.find_flaws(codes, *lifetimes, np.empty(len(page), np.int64), flaw, False)
        for code, mask in self._undeclared(page, retracts):
            flaw[mask & (flaw == 0)] = code
        return flaw if flaw.any() else None

    def _undeclared(self, page: Page, retracts: Mask) -> Iterator[tuple[int, Mask]]:
        known = self._known
        if known.insert_only:
            yield row_kernels.NO_RETRACT, retracts
        if known.points:
            yield row_kernels.NO_POINT, page.re - 1 != page.le
        if known.aligned and page.re_new is not None:
            yield row_kernels.ALIGNED, retracts & (page.re_new != page.le)
        if known.max_duration is not None:
            longest = known.max_duration
            yield row_kernels.TOO_LONG, page.re > np.minimum(page.le, INFINITY - longest) + longest

    # -- what has entered ---------------------------------------------------------------------------

    def page(self, port: int, page: Page) -> Iterable[Item]:
        return [page] if len(page) else []

    def definite(self, port: int, pattern: Pattern) -> list[Item]:
        return definite(pattern)

    def signal(self, port: int, punctuation: Punctuation) -> Iterable[Item]:
        return [punctuation]

    def control(self, message: Punctuation) -> Iterable[Up]:
        super().control(message)
        return [(0, message)]


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name} {field.type}" for field in schema]
