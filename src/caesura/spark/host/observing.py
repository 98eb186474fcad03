"""What Spark's ``observedMetrics`` says of an epoch: true rows and promises, and what `observe` counts.

Every bucket sends numbers with its epoch (`runtime/buckets/epoch_figures.py`); Spark's own
``DataFrame.observe`` adds them up on the way to the sink, behind the last stage, in the one action that an
epoch has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.ops.observe import RESERVED
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.runtime.buckets.epoch_figures import (
    LATE_ROWS,
    PROMISED,
    ROWS_IN,
    ROWS_OUT,
    ObservedFigure,
    observed_figures,
)
from caesura.runtime.buckets.labels import OBSERVED
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row


def observed(frame: DataFrame, job: Job, *, own: bool) -> DataFrame:
    """The packets that leave a query, observed; ``own``: with what every query says."""
    from pyspark.sql.functions import expr

    if own:
        frame = frame.observe(RESERVED, *(expr(text).alias(name) for name, text in _own(job).items()))
    by_name: dict[str, list[Column]] = {}
    for known in observed_figures(job.stages):
        by_name.setdefault(known.observation, []).append(expr(_quantity(known)).alias(known.name))
    for name, columns in by_name.items():
        frame = frame.observe(name, *columns)
    return frame


def told_by_name(metrics: Mapping[str, Row]) -> dict[str, dict[str, Any]]:
    """Observed metrics with their names: over Spark Connect a row of values comes beside its schema."""
    rows = {name: row.asDict() for name, row in metrics.items()}
    return {name: _named(row) if set(row) == {"values", "schema"} else row for name, row in rows.items()}


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    names = [field["name"] for field in row["schema"]["fields"]]
    return dict(zip(names, row["values"], strict=True))


def _own(job: Job) -> dict[str, str]:
    """Rows, and the promise of all outputs, which is known where all their buckets have said theirs."""
    buckets = job.buckets * sum(bool(stage.outputs) for stage in job.stages.stages)
    promised = _figure(PROMISED)
    known = f"count({promised}) = {buckets} AND min({promised}) NOT IN ({MIN_TIME + 1} - 1, {INFINITY})"
    timed = any(pa.types.is_timestamp(node.time) for node in job.stages.outputs.values())
    bound = f"timestamp_micros(min({promised}))" if timed else f"min({promised})"
    return {
        "rows_in": f"coalesce(sum({_figure(ROWS_IN)}), 0)",
        "late": f"coalesce(sum({_figure(LATE_ROWS)}), 0)",
        "rows_out": f"coalesce(sum({_figure(ROWS_OUT)}), 0)",
        "promised": f"CASE WHEN {known} THEN {bound} END",
    }


def _quantity(known: ObservedFigure) -> str:
    value = _figure(known.place, f"try_cast(origin AS {'bigint' if known.whole else 'double'})")
    match known.kind:
        case "count":
            return f"coalesce(sum({value}), 0)"
        case "avg":
            return f"try_divide(sum({value}), sum({_figure(known.place + 1)}))"
        case "sum":
            return f"try_sum({value})"
        case _:
            return f"{known.kind}({value})"


def _figure(place: int, value: str = "seq") -> str:
    """A number that buckets send; null in all other packets. Spark plans these expressions every epoch."""
    return f"CASE WHEN label = '{OBSERVED}{place}' THEN {value} END"
