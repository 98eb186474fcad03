"""A stream as a temporary view of Spark SQL: its history, or what the sink of a query holds of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.io.sinks.protocol import Sink
from caesura.plan import Node
from caesura.runtime.query.result import Output, delivered
from caesura.runtime.sinks.held import held_table
from caesura.runtime.sinks.named import as_sink
from caesura.spark.errors import asking_spark
from caesura.spark.host.running import run_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create_view(
    node: Node, spark: SparkSession, name: str, *, sink: Sink | str | Path | None, output: Output
) -> None:
    """Makes or replaces a view of Spark SQL; it shows what is there now. `Stream.create_view` calls it.

    Parameters
    ----------
    node
        The last step: ``stream.node``.
    spark
        The session.
    name
        What the view is called.
    sink
        The sink of a query of this plan, or None to run the plan.
    output
        What is taken of the stream, as in `Stream.run`.

    See Also
    --------
    caesura.Stream.create_view : a view of Spark SQL.

    Examples
    --------
    With a session at hand::

        create_view(speeds.node, spark, "speeds", sink=None, output="changes")
    """
    table = run_batch(node, spark, output=output).table() if sink is None else _held(node, sink, output)
    with asking_spark():
        spark.createDataFrame(table).createOrReplaceTempView(name)


def _held(node: Node, sink: Sink | str | Path, output: Output) -> pa.Table:
    target, last = as_sink(sink, "create_view"), delivered(node, output)
    target.open({"out": last})
    return held_table(target, "out", last)
