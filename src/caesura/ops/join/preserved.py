"""A side whose rows come out also where they meet nothing: each row cut into pieces around what it meets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from caesura.events.page import Page
from caesura.kernels.hashing import I64
from caesura.ops.join.kernel import REMOVED, pieces
from caesura.ops.join.node import Join
from caesura.ops.join.side import Side


class Preserved:
    """The pieces of one side's rows."""

    def __init__(self, node: Join, port: int, sides: Sequence[Side]) -> None:
        self.node, self.port = node, port
        self.mine, self.other = sides[port], sides[1 - port]

    def cut(self, rows: I64, live: I64, bound: I64, owner: I64, cover: I64) -> Page:
        """Cuts rows into pieces again; gives the change.

        Args:
            rows: all rows that are looked at.
            live: those that are alive.
            bound: the time before which the pieces of each of them cannot change.
            owner: places in ``live``, with
            cover: rows of the other side that they meet.
        """
        mine, theirs = self.mine, self.other.rows
        c_le, c_re = theirs.get("le")[cover], theirs.get("re")[cover]
        order = np.lexsort((c_le, owner))
        o_row, o_le, o_re = (np.empty(len(owner) + 2 * len(live), np.int64) for _ in range(3))
        le, re = mine.rows.get("le")[live], mine.rows.get("re")[live]
        parts = (le, re, bound, self._opened(live, bound), self.node.how == "semi", o_row, o_le, o_re)
        made = pieces(owner[order], c_le[order], c_re[order], *parts)
        return mine.resend(rows, live[o_row[:made]], o_le[:made], o_re[:made], self._padded)

    def _opened(self, rows: I64, bound: I64) -> I64:
        """The start of the piece of each row that is up just before its bound; REMOVED where none is."""
        owner, piece = self.mine.pieces_of(rows)
        start = self.mine.sent.get("le")[piece]
        early = start < bound[owner]
        opened = np.full(len(rows), REMOVED, np.int64)
        opened[owner[early]] = start[early]
        return opened

    def _padded(self, rows: I64) -> pa.RecordBatch:
        """Rows as output rows, with nulls for the other side's columns."""
        mine = self.mine.rows.payload.take(rows)
        if self.node.how in ("semi", "anti"):
            return mine
        names, port, schema = dict(self.node.on), self.port, self.node.schema
        columns = []
        for place, field in enumerate(schema):
            left = place < len(self.node.inputs[0].schema)
            name = field.name if left == (port == 0) else None
            if port == 1 and left and field.name in names:
                name = names[field.name]
            columns.append(pa.nulls(len(rows), field.type) if name is None else mine.column(name))
        return pa.RecordBatch.from_arrays(columns, schema=schema)
