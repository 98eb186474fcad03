"""Labels: which input items a row comes from, as the greatest item number per source.

A row's label is a vector over the sources, as columns of its page: sources that had no part in it have
none. Active are the sources of the item that set the row off; the others are passive. All rows of a page
leave one call of one step, so they share the active ones.

>>> a = Labels({0: np.array([1, 2])}, frozenset({0}))
>>> pair = a.met(np.array([0, 1]), {1: np.array([7, 6])}, np.array([0, 0]))
>>> pair.cols[1].tolist(), sorted(pair.active), pair.least
([7, 7], [0], {0: 1})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caesura.events.columns import taken
from caesura.kernels import kernel
from caesura.kernels.hashing import I64, frozen

Vector = dict[int, int]
"""Source to item number."""


@kernel
def greater(some: I64, rows: I64, stored: I64, links: I64, out: I64) -> None:
    """Of each pair the greater label."""
    for i in range(len(rows)):
        mine, other = some[rows[i]], stored[links[i]]
        out[i] = mine if mine > other else other


@dataclass(frozen=True)
class Labels:
    """The labels of a page's rows."""

    cols: Mapping[int, I64]
    active: frozenset[int]
    floor: Mapping[int, int] | None = None
    """The least active label, where the columns only bound it from above."""

    @cached_property
    def least(self) -> Vector:
        """Of each active source the least item number among the rows."""
        if self.floor is not None:
            return dict(self.floor)
        return {k: int(self.cols[k].min()) for k in self.active if len(self.cols[k])}

    @cached_property
    def greatest(self) -> Vector:
        """Of each source the greatest item number among the rows."""
        return {k: int(col.max()) for k, col in self.cols.items() if len(col)}

    def know(self, least: Vector, greatest: Vector) -> None:
        """Takes the ends for granted, where whoever makes the labels knows them."""
        self.__dict__["least"], self.__dict__["greatest"] = least, greatest

    def take(self, rows: I64) -> Labels:
        return Labels({k: taken(col, rows) for k, col in self.cols.items()}, self.active, self.floor)

    def slice(self, start: int, length: int) -> Labels:
        end = start + length
        return Labels({k: col[start:end] for k, col in self.cols.items()}, self.active, self.floor)

    def join(self, others: Sequence[Labels | None], lengths: Sequence[int]) -> Labels | None:
        """The labels of pages put together; None where one has none, or another active source."""
        if any(o is None or o.active != self.active for o in others):
            return None
        all_of = [self, *(o for o in others if o is not None)]
        names = sorted({k for labels in all_of for k in labels.cols})
        cols = {
            k: np.concatenate(
                [o.cols.get(k, np.zeros(n, np.int64)) for o, n in zip(all_of, lengths, strict=True)]
            )
            for k in names
        }
        floors = [o.floor for o in all_of]
        floor = None
        if any(f is not None for f in floors):
            floor = {k: min(o.least[k] for o in all_of if k in o.least) for k in self.active}
        return Labels(cols, self.active, floor)

    def met(self, rows: I64, stored: Mapping[int, I64], links: I64) -> Labels:
        """The labels of rows that met stored ones: the component-wise maximum; active as here."""
        cols = {}
        for k in sorted({*self.cols, *stored}):
            if k not in stored:
                cols[k] = taken(self.cols[k], rows)
            elif k not in self.cols:
                cols[k] = taken(stored[k], links)
            else:
                cols[k] = np.empty(len(rows), np.int64)
                greater(frozen(self.cols[k]), frozen(rows), frozen(stored[k]), frozen(links), cols[k])
        return Labels(cols, self.active, self.floor)
