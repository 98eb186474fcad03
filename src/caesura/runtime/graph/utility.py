"""Utility: how many rows of an output come in time, by the definition of the feedback thesis (7.4).

A row is useful if it starts at most so far behind the furthest start seen in the output when it comes.
Retracts take nothing back here: what is measured is what a reader was shown.

>>> from caesura.events import parse
>>> seen = Utility(within=5)
>>> for item in parse(" LE RE | id |\\n 10 11 | 1 | +\\n 3 4 | 2 | +\\n 6 7 | 3 | +"):
...     seen.append(item)
>>> print(seen)
2 of 3 rows (67 %) in time
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caesura.events import Item, Page
from caesura.punctuation import MIN_TIME


@dataclass
class Utility:
    """Counts rows in time as they leave; may stand at an output, or be given items."""

    within: int
    rows: int = 0
    useful: int = 0
    furthest: int = MIN_TIME

    @property
    def share(self) -> float:
        """The part of all rows that came in time; 1 where none came."""
        return self.useful / self.rows if self.rows else 1.0

    def append(self, item: Item) -> None:
        """Takes an item that leaves.

        Parameters
        ----------
        item
            A page or a punctuation.

        Examples
        --------
        >>> import caesura as cz
        >>> seen = cz.Utility(5)
        >>> for item in cz.from_rows([{"ts": 9, "id": 7}, {"ts": 1, "id": 8}], time="ts").run().items:
        ...     seen.append(item)
        >>> print(seen)
        1 of 2 rows (50 %) in time
        """
        if not isinstance(item, Page) or item.settled or len(item) == 0:
            return
        starts = item.le if item.retracts is None else item.le[~item.retracts]
        if len(starts) == 0:
            return
        marks = np.maximum(np.maximum.accumulate(starts), self.furthest)
        self.rows += len(starts)
        self.useful += int((marks - starts <= self.within).sum())
        self.furthest = int(marks[-1])

    def __str__(self) -> str:
        return f"{self.useful} of {self.rows} rows ({self.share:.0%}) in time".replace("%", " %")
