"""Texts as codes: each distinct text gets a number once, and kernels pass the number around.

>>> texts = Texts()
>>> codes = texts.encode(pa.array(["a", None, "b", "a"]))
>>> texts.decode(codes[[0, 2, 3]]).to_pylist()
['a', 'b', 'a']
"""

from __future__ import annotations

import pyarrow as pa

from caesura.events.columns import ColumnStore
from caesura.events.identity import LOCAL, identity
from caesura.kernels.hashing import I64
from caesura.kernels.keys import KeyTable


class Texts:
    """A growing dictionary of texts."""

    def __init__(self) -> None:
        self.keys = KeyTable()
        self._secret = LOCAL.copied()
        """What the identities begin with; it is saved with them."""
        self.store = ColumnStore(pa.schema([("text", pa.string())]))

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
        return self.store.take(codes).column(0)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.store.nbytes
