"""What need not be read, and what is read first, by what the statistics of row groups say.

Row groups all of whose rows will be ignored are not read. Those with rows that are wanted come before
others where no order makes a row late: where the source promises nothing before its end, or where all
times that are passed over lie within its lag. So the order of arrival changes, and nothing else.

>>> from caesura.punctuation import ge
>>> pruning = Pruning(lambda: [Pattern(id=ge(5))], {"id": "id"}, "ts")
>>> [pruning.covers({"id": ValueRange(low, 9), "ts": ValueRange(1, 4)}) for low in (7, 4)]
[True, False]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caesura.punctuation import INFINITY, MIN_TIME, Pattern, Values, between


@dataclass(frozen=True)
class ValueRange:
    """The least and the greatest value of a column in a part of a file, and whether null is there."""

    least: Any
    greatest: Any
    nulls: bool = False

    def within(self, values: Values) -> bool:
        """Whether every value is in the set; a fraction's statistics say nothing of NaN."""
        if self.nulls and not values.contains(None):
            return False
        if self.least is None or self.greatest is None:
            return False
        if isinstance(self.least, float) and not values.contains(math.inf):
            return False
        return values.covers(between(self.least, self.greatest))

    def meets(self, values: Values) -> bool:
        """Whether some value may be in the set."""
        if self.least is None or self.greatest is None or (self.nulls and values.contains(None)):
            return True
        return values.intersects(between(self.least, self.greatest))


@dataclass
class Pruning:
    """The patterns that a source is told, over its raw columns, and what was saved."""

    ignored: Callable[[], list[Pattern]]
    columns: Mapping[str, str]
    """Raw names by the names that patterns use."""
    time: str
    wanted: Callable[[], list[Pattern]] = lambda: []
    """What is wanted first."""
    lag: int | None = None
    """How far behind the latest time before it a row may be; None where that does not matter."""
    top: Callable[[], int] = lambda: MIN_TIME
    """The latest time of the rows read so far."""
    moved: int = 0
    """Rows that were read before others."""
    rows: int = 0
    bytes: int = 0
    groups: int = 0
    files: int = 0

    @property
    def active(self) -> bool:
        return bool(self.ignored())

    def ignores(self, spans: Mapping[str, ValueRange]) -> bool:
        """Whether a part need not be read: every row is ignored, and its latest time is known."""
        timed = spans.get(self.time)
        return timed is not None and not timed.nulls and self.covers(spans)

    def covers(self, spans: Mapping[str, ValueRange]) -> bool:
        """Whether one pattern takes every row of a part with these spans; times are ticks."""
        return any(self._within(pattern, spans) for pattern in self.ignored())

    def _within(self, pattern: Pattern, spans: Mapping[str, ValueRange]) -> bool:
        for name, values in pattern.items():
            if name == "RE":
                return False
            span = spans.get(self.time if name == "LE" else self.columns.get(name, ""))
            if span is None or not span.within(values):
                return False
        return True

    def first(self, waiting: Sequence[Mapping[str, ValueRange]]) -> int:
        """Which of some parts, in their order, is read next: the first with wanted rows, if it may be."""
        low, high = INFINITY, self.top()
        for place, spans in enumerate(waiting):
            if self.lag is not None:
                times = spans.get(self.time)
                if times is None or times.nulls or times.least is None:
                    return 0
                low, high = min(low, times.least), max(high, times.greatest)
                if low < high - self.lag:
                    return 0
            if self.meets(spans) and not self.covers(spans):
                return place
        return 0

    def meets(self, spans: Mapping[str, ValueRange]) -> bool:
        """Whether a part may hold rows that are wanted first."""
        return any(self._may_match(pattern, spans) for pattern in self.wanted())

    def _may_match(self, pattern: Pattern, spans: Mapping[str, ValueRange]) -> bool:
        for name, values in pattern.items():
            span = spans.get(self.time if name == "LE" else self.columns.get(name, ""))
            if span is not None and name != "RE" and not span.meets(values):
                return False
        return True

    def saved(self, rows: int, size: int, groups: int) -> None:
        """Counts a part that was not read."""
        self.rows, self.bytes, self.groups = self.rows + rows, self.bytes + size, self.groups + groups
