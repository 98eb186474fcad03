"""Texts as codes: each distinct text gets a number once, and kernels pass the number around.

What no thread holds any more is let go of once there is twice as much as was held: space goes by what is
held, not by the stream (Theorem 7).

>>> texts = Texts()
>>> codes = texts.encode(pa.array(["a", None, "b", "a"]))
>>> texts.decode(codes[[0, 2, 3]]).to_pylist()
['a', 'b', 'a']
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from caesura.events.columns import ColumnStore
from caesura.events.identity import LOCAL, identity
from caesura.kernels.hashing import I64, Mask
from caesura.kernels.keys import KeyTable

MIN_BYTES_TO_SWEEP = 1 << 16
"""So many bytes of texts are never looked through."""


class Texts:
    """A dictionary of texts, which grows until it is swept."""

    def __init__(self) -> None:
        self.keys = KeyTable()
        self._secret = LOCAL.copied()
        self.store = ColumnStore(pa.schema([("text", pa.string())]))
        self._held = 0
        """How many bytes were left by the last sweep."""

    def all(self) -> pa.RecordBatch:
        """Every text, by its code."""
        return self.store.all()

    @staticmethod
    def of(texts: pa.RecordBatch) -> Texts:
        """What `all` gave, with the same codes."""
        made = Texts()
        made.encode(texts.column(0))
        made._held = made.nbytes
        return made

    def encode(self, column: pa.Array) -> I64:
        """The code of each text."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        plain = column.cast(pa.string())
        codes, fresh = self.keys.encode(*identity([plain], len(plain), self._secret))
        if len(fresh):
            self.store.append(pa.RecordBatch.from_arrays([plain.take(pa.array(fresh))], names=["text"]))
        return codes

    def decode(self, codes: I64) -> pa.Array:
        """The texts of some codes."""
        if self.keys.count == 0:
            return pa.nulls(len(codes), pa.string())
        return self.store.take(codes).column(0)

    @property
    def grown(self) -> bool:
        """Whether it is time to sweep."""
        return self.nbytes > 2 * self._held + MIN_BYTES_TO_SWEEP

    def sweep(self, alive: Mask, places: list[I64]) -> None:
        """Lets go of texts whose codes lie at no place of a row that is in use, and numbers the others anew.

        Places of other rows are emptied.
        """
        if self.keys.count == 0:
            return
        for held in places:
            held[~alive] = 0
            held[(held < 0) | (held >= self.keys.count)] = 0
        used = np.unique(np.concatenate([np.zeros(0, np.int64), *(held[alive].ravel() for held in places)]))
        self.keys.compact(used)
        self.store.compact(used)
        for held in places:
            held[alive] = np.searchsorted(used, held[alive])
        self._held = self.nbytes

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.store.nbytes
