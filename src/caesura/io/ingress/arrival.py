"""Ingestion time: an event's time is what the clock read when its row came, in steps of the clock.

Rows enter as points at the last reading before them; a reading is part of the source's offset, so that an
epoch that runs again gives its rows the same times. Time never goes back: a reading that is behind the last
one does not count.

>>> shape = ArrivalShape("point", "")
>>> batch = pa.record_batch({"id": [7, 8]})
>>> stamped(shape.cut(batch, batch.schema), 40).le.tolist()
[40, 40]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import PlanError
from caesura.events import Page
from caesura.events.page import PointPage
from caesura.io.ingress.policy import Policy, heartbeat
from caesura.io.ingress.shape import Shape, Shaped
from caesura.kernels.ticks import FIRST
from caesura.plan import Duration
from caesura.punctuation import MIN_TIME

STAMPS = pa.timestamp("us")
OTHERS = ("end", "kind", "new_end", "shape", "punctuate", "late")


@dataclass(frozen=True)
class ArrivalShape(Shape):
    """Rows without a time column, whose times the ingress knows: the clock's."""

    time_type: pa.DataType = STAMPS

    @property
    def stamped(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def check(self, schema: pa.Schema) -> pa.DataType:
        self._check_names(schema)
        return self.time_type

    def _cut(self, batch: pa.RecordBatch, payload: pa.RecordBatch) -> Shaped:
        """Rows in front of the clock: they have no time yet."""
        none = np.full(batch.num_rows, FIRST)
        return Shaped(none, None, None, payload, None, none)


def stamped(shaped: Shaped, clock: int) -> Shaped:
    """Rows as points at a reading of the clock."""
    assert clock > MIN_TIME, "rows came before the clock was read"
    at = np.full(len(shaped.le), clock)
    return shaped._replace(le=at, re=None, advance=at, span=(clock, clock))


def stamped_page(page: Page, clock: int) -> Page:
    """A page of such rows, at a reading of the clock."""
    assert clock > MIN_TIME, "rows came before the clock was read"
    at = np.full(len(page), clock)
    return PointPage(at, None, page.payload)


@dataclass(frozen=True)
class IngestionTime:
    """What users give as ``time=`` where no column tells it."""

    every: Duration
    tz: str | None

    def shape(self, options: dict[str, Any]) -> Shape:
        """The shape of such rows; refuses options that speak of times in the data."""
        wrong = next((name for name in OTHERS if options.get(name) is not None), None)
        if wrong is not None:
            raise PlanError(
                f"{wrong}= is about times in the rows, and these rows are timed by the clock.",
                remedy=f"Name the column of the time: time='ts'. Or leave {wrong}= out: events are points in "
                "the time at which they arrive, and the clock is what is promised.",
            )
        renamed = tuple((options.get("rename") or {}).items())
        return ArrivalShape("point", "", renamed=renamed, time_type=pa.timestamp("us", self.tz))

    @property
    def policy(self) -> Policy:
        return heartbeat(self.every)


def ingestion_time(*, every: Duration = "1s", tz: str | None = None) -> IngestionTime:
    """The time of rows that have none: when they came.

    Readings of the clock are part of what a query saves, so that an epoch that runs again sees the same
    times.

    Parameters
    ----------
    every
        How often the clock is read; rows that come between two readings have the time of the first.
    tz
        The time zone of the readings; UTC by default.

    Returns
    -------
    IngestionTime
        For ``time=`` of every way of reading.

    Notes
    -----
    Promises: the clock's readings; no row is late. State: none. Spark: readings are offsets of a source of
    their own.

    See Also
    --------
    heartbeat : progress by the clock.
    from_rows : Python rows.

    Examples
    --------
    >>> import caesura as cz
    >>> bids = cz.from_rows([{"bidder": 7}], time=cz.ingestion_time())
    >>> bids.columns, str(bids.node.time)
    (['bidder'], 'timestamp[us]')
    """
    return IngestionTime(every, tz)
