"""What has been counted of rows that pass: exact, so that buckets, pages and order never show in it.

>>> one, other = Tally("sum", 2, units=7), Tally("sum", 1, units=-3)
>>> one.plus(other).value
4
>>> Tally("min", 2, extreme=5).plus(Tally("min", 1, extreme=3)).value
3
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

Counting = Literal["count", "sum", "avg", "min", "max"]
COUNTING: tuple[str, ...] = get_args(Counting)
Number = int | float
FLOAT_UNITS = 1 << 1074
"""So many units of a sum of doubles make 1: every double is a whole number of them."""


@dataclass(frozen=True)
class Tally:
    """One quantity of some rows; those of other rows add to it."""

    kind: Counting
    n: int = 0
    """How many values are not null; of a count of rows, how many rows."""
    units: int = 0
    """The sum of the finite values."""
    per_one: int = 1
    """How many units make 1."""
    odd: tuple[int, int, int] = (0, 0, 0)
    """How many values were NaN, infinity and -infinity."""
    extreme: Number | None = None
    """The least value, or the greatest."""

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        odd = tuple(a + b for a, b in zip(self.odd, other.odd, strict=True))
        known = [e for e in (self.extreme, other.extreme) if e is not None]
        extreme = (max if self.kind == "max" else min)(known, default=None)
        own = (self.n + other.n, self.units + other.units, max(self.per_one, other.per_one))
        return Tally(self.kind, *own, (odd[0], odd[1], odd[2]), extreme)

    @property
    def value(self) -> Number | None:
        """What is shown; None where there is no value."""
        if self.kind == "count":
            return self.n
        if self.kind in ("min", "max"):
            return self.extreme
        if self.n == 0:
            return None
        total = self._total()
        return total / self.n if self.kind == "avg" else total

    def _total(self) -> Number:
        nan, up, down = (count > 0 for count in self.odd)
        if nan or (up and down):
            return math.nan
        if up or down:
            return math.inf if up else -math.inf
        return self.units if self.per_one == 1 else _divided(self.units, self.per_one)

    def to_json(self) -> list[Any]:
        """The tally as plain values."""
        return [self.kind, self.n, self.units, self.per_one, list(self.odd), self.extreme]

    @staticmethod
    def from_json(data: list[Any]) -> Tally:
        """What `to_json` gave."""
        kind, n, units, per_one, odd, extreme = data
        return Tally(kind, n, units, per_one, (odd[0], odd[1], odd[2]), extreme)


def _divided(units: int, per_one: int) -> float:
    """Rounded once; a sum beyond the doubles is infinite."""
    try:
        return units / per_one
    except OverflowError:
        return math.inf if units > 0 else -math.inf


Tallies = dict[str, Tally]


def together(mine: Tallies, theirs: Tallies) -> Tallies:
    """Tallies of the same observation, by name."""
    names = {**mine, **theirs}
    return {
        name: mine[name].plus(theirs[name]) if name in mine and name in theirs else names[name]
        for name in names
    }
