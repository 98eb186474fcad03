"""What need not be read: row groups whose statistics say that every row of theirs will be ignored.

>>> from caesura.punctuation import ge
>>> pruning = Pruning(lambda: [Pattern(id=ge(5))], {"id": "id"}, "ts")
>>> pruning.covers({"id": Span(7, 9), "ts": Span(1, 4)}), pruning.covers({"id": Span(4, 9), "ts": Span(1, 4)})
(True, False)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caesura.punctuation import Pattern, Values, between


@dataclass(frozen=True)
class Span:
    """The least and the greatest value of a column in a part of a file, and whether null is there."""

    least: Any
    most: Any
    nulls: bool = False

    def within(self, values: Values) -> bool:
        """Whether every value is in the set; a fraction's statistics say nothing of NaN."""
        if self.nulls and not values.contains(None):
            return False
        if self.least is None or self.most is None:
            return False
        if isinstance(self.least, float) and not values.contains(math.inf):
            return False
        return values.covers(between(self.least, self.most))


@dataclass
class Pruning:
    """The patterns that a source is told, over its raw columns, and what was saved."""

    told: Callable[[], list[Pattern]]
    columns: Mapping[str, str]
    """Raw names by the names that patterns use."""
    time: str
    rows: int = 0
    bytes: int = 0
    groups: int = 0
    files: int = 0
    _asked: int = field(default=0, repr=False)

    @property
    def active(self) -> bool:
        return bool(self.told())

    def covers(self, spans: Mapping[str, Span]) -> bool:
        """Whether one pattern takes every row of a part with these spans; times are ticks."""
        return any(self._within(pattern, spans) for pattern in self.told())

    def _within(self, pattern: Pattern, spans: Mapping[str, Span]) -> bool:
        for name, values in pattern.items():
            if name == "RE":
                return False
            span = spans.get(self.time if name == "LE" else self.columns.get(name, ""))
            if span is None or not span.within(values):
                return False
        return True

    def saved(self, rows: int, size: int, groups: int) -> None:
        """Counts a part that was not read."""
        self.rows, self.bytes, self.groups = self.rows + rows, self.bytes + size, self.groups + groups
