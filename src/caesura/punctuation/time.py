"""The ends of time, and the reserved attribute that carries an item's sync time.

Ticks are int64. No item has the sync time INFINITY, so `time < INFINITY` is every item there can be.

>>> MIN_TIME < 0 < INFINITY, TIME
(True, 'time')
"""

from __future__ import annotations

from typing import Final

TIME: Final = "time"
INFINITY: Final = 2**63 - 1
MIN_TIME: Final = -(2**63)
