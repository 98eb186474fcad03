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
from caesura.punctuation import INFINITY, Pattern, lt

Mode = Literal["final", "marked"]


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
        self.edges = RowState({"row": np.int64})
        self.shown = RowState({"row": np.int64})
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
        if len(new) == 0 or int(page.le[old].max()) >= int(page.le[new].min()):
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
            self.side.insert(page, np.arange(len(page)), key)
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
        if self.shown.live == 0:
            return page.take(rows[:0])
        named = self.shown.get("row")
        shown_before = np.isin(found, named[self.shown.alive])
        dropped = named[self.shown.alive & ~self.side.rows.alive[named]]
        self.shown.kill(np.flatnonzero(self.shown.alive & np.isin(named, dropped)))
        return page.take(rows[shown_before])

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """The rows that wait and match, now; what changes of them then follows."""
        if self.node.mode == "marked":
            return []
        self._file()
        state = self.side.rows
        live = np.flatnonzero(state.alive & ~self._among(self.edges) & ~self._among(self.shown))
        payload = state.payload.take(live)
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        le, re = state.get("le")[live], state.get("re")[live]
        some = np.flatnonzero(pattern.matches({**columns, "LE": le, "RE": re}))
        if len(some) == 0:
            return []
        self.shown.append({"row": live[some]})
        return [Page(le[some], re[some], take_rows(payload, some), partial=True)]

    def _among(self, some: RowState) -> Mask:
        """Which rows a list names."""
        mask: Mask = np.zeros(self.side.rows.size, np.bool_)
        mask[some.get("row")[some.alive]] = True
        return mask

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        final = self._final()
        self._file()
        rows = self.side.rows
        if rows.size == 0:
            return [*final, *definite(self.node.carry(0, pattern))]
        live = np.flatnonzero(rows.alive)
        bound = self._bound(live)
        items = [*self._release(live, bound), *final]
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
            if len(rows):
                final.append(page.inserts(rows, page.le[rows], page.re[rows]))
            if len(rows) < len(page):
                rest.append(page.filter(~ended))
        self.fresh = rest
        return final

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
        edge = self._among(self.edges)[live]
        items: list[Item] = []
        marked = self.node.mode == "marked"
        shown = self._among(self.shown)[live] if self.shown.live else np.zeros(len(live), np.bool_)
        edge = edge | shown
        leave = live[final & ~edge] if marked else live[(final | started) & ~edge]
        if len(leave):
            items.append(self._named(leave, rows.get("re")[leave], None, settled=marked))
        ends = live[final & edge & ~shown]
        if len(ends):
            items += self._ends(ends)
        if not marked:
            self.edges.append({"row": live[started & ~edge]})
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
        gone: Mask = np.zeros(self.side.rows.size, np.bool_)
        gone[rows] = True
        for some in (self.edges, self.shown):
            live = np.flatnonzero(some.alive)
            some.kill(live[gone[some.get("row")[live]]])
        self.side.rows.get("re")[rows] = REMOVED
        self.side.rows.kill(rows)

    def _held_back(self, pattern: Pattern) -> Pattern | None:
        """Time passes as far as no held row starts earlier."""
        bound = pattern.time_bound
        if bound is None or self.node.mode == "marked" or bound == INFINITY:
            return self.node.carry(0, pattern)
        rows = self.side.rows
        waiting = rows.alive.copy()
        waiting[self.edges.get("row")[self.edges.alive]] = False
        live = np.flatnonzero(waiting)
        if len(live) and pattern.without_time().attributes:
            live = live[pattern.without_time().matches(rows.payload.take(live), None)]
        earliest = int(rows.get("le")[live].min(initial=INFINITY))
        if earliest < bound:
            self.counters.held_by = f"a row from {earliest} on may still change its end"
        return pattern.replace("time", lt(min(bound, earliest)))

    def states(self) -> dict[str, RowState]:
        self._file()
        return {"rows": self.side.rows, "edges": self.edges, "shown": self.shown}

    def rebuild(self) -> None:
        rows = self.side.rows
        if rows.live < rows.size:
            keep = rows.compact()
            new = np.full(int(keep.max(initial=-1)) + 1, -1, np.int64)
            new[keep] = np.arange(len(keep))
            for some in (self.edges, self.shown):
                row = some.get("row")
                row[some.alive] = new[row[some.alive]]
                some.touch(np.flatnonzero(some.alive))
        for some in (self.edges, self.shown):
            if some.live < some.size:
                some.compact()
        self._table = KeyTable()
        if self._by_value:
            rows.get("key")[:] = self._table.encode(rows.get("h1"), rows.get("h2"))[0]
            self.side.relink()
        else:
            self.side.chains.size = rows.size
