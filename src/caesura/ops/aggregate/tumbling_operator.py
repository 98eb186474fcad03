"""`tumbling` and `hopping` windows at work: a slot per group and window, corrections, what was sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.columns import taken
from caesura.events.grouping import grouped, grouped_apart
from caesura.events.identity import identity, plain_zeros
from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.events.rows import RowState
from caesura.kernels.grid import spread, tally, whole_windows
from caesura.kernels.hashing import I64, U64, frozen, mix_two, mixed
from caesura.kernels.memo import Memo, whole_numbers
from caesura.kernels.sums import add_weights, mark
from caesura.ops.aggregate.sent_by_slot import SentBySlot
from caesura.ops.aggregate.shape import can_name, check_pieces
from caesura.ops.aggregate.slots import LARGE_PAGE, Slots
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.endless import Endless
from caesura.plan import GivenUp, Operator, Speculate, definite
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, value

NONE: I64 = np.zeros(0, np.int64)
PAST_MEMO = 16
"""After a large page of which most keys had not come lately, so many pages are searched for at once."""


class TumblingOperator(Operator):
    """Slots by (group, window); corrections leave per page, final rows per punctuation."""

    extra: tuple[str, ...] = ()
    """More numbers per slot, zero at first."""

    def __init__(self, node: Tumbling) -> None:
        super().__init__()
        self.node = node
        self.schema = node.schema
        source = node.inputs[0]
        self.slots = Slots(
            node.aggregates,
            source.schema,
            node.group,
            time=node.time,
            insert_only=source.properties.insert_only,
            fields=dict.fromkeys(("w", "sent", "done", *self.extra), np.int64),
        )
        self.sent = SentBySlot(self.slots.rows, node.schema)
        self.endless = Endless(self.slots.keys, self.slots.value_types)
        self.grid = node.grid
        self._keys = [source.schema.get_field_index(name) for name in node.group]
        self._memo = Memo()
        self._scattered = 0
        """For how many pages keys are not looked for among the recent ones."""
        self._closed = MIN_TIME
        """Where the earliest window starts that was open when some were closed last."""
        self._over = False
        """Whether windows that nothing leaves of have ended: they go when rows come, or somebody looks."""
        self._latest, self._number = MIN_TIME, self.grid.first(MIN_TIME)
        """The latest start that came, and the first window that time had not passed when some left last."""

    def keep_pace(self, speculate: Speculate) -> None:
        self.speculate = speculate

    def page(self, port: int, page: Page) -> Iterable[Item]:
        self._let_go()
        if self.speculate == "passed" and len(page):
            self._latest = max(self._latest, int(page.le.max()))
        keys = plain_zeros(page.payload.select(self._keys))
        values = self.slots.values_of(page)
        if self.node.size == self.node.every:
            window, weight = np.empty(len(page), np.int64), np.empty(len(page), np.int64)
            news = NONE if page.re_new is None else page.re_new
            ends = NONE if page.lazy_ends else page.re
            if whole_windows(page.le, ends, news, self.grid.offset, self.grid.hop, window, weight):
                return self._came(self._add(keys, values, window, None, weight))
        bound = self._bound(keys)
        first, last, weight = self._changed(page, bound)
        self._keep_endless(page, keys, values, bound)
        return self._came(self._add(keys, values, first, last, weight))

    def _came(self, touched: I64) -> list[Item]:
        if self.watched and len(touched):
            self._look_out(*self._span(touched), self._payload(touched))
        return self._correct(touched)

    def _look_out(self, le: I64, re: I64, payload: pa.RecordBatch) -> None:
        """Notes the windows whose values have crossed a bound for good."""
        if not can_name(payload.schema, self.node.group):
            return
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        columns |= {"LE": le, "RE": re}
        for pattern in self.watched:
            for row in np.flatnonzero(pattern.matches(columns)).tolist():
                key = {name: value(columns[name][row].as_py()) for name in self.node.group}
                self.crossed.append(Pattern(**key, LE=value(int(le[row]))))

    def _bound(self, keys: pa.RecordBatch) -> int | I64:
        """The time before which nothing changes, for all rows or for each."""
        return self.promises[0].effective_cti(columns=dict(zip(self.node.group, keys.columns, strict=True)))

    def _last(self, ends: I64, bound: int | I64) -> I64:
        """The last window of a lifetime with this end; without end, the last that the CTI has reached."""
        endless = ends == INFINITY
        if not endless.any():
            return self.grid.begin(ends) - 1
        return self.grid.begin(np.where(endless, bound, ends)) - 1

    def _changed(self, page: Page, bound: int | I64) -> tuple[I64, I64, I64]:
        """Per row the windows it enters (weight 1) or leaves (-1); closed windows are left out."""
        none = self.grid.first(page.le) - 1
        had = none
        has = np.maximum(self._last(page.re, bound), none)
        if page.re_new is not None and page.retracts is not None:
            new = np.maximum(self._last(np.where(page.retracts, page.re_new, page.re), bound), none)
            had = np.where(page.retracts, has, none)
            has = np.where(page.retracts & (page.re_new <= page.le), none, new)
        low = np.minimum(had, has) + 1
        if not (isinstance(bound, int) and bound == MIN_TIME):
            low = np.maximum(low, self.grid.first(bound))
        return low, np.maximum(had, has), np.sign(has - had)

    def _add(
        self, keys: pa.RecordBatch, values: list[pa.Array], first: I64, last: I64 | None, weight: I64
    ) -> I64:
        """Adds each row to its windows, or to its only one; gives the slots touched, once each."""
        rows, window = NONE, first
        if last is not None and not values:
            keys, first, last, weight = self._in_panes(keys, first, last, weight)
        if last is not None:
            rows, window = self._spread(first, last)
            weight = weight[rows]
            if len(rows) != len(first) or not (rows[1:] > rows[:-1]).all():
                values = [v.take(pa.array(rows)) for v in values]
            at = self._found(keys, len(first), rows, window)
        else:
            at = self._slots_of(keys, window)
        return self._put(at, weight, values)

    def _in_panes(
        self, keys: pa.RecordBatch, first: I64, last: I64, weight: I64
    ) -> tuple[pa.RecordBatch, I64, I64, I64]:
        """Rows of a key in the same windows as one, where they are only counted: they are spread once."""
        whole = len(first) >= LARGE_PAGE and bool((last - first == last[0] - first[0]).all())
        groups = grouped(keys.columns, len(first)) if whole else None
        panes = None if groups is None else grouped_apart(groups, np.arange(len(first)), first)
        if panes is None:
            return keys, first, last, weight
        total = np.zeros(len(panes.first), np.int64)
        add_weights(panes.number, weight, total)
        return take_rows(keys, panes.first), first[panes.first], last[panes.first], total

    def counted(self, keys: pa.RecordBatch, window: I64, count: I64) -> list[Item]:
        """Takes so many rows into windows by key, where nothing is aggregated but their number."""
        self._start(window)
        return self._came(self._put(self._slots_of(keys, window), count, []))

    def placed(
        self, keys: pa.RecordBatch, window: I64, number: I64, values: list[pa.Array], weight: I64
    ) -> list[Item]:
        """Takes rows into windows by key, or out of them; each has the number of its window among these."""
        self._start(window)
        at = self._slots_of(keys, window)[number]
        return self._came(self._put(at, weight, values))

    def _start(self, window: I64) -> None:
        """Rows came that start in these windows: as far as windows end to end go, at their starts."""
        self._let_go()
        if self.speculate == "passed" and len(window):
            self._latest = max(self._latest, self.grid.start(int(window.max())))

    def swap(self, slots: Slots, memo: Memo) -> tuple[Slots, Memo]:
        """Brings rows into other slots from now on; gives those that it had."""
        own = self.slots, self._memo
        self.slots, self._memo = slots, memo
        return own

    def take_over(self, other: Slots, rows: I64) -> None:
        """Adds some slots of others, for the same groups and windows, to those here."""
        at, fresh = self.slots.find(*(taken(other.rows.get(name), rows) for name in ("h1", "h2")))
        some = rows[fresh]
        keys = other.rows.payload.take(some) if self._keys else pa.record_batch({})
        self._open(keys, np.arange(len(some)), taken(other.rows.get("w"), some))
        self.slots.merge(at, other, rows)
        self.slots.settle(at)

    def _slots_of(self, keys: pa.RecordBatch, window: I64) -> I64:
        """The slots of one window each."""
        plain = whole_numbers(keys.columns, len(window))
        if plain is not None:
            return self._recalled(plain, keys, window)
        return self._found(keys, len(window), np.arange(len(window)), window)

    def _put(self, at: I64, weight: I64, values: list[pa.Array]) -> I64:
        """Adds weighted rows to slots; gives the slots touched, once each."""
        self.slots.add(at, weight, values)
        if self._goes_unnoticed(weight):
            return NONE
        marked = np.zeros(self.slots.rows.size, np.bool_)
        mark(at, marked)
        touched = np.flatnonzero(marked)
        self.slots.settle(touched)
        return touched

    def _goes_unnoticed(self, weight: I64) -> bool:
        """Whether nobody asks which slots changed: nothing was sent or saved of any, and rows only came."""
        if self.speculate != "watermark" or self.watched or self.sent.rows.live or self.extra:
            return False
        return self.slots.rows.all_fresh and len(weight) > 0 and bool(weight.min() > 0)

    def _recalled(self, plain: I64, keys: pa.RecordBatch, window: I64) -> I64:
        """The slots of windows, most of them as they were found before, unless keys hardly come again."""
        if self._scattered > 0:
            self._scattered -= 1
            return self._searched_for(plain, keys, window)
        at, missed = self._memo.recall(plain, window)
        if len(missed):
            found = self._searched_for(taken(plain, missed), take_rows(keys, missed), taken(window, missed))
            self._memo.learn(plain, window, at, missed, found)
            most = 2 * len(missed) > len(at) >= LARGE_PAGE
            self._scattered = PAST_MEMO if most and self._memo.largest else 0
        return at

    def _searched_for(self, plain: I64, keys: pa.RecordBatch, window: I64) -> I64:
        """The slots of windows of whole numbers, or of no keys, which are searched for."""
        h1, h2 = np.empty(len(window), np.uint64), np.empty(len(window), np.uint64)
        if self._keys:
            mix_two(frozen(plain), frozen(window), *self.secret.start, h1, h2)
        else:
            h1, h2 = mixed(identity([], len(window), self.secret), window)
        at, fresh = self.slots.find(h1, h2)
        self._open(keys, fresh, taken(window, fresh))
        return at

    def _found(self, keys: pa.RecordBatch, count: int, rows: I64, window: I64) -> I64:
        """The slots of some rows' windows; new ones are opened."""
        groups = grouped(keys.columns, count) if count >= LARGE_PAGE else None
        apart = None if groups is None else grouped_apart(groups, rows, window)
        if groups is None or apart is None:
            ids = identity(keys.columns, count, self.secret)
            return self._searched(ids, rows, keys, rows, window)
        some = take_rows(keys, groups.first)
        own = rows[apart.first]
        ids = identity(some.columns, some.num_rows, self.secret)
        at = self._searched(ids, groups.number[own], keys, own, window[apart.first])
        return taken(at, apart.number)

    def _searched(self, ids: tuple[U64, U64], who: I64, keys: pa.RecordBatch, rows: I64, window: I64) -> I64:
        """The slots of windows by the identities of keys; ``who`` says whose, ``rows`` where the keys are."""
        h1, h2 = mixed(ids, window, rows=who)
        at, fresh = self.slots.find(h1, h2)
        self._open(keys, rows[fresh], window[fresh])
        return at

    def _open(self, keys: pa.RecordBatch, rows: I64, window: I64) -> None:
        """Makes the slots that were asked for last, of the keys of these rows."""
        count = len(rows)
        if count == 0:
            return
        fields = {name: np.broadcast_to(np.int64(0), count) for name in self.extra}
        fields |= {"w": window, "sent": np.broadcast_to(np.int64(-1), count)}
        fields["done"] = np.broadcast_to(np.int64(MIN_TIME), count)
        self.slots.open(take_rows(keys, rows), fields)

    def _spread(self, first: I64, last: I64) -> tuple[I64, I64]:
        """(row, window) of each window of each row."""
        count, total = tally(first, last + 1)
        check_pieces(total, self.node.size)
        return spread(first, count)

    def _keep_endless(
        self, page: Page, keys: pa.RecordBatch, values: list[pa.Array], bound: int | I64
    ) -> None:
        was = page.re == INFINITY
        now = was
        if page.re_new is not None and page.retracts is not None:
            now = np.where(page.retracts, page.re_new == INFINITY, was)
            was = was & page.retracts
        else:
            was = np.zeros(len(page), np.bool_)
        change = now.astype(np.int64) - was.astype(np.int64)
        if change.any():
            reached = np.broadcast_to(self.grid.begin(bound) - 1, len(page))
            self.endless.change(keys, values, page.le, change, reached)

    def _correct(self, touched: I64) -> list[Item]:
        """The change in what these slots say, if speculation is wanted."""
        if len(touched) == 0:
            return []
        if self.speculate == "passed":
            return self._passed(touched)
        if self.speculate == "watermark":
            if not self.sent.rows.live:
                return []
            return self._corrected(touched[self.slots.rows.get("sent")[touched] >= 0])
        payload = self._payload(touched)
        present = self.slots.rows.get("rows")[touched] > 0
        return [self.sent.change(touched, *self._span(touched), payload, present)]

    def _passed(self, touched: I64) -> list[Item]:
        """The change in what was sent of these slots, and all that time has passed since, where it has."""
        rows, number = self.slots.rows, self.grid.first(max(self._latest, self.promises[0].cti))
        if number > self._number:
            self._number = number
            touched = np.union1d(touched, np.flatnonzero(rows.alive & (rows.get("w") < number)))
        out = (rows.get("sent")[touched] >= 0) | (rows.get("w")[touched] < number)
        return self._corrected(touched[out])

    def _span(self, at: I64) -> tuple[I64, I64]:
        """Where the windows of these slots start and end."""
        window = taken(self.slots.rows.get("w"), at)
        if len(at) and window.min() == window.max():
            only = int(window[0])
            return np.full(len(at), self.grid.start(only)), np.full(len(at), self.grid.end(only))
        start = self.grid.start(window)
        return start, self.grid.close(start)

    def _payload(self, at: I64) -> pa.RecordBatch:
        keys = self.slots.rows.payload.take(at).columns if self._keys else []
        return pa.RecordBatch.from_arrays([*keys, *self.slots.results(at)], schema=self.schema)

    def definite(self, port: int, pattern: Pattern) -> Iterable[Item]:
        self.counters.sweeps += 1
        items = self._correct(self._advance_endless())
        known = self.promises[0]
        closed = known.cti if known.cti == INFINITY else self.node.earliest(known.cti)
        if known.size or closed != self._closed:  # else no window has ended since
            self._over = self.speculate == "arrival" and closed < INFINITY
            items += [] if self._over else self._close()
            self._closed = closed
        out = self.node.carry(port, pattern)
        bound = pattern.time_bound
        if bound is not None and bound != INFINITY:
            number = self.grid.first(bound)
            start, end = self.grid.start(number), self.grid.end(number)
            self.counters.held_by = f"the window [{start}, {end}) is open"
        return [*items, *definite(out)]

    def _advance_endless(self) -> I64:
        """Lets events without end enter the windows that progress has reached."""
        rows = self.endless.rows
        if rows.live == 0:
            return np.zeros(0, np.int64)
        live = np.flatnonzero(rows.alive)
        batch = rows.payload.take(live)
        keys = batch.select(list(range(len(self._keys))))
        bound = np.broadcast_to(np.asarray(self._bound(keys)), len(live))
        going = bound < INFINITY
        begun = self.grid.first(rows.get("le")[live])
        reached = np.where(going, self.grid.begin(bound), begun) - 1
        first = np.maximum(begun, rows.get("reached")[live] + 1)
        values = [batch.column(len(self._keys) + i) for i in range(len(self.slots.makers))]
        touched = self._add(keys, values, first, reached, rows.get("n")[live])
        rows.get("reached")[live] = np.maximum(rows.get("reached")[live], reached)
        rows.touch(live)
        self.endless.drop(live[~going])
        return touched

    def _let_go(self) -> None:
        """Lets go of windows that have ended since the last page, of which everything was sent."""
        if self._over:
            self._over = False
            self._close()

    def _close(self) -> list[Item]:
        """Lets go of the windows that can no longer change; in watermark mode they are sent now."""
        rows = self.slots.rows
        if self.promises[0].size and self._keys and rows.live:
            live = np.flatnonzero(rows.alive)
            closed = live[self._span(live)[1] <= self._bound(rows.payload.take(live))]
        else:
            closed = np.flatnonzero(rows.alive & (rows.get("w") < self.grid.first(self.promises[0].cti)))
        items: list[Item] = []
        if self.speculate != "arrival":
            filled = taken(rows.get("rows"), closed) > 0
            shown = taken(rows.get("sent"), closed) >= 0 if self.sent.rows.live else np.zeros_like(filled)
            full = closed[filled & ~shown]
            items = [Page(*self._span(full), self._payload(full))] if len(full) else []
            items += self._corrected(closed[shown])
        if self.sent.rows.live:
            self.sent.forget(closed)
        self.slots.drop(closed)
        self._tidy()
        return items

    def _tidy(self) -> None:
        keep = self.slots.tidy()
        self.sent.renumber(keep)
        if keep is not None:
            self._memo.renumber(keep)

    def give_up(self, pattern: Pattern) -> GivenUp | None:
        """Lets windows go; those that are open can always be taken back, since output waits for them."""
        self._let_go()
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive)
        columns = self._named(rows.payload.take(live).columns if self._keys else [])
        le, re = self._span(live)
        some = pattern.matches({**columns, "LE": le, "RE": re})
        dropped, until = live[some], int(re[some].max(initial=MIN_TIME))
        items: list[Item] = []
        if (self.slots.rows.get("sent")[dropped] >= 0).any():
            none = np.zeros(len(dropped), np.bool_)
            items = [self.sent.change(dropped, *self._span(dropped), self._payload(dropped), none)]
        self.slots.drop(dropped)
        self._tidy()
        endless = self._drop_endless(pattern)
        return GivenUp(items, INFINITY if endless else until, len(dropped) + endless)

    def demand(self, pattern: Pattern) -> Iterable[Item]:
        """The results of open windows so far; with speculation they were sent already."""
        rows = self.slots.rows
        live = np.flatnonzero(rows.alive & (rows.get("rows") > 0))
        if self.speculate == "arrival" or len(live) == 0:
            return []
        (le, re), payload = self._span(live), self._payload(live)
        columns = dict(zip(payload.schema.names, payload.columns, strict=True))
        some = pattern.matches({**columns, "LE": le, "RE": re})
        present = np.ones(int(some.sum()), np.bool_)
        payload = payload.take(pa.array(np.flatnonzero(some)))
        page = self.sent.change(live[some], le[some], re[some], payload, present)
        return [replace(page, partial=True)] if len(page) else []

    def _named(self, columns: list[pa.Array]) -> dict[str, Any]:
        return dict(zip(self.node.group, columns, strict=True))

    def _drop_endless(self, pattern: Pattern) -> int:
        """Events without end go with their group, if all of its windows do."""
        rows = self.endless.rows
        if rows.live == 0 or "LE" in pattern or "RE" in pattern:
            return 0
        live = np.flatnonzero(rows.alive)
        columns = self._named(rows.payload.take(live).columns[: len(self._keys)])
        dropped = live[pattern.matches({**columns, "LE": rows.get("le")[live]})]
        self.endless.drop(dropped)
        return len(dropped)

    def _corrected(self, at: I64) -> list[Item]:
        """The change from what was sent of windows on demand to their results in the end."""
        if len(at) == 0:
            return []
        present = self.slots.rows.get("rows")[at] > 0
        page = self.sent.change(at, *self._span(at), self._payload(at), present)
        return [page] if len(page) else []

    def meta(self) -> dict[str, Any]:
        own = super().meta()
        return {**own, "latest": [self._latest, self._number]} if self.speculate == "passed" else own

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._latest, self._number = meta.get("latest", (self._latest, self._number))

    def states(self) -> dict[str, RowState]:
        self._let_go()
        return {**self.slots.states(), "sent": self.sent.rows, "endless": self.endless.rows}

    def rebuild(self) -> None:
        self._memo.clear()
        self._closed = MIN_TIME
        keep = None
        if self.slots.rows.live < self.slots.rows.size:
            alive = np.flatnonzero(self.slots.rows.alive)
            keep = alive
        self.slots.rebuild()
        self.sent.renumber(keep)
        self.sent.rebuild()
        self.endless.rebuild()
