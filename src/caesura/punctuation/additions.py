"""A column plus a constant, as its type adds: what a set of sums says of what they are sums of.

Whole numbers add exactly or not at all, and decimals exactly. Floats round, but never pass each other:
the numbers whose sums lie in a stretch are a stretch, whose ends are found by halving.

Law: a value that has a sum is in `up(values)` if and only if its sum is in ``values``.

>>> from caesura.punctuation.values import gt, le, value
>>> print(Sum("v", 5, "int", le(122)).up(gt(30)))
[26..122]
>>> tenth = Sum("v", 0.1, "float")
>>> tenth.up(value(0.30000000000000004)).contains(0.2), tenth.up(value(0.3)).contains(0.2)
(True, False)
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from caesura.punctuation.cuts import Cut
from caesura.punctuation.mapping import Image
from caesura.punctuation.values import Values


@dataclass(frozen=True)
class Sum(Image):
    """An output column that is an input column plus ``shift``."""

    shift: int | float | Decimal = 0
    of: Literal["int", "float", "decimal"] = "int"
    """What the sums are: whole numbers, doubles, decimals."""
    sound: Values | None = None
    """Of whole numbers: those whose sums their type can hold; None where all have one."""
    among: tuple[int, int] | None = None
    """Where whole numbers become doubles: the least and the greatest of their type."""

    def down(self, values: Values) -> Values | None:
        """The sums; none of floats, of which two may have the same sum."""
        if not values.cuts:
            return values
        return None if self.of == "float" else self._moved(values, self.shift)

    def up(self, values: Values) -> Values | None:
        """What has a sum among the values; what has none, because it lies beyond its type, is not told of."""
        if not values.cuts:
            return values
        if self.of == "float":
            return self._halved(values)
        moved = self._moved(values, -self.shift)
        return moved if self.sound is None else moved.intersect(self.sound)

    def _moved(self, values: Values, by: Any) -> Values:
        if self.of == "int":
            return values.shift(by)
        return values.with_cuts(tuple((at + by, side) for at, side in values.cuts))

    def _halved(self, values: Values) -> Values:
        cuts: list[Cut] = []
        for at, side in values.cuts:
            if self.among is not None:
                cuts.append((self._first(at, *self.among, strictly=side == 1), 0))
            elif math.isnan(at) or (at == math.inf and side == 1):
                cuts.append((at, side))  # what is not a number stays so
            else:
                first = self._first(at, _place(-math.inf), _place(math.inf), strictly=side == 1)
                cuts.append((_float(first), 0))
        return values.with_cuts(tuple(cuts), "float" if self.among is None else "int")

    def _first(self, bound: float, low: int, high: int, *, strictly: bool) -> int:
        """The least place, or whole number, whose sum is the bound or more, or beyond it; or one past all."""
        by, high = float(self.shift), high + 1
        while low < high:
            mid = (low + high) // 2
            total = (_float(mid) if self.among is None else float(mid)) + by
            if total > bound or (total == bound and not strictly):
                high = mid
            else:
                low = mid + 1
        return low


def _place(x: float) -> int:
    """A float's place among all of them."""
    bits: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _float(place: int) -> float:
    x: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return x if place >= 0 else -x
