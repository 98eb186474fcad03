"""What a run's trace says about how closely a loop follows its input: lag, guesses, state, silence.

A trace is a list of marks in the order of system time; the unit of system time is one input event.

>>> trace = [Mark(1, "event", 10), Mark(2, "definite", 10), Mark(3, "event", 14), Mark(4, "definite", 14)]
>>> figures(trace).lag
4.0
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple


class Mark(NamedTuple):
    """Something that happened: an output event or promise at an application time, or a count."""

    at: int
    what: Literal["event", "definite", "guesses", "state"]
    value: int


class Figures(NamedTuple):
    """The measures of section 5.2.1."""

    lag: float
    """How far explicit progress is behind real progress, on average over system time."""
    definite: int
    guesses: int
    state: float
    """Rows held by the steps of the loop, on average."""
    silence: int
    """The longest time without a definite punctuation."""


def figures(trace: Sequence[Mark]) -> Figures:
    """The measures of a run."""
    events = [m for m in trace if m.what == "event"]
    told = [m for m in trace if m.what == "definite"]
    counted = [m.value for m in trace if m.what == "guesses"]
    held = [m.value for m in trace if m.what == "state"]
    return Figures(
        _lag(events, told),
        len(told),
        max(counted, default=0),
        sum(held) / len(held) if held else 0.0,
        _silence([m.at for m in told], trace),
    )


def _lag(events: Sequence[Mark], told: Sequence[Mark]) -> float:
    """Real progress at a time is the least application time of all events still to come (figure 5)."""
    if not events or not told:
        return float("inf")
    first, last = told[0].at, events[-1].at
    coming: dict[int, int] = {}
    for mark in events:
        coming[mark.at] = min(mark.value, coming.get(mark.at, mark.value))
    real: dict[int, int] = {}
    least = max(m.value for m in events)
    for at in range(last, first - 1, -1):
        real[at] = least
        least = min(least, coming.get(at, least))
    given = {m.at: m.value for m in told}
    known, total = told[0].value, 0
    for at in range(first, last):
        known = max(known, given.get(at, known))
        total += max(0, real[at] - known)
    return total / max(1, last - first)


def _silence(times: Sequence[int], trace: Sequence[Mark]) -> int:
    if not trace:
        return 0
    ends = [trace[0].at, *times, trace[-1].at]
    return max(b - a for a, b in pairwise(ends))
