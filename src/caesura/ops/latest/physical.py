"""`Latest` at work: rows that may still be replaced or taken back, each with the end that was sent.

Most keys of a page go forward in time, and are followed in one pass (`current`). The rest are looked at with
all their rows. What a page brings is filed when the next one or a punctuation comes: rows that ended before
its CTI are never written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import DataError
from caesura.events.columns import Grown
from caesura.events.deferred import Deferred, DeferredPage
from caesura.events.delta import net_page
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.order import ranks
from caesura.events.page import NO_NEW_END, Page
from caesura.events.referred import ReferredStore
from caesura.events.rows import SMALL, RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, distinct
from caesura.ops.latest.current import HIDDEN, CurrentRows, Followed
from caesura.ops.latest.node import Latest
from caesura.ops.ordered import sorting
from caesura.plan import GivenUp, Operator, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

JOINED_BYTES = 1 << 26
"""Of pages together more rows are replaced before anybody looks at them."""


class PendingRows(NamedTuple):
    """Rows of a page with their keys and ends, some of which may be kept."""

    page: Page
    key: I64
    end: I64
    deletes: Mask
    some: I64


class LatestOperator(Operator):
    """Rows by key; how they are linked is found out where a key needs more than its current row."""

    def __init__(self, node: Latest) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0].schema
        self._group = [source.get_field_index(name) for name in node.group]
        self._shown = [source.get_field_index(name) for name in node.schema.names]
        self._op = None if node.ops is None else source.get_field_index(node.ops.column)
        own = {"h1": np.uint64, "h2": np.uint64, "le": np.int64, "n": np.int64, "end": np.int64}
        self.rows = RowState({**own, "gone": np.int64}, source, store=ReferredStore)
        self._pending: PendingRows | None = None
        if node.wanted == "current":
            self.joined_bytes = JOINED_BYTES
        self.rebuild()

    def page(self, port: int, page: Page) -> Iterable[Item]:
        self._file()
        weight = np.ones(len(page), np.int64)
        if page.retracts is not None and page.re_new is not None:
            weight = np.where(page.retracts, np.where(page.re_new <= page.le, -1, 0), 1)
        some = np.flatnonzero(weight)
        if len(some) == 0:
            return []
        if (page.le[some[1:]] < page.le[some[:-1]]).any():
            some = some[np.argsort(page.le[some], kind="stable")]
        if len(some) < len(page) or (some[1:] < some[:-1]).any():
            page, weight = page.take(some), weight[some]
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        return self._taken(page, weight)

    def _taken(self, page: Page, weight: I64) -> list[Item]:
        keys, _ = self._keys.encode(*self._key_ids(dict(enumerate(page.payload.columns)), len(page)))
        self._current.reach(self._keys.count)
        deletes = self._deletes(page.payload)
        if self.node.wanted == "current":
            last = self._current.last_rows(keys, page.le)
            page, weight, keys, deletes = page.take(last), weight[last], keys[last], deletes[last]
        followed, apart = self._current.follow(keys, page.le, weight, deletes)
        items: list[Item] = []
        rest = np.flatnonzero(~apart)
        if len(rest):
            self._pending = PendingRows(page, keys, followed.end, deletes, rest)
            items.append(self._forward(self._pending, followed))
        if len(rest) < len(page):
            late = np.flatnonzero(apart)
            items.append(self._looked_at(page.take(late), weight[late], keys[late]))
        if self.rows.size > 2 * self.rows.live + SMALL:
            self._file()
            self.rebuild()
        return items

    def _key_ids(self, columns: Mapping[int, pa.Array], count: int) -> tuple[U64, U64]:
        return identity([columns[i] for i in self._group], count, self.secret)

    def _forward(self, pending: PendingRows, followed: Followed) -> Page:
        """Sends rows that replace others, and the ends of those."""
        page, rows = pending.page, self.rows
        assert isinstance(rows.payload, ReferredStore)
        rows.get("end")[followed.row] = followed.at
        rows.touch(followed.row)
        self._ended += len(followed.row)
        shown = pending.some[~pending.deletes[pending.some]]
        parts = ((rows.payload, followed.row), (ReferredStore.over(page.payload), shown))
        stores = tuple((store.frozen(self._shown), at) for store, at in parts if len(at))
        named = Deferred(stores, (), self.node.schema)
        count = len(followed.row)
        le = np.concatenate([rows.get("le")[followed.row], page.le[shown]])
        re = np.concatenate([np.full(count, INFINITY), pending.end[shown]])
        re_new = np.concatenate([followed.at, np.full(len(shown), NO_NEW_END)]) if count else None
        change = DeferredPage(le, re, named, re_new)
        if self._op is None:
            h1, h2 = page.ids(self.secret)
            ended = rows.get("h1")[followed.row], rows.get("h2")[followed.row]
            ids = np.concatenate([ended[0], h1[shown]]), np.concatenate([ended[1], h2[shown]])
            change.identified(self.secret.start, ids)
        return change

    def _file(self) -> None:
        """Keeps the rows of the last page but those that are settled."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        page, some = pending.page, pending.some
        cti = self.promises[0].cti if self.promises[0].size == 0 else MIN_TIME
        some = some[(page.le[some] >= cti) | (pending.end[some] >= cti)]
        h1, h2 = (half[some] for half in page.ids(self.secret))
        fields = {"h1": h1, "h2": h2, "le": page.le[some], "n": np.ones(len(some), np.int64)}
        fields |= {"end": pending.end[some], "gone": pending.deletes[some].astype(np.int64)}
        first = self.rows.append(fields, page.payload, None if len(some) == len(page) else some)
        self._ended += int((pending.end[some] != INFINITY).sum())
        self._key.extend(pending.key[some])
        number = np.full(len(page), -1)
        number[some] = first + np.arange(len(some))
        self._current.settle(distinct(pending.key[pending.some], self._keys.count), number)

    def _link(self) -> None:
        """Finds rows by key and by value, those that came since the last time."""
        known = self._chains.size
        if known < self.rows.size:
            self._chains.add(self._key.view[known:])
            ids = (self.rows.get("h1")[known:], self.rows.get("h2")[known:])
            self._values.encode(*mixed(ids, self.rows.get("le")[known:]))

    def _looked_at(self, page: Page, weight: I64, keys: I64) -> Page:
        """The change of keys of which rows came late, together, or were taken back."""
        self._link()
        self._apply(page, weight, keys)
        return self._changed(distinct(keys, self._keys.count))

    def _apply(self, page: Page, weight: I64, keys: I64) -> None:
        h1, h2 = page.ids(self.secret)
        at, fresh = self._values.encode(*mixed((h1, h2), page.le))
        if len(fresh):
            fields = {"h1": h1[fresh], "h2": h2[fresh], "le": page.le[fresh]}
            fields |= {"n": np.zeros(len(fresh), np.int64), "end": np.full(len(fresh), HIDDEN)}
            fields |= {"gone": self._deletes(page.payload)[fresh].astype(np.int64)}
            self.rows.append(fields, page.payload, fresh)
            self._key.extend(keys[fresh])
            self._chains.add(keys[fresh])
        add_weights(at, weight, self.rows.get("n"))
        touched = distinct(at, self.rows.size)
        self.rows.touch(touched)
        self.rows.keep(touched, self._needed(touched))

    def _needed(self, rows: I64) -> Mask:
        needed: Mask = (self.rows.get("n")[rows] > 0) | (self.rows.get("end")[rows] != HIDDEN)
        return needed

    def _deletes(self, payload: pa.RecordBatch) -> Mask:
        ops = self.node.ops
        if ops is None or self._op is None:
            return np.zeros(payload.num_rows, np.bool_)
        column = payload.column(self._op)
        known = pc.is_in(column, pa.array([*ops.present, *ops.deleted], pa.string()))
        strange = column.filter(pc.invert(known))
        if len(strange):
            raise DataError(
                f"'{ops.column}' is {strange[0].as_py()!r}, which says neither that a row is there "
                f"({', '.join(ops.present)}) nor that it is deleted ({', '.join(ops.deleted)}).",
                remedy="Name its values: insert=, update=, delete=; or leave such rows out with where.",
            )
        found: Mask = np.asarray(pc.is_in(column, pa.array(ops.deleted, pa.string())))
        return found

    def _changed(self, keys: I64) -> Page:
        """The change of what these keys show."""
        owner, row = self._chains.gather(keys)
        self._current.clear(keys, owner, self.rows.get("le")[row])
        live = self.rows.alive[row]
        owner, row = owner[live], row[live]
        old, new = self.rows.get("end")[row], self._ends(owner, row)
        changed = np.flatnonzero(old != new)
        page = self._change(row[changed], old[changed], new[changed])
        self.rows.get("end")[row] = new
        self.rows.touch(row[changed])
        self.rows.keep(row, self._needed(row))
        self._ended += int((new != INFINITY).sum())
        self._current.show(keys[owner], row, new)
        return page

    def _change(self, row: I64, old: I64, new: I64) -> Page:
        """What rows with other ends than before are told by."""
        was, rows = old != HIDDEN, self.rows
        if self._op is not None:  # without that column rows may be equal, and then one may follow the other
            lost, won = np.flatnonzero(was), np.flatnonzero(new != HIDDEN)
            some = np.concatenate([row[lost], row[won]])
            weight = np.concatenate([np.full(len(lost), -1), np.ones(len(won), np.int64)])
            payload = rows.payload.take(some).select(self._shown)
            return net_page(payload, rows.get("le")[some], np.concatenate([old[lost], new[won]]), weight)
        order = np.argsort(~was, kind="stable")
        row, old, new, was = row[order], old[order], new[order], was[order]
        le = rows.get("le")[row]
        ends = np.where(was, np.where(new == HIDDEN, le, new), NO_NEW_END) if was.any() else None
        named = Deferred.of(rows.payload, row, (), self.node.schema)
        page = DeferredPage(le, np.where(was, old, new), named, ends)
        return page.identified(self.secret.start, (rows.get("h1")[row], rows.get("h2")[row]))

    def _ends(self, owner: I64, row: I64) -> I64:
        """Where each row ends by all of its key's; hidden where it is not shown at all."""
        le = self.rows.get("le")[row]
        there = np.flatnonzero(self.rows.get("n")[row] > 0)
        by_start = sorting(owner[there], le[there])
        order = there if by_start is None else there[by_start]
        order = self._settle_ties(order, owner, le, row)
        ends = np.full(len(row), HIDDEN)
        follows = np.append(owner[order][1:] == owner[order][:-1], False)
        after = np.append(le[order][1:], INFINITY)
        until = np.where(follows, after, INFINITY)
        wins = (until > le[order]) & (self.rows.get("gone")[row[order]] == 0)
        ends[order[wins]] = until[wins]
        return ends

    def _settle_ties(self, order: I64, owner: I64, le: I64, row: I64) -> I64:
        """The same order; rows of a key that start together by what counts among them, the last one last."""
        same = (owner[order][1:] == owner[order][:-1]) & (le[order][1:] == le[order][:-1])
        tied = np.append(same, False) | np.append(False, same)
        if not same.any():
            return order
        place = order[tied]
        payload = self.rows.payload.take(row[place])
        names = [*self.node.order, *payload.schema.names]
        values = [ranks(payload.column(name)) for name in names]
        again = np.lexsort((*reversed(values), le[place], owner[place]))
        order = order.copy()
        order[tied] = place[again]
        return order

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        self._file()
        live = self.rows.live
        if pattern.without_time().attributes or live <= SMALL or 8 * self._ended >= live:
            self._purge()
        return definite(self.node.carry(port, pattern))

    def _purge(self) -> None:
        """Lets go of rows that start and end before the bound."""
        live = np.flatnonzero(self.rows.alive)
        bound = self._bound(live)
        le, end = self.rows.get("le")[live], self.rows.get("end")[live]
        settled = ((le < bound) & (end < bound)) | (bound == INFINITY)
        self.rows.kill(live[settled])
        self._ended = int((end[~settled] != INFINITY).sum())
        if self.rows.wasteful or self._keys.count > 2 * self.rows.live + SMALL:
            self.rebuild()

    def _bound(self, rows: I64) -> I64:
        """The time before which the key of each row is settled."""
        known = self.promises[0]
        if known.size == 0:
            return np.full(len(rows), known.cti)
        batch = self.rows.payload.take(rows)
        columns = {name: batch.column(at) for name, at in zip(self.node.group, self._group, strict=True)}
        return np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(rows))

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back what is shown of the keys that match, unless one has begun in the settled past."""
        self._file()
        found = self._matching(pattern)
        end, le = self.rows.get("end")[found], self.rows.get("le")[found]
        shown = end != HIDDEN
        if (shown & (le < self._bound(found))).any():
            return None
        payload = self.rows.payload.take(found[shown]).select(self._shown)
        page = Page.of(payload, le=le[shown], re=end[shown], re_new=le[shown])
        until = int(np.where(shown, end, le + 1).max(initial=MIN_TIME))
        self.rows.kill(found)
        self.rebuild()
        return GivenUp([page], until, len(found))

    def _matching(self, pattern: Pattern) -> I64:
        live = np.flatnonzero(self.rows.alive)
        batch = self.rows.payload.take(live)
        return live[pattern.matches(dict(zip(batch.schema.names, batch.columns, strict=True)))]

    def states(self) -> dict[str, RowState]:
        self._file()
        return {"rows": self.rows}

    def rebuild(self) -> None:
        self._file()
        if self.rows.live < self.rows.size:
            self.rows.compact()
        self._keys, self._current = KeyTable(), CurrentRows()
        self._values, self._chains, self._key = KeyTable(), Chains(), Grown(np.int64)
        """Rows by value, by key, and the key of each."""
        rows, every = self.rows, np.arange(self.rows.size)
        columns = {c: rows.payload.columns[c].take(every) for c in self._group}
        number, _ = self._keys.encode(*self._key_ids(columns, rows.size))
        self._key.extend(number)
        self._current.reach(self._keys.count)
        self._current.clear(np.arange(self._keys.count), number, rows.get("le"))
        self._current.show(number, every, rows.get("end"))
        self._ended = int((rows.get("end") != INFINITY).sum())
