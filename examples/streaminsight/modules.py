"""The paper's modules as a domain expert writes them once (sections III.A and IV.C).

`MyAverage`, `MyTimeWeightedAverage`, a chart pattern and a threshold: the query writer uses them by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from caesura import Event, Window, col, uda, udf, udo

THRESHOLDS = {1: 10.0, 2: 50.0}


@uda
def my_average(values: list[float]) -> float:
    """The mean of the payloads; knows nothing of time."""
    return sum(values) / len(values)


@uda(time_bound=True)
def my_time_weighted_average(events: list[Event[float]], window: Window) -> float:
    """Each value counts for as long as it lives, against the length of the window."""
    return sum(e.payload * e.duration for e in events) / window.duration


@dataclass
class Pattern:
    """A chart pattern: what it is and how high it went."""

    name: str
    peak: float


@udo
def peaks(events: list[Event[float]], window: Window) -> list[Event[Pattern]]:
    """Every value that is higher than both of its neighbours, alive from there to the next value."""
    found = []
    for left, middle, right in zip(events, events[1:], events[2:], strict=False):
        if left.payload < middle.payload > right.payload:
            found.append(Event(middle.start, right.start, Pattern("peak", middle.payload)))
    return found


@udf
def val_threshold(id: int) -> float:
    return THRESHOLDS.get(id, 0.0)


below_threshold = col("value") < val_threshold("id")
