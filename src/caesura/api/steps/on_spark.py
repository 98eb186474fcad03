"""The same plan on Spark: started, as one batch, or as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from caesura.api.planned import Planned
from caesura.errors import CaesuraError
from caesura.misuse import renamed
from caesura.plan import here
from caesura.runtime.query.result import Output, Result, delivered

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from caesura.io.sinks.protocol import Sink
    from caesura.plan import Duration, Speculate
    from caesura.spark import SparkQuery


class OnSpark(Planned):
    """The same plan on Spark: started, as one batch, or as a DataFrame."""

    @renamed(few="bounded_columns")
    def start(
        self,
        spark: SparkSession,
        *,
        sink: Sink | str | Path | None = None,
        checkpoint: str | Path | None = None,
        output: Output = "changes",
        speculate: Speculate | None = None,
        trigger: str = "continuous",
        files_per_epoch: int | None = None,
        bytes_per_epoch: int | None = None,
        feedback: bool = False,
        max_buckets: int | None = None,
        ahead: Duration | None = None,
        take_over: bool = False,
        allow_unbounded: bool = False,
        lifetimes: Mapping[str, int | Literal["finite"]] | None = None,
        bounded_columns: Mapping[str, Iterable[str]] | None = None,
        name: str | None = None,
        metrics_port: int | str | None = None,
    ) -> SparkQuery:
        """Starts the plan on Spark as one streaming query.

        ``sink`` is 'memory', 'console', a folder for Parquet files, or a sink of `caesura.spark`;
        ``trigger`` is 'continuous', 'available' (all there is now, then stop) or a time like '10 seconds'.
        An epoch takes at most ``files_per_epoch`` new files of each folder, or ``bytes_per_epoch`` of them.
        With ``feedback`` the running query can be spoken to: ``query.assume(...)`` and its like.
        A checkpoint can be spread over more partitions later, up to ``max_buckets``: `caesura rescale`.
        No folder of files is read further ``ahead`` of the slowest source, in event time, like '10m'.
        A checkpoint that another process goes on with is refused, unless you ``take_over``: that one can
        then write no more.
        A plan whose state would grow without bound is refused, unless ``allow_unbounded``, which warns
        of what will grow; ``lifetimes`` and ``bounded_columns`` say what `check` cannot see.
        ``name`` is what Spark's pages, metrics and logs call it. Metrics for Prometheus are served at
        ``metrics_port``, to this machine, or at an address like '0.0.0.0:9464'.
        """
        from caesura.contracts import require_safe
        from caesura.spark import start

        last = delivered(self.node, output)
        require_safe(
            last, allow_unbounded=allow_unbounded, lifetimes=lifetimes, bounded_columns=bounded_columns
        )

        return start(
            {"out": self.node},
            spark,
            sink=sink,
            checkpoint=checkpoint,
            output=output,
            speculate=speculate,
            trigger=trigger,
            files_per_epoch=files_per_epoch,
            bytes_per_epoch=bytes_per_epoch,
            feedback=feedback,
            max_buckets=max_buckets,
            ahead=ahead,
            take_over=take_over,
            name=name,
            metrics_port=metrics_port,
        )

    def run_batch(self, spark: SparkSession, *, output: Output = "changes") -> Result:
        """Runs the plan on Spark over all there is now, as one epoch."""
        from caesura.spark import run_batch

        return run_batch(self.node, spark, output=output)

    def create_view(
        self,
        spark: SparkSession,
        name: str,
        *,
        sink: Sink | str | Path | None = None,
        output: Output = "changes",
    ) -> None:
        """A temporary view of Spark SQL: the stream's history over all there is now, with LE and RE.

        With ``sink``, that of a query of this plan, or the folder that it writes to, the view is what the
        sink holds as of its last epoch: the table by key, or the history. Call it again to see later ones.
        """
        from caesura.spark import create_view

        try:
            create_view(self.node, spark, name, sink=sink, output=output)
        except CaesuraError as error:
            raise error.at("create_view", here()) from None

    def to_spark(
        self, spark: SparkSession, *, output: Output = "changes", loop_log: str | Path | None = None
    ) -> DataFrame:
        """The plan as a DataFrame of changes: kind, LE, RE, RE_new and the payload columns.

        A plan in which something goes backwards needs a ``loop_log``: a folder of this query's own.
        """
        from caesura.spark import to_spark

        return to_spark(self.node, spark, output=output, loop_log=loop_log)
