"""Times on a grid of windows laid end to end."""

from __future__ import annotations

from caesura.kernels import kernel
from caesura.kernels.hashing import I64
from caesura.punctuation.time import MIN_TIME

KEPT = MIN_TIME
"""The new end of a row that is no retract."""


@kernel
def whole_windows(le: I64, re: I64, re_new: I64, offset: int, every: int, window: I64, weight: I64) -> bool:
    """Whether every row comes or goes as a whole, inside one window: then that window, and 1 or -1.

    An empty ``re_new`` means inserts only.
    """
    low = 0
    high = 0
    at = 0
    for i in range(len(le)):
        t = le[i]
        if t < low or t >= high:
            at = (t - offset) // every
            low = at * every + offset
            high = low + every
        if re[i] > high:
            return False
        window[i] = at
        weight[i] = 1
        if len(re_new) and re_new[i] != KEPT:
            if re_new[i] > t:
                return False
            weight[i] = -1
    return True
