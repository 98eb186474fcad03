"""What a bucket did in one epoch, as a list of numbers: rows in, late rows, rows out, promise, observations.

A host that adds up numbers of rows (Spark's ``observedMetrics``) adds these, where it would count packets.
The list has the same places in every bucket; what a bucket does not know is None there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from caesura.ops.observe import Observe, Observer
from caesura.plan.tally import Number, Tally
from caesura.punctuation import MIN_TIME
from caesura.runtime.buckets.labels import OUT

if TYPE_CHECKING:
    from caesura.plan.cut import Stage, Stages
    from caesura.runtime.buckets.source_arrivals import SourceArrivals
    from caesura.runtime.query.query import Query

ROWS_IN, LATE_ROWS, ROWS_OUT, PROMISED = range(4)
"""The first places of the list."""
Figure = Number | str | None
"""A text stands for a number that JSON does not have: NaN, Infinity."""


@dataclass(frozen=True)
class ObservedFigure:
    """A quantity of an observation, and its place in the list; behind a sum for a mean comes the count."""

    observation: str
    name: str
    kind: str
    whole: bool
    """Whether it is a whole number."""
    place: int


def observed_figures(stages: Stages) -> list[ObservedFigure]:
    """The quantities that the steps of a plan observe, in the order of the list."""
    made: list[ObservedFigure] = []
    place = PROMISED + 1
    for node in (n for stage in stages.stages for n in stage.nodes if isinstance(n, Observe)):
        for name, aggregate in node.aggregates:
            whole = node.whole(aggregate)
            made.append(ObservedFigure(node.name, name, aggregate.kind, whole, place))
            place += 2 if aggregate.kind == "avg" else 1
    return made


class EpochFigures:
    """The numbers of one bucket of a stage, from epoch to epoch."""

    def __init__(
        self, stages: Stages, stage: Stage, bucket: int, query: Query, arrivals: SourceArrivals
    ) -> None:
        self._known = observed_figures(stages)
        self._outputs, self._bucket = list(stage.outputs), bucket
        self._query, self._arrivals = query, arrivals
        self._observers = {
            cell.node.name: cell.operator for cell in query.graph.cells if isinstance(cell.operator, Observer)
        }
        self.rows_out = 0
        self._read, self._late = 0, 0

    def begin(self) -> None:
        """State was restored: what it says was done before."""
        self._read, self._late = self._so_far()
        self.rows_out = 0

    def take(self) -> list[Figure]:
        """The list for what was done since the last call."""
        read, late = self._so_far()
        figures: list[Figure] = [read - self._read, late - self._late, self.rows_out, self._promised()]
        self._read, self._late, self.rows_out = read, late, 0
        fresh = {name: observer.take_fresh() for name, observer in self._observers.items()}
        for known in self._known:
            tally = fresh.get(known.observation, {}).get(known.name)
            figures += _written(known.kind, tally)
        return figures

    def _so_far(self) -> tuple[int, int]:
        """Rows read and late; every bucket sees how many were read, so the first says it."""
        reports = self._arrivals.reports().values()
        read = sum(report["rows"] for report in reports) if self._bucket == 0 else 0
        return read, sum(report["late"] for report in reports)

    def _promised(self) -> int | None:
        """The time up to which all outputs that leave here are definite; None where none does."""
        last = [self._query.cell(OUT + name).operator.counters.punctuation_out for name in self._outputs]
        bounds = [None if item is None else item.pattern.time_bound for item in last]
        return min((MIN_TIME if bound is None else bound for bound in bounds), default=None)


def _written(kind: str, tally: Tally | None) -> list[Figure]:
    if kind != "avg":
        return [None if tally is None else _plain(tally.value)]
    if tally is None:
        return [None, None]
    return [_plain(Tally("sum", tally.n, tally.units, tally.per_one, tally.odd).value), tally.n]


def _plain(value: Number | None) -> Figure:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
