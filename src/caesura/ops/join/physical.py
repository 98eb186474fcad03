"""The join at work: a page meets the other side's rows; preserved rows are cut into pieces again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from caesura.events.columns import words
from caesura.events.item import Item
from caesura.events.labels import Labels
from caesura.events.page import Page, PointPage, concat, take_rows
from caesura.events.paging import StatePages
from caesura.events.rows import RowState
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable
from caesura.kernels.memo import SIGNED, Register, whole_numbers
from caesura.kernels.sums import each_once
from caesura.ops.join.node import Join
from caesura.ops.join.pairs import JoinedRows
from caesura.ops.join.preserved import Preserved
from caesura.ops.join.side import NO_NEW, Side
from caesura.ops.join.waiting import PAGE_ROWS, Taken, WaitingRows
from caesura.plan import AlignedOperator, GivenUp
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

SPARE_KEYS = 32_768
"""So many keys may outlive their rows before they are forgotten."""


class JoinOperator(AlignedOperator):
    """Two sides and one table of keys."""

    def __init__(self, node: Join) -> None:
        super().__init__(2)
        self.node = node
        self.schema = node.schema
        names = [[pair[port] for pair in node.on] for port in (0, 1)]
        self.names = names
        self.sides = [
            Side(
                port,
                source.schema,
                names[port],
                self.secret,
                by_value=not source.properties.insert_only,
                preserved=node.preserved[port],
            )
            for port, source in enumerate(node.inputs)
        ]
        key_words = [partial(self._key_words, port) for port in (0, 1)]
        self._waiting = [WaitingRows(key_words[port], key_words[1 - port]) for port in (0, 1)]
        self._table = KeyTable()
        self._memo = Register()
        self._paged = False
        """Whether rows go to the disk: none waits in memory as it came."""
        types = [[side.schema.field(i).type for i in side.key_places] for side in self.sides]
        self._alike = types[0] == types[1]
        self._pairs = node.how not in ("semi", "anti")
        self._rows = JoinedRows(node)
        self._preserved = [Preserved(node, port, self.sides) for port in (0, 1)]

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        mine, other = self.sides[port], self.sides[1 - port]
        self._file(1 - port, self._waiting[1 - port].asked(page.payload))
        if self._may_wait(port, page):
            return self._wait(port, page)
        store = self._to_store(port, page)
        kept = int(np.count_nonzero(store))
        key = self._numbers(mine, page.payload, lookup=not kept and not other.preserved)
        items = [self._meet(port, page, key)] if self._pairs else []
        touched = self._touched(1 - port, page, key) if other.preserved else None
        changed = self._keep(port, page, key, store) if kept or page.re_new is not None else NO_NEW
        if mine.preserved:
            items.append(self._relay(port, changed))
        if touched is not None:
            items.append(self._relay(1 - port, touched))
        if kept and page.re_new is not None and self._overdue(port, page):
            self._purge(port)
        return [concat(items, self.schema)]  # one page: a pair and the piece it replaces leave together

    def _overdue(self, port: int, page: Page) -> bool:
        """Whether rows now end where the other side has been already: its next punctuation may be far."""
        assert page.re_new is not None
        return bool(((page.re_new > page.le) & (page.re_new <= self.promises[1 - port].cti)).any())

    def _may_wait(self, port: int, page: Page) -> bool:
        """Whether the rows of a page to be stored can wait as they came: those of a large one of inserts."""
        if len(page) < PAGE_ROWS or not self._pairs or self._paged or any(self.node.preserved):
            return False
        plain = page.re_new is None and page.tags is None and not self.sides[port].sources
        theirs = self.promises[1 - port]
        return plain and theirs.size == 0 and theirs.cti < INFINITY

    def _wait(self, port: int, page: Page) -> list[Item]:
        """Lets the rows of a page wait that the other side may still meet, and meets it with all of them."""
        waiting = self._waiting[port].add(page, self.promises[1 - port].cti)
        if self.sides[1 - port].rows.live == 0:
            return []
        key = self._numbers(self.sides[port], page.payload, lookup=True)
        waiting.numbers = key if int(key.min()) >= 0 else None
        return [self._meet(port, page, key)]

    def _file(self, port: int, waited: Iterable[Taken]) -> None:
        """Brings rows that waited among the stored rows of their side."""
        side = self.sides[port]
        for some, rows in waited:
            page, key = some.page, some.numbers
            if rows is not None and (side.by_value or key is None):  # the others are not hashed
                page, key, rows = page.take(rows), None, None
            if key is None:
                key = self._numbers(side, page.payload, lookup=False)
            side.insert(page, rows, key)

    def _file_all(self) -> None:
        for port, waiting in enumerate(self._waiting):
            self._file(port, waiting.all())

    def _key_words(self, port: int, payload: pa.RecordBatch) -> I64:
        """A word for each row's key, equal for equal keys of both sides."""
        side = self.sides[port]
        if self._alike and len(side.key_places) == 1:
            column = payload.column(side.key_places[0])
            if column.type in SIGNED:
                return words(column).astype(np.int64, copy=False)  # whatever lies under a null
        return side.key_ids(payload)[0].view(np.int64)

    def heed(self, sources: Sequence[tuple[int, ...]]) -> None:
        for side, own in zip(self.sides, sources, strict=True):
            side.heed(own)

    def _numbers(self, mine: Side, payload: pa.RecordBatch, lookup: bool) -> I64:
        """The number of each row's key; -1 where it is only looked up and nobody has it."""
        plain = whole_numbers([payload.column(i) for i in mine.key_places], len(payload))
        if plain is None or not self._alike:
            ids = mine.key_ids(payload)
            return self._table.find(*ids) if lookup else self._table.encode(*ids)[0]
        key, missed = self._memo.recall(plain)
        if len(missed):
            ids = mine.key_ids(take_rows(payload, missed))
            found = self._table.find(*ids) if lookup else self._table.encode(*ids)[0]
            self._memo.learn(plain, key, missed, found)
        return key

    def _to_store(self, port: int, page: Page) -> Mask:
        """Which rows could still meet something: those that live past the other side's bound.

        Rows that a preserved side is cut by also count until neither side can change there.
        """
        if self.sides[port].preserved:
            return np.ones(len(page), np.bool_)
        bound = self._bound(1 - port, port, page.payload)
        if isinstance(bound, int) and bound == INFINITY and not self.sides[1 - port].preserved:
            return np.zeros(len(page), np.bool_)
        if self.sides[1 - port].preserved:
            bound = np.minimum(bound, self._bound(port, port, page.payload))
        if page.re_new is None:
            return page.ends_after(bound)
        later: Mask = np.maximum(page.re, page.re_new) > bound
        return later

    def _bound(self, promises_of: int, rows_of: int, payload: pa.RecordBatch) -> int | I64:
        """The time before which one side is settled, for the keys of rows of a side."""
        if self.promises[promises_of].size == 0:
            return self.promises[promises_of].cti
        places = self.sides[rows_of].key_places
        columns = {name: payload.column(i) for name, i in zip(self.names[promises_of], places, strict=True)}
        return self.promises[promises_of].effective_cti(columns=columns)

    def _meet(self, port: int, page: Page, key: I64) -> Page:
        """The pairs that a page makes with the other side, as changes."""
        other = self.sides[1 - port]
        link = other.look_up(key, page) if page.tags is None else None
        if link is not None:
            both = self._rows.met(port, page.payload, None, other.rows.payload, link)
            points = page.lazy_ends
            found = PointPage(page.le, None, both) if points else Page(page.le, page.re, both, page.re_new)
            return self._rows.tested(found)
        row, link, le, re, new = other.probe(key, page)
        whole = len(row) == len(page) and (len(row) == 0 or bool((row[1:] > row[:-1]).all()))
        both = self._rows.met(port, page.payload, None if whole else row, other.rows.payload, link)
        if re is None:
            met: Page = PointPage(le, None, both)
        else:
            met = Page(le, re, both) if new is None else Page.of(both, le=le, re=re, re_new=new)
        if isinstance(page.tags, Labels):
            met = replace(met, tags=page.tags.met(row, other.labels(), link))
        return self._rows.tested(met)

    def look_up(self, page: Page) -> tuple[Page, int, int] | None:
        """The pairs of some left rows, which meet one row each all their lives, if the right is complete.

        Also from when until when all that they meet live. None where a row meets another number of them.
        """
        other = self.sides[1]
        self._file(1, self._waiting[1].all())
        key = self._numbers(self.sides[0], page.payload, lookup=True)
        link = other.look_up(key, page)
        if link is None:
            return None
        both = self._rows.met(0, page.payload, None, other.rows.payload, link)
        since, until = other.rows.get("le")[link], other.rows.get("re")[link]
        return page.with_payload(both), int(since.max()), int(until.min())

    def _keep(self, port: int, page: Page, key: I64, store: Mask) -> I64:
        """Brings a page into its side's rows; gives the numbers of preserved rows that came or changed."""
        mine = self.sides[port]
        if page.retracts is None:
            first = mine.insert(page, np.flatnonzero(store), key)
            return mine.added(first) if mine.preserved else NO_NEW
        self._file(port, self._waiting[port].all())
        if mine.rows.size == 0 and not store.any():
            return NO_NEW
        came = mine.added(mine.insert(page, np.flatnonzero(store & ~page.retracts), key))
        at = np.flatnonzero(page.retracts)
        found = mine.retract(page, at, key)
        again = mine.revive(page, at[found < 0], key, store)
        return NO_NEW if not mine.preserved else each_once(np.concatenate([came, found[found >= 0], again]))

    def _touched(self, side: int, page: Page, key: I64) -> I64:
        """Stored rows of a preserved side that a page of the other may affect."""
        mine = self.sides[side]
        owner, row = mine.chains.gather(key)
        ends = page.re if page.re_new is None else np.maximum(page.re, page.re_new)
        meets = (mine.rows.get("le")[row] < ends[owner]) & (mine.rows.get("re")[row] > page.le[owner])
        return each_once(row[meets])

    def _relay(self, side: int, rows: I64) -> Page:
        """Cuts these rows of a preserved side into pieces again; gives the change."""
        mine = self.sides[side]
        live = rows[mine.rows.alive[rows]]
        payload = mine.rows.payload.take(live)
        bound = self._settled(side, payload)
        return self._preserved[side].cut(rows, live, bound, *self._covers(side, payload))

    def _settled(self, side: int, payload: pa.RecordBatch) -> I64:
        """The time before which a preserved row's pieces cannot change."""
        own = self.promises[side].effective_cti(payload)
        theirs = self._bound(1 - side, side, payload)
        return np.ascontiguousarray(np.broadcast_to(np.minimum(own, theirs), payload.num_rows))

    def _covers(self, side: int, payload: pa.RecordBatch) -> tuple[I64, I64]:
        """(place in the payload, row of the other side) of all rows that match by key and predicate."""
        mine, other = self.sides[side], self.sides[1 - side]
        key = self._table.find(*mine.key_ids(payload))
        known = np.flatnonzero(key >= 0)
        place, cover = other.chains.gather(key[known])
        owner = known[place]
        live = other.rows.alive[cover]
        owner, cover = owner[live], cover[live]
        if not self._rows.tests or len(owner) == 0:
            return owner, cover
        true = self._rows.match(side, take_rows(payload, owner), other.rows.payload.take(cover))
        return owner[true], cover[true]

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        left, right = self.sides
        for side in (0, 1) if left.preserved or right.preserved else (1 - port,):
            self._purge(side)
            if self.sides[side].wasteful:
                self.sides[side].compact()
                self.sides[side].relink()
        if self._table.count > 2 * (left.rows.live + right.rows.live) + SPARE_KEYS:
            self.rebuild()
        items = self.aligned(port, self.node.carry(port, pattern))
        behind = 0 if self.promises[0].cti <= self.promises[1].cti else 1
        self.counters.held_by = "" if items else f"the {('left', 'right')[behind]} input"
        return items

    def _purge(self, side: int) -> None:
        """Lets go of rows that nothing can meet any more, and of pieces that cannot change."""
        mine, own, theirs = self.sides[side], self.promises[side], self.promises[1 - side]
        simple = own.size == 0 and theirs.size == 0
        if simple and not mine.preserved and not self.sides[1 - side].preserved:
            mine.expire(theirs.cti)
            self._file(side, self._waiting[side].drop(theirs.cti))
            return
        self._file(side, self._waiting[side].all())
        bound = max(p.cti for p in self.promises) if simple else INFINITY
        live = mine.ends_before(bound)
        if len(live):
            self._purge_rows(side, live, simple)
        if mine.preserved:
            self._purge_pieces(side)

    def _purge_rows(self, side: int, live: I64, simple: bool) -> None:
        mine, other = self.sides[side], self.sides[1 - side]
        ends = mine.rows.get("re")[live]
        payload = mine.rows.payload.take(live) if not simple else None
        theirs = self._purge_bound(1 - side, side, payload)
        over = other.rows.live == 0 and self.promises[1 - side].cti == INFINITY
        if other.preserved and not over:
            theirs = np.minimum(theirs, self._purge_bound(side, side, payload))
        dropped = ends <= theirs
        if mine.preserved:
            own = self.promises[side].cti if payload is None else self.promises[side].effective_cti(payload)
            settled = np.minimum(own, self._purge_bound(1 - side, side, payload))
            dropped = dropped & ((ends < settled) | (settled == INFINITY))
        mine.drop(live[dropped])

    def _purge_bound(self, promises_of: int, rows_of: int, payload: pa.RecordBatch | None) -> int | I64:
        if payload is None:
            return self.promises[promises_of].cti
        return self._bound(promises_of, rows_of, payload)

    def _purge_pieces(self, side: int) -> None:
        mine = self.sides[side]
        if all(p.size == 0 for p in self.promises):
            mine.sent.kill(mine.settled_pieces(min(p.cti for p in self.promises)))
            return
        live = np.flatnonzero(mine.sent.alive)
        if len(live):
            bound = self._settled(side, mine.rows.payload.take(mine.sent.get("row")[live]))
            mine.sent.kill(live[mine.sent.get("re")[live] < bound])

    def let_go(self, port: int, pattern: Pattern) -> GivenUp:
        """Lets go of a side's rows that match; on insert-only input what they made is final."""
        found = self._matching(port, pattern)
        return GivenUp([], self._latest_end(port, found), self._dropped(port, found))

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Lets go of keys, once no row of theirs is held that may still be cut anew."""
        found = []
        for port in (0, 1):
            names = dict(zip(self.names[0], self.names[port], strict=True))
            own = Pattern(**{names[name]: values for name, values in pattern.items()})
            found.append(self._matching(port, own))
        if any(len(rows) for rows, side in zip(found, self.sides, strict=True) if side.preserved):
            return None
        until = max(self._latest_end(port, rows) for port, rows in enumerate(found))
        return GivenUp([], until, sum(self._dropped(port, rows) for port, rows in enumerate(found)))

    def _latest_end(self, port: int, rows: I64) -> int:
        return int(self.sides[port].rows.get("re")[rows].max(initial=MIN_TIME))

    def _matching(self, port: int, pattern: Pattern) -> I64:
        self._file(port, self._waiting[port].all())
        rows = self.sides[port].rows
        live = np.flatnonzero(rows.alive)
        batch = rows.payload.take(live)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns |= {"LE": rows.get("le")[live], "RE": rows.get("re")[live]}
        return live[pattern.matches(columns)]

    def _dropped(self, port: int, rows: I64) -> int:
        side = self.sides[port]
        side.drop(rows)
        if side.wasteful:
            side.compact()
            side.relink()
        return len(rows)

    def page_to(self, pages: StatePages) -> None:
        self._paged = True
        for side in self.sides:
            side.page_to(pages)

    def states(self) -> dict[str, RowState]:
        self._file_all()
        own = {}
        for side, name in zip(self.sides, ("left", "right"), strict=True):
            own[name] = side.rows
            if side.preserved:
                own[f"{name}_sent"] = side.sent
        return own

    def rebuild(self) -> None:
        """Compacts both sides and links them anew."""
        self._file_all()
        self._table = KeyTable()
        self._memo.clear()
        for side in self.sides:
            side.compact()
            side.link(self._table)
