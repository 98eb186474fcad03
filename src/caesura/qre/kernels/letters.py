"""Which letter each item is: predicates one by one, each refining a partial verdict.

Answers that no letter has lead to a letter behind the last, which no state can read.

>>> import numpy as np
>>> tree = Refinement([0b00, 0b01, 0b11], 2)
>>> tree.letters([np.array([False, True, True]), np.array([False, False, True])], 3).tolist()
[0, 1, 2]
>>> tree.letters([np.array([False]), np.array([True])], 1).tolist()
[3]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask


@kernel
def refine(verdicts: I64, hits: Mask, table: I64) -> None:
    """Moves every verdict on by one predicate's answer."""
    for i in range(len(verdicts)):
        verdicts[i] = table[verdicts[i], 1 if hits[i] else 0]


class Refinement:
    """One table per predicate from (partial verdict, answer) to the next verdict; the last are letters."""

    def __init__(self, truths: Sequence[int], predicates: int) -> None:
        self.tables: list[I64] = []
        groups: dict[int, int] = {0: 0}
        for p in range(predicates):
            seen = sorted({t & ((1 << (p + 1)) - 1) for t in truths})
            numbers = {t: i for i, t in enumerate(seen)}
            table = np.full((len(groups) + 1, 2), len(numbers), np.int64)
            for partial, at in groups.items():
                for answer in (0, 1):
                    table[at, answer] = numbers.get(partial | answer << p, len(numbers))
            self.tables.append(table)
            groups = numbers
        final = {t: i for i, t in enumerate(truths)}
        known = [final[t] for t in sorted(groups, key=lambda t: groups[t])]
        self.order = np.array([*known, len(truths)], np.int64)

    def letters(self, masks: Sequence[Mask], count: int) -> I64:
        """The letter of each item."""
        verdicts = np.zeros(count, np.int64)
        for hits, table in zip(masks, self.tables, strict=True):
            refine(verdicts, hits, table)
        return self.order[verdicts]
