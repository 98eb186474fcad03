"""What an epoch does to a table with a key: its net change, a row a key.

>>> from caesura.events import parse
>>> items = parse('''
...  LE  RE      | id v |
...  1   inf     | 7  5 | +
...  1   inf->4  | 7  5 | -
...  4   inf     | 7  6 | +
... ''')
>>> net_change(items, TableLayout(items[0].schema, pa.int64(), ("id",), history=False)).put.to_pylist()
[{'id': 7, 'v': 6}]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.events import Item, Page
from caesura.events.delta import deltas, net_page
from caesura.events.identity import LOCAL, identity
from caesura.events.page import take_rows
from caesura.io.ingress.late import beside, lifetimes
from caesura.kernels.hashing import I64, Mask, mixed
from caesura.kernels.keys import KeyTable
from caesura.ops.deliver import Deliver
from caesura.ops.latest import Latest
from caesura.ops.upserts import START, Upserts
from caesura.plan import Node, walk
from caesura.plan.node import rebuilt
from caesura.punctuation import INFINITY

ENDS = ("LE", "RE")
SHOWN_KEYS = 3


@dataclass(frozen=True)
class TableLayout:
    """How a table holds a stream."""

    payload: pa.Schema
    time: pa.DataType
    columns: tuple[str, ...]
    """The payload columns of the key."""
    history: bool
    """Whether rows have their lifetimes beside them, and their start in the key."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        if not self.history:
            return self.payload
        return pa.schema([(name, self.time) for name in ENDS] + beside(self.payload, ENDS))

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the table's key."""
        if not self.history:
            return self.columns
        renamed = dict(zip(self.payload.names, (f.name for f in beside(self.payload, ENDS)), strict=True))
        return (START, *(renamed[name] for name in self.columns))


def _last(node: Node) -> Node:
    return node.inputs[0] if isinstance(node, Deliver) else node


def names_key(node: Node) -> bool:
    """Whether a plan names the key by which a table can hold it."""
    return isinstance(_last(node), Upserts)


def layout_of(node: Node) -> TableLayout:
    """How a table holds the output of a plan."""
    step = _last(node)
    if not isinstance(step, Upserts):
        raise PlanError(
            "a table needs a key to put rows in the place of others.",
            remedy='End the plan with .upserts(key="id"); .upserts(key=["id", "LE"]) holds the history.',
        ).at(step.step, step.place)
    return TableLayout(step.schema, step.time, step.columns, step.history)


def for_current_tables(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The same outputs, whose current rows alone are taken: `latest` under them gives no others.

    Only where nobody else reads it.
    """
    tables = {n.fingerprint for n in outputs.values() if isinstance(n, Upserts) and not n.history}
    others = [node for node in walk(*outputs.values()) if node.fingerprint not in tables]
    read = {child.fingerprint for node in others for child in node.inputs}
    read |= {node.fingerprint for node in outputs.values()}
    return {name: _for_current_table(node, tables, read) for name, node in outputs.items()}


def _for_current_table(node: Node, tables: set[str], others: set[str]) -> Node:
    if node.fingerprint not in tables:
        return node
    [before] = node.inputs
    if not isinstance(before, Latest) or before.fingerprint in others:
        return node
    return rebuilt(node, (before.for_current_table(),))


@dataclass(frozen=True)
class NetChange:
    """What is put into a table and deleted from it; no key is in both."""

    put: pa.Table
    """Rows that take the place of those of their keys."""
    delete: pa.Table
    """Keys whose rows go."""
    fresh: Mask
    """Which of the rows to put have no row in the table, if keys are unique."""

    def __len__(self) -> int:
        return int(self.put.num_rows + self.delete.num_rows)

    @property
    def new_keys(self) -> pa.Table:
        """The keys that must not be in the table yet."""
        return self.put.select(self.delete.column_names).filter(pa.array(self.fresh))


def net_change(items: Iterable[Item], layout: TableLayout) -> NetChange:
    """The net change of an epoch; refuses two rows of a key."""
    page, total = _netted(items, layout)
    table = _table(page, layout)
    keys = identity([table.column(name).combine_chunks() for name in layout.key], len(page), LOCAL)
    number, _ = KeyTable().encode(*keys)
    gains = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    np.add.at(gains, number, np.maximum(total, 0))
    put, lost = np.flatnonzero(total > 0), np.flatnonzero((total < 0) & (gains[number] == 0))
    if (gains > 1).any():
        raise two_rows(table.take(put[gains[number[put]] > 1]), layout.key)
    had = np.zeros(len(gains), np.bool_)
    had[number[total < 0]] = True
    return NetChange(table.take(put), table.select(list(layout.key)).take(lost), ~had[number[put]])


def net_items(items: Sequence[Item], layout: TableLayout) -> list[Item]:
    """Fewer items with the same net change: for a table the others need not travel."""
    page, total = _netted(items, layout)
    net = net_page(page.payload, page.le, page.re, total)
    return [*([net] if len(net) else []), *(item for item in items if not isinstance(item, Page))]


def _netted(items: Iterable[Item], layout: TableLayout) -> tuple[Page, I64]:
    """The rows that a table may hold and that come or go on the whole, with how many do."""
    page, weight = _weighted([item for item in items if isinstance(item, Page)], layout)
    ids = identity(page.payload.columns, len(page), LOCAL)
    same, first = KeyTable().encode(*mixed(ids, page.le, page.re))
    total = np.zeros(len(first), np.int64)
    np.add.at(total, same, weight)
    return page.take(first[total != 0]), total[total != 0]


def two_rows(rows: pa.Table, key: tuple[str, ...]) -> StreamError:
    """Refuses rows of which some have one key, or one that another row in the table has."""
    names = ", ".join(key)
    shown = "; ".join(_shown(row) for row in rows.slice(0, SHOWN_KEYS).to_pylist())
    return StreamError(
        f"two rows have one key ({names}), so a table cannot hold both: {shown}.",
        remedy="Name a key that tells rows apart, add 'LE' to it for a table of the history, "
        "or take one row a key with .latest(key=...).",
    )


def _shown(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())


def _weighted(pages: list[Page], layout: TableLayout) -> tuple[Page, I64]:
    """All rows of pages that a table may hold, with how many come (or go)."""
    parts = [deltas(page) for page in pages]
    held = [np.flatnonzero(layout.history | (part.re == INFINITY)) for part in parts]
    payload = [
        take_rows(page.payload, part.rows[at]) for page, part, at in zip(pages, parts, held, strict=True)
    ]
    le, re, weight = (
        np.concatenate([np.zeros(0, np.int64), *(field[at] for field, at in zip(fields, held, strict=True))])
        for fields in (
            [part.le for part in parts],
            [part.re for part in parts],
            [part.weight for part in parts],
        )
    )
    if not layout.history:
        le = np.zeros(len(le), np.int64)  # when a row began is no part of it
    return Page(le, re, pa.concat_batches([pa.RecordBatch.from_pylist([], layout.payload), *payload])), weight


def _table(page: Page, layout: TableLayout) -> pa.Table:
    columns = page.payload.columns
    if layout.history:
        columns = [*lifetimes(page, layout.time)[1:3], *columns]
    return pa.Table.from_arrays(columns, schema=layout.schema)
