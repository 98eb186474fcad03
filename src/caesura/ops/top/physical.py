"""`Top` at work: the rows of each group, the stretches on which they were shown, and the change of those.

A page touches groups from some time on. From there their course is followed again, over as many of the best
rows as it takes: a row that is worse than n others at every instant is not looked at. What was shown before
that time stays, and goes on where a row is still among the first. Where rows only begin and come in order,
`running` does the same without a look at the past.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from caesura.events.columns import Grown
from caesura.events.deferred import Deferred, DeferredPage
from caesura.events.delta import Deltas, deltas, net_rows
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import NO_NEW_END, Page
from caesura.events.referred import ReferredStore
from caesura.events.rows import SMALL, RowState
from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, distinct, each_once, least_at, same_in_groups
from caesura.ops.layers import lay
from caesura.ops.top.in_order import InOrder
from caesura.ops.top.node import RANKS, Top
from caesura.ops.top.order import RowOrder
from caesura.ops.top.running import MOST_PLACES, Pause, Running
from caesura.ops.top.shown import RankedRows, cancelled, course_of, joined
from caesura.ops.top.sweep import stretches, together
from caesura.plan import GivenUp, Operator, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern

FEW_ROWS = 64
"""Groups up to this size are followed over all their rows; of larger ones the best are looked for."""
NEVER = INFINITY
"""No change begins there: nothing comes at the end of time."""


class TopOperator(Operator):
    """Live rows and the stretches sent, both by group."""

    def __init__(self, node: Top) -> None:
        super().__init__()
        self.node = node
        source = node.inputs[0]
        self._group = [source.schema.get_field_index(name) for name in node.group]
        self._prunes = source.properties.insert_only
        self._n = INFINITY if node.n is None else node.n
        self._ranks = [kind for _, kind in node.ranks]
        named = [name for name, _ in node.ranks]
        self._up_to = None if node.up_to is None else (named.index(node.up_to[0]), node.up_to[1])
        """The place of the ranks of which only some are wanted, and the greatest of those."""
        self._wanted = sum(1 << RANKS.index(kind) for kind in set(self._ranks))
        own = {"p1": np.uint64, "p2": np.uint64, "le": np.int64, "re": np.int64}
        self.rows = RowState({**own, "n": np.int64}, source.schema, store=ReferredStore)
        held = {f"r{k}": np.int64 for k in range(len(self._ranks))}
        self.sent = RowState({**own, "from": np.int64, "row": np.int64, **held})
        """What was sent: of rows with these values that begin at ``from``, with these ranks."""
        self._order = RowOrder(node, self.rows)
        known = source.properties
        self._may_run = known.insert_only and known.endless and self._n <= MOST_PLACES
        self._may_run &= self._wanted <= 1 and self._order.exact
        self._in_order = InOrder(self.rows, self.sent, len(self._ranks), node.schema, self.secret)
        self._pause = Pause()
        self._index()

    def _index(self) -> None:
        """Groups, rows and stretches by number; from what is live alone."""
        self._linked, self._in_order.running = True, None
        for state in (self.rows, self.sent):
            if state.live < state.size:
                state.compact()
        self._groups, self._events = KeyTable(), KeyTable()
        self._chains = [Chains(), Chains()]
        self._slot, self._held = Grown(np.int64), Grown(np.int64)
        """The group of each row, and how many rows each group has had."""
        self._ending = int(sum((s.get("re") != INFINITY).sum() for s in (self.rows, self.sent)))
        rows, sent = self.rows, self.sent
        self._events.encode(*_event_ids(*(rows.get(f) for f in ("p1", "p2", "le", "re"))))
        every = np.arange(rows.size)
        self._add_slots([rows.payload.columns[c].take(every) for c in self._group], rows.size)
        self._families, self._family = KeyTable(), Grown(np.int64)
        """Rows with equal values that begin together are a family; its number, for each row."""
        of_row, _ = self._families.encode(*_family(rows.get("p1"), rows.get("p2"), rows.get("le")))
        self._family.extend(of_row)
        first = np.zeros(self._families.count, np.int64)
        first[of_row] = np.arange(rows.size)
        row = first[self._families.find(*_family(sent.get("p1"), sent.get("p2"), sent.get("from")))]
        sent.get("row")[:] = row
        self._chains[1].add(self._slot.view[row])
        self._order.clear()

    def _add_slots(self, keys: list[pa.Array], count: int) -> None:
        slot, fresh = self._groups.encode(*identity(keys, count, self.secret))
        self._held.extend(np.zeros(len(fresh), np.int64))
        self._put(slot)

    def _put(self, slot: I64) -> None:
        """Takes new rows into their groups."""
        self._slot.extend(slot)
        self._chains[0].add(slot)
        np.add.at(self._held.view, slot, 1)

    def page(self, port: int, page: Page) -> Iterable[Item]:
        if len(page) == 0:
            return []
        self._file(whole=False)
        plain = plain_zeros(page.payload)
        page = page if plain is page.payload else page.with_payload(plain)
        keys = identity(page.payload.select(self._group).columns, len(page), self.secret)
        if self._may_run and self._pause.over():
            change = self._run(page, keys)
            if change is not None:
                self._pause.shorter()
                return [change]
            self._pause.longer()
        return [self._follow(page, keys)]

    def _follow(self, page: Page, keys: tuple[U64, U64]) -> Page:
        """The change that a page makes, whatever it changes of the past."""
        self._file(whole=True)
        if not self._linked:
            self._index()
        self._in_order.running = None
        slot, _ = self._groups.encode(*keys)
        self._held.extend(np.zeros(self._groups.count - self._held.size, np.int64))
        earliest = np.full(self._groups.count, NEVER, np.int64)
        least_at(slot, page.sync, earliest)
        touched = np.flatnonzero(earliest != NEVER)
        self._apply(deltas(page), page, slot)
        change = self._changed(touched, earliest[touched])
        if any(state.size > 2 * state.live + SMALL for state in (self.rows, self.sent)):
            self._index()
        return change

    def _run(self, page: Page, keys: tuple[U64, U64]) -> Page | None:
        """The change that a page makes of what is shown now; None where it changes the past, or has ties."""
        words = None if page.re_new is not None else self._order.words(page)
        if words is None:
            return None
        if self._in_order.running is None:
            self._in_order.running = self._resumed()
        if self._in_order.running is None:
            return None
        slot, _ = self._groups.encode(*keys)
        change = self._in_order.take(page, slot, words, self._groups.count)
        self._linked &= change is None
        return change

    def _resumed(self) -> Running | None:
        """What is shown now, from the stretches that were sent; None where words do not tell all apart."""
        if not self._linked:
            self._index()
        running = Running(self._n, len(self.node.order), ranked=bool(self._wanted))
        running.reach(self._groups.count)
        sent = self.sent
        at = np.flatnonzero(sent.alive & (sent.get("re") == INFINITY))
        slot, row = self._slot.view[sent.get("row")[at]], sent.get("row")[at]
        words = self._order.words_of_rows(row)
        copies = self._wanted and (self.rows.get("n")[row] > 1).any()
        if words is None or copies:  # of copies, the one that moves down takes the other's rank
            return None
        order, _ = self._order.sorted(slot, row)
        at, slot, row, words = at[order], slot[order], row[order], words[order]
        running.fill(slot, row, self.rows.get("le")[row], sent.get("le")[at], at, words)
        every = np.flatnonzero(sent.alive)
        of, le, re = (sent.get(name)[every] for name in ("row", "le", "re"))
        running.changed_at(self._slot.view[of], np.where(re == INFINITY, le, re))
        return running

    def _file(self, *, whole: bool) -> None:
        """Keeps what the last pages in order began and, where the whole state is wanted, ended."""
        known = self.promises[0]
        self._ending += self._in_order.file(known.cti if known.size == 0 else MIN_TIME, whole=whole)

    def _apply(self, change: Deltas, page: Page, slot: I64) -> None:
        """Counts events up and down: below none where one that feedback has stopped is taken back."""
        p1, p2 = (half[change.rows] for half in page.ids(self.secret))
        at, fresh = self._events.encode(*_event_ids(p1, p2, change.le, change.re))
        if len(fresh):
            fields = {
                "p1": p1[fresh],
                "p2": p2[fresh],
                "le": change.le[fresh],
                "re": change.re[fresh],
                "n": np.zeros(len(fresh), np.int64),
            }
            family, _ = self._families.encode(*_family(p1[fresh], p2[fresh], change.le[fresh]))
            self._family.extend(family)
            some = change.rows[fresh]
            whole = page.re_new is None and len(some) == len(page)
            self.rows.append(fields, page.payload, None if whole else some)
            self._put(slot[some])
            self._ending += int((change.re[fresh] != INFINITY).sum())
        add_weights(at, change.weight, self.rows.get("n"))
        some = distinct(at, self.rows.size)
        self.rows.touch(some)
        self.rows.keep(some, self.rows.get("n")[some] != 0)

    def _changed(self, touched: I64, since: I64) -> Page:
        """The change of what these groups show from these times on."""
        owner, at = self._chains[1].gather(touched)
        old = self.sent.alive[at] & (self.sent.get("re")[at] >= since[owner])
        owner, at = owner[old], at[old]
        before = self._sent(at)
        after = self._laid(before, since[owner], self._followed(touched, since))
        gone, new = cancelled(before, after)
        self.sent.kill(at[gone])
        if self._prunes:
            self._prune(touched, after)
        self._send(after.take(new))
        return self._page(before.take(gone), after.take(new))

    def _sent(self, at: I64) -> RankedRows:
        sent = self.sent
        ranks = tuple(sent.get(f"r{k}")[at] for k in range(len(self._ranks)))
        row, le, re = (sent.get(f)[at] for f in ("row", "le", "re"))
        return RankedRows(self._family.view[row], row, le, re, ranks)

    def _followed(self, touched: I64, since: I64) -> RankedRows:
        """The stretches of these groups from these times on."""
        slots = self._held.view[touched]
        small = slots <= FEW_ROWS if self.node.n is not None else np.ones(len(touched), np.bool_)
        found = self._small(touched[small], since[small])
        todo = np.flatnonzero(~small)
        count = FEW_ROWS
        while len(todo):
            wanted = count + self._n
            owner, row, complete = self._order.first(touched[todo], self._slot.view, wanted)
            part, of, short = self._stretches(owner, row, since[todo], np.where(complete, MIN_TIME, INFINITY))
            again = short & ~complete
            found = joined(found, part.take(~again[of]))
            todo = todo[again]
            count = 4 * count + 1
        return found

    def _small(self, slots: I64, since: I64) -> RankedRows:
        owner, row = self._chains[0].gather(slots)
        there = self.rows.alive[row]
        return self._stretches(owner[there], row[there], since, np.full(len(slots), MIN_TIME))[0]

    def _stretches(self, owner: I64, row: I64, since: I64, until: I64) -> tuple[RankedRows, I64, Mask]:
        """The stretches of rows from some times on; whose each one is; and who has too few rows."""
        there = (self.rows.get("re")[row] > since[owner]) & (self.rows.get("n")[row] > 0)  # see `_apply`
        owner, row = owner[there], row[there]
        if self._up_to is not None and self._up_to[1] == 1:
            owner, row = self._leading(owner, row, since)
        order, tie = self._order.sorted(owner, row)
        owner, row = owner[order], row[order]
        copies = self.rows.get("n")[row]
        if (copies != 1).any():
            owner, row, tie = (np.repeat(values, copies) for values in (owner, row, tie))
        le = np.maximum(self.rows.get("le")[row], since[owner])
        re, whole = self.rows.get("re")[row], bool((until == MIN_TIME).all())
        one = together(owner, tie, le, re, self._n, self._wanted) if whole else None
        found, short = (
            (one, np.zeros(len(since), np.bool_))
            if one is not None
            else stretches(course_of(owner, tie, le, re, len(since)), self._n, self._wanted, since, until)
        )
        at = row[found.row]
        held = {"row_number": found.number, "rank": found.rank, "dense_rank": found.dense}
        ranks = tuple(held[kind] for kind in self._ranks)
        shown, of = RankedRows(self._family.view[at], at, found.le, found.re, ranks), owner[found.row]
        if self._up_to is not None:
            wanted = ranks[self._up_to[0]] <= self._up_to[1]
            shown, of = shown.take(wanted), of[wanted]
        return shown, of, short

    def _leading(self, owner: I64, row: I64, since: I64) -> tuple[I64, I64]:
        """The rows that nobody stands before, where all of a group begin and end together; else all rows."""
        le, re = np.maximum(self.rows.get("le")[row], since[owner]), self.rows.get("re")[row]
        if not (same_in_groups(owner, le, len(since)) and same_in_groups(owner, re, len(since))):
            return owner, row
        first = self._order.leading(owner, row, len(since))
        return owner[first], row[first]

    def _laid(self, before: RankedRows, since: I64, after: RankedRows) -> RankedRows:
        """What was shown up to some times, going on where it still is, and what is shown from then on."""
        up = before.le < since
        earlier, since = before.take(up), since[up]
        both = joined(earlier, after)
        number, example = KeyTable().encode(*both.ids)
        old, new = number[: len(since)], number[len(since) :]
        group = np.concatenate([old, new, new])
        time = np.concatenate([since, after.le, after.re])
        count = np.concatenate([np.full(len(old), -1), np.ones(len(new), np.int64), np.full(len(new), -1)])
        order = np.lexsort((time, group))
        base = np.zeros((len(example), 2), np.int64)
        np.add.at(base[:, 0], old, 1)
        stack = np.lexsort((earlier.le, old))
        stack_from = np.searchsorted(old[stack], np.arange(len(example) + 1))
        o_group, o_le, o_re = (np.empty(len(order) + len(old) + 1, np.int64) for _ in range(3))
        made = lay(
            group[order],
            time[order],
            count[order],
            np.zeros(len(order), np.int64),
            1,
            base,
            stack_from,
            earlier.le[stack],
            o_group,
            o_le,
            o_re,
        )
        whose = both.take(example[o_group[:made]])
        return whose._replace(le=o_le[:made], re=o_re[:made])

    def _send(self, new: RankedRows) -> None:
        if len(new.row):
            self._record(new)
            self._chains[1].add(self._slot.view[new.row])

    def _record(self, new: RankedRows) -> int:
        """Keeps stretches that are sent, and gives the number of the first."""
        fields = {name: self.rows.get(name)[new.row] for name in ("p1", "p2")}
        fields |= {"from": self.rows.get("le")[new.row], "row": new.row, "le": new.le, "re": new.re}
        fields |= {f"r{k}": rank for k, rank in enumerate(new.ranks)}
        self._ending += int((new.re != INFINITY).sum())
        return self.sent.append(fields)

    def _page(self, gone: RankedRows, new: RankedRows) -> Page:
        both = joined(gone, new)
        weight = np.concatenate([np.full(len(gone.row), -1), np.ones(len(new.row), np.int64)])
        if len(gone.row) == 0:
            return self._deferred(both, both.re, None)
        rows, ends, re_new = net_rows(both.ids, both.le, both.re, weight)
        order = np.argsort(re_new == NO_NEW_END, kind="stable")
        rows, ends, re_new = rows[order], ends[order], re_new[order]
        retracts = bool((re_new != NO_NEW_END).any())
        return self._deferred(both.take(rows), ends, re_new if retracts else None)

    def _deferred(self, some: RankedRows, re: I64, re_new: I64 | None) -> Page:
        """A page of these rows with these ends; their columns are gathered when somebody looks."""
        assert isinstance(self.rows.payload, ReferredStore)
        rows = Deferred.of(self.rows.payload, some.row, some.ranks, self.node.schema)
        h1, h2 = self.rows.get("p1")[some.row], self.rows.get("p2")[some.row]
        ids = mixed((h1, h2), *some.ranks) if some.ranks else (h1, h2)
        return DeferredPage(some.le, re, rows, re_new).identified(self.secret.start, ids)

    def _prune(self, touched: I64, shown: RankedRows) -> None:
        """Lets go of rows that will not be shown: nobody who stands before them goes away."""
        _, row = self._chains[0].gather(touched)
        _, at = self._chains[1].gather(touched)
        needed = np.concatenate([self.sent.get("row")[at[self.sent.alive[at]]], shown.row])
        self._drop_all_but(needed, row[self.rows.alive[row]])

    def _drop_all_but(self, needed: I64, live: I64) -> None:
        family = self._family.view
        wanted = np.zeros(self._families.count, np.bool_)
        wanted[family[needed]] = True
        lost = live[~wanted[family[live]]]
        self.rows.get("n")[lost] = 0
        self.rows.kill(lost)

    def _bound(self, rows: I64) -> I64:
        """The time before which the group of each row is settled."""
        known = self.promises[0]
        if known.size == 0:
            return np.full(len(rows), known.cti)
        batch = self.rows.payload.take(rows)
        columns = {name: batch.column(at) for name, at in zip(self.node.group, self._group, strict=True)}
        return np.broadcast_to(np.asarray(known.effective_cti(columns=columns)), len(rows))

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        self._file(whole=False)
        many = self.rows.live + self.sent.live
        if pattern.without_time().attributes or many <= SMALL or 8 * self._ending >= many:
            self._purge()
        return definite(self.node.carry(port, pattern))

    def _purge(self) -> None:
        """Lets go of rows and stretches that end before the bound."""
        known = self.promises[0]
        if self._in_order.running is not None and known.size == 0 and known.cti < INFINITY:
            self._ending = self._in_order.purge(known.cti)
            self._linked = False
            return
        self._file(whole=True)
        if not self._linked:
            self._index()
        self._in_order.running = None
        for state, row in ((self.sent, self.sent.get("row")), (self.rows, np.arange(self.rows.size))):
            live = np.flatnonzero(state.alive)
            bound = self._bound(row[live])
            lost = live[(state.get("re")[live] < bound) | (bound == INFINITY)]
            if state is self.rows:
                state.get("n")[lost] = 0
            state.kill(lost)
        if self._prunes:
            needed = self.sent.get("row")[self.sent.alive]
            self._drop_all_but(needed, np.flatnonzero(self.rows.alive))
        if self.rows.wasteful or self.sent.wasteful:
            self._index()

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Takes back the groups that match, unless a row of one began in the settled past and goes on."""
        self._file(whole=True)
        if not self._linked:
            self._index()
        self._in_order.running = None
        live = np.flatnonzero(self.rows.alive)
        batch = self.rows.payload.take(live)
        columns = {name: batch.column(at) for name, at in zip(self.node.group, self._group, strict=True)}
        rows = live[pattern.matches({**columns, "LE": np.zeros(len(live), np.int64)})]
        _, at = self._chains[1].gather(each_once(self._slot.view[rows]))
        at = at[self.sent.alive[at]]
        shown = self._sent(at)
        if (shown.le < self._bound(shown.row)).any():
            return None
        none = shown.take(np.zeros(0, np.int64))
        page, until = self._page(shown, none), int(self.rows.get("re")[rows].max(initial=MIN_TIME))
        self.sent.kill(at)
        self.rows.get("n")[rows] = 0
        self.rows.kill(rows)
        self._index()
        return GivenUp([page], until, len(at) + len(rows))

    def states(self) -> dict[str, RowState]:
        self._file(whole=True)
        return {"rows": self.rows, "sent": self.sent}

    def rebuild(self) -> None:
        self._file(whole=True)
        self._index()


def _event_ids(p1: U64, p2: U64, le: I64, re: I64) -> tuple[U64, U64]:
    """The identity of an event by its values and lifetime."""
    return mixed((p1, p2), le, re)


def _family(p1: U64, p2: U64, le: I64) -> tuple[U64, U64]:
    """The identity of events with equal values that begin together."""
    return mixed((p1, p2), le)
