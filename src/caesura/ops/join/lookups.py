"""What a side of a join looks rows up by, beside their keys: their values.

A row that is taken back is found in the chain of its key, unless chains are long: then by its value.
"""

from __future__ import annotations

from caesura.kernels.chains import Chains
from caesura.kernels.hashing import I64, U64
from caesura.kernels.keys import KeyTable

LONG = 8
"""So many rows of a key looked at for each one that is taken back are too many."""
SLACK = 4096


class ByValue:
    """Rows by the identity of their values."""

    def __init__(self, h1: U64, h2: U64) -> None:
        self._table = KeyTable()
        self.chains = Chains()
        self.add(h1, h2)

    def add(self, h1: U64, h2: U64) -> None:
        """The next rows, in order."""
        self.chains.add(self._table.encode(h1, h2)[0])

    def find(self, h1: U64, h2: U64) -> I64:
        """The number of each value; -1 where no row has it."""
        return self._table.find(h1, h2)
