"""A pipe whose first query answers per key, in buckets: answers go on with the items that brought them.

     partition(f, by="id") >> g        buckets by id: f, then       LE | item of f's answer | answer
                                       one bucket (or, if g is a partition, by its key): g

Law: g reads the answers in the order of the items that brought them. Items of one time go by their columns,
as they do in one bucket; equal items have one key and lie in one bucket, where they are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.events.item import Item
from caesura.events.page import Page, take_rows
from caesura.kernels.hashing import I64
from caesura.plan import Node, Operator
from caesura.qre.engine.choice import machine_for
from caesura.qre.language.query import Partition, Pipe, Query
from caesura.qre.step.node import Over, OverEachKey, columns_of, named_by
from caesura.qre.step.operator import QueryOperator

FROM, ANSWER, NUMBER = "item ", "answer ", "answer #"


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadOfPipe(OverEachKey):
    """The first query of a pipe: what brought an answer, its number, and the answer."""

    answers: pa.Schema
    """The answers as the next query reads them."""

    def output_schema(self) -> pa.Schema:
        super().output_schema()
        source = [f.with_name(FROM + f.name) for f in self.inputs[0].schema]
        answers = [f.with_name(ANSWER + f.name) for f in self.answers]
        return pa.schema([*source, pa.field(NUMBER, pa.int64()), *answers])

    def output_keys(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        return tuple(FROM + key for key in keys)

    def operator(self) -> Operator:
        return HeadOperator(self)

    def describe(self) -> str:
        return f"first of a pipe: {super().describe()}"


@dataclass(frozen=True, eq=False, kw_only=True)
class RestOfPipe(Over):
    """The other queries of a pipe, in one bucket."""

    def combined(self) -> Node | None:
        return None

    def operator(self) -> Operator:
        return RestOperator(self)

    def describe(self) -> str:
        return f"rest of a pipe: {super().describe()}"


@dataclass(frozen=True, eq=False, kw_only=True)
class RestByKey(RestOfPipe):
    """The same, if it answers per key again."""

    partitioning = "key"

    def keys(self, port: int) -> tuple[str, ...]:
        return tuple(ANSWER + name for name in columns_of(self.query.partitioned_by) or ())

    def output_keys(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        return named_by(self.query, tuple(key.removeprefix(ANSWER) for key in keys))


def in_buckets(node: Over) -> Over | None:
    """A pipe by its first query's keys; None where it has none, or a later one may leave its language."""
    first, *rest = _flat(node.query)
    if not rest or node.every is not None or not isinstance(first, Partition) or columns_of(first.by) is None:
        return None
    if not all(machine_for(query, node.kernel).never_departs for query in rest):
        return None
    own = {f.name: getattr(node, f.name) for f in fields(node) if f.name not in ("inputs", "query", "lives")}
    assert rest[0].items is not None
    head = HeadOfPipe(inputs=node.inputs, query=first, answers=rest[0].items.schema, **own)
    own["order_by"] = (*(FROM + n for n in _order(node)), NUMBER)
    keyed = len(rest) == 1 and isinstance(rest[0], Partition) and columns_of(rest[0].by) is not None
    make = RestByKey if keyed else RestOfPipe
    return make(inputs=(head,), query=_piped(rest), lives=node.lives, **own)


def _flat(query: Query) -> list[Query]:
    return [*_flat(query.first), *_flat(query.second)] if isinstance(query, Pipe) else [query]


def _piped(queries: list[Query]) -> Query:
    out = queries[0]
    for query in queries[1:]:
        out = Pipe(first=out, second=query, items=out.items)
    return out


def _order(node: Over) -> list[str]:
    """The columns by which items of one time go."""
    return [*node.order_by, *(n for n in node.inputs[0].schema.names if n not in node.order_by)]


class HeadOperator(QueryOperator):
    """Gives answers with the items that brought them."""

    def __init__(self, node: HeadOfPipe) -> None:
        super().__init__(node)
        self._answers = 0

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        if len(le) == 0:
            return []
        self._changed = True
        rows, answers = self.machine.items(batch, le)
        self._note_departed(batch, le)
        self._note()
        numbers = self._answers + np.arange(len(rows))
        self._answers += len(rows)
        made = [*take_rows(batch, rows).columns, pa.array(numbers), *answers.columns]
        page = pa.RecordBatch.from_arrays(made, schema=self.node.schema)
        return [Page(le[rows], le[rows] + 1, page)] if len(rows) else []

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), "answers": self._answers}

    def remember(self, meta: dict[str, Any]) -> None:
        super().remember(meta)
        self._answers = meta["answers"]


class RestOperator(QueryOperator):
    """Reads answers as items; what brought them has put them in order."""

    def _read(self, batch: pa.RecordBatch, le: I64, end: int) -> list[Item]:
        assert self.node.query.items is not None
        first = batch.schema.get_field_index(NUMBER) + 1
        own = batch.select(list(range(first, batch.num_columns)))
        items = pa.RecordBatch.from_arrays(own.columns, schema=self.node.query.items.schema)
        return super()._read(items, le, end)
