"""Streams that left a rate's language for ever: said once, per key, with the item that led out.

No stream that goes on from such an item has a value; the state is freed. A key of a partition begins
anew behind it, and is reported once.

     LE RE | kind item |                    reason                                       LE | kind item
      1  2 | bid  7    | +   left out by    the pattern can match no stream ...           1 | bid  7
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.events.identity import LOCAL, Secret, identity
from caesura.events.page import Page
from caesura.expr import evaluate
from caesura.io.ingress.late import LateTable
from caesura.kernels.hashing import I64, U64
from caesura.kernels.keys import KeyTable
from caesura.qre.language.query import Partition, Pipe, Query

MAX_KEYS = 100_000
"""How many keys are remembered as reported."""
REASON = "the pattern can match no stream that goes on from this item"


@dataclass
class DepartedKeys:
    """What is saved of the keys that were reported: their identities, and what those begin with."""

    k1: U64
    k2: U64
    secret: bytes


DEPARTED = ChunkFormat("keys that left a rate's language", DepartedKeys)


class Departures:
    """The late table of a query; keys that were reported are remembered up to its limit."""

    def __init__(self, query: Query, schema: pa.Schema, time: pa.DataType) -> None:
        self.table = LateTable(schema, time)
        self.reported = KeyTable()
        self._secret = LOCAL.copied()
        while isinstance(query, Pipe):
            query = query.first
        self.by = query.partitioned_by
        self.again = isinstance(query, Partition) and query.again
        keys = ", ".join(name for name, _ in self.by)
        what = f"; the state of its {keys} is freed" if self.by else "; the query will not answer any more"
        self.reason = REASON + what + (", and begins anew" if self.again else "")

    def add(self, batch: pa.RecordBatch, le: I64) -> None:
        """Takes the items that led out, in order."""
        if self.by:
            keys = [evaluate(e, batch) for _, e in self.by]
            hashes = identity(keys, batch.num_rows, self._secret)
            new = np.flatnonzero(self.reported.find(*hashes) < 0)
            _, first = KeyTable().encode(hashes[0][new], hashes[1][new])
            own = new[np.sort(first)][: max(0, MAX_KEYS - self.reported.count)]
            self.reported.encode(hashes[0][own], hashes[1][own])
            self.table.count += len(le) - len(own)
            batch, le = batch.take(pa.array(own)), le[own]
        nowhere = np.full(len(le), -1, np.int64)
        self.table.add(Page(le, le + 1, batch), self.reason, lane=-1, offsets=nowhere)

    def save(self) -> bytes:
        """The keys that were reported."""
        k1, k2 = (half[: self.reported.count] for half in (self.reported.k1, self.reported.k2))
        return DEPARTED.write(DepartedKeys(k1, k2, self._secret.key))

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave."""
        state = DEPARTED.read(saved)
        self.reported, self._secret = KeyTable(), Secret(state.secret)
        self.reported.encode(state.k1, state.k2)
