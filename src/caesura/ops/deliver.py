"""How output leaves: `changes` as they come, `final` rows only, or changes with a mark of finality.

     final      a row waits until it cannot change: LE < CTI, and RE < CTI or its end is fixed.
                A row without end leaves as an edge: its start when that is final, its end later.
     marked     every change at once, and `=` repeats a row when it has become final.

Law: the history of `final` output is a part of the history of `changes`, and all of it in the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown, taken
from caesura.events.deferred import Deferred, DeferredPage
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.referred import ReferredStore
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable
from caesura.ops.join.kernel import REMOVED
from caesura.ops.join.side import Side
from caesura.plan import FeedbackRule, Holding, Need, Node, Operator, Properties, definite, row_rule
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, lt

Mode = Literal["final", "marked"]
FRESH_PAGES, FRESH_ROWS = 16, 4096
"""Up to so many pages, of at least so many rows each, wait as they came where no row of them can change."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Deliver(Node):
    """The last step before a consumer."""

    mode: Mode

    @property
    def kind(self) -> str:  # type: ignore[override]
        return f"output {self.mode}"

    @property
    def shows_early(self) -> bool:  # type: ignore[override]
        return self.mode == "final"

    def output_schema(self) -> pa.Schema:
        return self.inputs[0].schema

    def derive(self, *inputs: Properties) -> Properties:
        return inputs[0].but(insert_only=inputs[0].fixed_ends) if self.mode == "final" else inputs[0]

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        return None if pattern.time_bound is None else pattern

    def holds(self) -> tuple[Holding, ...]:
        """A row waits for its end, unless its end is fixed."""
        until: Literal["start", "end"] = "start" if self.inputs[0].properties.fixed_ends else "end"
        need = Need(0, tuple(self.schema.names))
        waits = self.mode == "final"
        return (Holding("waiting rows", 0, (need,), until=until, holds_back=waits, ends_final=True),)

    def feedback(self) -> tuple[FeedbackRule, ...]:
        """Rows that wait are kept back when their time comes."""
        return row_rule(self.schema.names, self.inputs[0].properties)

    def operator(self) -> Operator:
        return Hold(self)


class NamedRows:
    """Some rows of a state, as a list that is saved; where each stands in it follows from the list."""

    def __init__(self) -> None:
        self.state = RowState({"row": np.int64})
        self._place = Grown(np.int64)

    def __len__(self) -> int:
        return self.state.live

    @property
    def rows(self) -> I64:
        """The rows that are named."""
        rows: I64 = self.state.get("row")[self.state.alive]
        return rows

    def add(self, rows: I64) -> None:
        """Names more rows."""
        first = self.state.append({"row": rows})
        self._reach(int(rows.max(initial=-1)) + 1)
        self._place.view[rows] = np.arange(first, first + len(rows))

    def drop(self, rows: I64) -> None:
        """Takes those of these rows out that are named."""
        if len(self) == 0:
            return
        self._reach(int(rows.max(initial=-1)) + 1)
        places = self._place.view[rows]
        self.state.kill(places[places >= 0])
        self._place.view[rows] = -1

    def among(self, size: int) -> Mask:
        """Which of so many rows are named."""
        self._reach(size)
        return self._place.view[:size] >= 0

    def renumber(self, keep: I64) -> None:
        """Follows a compaction, given old numbers by new."""
        new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
        new[keep] = np.arange(len(keep))
        row, alive = self.state.get("row"), self.state.alive
        row[alive] = new[row[alive]]
        self.state.touch(np.flatnonzero(alive))

    def rebuild(self) -> None:
        """Finds the places anew."""
        if self.state.live < self.state.size:
            self.state.compact()
        self._place = Grown(np.int64)
        rows = self.rows
        self._reach(int(rows.max(initial=-1)) + 1)
        self._place.view[rows] = np.arange(len(rows))

    def _reach(self, size: int) -> None:
        if size > self._place.size:
            self._place.extend(np.full(size - self._place.size, -1, np.int64))


