"""Adding to numbered places.

>>> import numpy as np
>>> total = np.zeros(2, np.int64)
>>> add_weights(np.array([1, 0, 1]), np.array([5, 7, -1]), total); total.tolist()
[7, 4]
"""

from __future__ import annotations

import numpy as np

from caesura.kernels import kernel
from caesura.kernels.hashing import I64, Mask


@kernel
def add_weights(at: I64, weights: I64, total: I64) -> None:
    """Adds each weight to its place."""
    for i in range(len(at)):
        total[at[i]] += weights[i]


@kernel
def mark(at: I64, touched: Mask) -> None:
    """Marks each place."""
    for i in range(len(at)):
        touched[at[i]] = True


@kernel
def least_at(at: I64, values: I64, least: I64) -> None:
    """Lowers each place to the least of its values."""
    for i in range(len(at)):
        if values[i] < least[at[i]]:
            least[at[i]] = values[i]


def distinct(numbers: I64, size: int) -> I64:
    """Numbers below ``size``, each once, ascending; by marking where that is cheaper than sorting."""
    if 64 * len(numbers) < size:
        return np.unique(numbers)
    there = np.zeros(size, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there)
