"""What a client of a Spark Connect server cannot do, each refused by name with what to write instead.

Over Spark Connect epochs are written by a process of the server. Sources, checkpoint and sink are given as
places that client and server both reach; what lies in the client's memory alone cannot be written to.
"""

from __future__ import annotations

from pickle import PicklingError
from typing import TYPE_CHECKING

from pyspark.cloudpickle import dumps

from caesura.errors import PlanError
from caesura.io.sinks.protocol import Sink
from caesura.plan import here
from caesura.spark.session import over_connect
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSIC = "start it from a classic session, with spark-submit or cz.session(master=...)"


def refuse_sink(spark: SparkSession, sink: Sink) -> None:
    """Refuses a sink that would work in another process than the one that reads it."""
    if not over_connect(spark):
        return
    if sink.at_home:
        raise PlanError(
            f"{type(sink).__name__} is in this process, and a Spark Connect server writes epochs in its own.",
            remedy="Give a place that both reach, sink='s3://BUCKET/out' or a folder, and read it with "
            "query.table(). Or use run_batch(spark), whose result is here.",
        ).at("start", here())
    try:
        dumps(sink)  # type: ignore[no-untyped-call]
    except (PicklingError, TypeError, AttributeError) as error:
        raise PlanError(
            f"{type(sink).__name__} cannot travel to the Spark Connect server: {error}.",
            remedy=f"Open connections in its attach(), which is called there; or {CLASSIC}.",
        ).at("start", here()) from error


def refuse_loop(spark: SparkSession, job: Job, step: str) -> None:
    """Refuses a plan with a loop log: a task of a Connect server does not know its epoch."""
    if job.loop and over_connect(spark):
        raise PlanError(
            "this plan has something that goes back to an earlier stage (a loop, feedback, ahead=), and over "
            "Spark Connect a task cannot tell which epoch it belongs to.",
            remedy=f"Leave out feedback=True and ahead=, if it is those; or {CLASSIC}.",
        ).at(step, here())


def refuse_preview(spark: SparkSession) -> None:
    """Refuses to show the first rows of a streaming frame."""
    if over_connect(spark):
        raise PlanError(
            "the first rows of a streaming DataFrame do not come here over Spark Connect.",
            remedy="Preview the same with spark.read in the place of spark.readStream.",
        )
