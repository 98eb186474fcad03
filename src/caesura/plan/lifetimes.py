"""How the lifetimes that a step gives come from those that it takes, to translate feedback by.

Feedback names `LE` and `RE` of a step's output. Each value here says which rows of an input have, all of
them and in all they make, such an output: exactly those or fewer, never more.

>>> Moved(("LE", 5), ("RE", 5)).back(lt(20), ANY, points=False)
{'LE': Values(< 15)}
>>> OverlappedWindows(10, 10, 0).back(lt(30), ANY, points=True)
{'LE': Values(< 30)}
>>> OverlappedWindows(10, 5, 0).back(lt(30), ANY, points=False)
{'RE': Values(< 31)}
>>> OverlappedWindows(10, 5, 0).back(one_of([5, 10, 15]), ANY, points=True)
{'LE': Values([10..19])}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from caesura.punctuation import ANY, INFINITY, MIN_TIME, NOT_NULL, NOTHING, Values, ge, le, lt, one_of

Bounds = dict[str, Values]
FAR = 2**62
"""A move after which times may stop at the end of time."""


class Lifetimes(Protocol):
    """A way of output lifetimes."""

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        """Constraints on an input's LE and RE for those on the output's; None where there are none."""

    def lost(self, until: int) -> int:
        """The latest end of output that rows which ended by ``until`` could have changed."""

    def affected(self, until: int) -> int:
        """The time before which output starts that rows which ended by ``until`` could have changed."""
        return self.lost(until)


def spans(values: Values) -> list[tuple[int | None, int | None]] | None:
    """The closed stretches of a set of ticks; None where it names the ends of time."""
    found: list[tuple[int | None, int | None]] = []
    for part in values.intervals:
        if any(end is not None and not MIN_TIME < end < INFINITY for end in (part.lo, part.hi)):
            return None
        found.append((part.lo, part.hi))
    return found


@dataclass(frozen=True)
class Unchanged(Lifetimes):
    """Lifetimes stay as they are."""

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        return {name: v for name, v in (("LE", starts), ("RE", ends)) if not v.is_any}

    def lost(self, until: int) -> int:
        return until


@dataclass(frozen=True)
class Moved(Lifetimes):
    """Each end is an end of the input, moved; None where it is computed in another way."""

    start: tuple[str, int]
    end: tuple[str, int] | None

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        found: Bounds = {}
        for values, image in ((starts, self.start), (ends, self.end)):
            if values.is_any:
                continue
            if image is None or spans(values) is None:
                return None
            name, by = image
            if abs(by) >= FAR:
                return None  # many times become the last one
            moved = values.shift(-by)
            found[name] = moved.intersect(found[name]) if name in found else moved
        return found

    def lost(self, until: int) -> int:
        if self.end is None or until == INFINITY:
            return INFINITY
        return min(INFINITY, until + max(self.start[1], self.end[1], 0) + 1)


@dataclass(frozen=True)
class Stepped(Lifetimes):
    """Starts move up to a multiple of a period (from ``offset`` on, or past it); ends stay or follow."""

    period: int
    offset: int = 0
    past: bool = False
    """Whether a start on a multiple moves to the next one."""
    size: int | None = None
    """How long rows live then; None where they keep their ends."""

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        found: Bounds = {}
        if not ends.is_any:
            if self.size is not None:
                if spans(ends) is None:
                    return None
                starts = ends.shift(-self.size) if starts.is_any else starts.intersect(ends.shift(-self.size))
            else:
                found["RE"] = ends
        if starts.is_any:
            return found
        stretches = spans(starts)
        if stretches is None:
            return None
        some = NOTHING
        for low, high in stretches:
            part = NOT_NULL
            if low is not None:
                part = part.intersect(ge(self._first(low)))
            if high is not None:
                part = part.intersect(lt(self._first(high + 1)))
            some = some.union(part)
        found["LE"] = some
        return found

    def _first(self, t: int) -> int:
        """The least start that moves to t or later."""
        number = -((self.offset - t) // self.period)
        before = (number - 1) * self.period + self.offset
        return before if self.past else before + 1

    def lost(self, until: int) -> int:
        if until == INFINITY:
            return INFINITY
        return min(INFINITY, until + self.period + (self.size or 0) + 1)


@dataclass(frozen=True)
class Inside(Lifetimes):
    """What a row makes lives inside the row's own lifetime: joins, chop."""

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        if points:
            return Unchanged().back(starts, ends, points=True)
        found: Bounds = {}
        for values, lower, upper in ((starts, 0, 1), (ends, -1, 0)):
            if values.is_any:
                continue
            stretches = spans(values)
            if stretches is None or len(stretches) != 1:
                return None
            low, high = stretches[0]
            if low is not None:
                found["LE"] = found.get("LE", NOT_NULL).intersect(ge(low + lower))
            if high is not None:
                found["RE"] = found.get("RE", NOT_NULL).intersect(le(high + upper))
        return found

    def lost(self, until: int) -> int:
        return until