class Hold(Operator):
    """Rows that are not final yet, found by value."""

    def __init__(self, node: Deliver) -> None:
        super().__init__()
        self.node = node
        known = node.inputs[0].properties
        self._fixed = known.fixed_ends
        names = list(node.schema.names)
        self.side = Side(
            0,
            node.schema,
            names,
            self.secret,
            by_value=not known.insert_only,
            preserved=False,
            nulls_match=True,
            store=ReferredStore,
        )
        self.edges = NamedRows()
        """Rows that have left, and whose ends have not."""
        self.shown = NamedRows()
        """Rows that were given on demand, before they were final."""
        self._table = KeyTable()
        self._by_value = not known.insert_only
        self.fresh: list[Page] = []
        """Pages that came since the last punctuation; most are final at the next, and are never filed."""

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if self.node.mode != "final" or page.tags is not None:
            self._file()
            return self._taken(page)
        if page.retracts is None:
            self.fresh += [page] if len(page) else []
            return []
        self._file()
        old, new = np.flatnonzero(page.retracts), np.flatnonzero(~page.retracts)
        if len(new) == 0 or int(page.le[old].max(initial=MIN_TIME)) >= int(page.le[new].min()):
            return self._taken(page)
        self.fresh.append(page.take(new))  # none of which the page itself changes: they start later
        return self._taken(page.take(old))

    def _file(self) -> None:
        """Puts the pages that came lately among the rows that wait."""
        fresh, self.fresh = self.fresh, []
        for page in fresh:
            self._taken(page)

    def _taken(self, page: Page) -> list[Item]:
        key = self._key(page)
        if page.retracts is None:
            self.side.insert(page, None, key)
        else:
            self.side.insert(page, np.flatnonzero(~page.retracts), key)
            corrected = self._retract(page, key)
            if self.node.mode == "final":
                return [corrected] if len(corrected) else []
        return [page] if self.node.mode == "marked" else []

    def _key(self, page: Page) -> I64:
        if not self._by_value:
            return np.zeros(len(page), np.int64)
        return self._table.encode(*page.ids(self.secret))[0]

    def _retract(self, page: Page, key: I64) -> Page:
        """Changes rows by value; gives the changes of rows that were shown on demand.

        One that left as an edge stays, to send its end.
        """
        assert page.retracts is not None
        rows = np.flatnonzero(page.retracts)
        found = self.side.retract(page, rows, key)
        if len(self.shown) == 0:
            return page.take(rows[:0])
        named = self.shown.rows
        self.shown.drop(named[~self.side.rows.alive[named]])
        return page.take(rows[np.isin(found, named)])

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """The rows that wait and match, now; what changes of them then follows."""
        if self.node.mode == "marked":
            return []
        self._file()
        state = self.side.rows
        shown = self.edges.among(state.size) | self.shown.among(state.size)
        live = np.flatnonzero(state.alive & ~shown)
        payload = state.payload.take(live)
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        le, re = state.get("le")[live], state.get("re")[live]
        some = np.flatnonzero(pattern.matches({**columns, "LE": le, "RE": re}))
        if len(some) == 0:
            return []
        self.shown.add(live[some])
        return [Page(le[some], re[some], take_rows(payload, some), partial=True)]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        final = self._final()
        if not self._stays():
            self._file()
        rows = self.side.rows
        if rows.size == 0:
            return [*final, *definite(self.node.carry(0, pattern))]
        live = self._changeable()
        items = [*self._release(live, self._bound(live)), *final]
        out = self._held_back(pattern)
        if rows.wasteful:
            self.rebuild()
        return [*items, *definite(out)]

    def _final(self) -> list[Item]:
        """Takes out the rows that came lately and are final."""
        held = self.promises[0]
        if held.size or not self.fresh:
            return []
        cti = held.cti
        final: list[Item] = []
        rest: list[Page] = []
        for page in self.fresh:
            ended = page.le < cti
            if not self._fixed and cti < INFINITY:
                ended &= page.re < cti
            rows = np.flatnonzero(ended)
            first = len(rows) and rows[-1] == len(rows) - 1 and not page.partial  # cut without a copy
            if first:
                final.append(page if len(rows) == len(page) else page.slice(0, len(rows)))
            elif len(rows):
                final.append(page.inserts(rows, taken(page.le, rows), taken(page.re, rows)))
            if len(rows) < len(page):
                rest.append(page.slice(len(rows), len(page) - len(rows)) if first else page.filter(~ended))
        self.fresh = rest
        return final

    def _stays(self) -> bool:
        """Whether the rows that came lately stay as they lie: they all start behind the CTI, and end as said.

        Small pages are filed, so that no punctuation looks at many.
        """
        if not self._fixed or self.promises[0].size or len(self.fresh) > FRESH_PAGES:
            return False
        return all(len(page) >= FRESH_ROWS for page in self.fresh)

    def _changeable(self) -> I64:
        """The rows that a CTI may let go: not those that left and have no end, unless it is the last."""
        rows, held = self.side.rows, self.promises[0]
        if held.size or held.cti == INFINITY or len(self.edges) == 0:
            return np.flatnonzero(rows.alive)
        endless = rows.get("re") == INFINITY
        return np.flatnonzero(rows.alive & ~(endless & self.edges.among(rows.size)))

    def _bound(self, live: I64) -> I64:
        held = self.promises[0]
        if held.size == 0:
            return np.full(len(live), held.cti)
        payload = self.side.rows.payload.take(live)
        return np.broadcast_to(np.asarray(held.effective_cti(payload)), len(live))

    def _release(self, live: I64, bound: I64) -> list[Item]:
        rows = self.side.rows
        le, re = rows.get("le")[live], rows.get("re")[live]
        ended = (re < bound) | (bound == INFINITY) | self._fixed
        final = (le < bound) & ended
        started = (le < bound) & (re == INFINITY) & ~ended
        items: list[Item] = []
        marked = self.node.mode == "marked"
        shown = self.shown.among(rows.size)[live]
        edge = self.edges.among(rows.size)[live] | shown
        leave = live[final & ~edge] if marked else live[(final | started) & ~edge]
        if len(leave):
            items.append(self._named(leave, rows.get("re")[leave], None, settled=marked))
        ends = live[final & edge & ~shown]
        if len(ends):
            items += self._ends(ends)
        if not marked:
            self.edges.add(live[started & ~edge])
        self._drop(live[final])
        return items

    def _ends(self, rows: I64) -> list[Item]:
        """The ends of rows that left as edges; those that never ended were said already."""
        state = self.side.rows
        ended = rows[state.get("re")[rows] != INFINITY]
        if len(ended) == 0:
            return []
        return [self._named(ended, np.full(len(ended), INFINITY), state.get("re")[ended])]

    def _named(self, rows: I64, re: I64, re_new: I64 | None, *, settled: bool = False) -> Page:
        """A page of rows that are held, with these ends; their columns are gathered when somebody looks."""
        state = self.side.rows
        assert isinstance(state.payload, ReferredStore)
        named = Deferred.of(state.payload, rows, (), self.node.schema)
        page = DeferredPage(state.get("le")[rows], re, named, re_new, settled)
        if self._by_value:
            page.identified(self.secret.start, (state.get("h1")[rows], state.get("h2")[rows]))
        return page

    def _drop(self, rows: I64) -> None:
        for some in (self.edges, self.shown):
            some.drop(rows)
        self.side.rows.get("re")[rows] = REMOVED
        self.side.rows.kill(rows)

    def _held_back(self, pattern: Pattern) -> Pattern | None:
        """Time passes as far as no held row starts earlier."""
        bound = pattern.time_bound
        if bound is None or self.node.mode == "marked" or bound == INFINITY:
            return self.node.carry(0, pattern)
        rows = self.side.rows
        live = np.flatnonzero(rows.alive & ~self.edges.among(rows.size))
        if len(live) and pattern.without_time().attributes:
            live = live[pattern.without_time().matches(rows.payload.take(live), None)]
        earliest = int(rows.get("le")[live].min(initial=INFINITY))
        if earliest < bound:
            self.counters.held_by = f"a row from {earliest} on may still change its end"
        return pattern.replace("time", lt(min(bound, earliest)))

    def states(self) -> dict[str, RowState]:
        self._file()
        return {"rows": self.side.rows, "edges": self.edges.state, "shown": self.shown.state}

    def rebuild(self) -> None:
        rows = self.side.rows
        if rows.live < rows.size:
            keep = rows.compact()
            for some in (self.edges, self.shown):
                some.renumber(keep)
        for some in (self.edges, self.shown):
            some.rebuild()
        self._table = KeyTable()
        if self._by_value:
            rows.get("key")[:] = self._table.encode(rows.get("h1"), rows.get("h2"))[0]
            self.side.relink()
        else:
            self.side.chains.size = rows.size
