"""Spreading the buckets of a stopped query over more or fewer Spark partitions.

A query has a fixed number of buckets, each with a key and a state of its own; Spark keeps them in
partitions. Moving buckets is Spark's own repartitioning of a checkpoint: it adds an epoch without
input whose state lies elsewhere. No state is cut or merged, so the query goes on exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.json_files import parsed
from caesura.io.places.lease import Lease
from caesura.spark.errors import ours
from caesura.spark.host.checkpoint import query_id, spark_folder, write_plan
from caesura.spark.host.moved import follow_move
from caesura.spark.host.state import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rescale(spark: SparkSession, checkpoint: str | Path, buckets: int) -> int:
    """Moves a stopped query's state to another number of buckets; gives the number it had."""
    place = Place.of(checkpoint).absolute()
    saved_plan = plan_of(place)
    limit, before = int(saved_plan["buckets"]), int(saved_plan["partitions"])
    if buckets < 1 or buckets > limit:
        raise StreamError(
            f"the checkpoint can be spread over 1 to {limit} buckets, not {buckets}.",
            remedy=f"Start anew with max_buckets={max(buckets, 1)} and another checkpoint, or choose fewer.",
        )
    _refuse_running(spark, place)
    with Lease.take(place):
        folder = spark_folder(place)
        follow_move(folder)
        if buckets != _partitions(folder):
            try:
                spark._streamingCheckpointManager.repartition(folder.hadoop, buckets)
            except Exception as error:
                raise ours(error) from error
        write_plan(place, {**saved_plan, "partitions": buckets})
    return before


def _partitions(place: Place) -> int:
    """The partitions that Spark's own log speaks of; a move that was cut off half way is seen here."""
    offsets = place / "offsets"
    epochs = [int(f.name) for f in offsets.files() if f.name.isdigit()]
    if not epochs:
        raise StreamError(
            f"the query of '{place}' has not run an epoch yet.",
            remedy="Nothing has to be moved: remove the folder and start with the new number.",
        )
    last = offsets / str(max(epochs))
    _, *lines = last.read_text().splitlines() or [""]
    about = parsed(lines[0] if lines else "", last, wants=("conf",))
    return int(about["conf"]["spark.sql.shuffle.partitions"])


def _refuse_running(spark: SparkSession, place: Place) -> None:
    """A query of this session that still runs on the checkpoint would be broken."""
    own = query_id(spark_folder(place))
    if any(query.id == own for query in spark.streams.active):
        raise StreamError(
            f"a query still runs on '{place}'.", remedy="Stop it first; it goes on where it stood."
        )
