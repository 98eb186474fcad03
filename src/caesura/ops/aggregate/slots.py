"""Slots: one per group and window, each with the accumulators of every aggregate asked for.

Several aggregates share what they have in common: `avg(x)` and `sum(x)` keep one sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.events.columns import taken
from caesura.events.grouping import grouped
from caesura.events.identity import Secret, identity
from caesura.events.page import Page, take_rows, take_values
from caesura.events.rows import RowState
from caesura.expr import Expr, compile_expr, type_of
from caesura.expr.rewrite import is_column, reads_end
from caesura.kernels.hashing import I64, U64, Mask
from caesura.kernels.keys import KeyTable
from caesura.kernels.sums import add_weights, add_weights_to_both, distinct, in_stretches
from caesura.ops.aggregate.accumulators.multiset import keeps_values
from caesura.ops.aggregate.accumulators.sums import Accumulator, Counted, Mergeable
from caesura.ops.aggregate.kinds.record import COUNT, Aggregate, InSlots, State

SCATTERED_ROWS, SCATTERED_SLOTS = 1 << 15, 1 << 17
"""So many rows of a page go to so many slots in the order of those: every other one would wait for memory."""
LARGE_PAGE = 1024
"""From so many rows on keys are looked for among the rows of the page first."""
Fields = Mapping[str, Any]
Parts = list[tuple[int, Accumulator]]
"""Accumulators, each with the column of values that it takes."""
KEPT_ONES = 1 << 20
"""Up to so many weights of one are kept for all slots: memory that is new costs more than to fill it."""
_ONES: list[I64] = [np.ones(LARGE_PAGE, np.int64)]


def ones(count: int) -> I64:
    """So many weights of one, which nobody writes to: each value is added once."""
    some = _ONES[0]
    if count > len(some):
        some = np.ones(count, np.int64)
        if count <= KEPT_ONES:
            _ONES[0] = some
    return some[:count]


class PageSlots(NamedTuple):
    """The groups of a page: the slot and the first row of each, and the group of every row."""

    slot: I64
    first: I64
    who: I64

    def at(self) -> I64:
        """The slot of every row."""
        return taken(self.slot, self.who)

    def only(self, groups: Mask, rows: I64) -> PageSlots:
        """These groups, whose rows are those."""
        new = np.cumsum(groups) - 1
        place = np.empty(len(self.who), np.int64)
        place[rows] = np.arange(len(rows))
        return PageSlots(self.slot[groups], place[self.first[groups]], new[self.who[rows]])


class Slots:
    """The accumulators of a set of aggregates, by a 128-bit key per slot."""

    def __init__(
        self,
        aggregates: Sequence[tuple[str, Aggregate]],
        schema: pa.Schema,
        keys: Sequence[str],
        *,
        time: pa.DataType,
        insert_only: bool,
        fields: Mapping[str, Any],
    ) -> None:
        self.aggregates = aggregates
        self.schema = schema
        self.time = time
        self._insert_only = insert_only
        self._parts: dict[object, tuple[int, Accumulator]] = {}
        self._values: dict[object, int] = {}
        self._types: list[pa.DataType] = []
        self.makers: list[Any] = []
        self._ends = False
        """Whether a value is made of the ends of rows."""
        self.plain_values: list[str | None] = []
        """The column that each maker gives as it is; None where it computes something."""
        self.states_of: dict[Accumulator, State] = {}
        """The state that each accumulator keeps."""
        self.plans = [self._plan(aggregate) for _, aggregate in aggregates]
        own = {"h1": np.uint64, "h2": np.uint64, "rows": np.int64, **fields}
        for _, part in self._parts.values():
            own.update(part.fields())
        self.keys = pa.schema([schema.field(k) for k in keys])
        self.rows = RowState(own, self.keys)
        self._table = KeyTable()

    def _plan(self, aggregate: Aggregate) -> tuple[Accumulator, ...]:
        if aggregate.value is None:
            return ()
        count = self._part(COUNT, aggregate.value)
        state = self.state_of(aggregate)
        return (count,) if state is None else (count, self._part(state, aggregate.value))

    def state_of(self, aggregate: Aggregate) -> State | None:
        """What an aggregate with a value keeps besides a count."""
        assert aggregate.value is not None
        t = type_of(aggregate.value, self.schema, time=self.time)
        rule = aggregate.rule
        choose = rule.state if rule.state_for is None else rule.state_for(aggregate.option)
        return None if choose is None else choose(t, self._insert_only)

    @property
    def with_values(self) -> tuple[str, ...]:
        """The aggregates that hold each different value, since it may go again or count with others."""
        plans = zip(self.aggregates, self.plans, strict=True)
        return tuple(dict.fromkeys(str(a) for (_, a), parts in plans if any(map(keeps_values, parts))))

    def _part(self, state: State, value: Expr) -> Accumulator:
        t = type_of(value, self.schema, time=self.time)
        place = self._values.setdefault((state.timed, value.key), len(self._values))
        if place == len(self.makers):
            make = compile_expr(value, self.schema, time=self.time)
            self.makers.append(_timed(make) if state.timed else make)
            self._ends = self._ends or reads_end(value)
            self.plain_values.append(None if state.timed else is_column(value))
            self._types.append(pa.struct([("le", pa.int64()), ("v", t)]) if state.timed else t)
        if (state.name, value.key) not in self._parts:
            part = state.make(f"{state.name}{place}", t)
            self._parts[state.name, value.key] = place, part
            self.states_of[part] = state
        return self._parts[state.name, value.key][1]

    def values_of(self, page: Page) -> list[pa.Array]:
        """The columns of values of a page's rows."""
        times = page.times(ends=self._ends)
        return [make(page.payload, *times) for make in self.makers]

    def place(self, aggregate: Aggregate) -> int:
        """Which of the value columns an aggregate with a value reads."""
        assert aggregate.value is not None
        return self._parts[COUNT.name, aggregate.value.key][0]

    def own_place(self, aggregate: Aggregate) -> int:
        """The same for its own state, which may take values with their starts."""
        state = self.state_of(aggregate)
        if state is None:
            return self.place(aggregate)
        assert aggregate.value is not None
        return self._parts[state.name, aggregate.value.key][0]

    @property
    def value_types(self) -> list[pa.Field]:
        """The columns of values that `add` wants, in order."""
        return [pa.field(f"v{i}", t) for i, t in enumerate(self._types)]

    def find(self, h1: U64, h2: U64) -> tuple[I64, I64]:
        """Slot numbers for keys, and the rows that need a new slot (see `open`), in slot order."""
        return self._table.encode(h1, h2)

    def of_keys(self, keys: pa.RecordBatch, secret: Secret, fields: Callable[[int], Fields]) -> I64:
        """The slot of each row's key; new ones begin with these fields, given how many there are."""
        groups = grouped(keys.columns, keys.num_rows) if keys.num_rows >= LARGE_PAGE else None
        if groups is None:
            return self._of_each(keys, secret, fields)
        return taken(self._of_each(take_rows(keys, groups.first), secret, fields), groups.number)

    def of_page(self, keys: pa.RecordBatch, secret: Secret) -> PageSlots:
        """The slots of the groups that rows with these keys are of."""
        groups = grouped(keys.columns, keys.num_rows) if keys.num_rows >= LARGE_PAGE else None
        if groups is not None:
            slot = self._of_each(take_rows(keys, groups.first), secret, lambda count: {})
            return PageSlots(slot, groups.first, groups.number)
        at = self._of_each(keys, secret, lambda count: {})
        slot = distinct(at, self.rows.size)
        who = np.searchsorted(slot, at)
        first = np.empty(len(slot), np.int64)
        first[who[::-1]] = np.arange(len(at))[::-1]
        return PageSlots(slot, first, who)

    def _of_each(self, keys: pa.RecordBatch, secret: Secret, fields: Callable[[int], Fields]) -> I64:
        h1, h2 = identity(keys.columns, keys.num_rows, secret)
        at, fresh = self.find(h1, h2)
        if len(fresh):
            self.open(take_rows(keys, fresh), fields(len(fresh)))
        return at

    def open(self, keys: pa.RecordBatch, fields: Mapping[str, Any]) -> None:
        """Makes the slots that `find` asked for."""
        h1, h2 = self._table.since(self.rows.size)
        self.open_as(h1, h2, keys, fields)

    def open_as(self, h1: U64, h2: U64, keys: pa.RecordBatch, fields: Mapping[str, Any]) -> None:
        """Makes slots of these names, which nobody looks for."""
        count = len(h1)
        own = {"h1": h1, "h2": h2, "rows": np.broadcast_to(np.int64(0), count), **fields}
        for _, part in self._parts.values():
            own.update(part.zeros(count))
        self.rows.append(own, keys)

    def put(self, at: I64, fields: Mapping[str, Any]) -> None:
        """Sets these fields of slots, each named once."""
        for name, values in fields.items():
            self.rows.get(name)[at] = values
        self.rows.touch(at)

    def others(self, known: Mapping[str, Any]) -> list[tuple[int, Accumulator]]:
        """The accumulators that keep more than the fields known, with the value that each takes."""
        every = self._parts.values()
        return [(i, p) for i, p in every if p.states() or not p.fields().keys() <= known.keys()]

    def add(self, at: I64, weights: I64, values: Sequence[pa.Array]) -> None:
        """Adds weighted values to slots."""
        at, weights, values = self._in_order(at, weights, values)
        rest = list(self._parts.values())
        place, first = rest[0] if rest else (0, None)
        if isinstance(first, Counted) and values[place].null_count == 0:
            add_weights_to_both(at, weights, self.rows.get("rows"), self.rows.get(first.name))
            rest = rest[1:]
        else:
            add_weights(at, weights, self.rows.get("rows"))
        for place, part in rest:
            part.add(self.rows, at, weights, values[place])

    def add_counted(self, slots: I64, counts: I64, at: I64, values: Sequence[pa.Array]) -> None:
        """Adds values, each once, of which it is known how many come to which slots, each named once."""
        self.add_counts(slots, counts, values)
        self.add_each(self.beyond_counts(values), at, values)

    def add_counts(self, slots: I64, counts: I64, values: Sequence[pa.Array]) -> None:
        """Adds the numbers of values that come to slots, each named once, to all that is such a number."""
        add_weights(slots, counts, self.rows.get("rows"))
        for place, part in self._parts.values():
            if isinstance(part, Counted) and values[place].null_count == 0:
                add_weights(slots, counts, self.rows.get(part.name))

    def beyond_counts(self, values: Sequence[pa.Array]) -> Parts:
        """The accumulators that want each of these values."""
        every = self._parts.values()
        return [(i, p) for i, p in every if not isinstance(p, Counted) or values[i].null_count]

    def add_each(self, parts: Parts, at: I64, values: Sequence[pa.Array]) -> None:
        """Adds values, each once, to some of the accumulators of their slots."""
        if parts:
            at, weights, values = self._in_order(at, ones(len(at)), values)
            for place, part in parts:
                part.add(self.rows, at, weights, values[place])

    def _in_order(
        self, at: I64, weights: I64, values: Sequence[pa.Array]
    ) -> tuple[I64, I64, Sequence[pa.Array]]:
        """Many rows of many slots in the order of those."""
        if len(at) < SCATTERED_ROWS or self.rows.size < SCATTERED_SLOTS:
            return at, weights, values
        order, at = in_stretches(at, self.rows.size)
        weights = weights if weights.min() == weights.max() else taken(weights, order)
        return at, weights, [None if v is None else take_values(v, order) for v in values]

    @property
    def mergeable(self) -> bool:
        """Whether what other slots of these aggregates have can be added to them."""
        return all(isinstance(part, Mergeable) for _, part in self._parts.values())

    def merge(self, at: I64, other: Slots, rows: I64) -> None:
        """Adds to slots, each named once, what others of the same aggregates have in these rows."""
        add_weights(at, taken(other.rows.get("rows"), rows), self.rows.get("rows"))
        for (_, part), (_, given) in zip(self._parts.values(), other._parts.values(), strict=True):
            assert isinstance(part, Mergeable)
            part.merge(self.rows, at, given, other.rows, rows)

    def clear(self) -> None:
        """Lets all slots go."""
        self.drop(np.flatnonzero(self.rows.alive))
        self._compact()

    def make_room(self, count: int) -> None:
        """Makes so many slots, without names, where there are fewer."""
        more = count - self.rows.size
        if more > 0:
            own = {name: np.zeros(more, dtype) for name, dtype in self.rows.dtypes.items()}
            for _, part in self._parts.values():
                own.update(part.zeros(more))
            self.rows.append(own)

    def empty(self, count: int) -> None:
        """Lets go of what the first so many slots have; they stay."""
        self.rows.get("rows")[:count] = 0
        for _, part in self._parts.values():
            part.free(self.rows, np.arange(count))
            for name, zeros in part.zeros(count).items():
                self.rows.get(name)[:count] = zeros

    def settle(self, touched: I64) -> None:
        """Notes that these slots changed; those without rows are no longer counted as state."""
        self.rows.touch(touched)
        there = self.rows.get("rows")[touched] > 0
        self.rows.keep(touched, there)
        if not there.all():
            gone = touched[~there]
            for _, part in self._parts.values():
                part.free(self.rows, gone)

    def results(self, at: I64) -> list[pa.Array]:
        """The value of every aggregate in these slots."""
        return [
            aggregate.rule.finish(aggregate, InSlots(parts, self.rows, at))
            for (_, aggregate), parts in zip(self.aggregates, self.plans, strict=True)
        ]

    def drop(self, at: I64) -> None:
        """Lets slots go, with what they alone use."""
        self.rows.kill(at)
        for _, part in self._parts.values():
            part.free(self.rows, at)

    def tidy(self) -> I64 | None:
        """Compacts when it is worth it; gives the old numbers by new number."""
        if not self.rows.wasteful:
            return None
        return self._compact()

    def _compact(self) -> I64:
        keep = self.rows.compact()
        self._table.compact(keep)
        for _, part in self._parts.values():
            part.compact(keep)
            part.rebuild(self.rows)
        return keep

    def states(self) -> dict[str, RowState]:
        own = {"slots": self.rows}
        for number, (_, part) in enumerate(self._parts.values()):
            own.update({f"{name}{number}": state for name, state in part.states().items()})
        return own

    def rebuild(self) -> None:
        """Derives the table and the chains again after a restore.

        The last slots may be missing that came and went between two snapshots, while parts have rows of them.
        """
        keep = self.rows.compact() if self.rows.live < self.rows.size else np.arange(self.rows.size)
        self._table = KeyTable()
        self._table.encode(self.rows.get("h1"), self.rows.get("h2"))
        for _, part in self._parts.values():
            part.compact(keep)
            part.rebuild(self.rows)


def _timed(make: Any) -> Any:
    """Values with the starts of their events."""

    def made(payload: pa.RecordBatch, le: I64, re: I64 | None) -> pa.Array:
        return pa.StructArray.from_arrays([pa.array(le), make(payload, le, re)], ["le", "v"])

    return made
