"""Claims by heeding: labels tell when nothing in flight can add to what has left.

Per source, let `reached` be the greatest item number in the label of any row that has left, and `least`
the least active one in flight. Where ``reached < least`` for every source, the output is that of the
prefix that ends just before `least`.

Labels tell of rows, not of rows that are missing. A step that holds rows back or takes them away because
of others (all but row-wise steps, unions, and inner joins of insert-only streams) therefore counts as if
everything it has seen had left. That loses some consistent states and never claims a wrong one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from caesura.consistency import Heeding, Prefix
from caesura.consistency.labels import InFlight, raised
from caesura.consistency.token import token
from caesura.errors import StreamError
from caesura.events import Item, Page
from caesura.events.labels import Labels, Vector
from caesura.kernels.hashing import I64
from caesura.plan import Raw
from caesura.punctuation import Intent, Promises, Punctuation
from caesura.runtime.claims.claiming import Claiming, CountedReader, insert_only
from caesura.runtime.claims.views import View
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.emitter import Emitter


class HeedClaims(Claiming):
    """Labels at the sources, multisets of what is in flight, and a check whenever a cell has worked."""

    def __init__(self, mode: Heeding, *args: Any) -> None:
        super().__init__(mode, *args)
        if self.followed:
            raise StreamError(
                "a subscription brings no labels of its own sources.",
                remedy="Run the query with claims=cz.tokens(); the publisher's tokens come with its rows.",
            )
        if any(edge.back for edge in self.graph.edges):
            raise StreamError(
                "labels cannot be followed around a loop.",
                remedy="Take claims from the loop's own punctuation: claims=cz.synchronised(...).",
            )
        if any(not emitter.root for emitter in self.emitters.values()):
            raise StreamError(
                "a source that imports punctuation gives items that come from another source.",
                remedy="Take claims=cz.tokens(), or let the source promise by itself.",
            )
        self.naive = mode.scan == "naive"
        self.order = {label: place for place, label in enumerate(self.emitters)}
        self.logs = {label: Log() for label in self.emitters}
        self.flying = InFlight(len(self.order))
        self.reached: Vector = {}
        self.seen: dict[Cell, Vector] = {c: {} for c in self.graph.cells if not c.node.shows_all}
        """Of each step that may lack rows on account of others, what it has seen."""
        self.pending: dict[Cell, list[Vector]] = {}
        """Of each step in which rows wait for their turn, the active labels of what they came with."""
        self._fresh = False
        self._number = 0
        for edge in self.graph.edges:
            edge.merges = False
        behind = self._behind()
        for cell in self.graph.cells:
            cell.operator.heed([behind[e] for e in cell.inputs])

    def _behind(self) -> dict[Edge, tuple[int, ...]]:
        """Per edge the sources whose items may come by it."""
        found: dict[Edge, set[int]] = {}
        starts = {e.cell: self.order[e.label] for e in self.emitters.values() if e.cell is not None}
        for label, emitter in self.emitters.items():
            edge = getattr(emitter.push, "__self__", None)
            if isinstance(edge, Edge):
                found[edge] = {self.order[label]}
        for cell in sorted(self.graph.cells, key=lambda c: c.depth):
            own = {starts[cell]} if cell in starts else set()
            for edge in cell.inputs:
                own |= found.get(edge, set())
            for edge in cell.outputs:
                found.setdefault(edge, set()).update(own)
        return {e: tuple(sorted(found.get(e, set()))) for e in self.graph.edges}

    # -- labels -----------------------------------------------------------------------------------------

    def let_in(self, emitter: Emitter, items: list[Item]) -> None:
        self._enter(emitter, items, None, None)

    def read(self, reader: CountedReader, emitter: Emitter, limit: int | None) -> Raw | None:
        self.let_in(emitter, reader.clock_items())
        raw = reader.next(limit)
        if raw is None:
            items = reader.cell.guarded(partial(reader.ingress.close, ends=reader.ends))
            emitter.closed = True
            self.let_in(emitter, items)
            return None
        self.note(reader, emitter, raw)
        items = reader.cell.guarded(reader.ingress.raw, raw)
        pages = sum(isinstance(i, Page) for i in items)
        exact = insert_only(reader) and not reader.node.punctuated and pages == 1
        entered = reader.ingress.entered if exact else None
        first = emitter.items + 1
        self._enter(emitter, items, entered, raw.lane)
        if not exact:
            self.logs[emitter.label].whole.append((first, emitter.items))
        return raw

    def _enter(self, emitter: Emitter, items: list[Item], entered: I64 | None, lane: int | None) -> None:
        log, k = self.logs[emitter.label], self.order[emitter.label]
        for item in items:
            first = emitter.items + 1
            size = len(item) if isinstance(item, Page) else 1
            labels = Labels({k: np.arange(first, first + size)}, frozenset({k}))
            labels.know({k: first}, {k: first + size - 1})
            log.add(item, first, size, entered, lane or 0)
            cell = emitter.cell
            self._fly(labels.least, 1 if cell is None else len(cell.outputs))
            emitter.send([tagged(item, labels)])
        log.read_up_to(emitter.items, {} if lane is None else dict(emitter.offsets), emitter.closed)

    def _fly(self, least: Mapping[int, int], times: int) -> None:
        if not self.naive:
            self.flying.add(least, times)

    def derived(self, cell: Cell, item: Item, items: list[Item]) -> list[Item]:
        super().derived(cell, item, items)
        if cell.responder is not None:
            raise StreamError(
                "feedback was given, and cz.heeding() cannot tell which rows it leaves out.",
                remedy="Take claims=cz.tokens(); they name the feedback that they are under.",
            ).at(cell.node.step, cell.node.place)
        labels, waits = self._with_pending(cell, labels_of(item))
        seen = self.seen.get(cell)
        if seen is not None:
            raised(seen, labels.greatest)
            raised(self.reached, labels.greatest)
        out = []
        for made in items:
            if isinstance(made, Page) and len(made) == 0:
                continue
            own = self.label(made, labels, labels.greatest if seen is None else seen)
            self._fly(own.least, len(cell.outputs))
            out.append(tagged(made, own))
        if cell.operator.pending:
            self.pending[cell] = waits
            return out
        self.pending.pop(cell, None)
        for least in waits if not self.naive else ():
            self.flying.remove(least)
        return out

    def label(self, made: Item, labels: Labels, greatest: Vector) -> Labels:
        """The label of what a step made of an item: its own, or that of the item and all that was seen."""
        own = made.tags if isinstance(made, Page) else None
        if isinstance(own, Labels):
            return own
        size = len(made) if isinstance(made, Page) else 1
        return Labels({k: np.full(size, n) for k, n in greatest.items()}, labels.active, labels.least)

    def _with_pending(self, cell: Cell, labels: Labels) -> tuple[Labels, list[Vector]]:
        """The labels that a step's output may come from: those of an item, and of rows that wait in it."""
        waits = [*self.pending.get(cell, ()), labels.least]
        if len(waits) == 1:
            return labels, waits
        floor: Vector = {}
        for least in waits:
            for k, number in least.items():
                floor[k] = min(number, floor.get(k, number))
        active = labels.active | frozenset(floor)
        cols = {k: labels.cols.get(k, np.array([floor[k]])) for k in {*labels.cols, *floor}}
        return Labels(cols, active, floor), waits

    def arrived(self, view: View, item: Item) -> None:
        if isinstance(item, Page) and isinstance(item.tags, Labels):
            raised(self.reached, item.tags.greatest)
            self._fresh = True

    # -- detection --------------------------------------------------------------------------------------

    def worked(self) -> None:
        if self._fresh:
            self.detect()

    def detect(self) -> bool:
        """Claims if nothing in flight can add to what has left."""
        ends = self.ends()
        if ends is None:
            return False
        self._fresh = False
        self._number += 1
        prefix = {label: self.logs[label].advance(end) for label, end in ends.items()}
        output = {name: view.rows for name, view in self.views.items()}
        for view in self.views.values():
            view.append(token(self._number, prefix))
        self.claim(self._number, prefix, output)
        return True

    def ends(self) -> dict[str, int] | None:
        """Per source the item that the prefix of a claim ends with; None where no claim holds now."""
        ends: dict[str, int] = {}
        for label, k in self.order.items():
            least = self.least(k)
            end = self.emitters[label].items if least is None else least - 1
            end = self.logs[label].allowed(end)
            if self.reached.get(k, 0) > end:
                return None
            ends[label] = end
        return ends

    def least(self, source: int) -> int | None:
        """The least active label of a source in flight; None where nothing of it is."""
        return self._scan(source) if self.naive else self.flying.least(source)

    def _scan(self, source: int) -> int | None:
        """The least active label of a source, from every row in every queue."""
        waits = [least[source] for some in self.pending.values() for least in some if source in least]
        found: int | None = min(waits, default=None)
        for edge in self.graph.edges:
            for item in edge.items:
                labels = labels_of(item)
                if source in labels.active:
                    low = (labels.floor or {}).get(source, int(labels.cols[source].min()))
                    found = low if found is None else min(found, low)
        return found

    def pull(self) -> bool:
        if any(e.items != self.covered.get(n, Prefix()).items for n, e in self.emitters.items()):
            self.detect()
        return super().pull()

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "number": self._number}

    def remember(self, meta: Mapping[str, Any]) -> None:
        """Goes on from a query at rest: all that had entered had left."""
        super().remember(meta)
        self._number = meta["number"]
        for label, prefix in self.covered.items():
            self.logs[label] = Log.after(prefix)
            self.reached[self.order[label]] = prefix.items or 0

    def waiting(self) -> str:
        held = [label for label, k in self.order.items() if self.flying.least(k) is not None]
        return ", ".join(f"items of '{label}' are in flight" for label in held)


