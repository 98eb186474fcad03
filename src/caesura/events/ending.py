"""The rows of a state that have an end, listed while they are few.

Of a table whose rows mostly stay, few end; who lets go of those that are over looks at them only.

>>> ending = EndingRows()
>>> ending.add(np.arange(16), np.array([*[INFINITY] * 15, 7]))
>>> ending.rows(16).tolist()
[15]
"""

from __future__ import annotations

import numpy as np

from caesura.kernels.hashing import I64
from caesura.kernels.sums import each_once
from caesura.punctuation import INFINITY

NONE: I64 = np.zeros(0, np.int64)
SHARE = 8
"""While no more than one of so many rows ends, those are listed."""


class EndingRows:
    """The numbers of rows that have an end, while they are few; a row may be listed often."""

    def __init__(self) -> None:
        self._parts: list[I64] = []
        self._count = 0
        self._listed = True

    def add(self, rows: I64, ends: I64) -> None:
        """Rows came, or have other ends."""
        if self._listed:
            self._list(rows[ends < INFINITY])

    def came(self, first: int, ends: I64) -> None:
        """Rows came, numbered from this number on."""
        if self._listed:
            self._list(np.flatnonzero(ends < INFINITY) + first)

    def _list(self, some: I64) -> None:
        if len(some):
            self._parts.append(some)
            self._count += len(some)

    def rows(self, size: int) -> I64 | None:
        """Those that are listed, once each; None where too many of a state of this size are."""
        self._listed = self._listed and SHARE * self._count <= size
        if not self._listed:
            self._parts, self._count = [], 0
            return None
        return each_once(np.concatenate(self._parts)) if self._parts else NONE

    def keep(self, rows: I64) -> None:
        """Only these go on being listed."""
        self._parts, self._count = [rows], len(rows)

    def relist(self, ends: I64, count: int | None = None) -> None:
        """Lists anew, from the ends of all rows; so many end, where somebody has counted them."""
        count = int(np.count_nonzero(ends < INFINITY)) if count is None else count
        self._listed = SHARE * count <= len(ends)
        self.keep(np.flatnonzero(ends < INFINITY) if self._listed else NONE)
