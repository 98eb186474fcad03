"""The order of rows within their groups: words that tell most of them apart, and ranks that tell all.

A word is 64 bits of the first expression of the order; rows with equal words are compared by all there is:
the order, the row's start, its values, and the longer life first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from caesura.events.columns import empty_rows
from caesura.events.nested import validity
from caesura.events.order import ranks as canonical_ranks
from caesura.events.page import Page
from caesura.events.rows import RowState
from caesura.expr import attributes, compile_expr, type_of
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.sums import least_at
from caesura.ops.aggregate.accumulators.extremes import has_words, ranked
from caesura.ops.aggregate.accumulators.sortwords import SortWords
from caesura.ops.ordered import LOWEST, Ordered
from caesura.ops.top.node import Top


def ranks(values: pa.Array) -> I64:
    """Numbers in the order of the values: null is the least, NaN the greatest."""
    if not has_words(values.type):
        return canonical_ranks(values)
    valid = validity(values)
    word = ranked(values)
    if len(valid) == 0 or valid.all():
        return word
    least = np.where(valid, word, np.iinfo(np.int64).max).min()
    if least > LOWEST:
        return np.where(valid, word, least - 1)
    _, dense = np.unique(np.where(valid, word, least), return_inverse=True)
    return np.where(valid, dense + 1, 0)


class RowOrder:
    """The order of the rows of a state, and an index by group and word."""

    def __init__(self, node: Top, rows: RowState) -> None:
        source = node.inputs[0]
        self._rows = rows
        self._down = [order.descending for order in node.order]
        read = set().union(*(attributes(order.value) for order in node.order))
        self._read = [place for place, name in enumerate(source.schema.names) if name in read]
        self._read_schema = pa.schema([source.schema.field(place) for place in self._read])
        self._make = [compile_expr(o.value, self._read_schema, time=source.time) for o in node.order]
        types = [type_of(order.value, source.schema, time=source.time) for order in node.order]
        self._type = types[0] if types else None
        self.exact = all(has_words(t) for t in types)
        """Whether words tell all values apart that are not null."""
        self._nulls, self._lowest = [False] * len(types), [False] * len(types)
        """By order, whether a null was there, and the value whose word stands for null."""
        self.clear()

    def clear(self) -> None:
        """Forgets the index; it is made again when somebody asks."""
        self._index, self._indexed = Ordered(), 0
        self._words = None if self._type is None else SortWords(self._type)

    def first(self, slots: I64, slot_of: I64, count: int) -> tuple[I64, I64, Mask]:
        """(query, row) of the first so many live rows of each slot, with all their equals; and whether all.

        No other row of a slot comes before one of these: the index may give more, of which that is not known.
        """
        self._extend(slot_of)
        owner, row = self._index.edges(slots, count, self._rows.alive, last=False)
        complete = np.bincount(owner, minlength=len(slots)) < count
        word = self._rows.get("le")[row] if self._words is None else self._words_of(self._values(0, row))
        order = np.lexsort((word, owner))
        owner, row, word = owner[order], row[order], word[order]
        last = np.searchsorted(owner, np.arange(len(slots))) + count - 1
        limit = np.full(len(slots), np.iinfo(np.int64).max)
        limit[~complete] = word[last[~complete]]
        near = word <= limit[owner]
        return owner[near], row[near], complete

    def _extend(self, slot_of: I64) -> None:
        rows = self._rows
        if self._indexed == rows.size:
            return None
        fresh = np.arange(self._indexed, rows.size)
        word = rows.get("le")[fresh] if self._words is None else self._word(fresh)
        if word is None:  # texts begin otherwise than those before: all words anew
            self.clear()
            return self._extend(slot_of)
        self._index.add(slot_of[fresh], word, fresh)
        self._indexed = rows.size
        return None

    def _word(self, fresh: I64) -> I64 | None:
        assert self._words is not None
        values = self._values(0, fresh)
        if self._words.take(values.drop_null()) and self._indexed:
            return None
        return self._words_of(values)

    def _words_of(self, values: pa.Array) -> I64:
        """The words of values that were looked at, the first in the order least."""
        assert self._words is not None
        valid = validity(values)
        word = np.full(len(values), LOWEST, np.int64)
        word[valid if len(valid) else slice(None)] = self._words.of(values.drop_null())
        return ~word if self._down[0] else word

    def _values(self, place: int, rows: I64) -> pa.Array:
        state = self._rows
        columns = [state.payload.columns[c].take(rows) for c in self._read]
        batch = empty_rows(len(rows))
        if columns:
            batch = pa.RecordBatch.from_arrays(columns, schema=self._read_schema)
        return self._make[place](batch, state.get("le")[rows], state.get("re")[rows])

    def words(self, page: Page) -> I64 | None:
        """What each row of a page is ordered by, a column for each order; None where words do not tell."""
        batch = page.payload.select(self._read) if self._read else empty_rows(len(page))
        return self._exact([make(batch, page.le, page.re) for make in self._make], len(page))

    def words_of_rows(self, rows: I64) -> I64 | None:
        """The same of rows of the state."""
        return self._exact([self._values(place, rows) for place in range(len(self._make))], len(rows))

    def _exact(self, values: list[pa.Array], count: int) -> I64 | None:
        words = np.empty((count, len(values)), np.int64)
        for place, column in enumerate(values):
            word = ranked(column)
            if column.null_count:
                valid = validity(column)
                self._nulls[place] = True
                self._lowest[place] |= bool((word[valid] == LOWEST).any())
                word = np.where(valid, word, LOWEST)
            else:
                self._lowest[place] |= bool((word == LOWEST).any())
            if self._nulls[place] and self._lowest[place]:
                return None
            words[:, place] = ~word if self._down[place] else word
        return words

    def sorted(self, owner: I64, rows: I64) -> tuple[I64, I64]:
        """The places of these rows in order, by owner; and a number that rows equal in the order share."""
        by = [ranks(self._values(place, rows)) for place in range(len(self._make))]
        keys = [~r if down else r for r, down in zip(by, self._down, strict=True)]
        le, re = self._rows.get("le")[rows], self._rows.get("re")[rows]
        order = np.lexsort((~re, le, *reversed(keys), owner))
        new = changes([owner, *keys], order)
        alike = ~changes([owner, *keys, le], order)
        if alike.any():
            order = self._by_values(order, alike, [owner, *keys, le], rows, re)
        return order, np.cumsum(new)

    def leading(self, owner: I64, rows: I64, owners: int) -> Mask:
        """Which rows of each owner are the first in the first order; all, where there is none."""
        if not self._make:
            return np.ones(len(rows), np.bool_)
        key = ranks(self._values(0, rows))
        key = ~key if self._down[0] else key
        least = np.full(owners, np.iinfo(np.int64).max)
        least_at(owner, key, least)
        return key == least[owner]  # type: ignore[no-any-return]

    def _by_values(self, order: I64, alike: Mask, keys: list[I64], rows: I64, re: I64) -> I64:
        """The same order, with rows that are alike so far by their values, then the longer life first."""
        some = alike | np.append(alike[1:], False)
        place = order[some]
        payload = self._rows.payload.take(rows[place])
        values = [ranks(column) for column in payload.columns]
        again = np.lexsort((~re[place], *reversed(values), *(key[place] for key in reversed(keys))))
        order = order.copy()
        order[some] = place[again]
        return order


def changes(keys: list[I64], order: I64) -> Mask:
    """Which places of an order differ from the one before in a key; the first one does."""
    found = np.zeros(len(order), np.bool_)
    found[:1] = True
    for key in keys:
        values = key[order]
        found[1:] |= values[1:] != values[:-1]
    return found


def ties(keys: list[I64], values: Callable[[I64], list[pa.Array]]) -> I64:
    """Numbers in canonical order for rows that have equal keys, by their values; 0 for the others.

    ``values`` gives the columns at some places, which ascend.
    """
    order = np.lexsort(keys)
    alike = ~changes(keys, order)
    tie = np.zeros(len(order), np.int64)
    if not alike.any():
        return tie
    place = np.sort(order[alike | np.append(alike[1:], False)])
    by = [*(key[place] for key in keys), *(ranks(column) for column in values(place))]
    again = np.lexsort(by[::-1])
    tie[place[again]] = np.cumsum(changes(by, again))
    return tie