@dataclass
class Log:
    """What a source has given and no claim has covered yet, so that an item number names a prefix."""

    entries: deque[tuple[int, int, Any, int]] = field(default_factory=deque)
    """(first item, how many, offsets of a page's rows or None, or a punctuation; lane)."""
    reads: deque[tuple[int, dict[int, int], bool]] = field(default_factory=deque)
    """(items then, offsets then, closed then), per batch that was read."""
    whole: deque[tuple[int, int]] = field(default_factory=deque)
    """(first item, last item) of batches inside of which no offset is known."""
    rows: int = 0
    punctuations: int = 0
    lanes: dict[int, int] = field(default_factory=dict)
    promises: Promises = field(default_factory=Promises)
    closed: bool = False

    @staticmethod
    def after(prefix: Prefix) -> Log:
        """The log of a source that has given a prefix."""
        promises = Promises(prefix.definite)
        entered = (prefix.rows or 0, prefix.punctuations or 0, dict(prefix.offsets), promises)
        return Log(deque(), deque(), deque(), *entered)

    def add(self, item: Item, first: int, size: int, offsets: I64 | None, lane: int) -> None:
        what: Any = offsets if isinstance(item, Page) else item
        self.entries.append((first, size, what, lane))

    def read_up_to(self, items: int, lanes: dict[int, int], closed: bool) -> None:
        if lanes or closed:
            self.reads.append((items, lanes, closed))

    def allowed(self, end: int) -> int:
        """The nearest item up to this one where the offsets of a prefix are known."""
        return next((first - 1 for first, last in self.whole if first <= end < last), end)

    def advance(self, end: int) -> Prefix:
        """The prefix up to an item; what it covers is forgotten."""
        while self.entries and self.entries[0][0] <= end:
            first, size, what, lane = self.entries.popleft()
            if isinstance(what, Punctuation):
                self.punctuations += 1
                if what.intent is Intent.DEFINITE:
                    self.promises.add(what.pattern)
                continue
            taken = min(size, end - first + 1)
            self.rows += taken
            if what is not None:
                self.lanes[lane] = int(what[taken - 1]) + 1
            if taken < size:
                rest = None if what is None else what[taken:]
                self.entries.appendleft((first + taken, size - taken, rest, lane))
        while self.whole and self.whole[0][1] <= end:
            self.whole.popleft()
        while self.reads and self.reads[0][0] <= end:
            _, lanes, closed = self.reads.popleft()
            for lane, at in lanes.items():  # a batch of late rows alone was read before rows that have left
                self.lanes[lane] = max(at, self.lanes.get(lane, 0))
            self.closed = self.closed or closed
        return Prefix(
            self.rows, self.punctuations, dict(self.lanes), tuple(self.promises.patterns()), self.closed
        )


def tagged(item: Item, labels: Labels) -> Item:
    """An item with its label."""
    if isinstance(item, Page):
        if item.tags is labels:
            return item
        return Page(item.le, item.re, item.payload, item.re_new, item.settled, labels)
    note = tuple(n for n in item.note if n[0] != "label")
    return Punctuation(item.pattern, item.intent, (*note, ("label", labels)))


def labels_of(item: Item) -> Labels:
    """The label of an item in flight."""
    labels = item.tags if isinstance(item, Page) else item.noted("label")
    assert isinstance(labels, Labels)
    return labels
