"""The rows that two sides make together: columns beside each other, tested by the join's predicate."""

from __future__ import annotations

import pyarrow as pa

from caesura.events.columns import ColumnStore
from caesura.events.page import Page, take_columns
from caesura.expr import compile_predicate
from caesura.kernels.hashing import I64, Mask
from caesura.ops.join.node import Join


class JoinedRows:
    """Rows of the left beside rows of the right."""

    def __init__(self, node: Join) -> None:
        self.schema = node.pair_schema
        self._right = [node.inputs[1].schema.get_field_index(n) for n in node.right_columns]
        self._test = None
        if node.residual is not None:
            self._test = compile_predicate(node.residual, self.schema, time=node.time)

    def beside(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """Row by row."""
        columns = [*left.columns, *(right.column(i) for i in self._right)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def met(
        self, port: int, mine: pa.RecordBatch, rows: I64 | None, store: ColumnStore, link: I64
    ) -> pa.RecordBatch:
        """Rows of one side, all or some, beside the stored rows of the other that they meet."""
        if port == 1:  # the keys leave with the left
            columns = [column.take(link) for column in store.columns]
            columns += _some(mine.select(self._right), rows)
        else:
            columns = _some(mine, rows)
            columns += [store.columns[i].take(link) for i in self._right]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @property
    def tests(self) -> bool:
        """Whether there is a predicate beside equal keys."""
        return self._test is not None

    def tested(self, met: Page) -> Page:
        """The pairs for which the predicate is true."""
        return met if self._test is None or len(met) == 0 else met.filter(self._test(met.payload))

    def match(self, side: int, here: pa.RecordBatch, there: pa.RecordBatch) -> Mask:
        """For which pairs of a side's rows and the other's the predicate is true."""
        assert self._test is not None
        return self._test(self.beside(here, there) if side == 0 else self.beside(there, here))


def _some(batch: pa.RecordBatch, rows: I64 | None) -> list[pa.Array]:
    """The columns of some rows of a batch, or of all."""
    return batch.columns if rows is None else take_columns(batch, rows)
