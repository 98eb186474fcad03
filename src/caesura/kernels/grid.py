"""Times on a grid of windows laid end to end."""

from __future__ import annotations

from caesura.kernels import kernel
from caesura.kernels.hashing import I64


@kernel
def grid_windows(times: I64, offset: int, every: int, out: I64) -> None:
    """The window that each time lies in; neighbours mostly share one, which saves the division."""
    low = 0
    high = 0
    window = 0
    for i in range(len(times)):
        t = times[i]
        if t < low or t >= high:
            window = (t - offset) // every
            low = window * every + offset
            high = low + every
        out[i] = window