@dataclass(frozen=True)
class OverlappedWindows:
    """Windows of one size at every hop, and rows that overlap them."""

    size: int
    every: int
    offset: int = 0

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        if spans(starts) is None or spans(ends) is None:
            return None
        if not ends.is_any:
            moved = ends.shift(-self.size)
            starts = moved if starts.is_any else starts.intersect(moved)
        if starts.is_any:
            return {}
        stretches = self._whole(spans(starts) or [])
        if points:
            return {"LE": self._points(stretches)}
        if len(stretches) != 1:
            return None
        found: Bounds = {}
        low, high = self._rows(*stretches[0])
        if low is not None:
            found["LE"] = ge(low)
        if high is not None:
            found["RE"] = le(high)
        return found

    def _whole(self, stretches: list[tuple[int | None, int | None]]) -> list[tuple[int | None, int | None]]:
        """The same window starts in fewer stretches: windows that follow each other lie in one."""
        joined: list[tuple[int | None, int | None]] = []
        for low, high in stretches:
            first = None if low is None else -((self.offset - low) // self.every) * self.every + self.offset
            last = None if high is None else (high - self.offset) // self.every * self.every + self.offset
            if first is not None and last is not None and first > last:
                continue
            if (
                joined
                and first is not None
                and joined[-1][1] is not None
                and first <= joined[-1][1] + self.every
            ):
                joined[-1] = joined[-1][0], last
            else:
                joined.append((first, last))
        return joined

    def _points(self, stretches: list[tuple[int | None, int | None]]) -> Values:
        some = NOTHING
        for stretch in stretches:
            low, high = self._rows(*stretch)
            part = NOT_NULL if low is None else ge(low)
            some = some.union(part if high is None else part.intersect(lt(high)))
        return some

    def _rows(self, low: int | None, high: int | None) -> tuple[int | None, int | None]:
        """From where rows must start, and up to where they must end, to lie in these windows only."""
        first, last = None, None
        if low is not None:
            number = -((self.offset - low) // self.every)
            first = (number - 1) * self.every + self.offset + self.size
        if high is not None:
            last = ((high - self.offset) // self.every + 1) * self.every + self.offset
        return first, last

    def lost(self, until: int) -> int:
        return INFINITY if until == INFINITY else min(INFINITY, until + self.size + 1)

    def affected(self, until: int) -> int:
        return until


@dataclass(frozen=True)
class Whole:
    """Nothing can be said of times: only feedback that names none is translated."""

    slack: int | None = None
    """How many ticks past its end a row matters to output that starts there; None for ever."""

    def back(self, starts: Values, ends: Values, *, points: bool) -> Bounds | None:
        return {} if starts.is_any and ends.is_any else None

    def lost(self, until: int) -> int:
        return INFINITY

    def affected(self, until: int) -> int:
        if until == INFINITY or self.slack is None:
            return INFINITY
        return min(INFINITY, until + self.slack + 1)


__all__ = [
    "ANY",
    "Inside",
    "Lifetimes",
    "Moved",
    "OverlappedWindows",
    "Stepped",
    "Unchanged",
    "Whole",
    "one_of",
]
