"""A table that every worker process holds once: its rows, and where each key's rows lie among them.

The plan that makes the rows (a table, and row-wise steps on it) is read when it is first asked for, and the
rows are shared by all operators of the process that ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.events.columns import empty_rows
from caesura.events.identity import LOCAL, identity
from caesura.events.nested import validity
from caesura.events.page import Page
from caesura.kernels.hashing import I64
from caesura.kernels.keys import KeyTable
from caesura.plan import Node, Raw, SourceNode
from caesura.plan.node import rebuilt

Fetch = Callable[[], pa.RecordBatch]
SHIPPED: ContextVar[Mapping[str, Fetch] | None] = ContextVar("SHIPPED", default=None)
"""While a plan is made ready for workers: by key, how a worker gets the rows of tables sent to it."""


class TableRows:
    """The rows of a table in this process, in the order of their keys."""

    def __init__(self, rows: pa.RecordBatch, on: tuple[str, ...]) -> None:
        self._secret = LOCAL.copied()
        self._on = [rows.schema.get_field_index(name) for name in on]
        self._keys = KeyTable()
        number, _ = self._keys.encode(*self._ids([rows.column(i) for i in self._on], rows.num_rows))
        known = self._known([rows.column(i) for i in self._on], rows.num_rows)
        order = np.argsort(number, kind="stable")
        order = order[known[order]]
        self.rows = rows.take(pa.array(order))
        self._first = np.searchsorted(number[order], np.arange(self._keys.count + 1))

    def find(self, columns: list[pa.Array], count: int) -> tuple[I64, I64]:
        """(row asked for, row here) of all that have equal keys, in the order of the rows asked for."""
        number = self._keys.find(*self._ids(columns, count))
        number[~self._known(columns, count)] = -1
        first = np.where(number < 0, 0, self._first[number])
        several = np.where(number < 0, 0, self._first[number + 1] - first)
        row = np.repeat(np.arange(count), several)
        begins = np.cumsum(several) - several
        return row, np.repeat(first - begins, several) + np.arange(len(row))

    def _ids(self, columns: list[pa.Array], count: int) -> Any:
        return identity(columns, count, self._secret)

    def _known(self, columns: list[pa.Array], count: int) -> Any:
        """Where no part of a key is null."""
        found = np.ones(count, np.bool_)
        for column in columns:
            if column.null_count:
                found &= validity(column)
        return found

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + self._keys.nbytes + int(self._first.nbytes)


_LOADED: WeakValueDictionary[tuple[str, tuple[str, ...]], TableRows] = WeakValueDictionary()
_LOCK = RLock()


@dataclass(frozen=True, eq=False)
class HeldTable:
    """A plan of a table and row-wise steps on it; its rows are read once per process."""

    node: Node | None
    schema: pa.Schema = field(default=None, repr=False)
    key: str = ""
    """Equal for tables with the same rows: the fingerprint of the plan."""
    title: str = ""
    fetch: Fetch | None = field(default=None, repr=False)
    """How a worker gets the rows that it is sent; None where it reads them by the plan."""

    @staticmethod
    def of(node: Node) -> HeldTable:
        """The table that a plan makes; refuses one that is too large for every process to hold."""
        source = table_below(node)
        source.refuse_large(source.known_bytes)
        return HeldTable(node, node.schema, node.fingerprint, title_of(node))

    def loaded(self, on: tuple[str, ...]) -> TableRows:
        """The rows, by these columns."""
        with _LOCK:
            found = _LOADED.get((self.key, on))
            if found is None:
                found = _LOADED[self.key, on] = TableRows(self.batch(), on)
            return found

    def batch(self) -> pa.RecordBatch:
        """The rows, read or fetched."""
        if self.fetch is not None:
            return self.fetch()
        assert self.node is not None
        return whole(list(pages_of(self.node)), self.schema)

    def __getstate__(self) -> dict[str, Any]:
        fetch = (SHIPPED.get() or {}).get(self.key)
        return self.__dict__ if fetch is None else {**self.__dict__, "node": None, "fetch": fetch}


@contextmanager
def shipped(tables: Mapping[str, Fetch]) -> Iterator[None]:
    """Within, plans are pickled without the rows of these tables: workers fetch them."""
    token = SHIPPED.set(tables)
    try:
        yield
    finally:
        SHIPPED.reset(token)


def is_static(node: Node) -> bool:
    """Whether a plan is a table whose rows hold over all time, with row-wise steps on it."""
    if isinstance(node, SourceNode):
        return node.holds_always
    return node.row_wise and not node.moves_time and len(node.inputs) == 1 and is_static(node.inputs[0])


def table_below(node: Node) -> SourceNode:
    """The table that such a plan reads."""
    while node.inputs:
        node = node.inputs[0]
    assert isinstance(node, SourceNode)
    return node


def in_time(node: Node, time: pa.DataType) -> Node:
    """Such a plan as part of a stream that counts time so; any other plan as it is."""
    if not is_static(node) or node.time == time:
        return node
    if isinstance(node, SourceNode):
        return node.timed(time)
    return rebuilt(node, (in_time(node.inputs[0], time),))


def in_one_time(*nodes: Node) -> tuple[Node, ...]:
    """Plans that are to meet: tables count time as the first stream among them does."""
    time = next((node.time for node in nodes if not is_static(node)), nodes[0].time)
    return tuple(in_time(node, time) for node in nodes)


def title_of(node: Node) -> str:
    """What messages and explain call a table."""
    return table_below(node).step


def pages_of(node: Node) -> Iterator[Page]:
    """The rows that such a plan gives; a row that cannot be one stops."""
    if isinstance(node, SourceNode):
        yield from _read(node)
        return
    operator = node.operator()
    try:
        for page in pages_of(node.inputs[0]):
            yield from (item for item in operator.page(0, page) if isinstance(item, Page))
    except CaesuraError as error:
        raise error.at(node.step, node.place) from None


def _read(node: SourceNode) -> Iterator[Page]:
    ingress, size = node.operator(), 0
    try:
        for raw in node.read({}):
            assert isinstance(raw, Raw), "a table is all there"
            size += raw.batch.nbytes
            node.refuse_large(size)
            yield from (item for item in ingress.raw(raw) if isinstance(item, Page))
    except CaesuraError as error:
        raise error.at(node.step, node.place) from None


def whole(pages: list[Page], schema: pa.Schema) -> pa.RecordBatch:
    """Pages of rows as one batch."""
    if not pages:
        return pa.RecordBatch.from_pylist([], schema)
    if len(schema) == 0:
        return empty_rows(sum(len(page) for page in pages))
    return pa.concat_batches([page.payload for page in pages])
