"""The same plan on Spark: started, as one batch, or as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from caesura.api.planned import Planned
from caesura.errors import CaesuraError
from caesura.misuse import renamed
from caesura.plan import here
from caesura.runtime.query.result import Output, Result

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from caesura.io.sinks.protocol import Sink
    from caesura.plan import Duration, Speculate
    from caesura.runtime.durable.change import OnChange
    from caesura.runtime.durable.corrections import FinalRows
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
        on_change: OnChange = "refuse",
        final_rows: FinalRows = "refuse",
        state_memory: int | str | None = None,
        record: Duration | None = None,
        allow_unbounded: bool = False,
        lifetimes: Mapping[str, Duration | Literal["finite"]] | None = None,
        bounded_columns: Mapping[str, Iterable[str]] | None = None,
        name: str | None = None,
        metrics_port: int | str | None = None,
    ) -> SparkQuery:
        """Starts the plan on Spark as one streaming query.

        Parameters
        ----------
        spark
            The session, for example of `cz.session()`.
        sink
            ``"memory"``, ``"console"``, a folder for Parquet files, or a sink of `caesura.spark`.
        checkpoint
            A folder that Spark keeps offsets and state in; the query goes on from there. Without one it is
            temporary.
        output
            What is taken of the stream, as in `run`.
        speculate
            When windows speak, as in `run`.
        trigger
            ``"continuous"``, ``"available"`` (all there is now, then stop), or a time like ``"10
            seconds"``.
        files_per_epoch
            How many new files of each folder an epoch takes at most.
        bytes_per_epoch
            Or how many bytes of them.
        feedback
            Whether the running query can be spoken to: ``query.assume(...)`` and its like.
        max_buckets
            Over how many partitions the checkpoint can be spread later, by ``caesura rescale``.
        ahead
            How far ahead of the slowest source, in event time, a folder of files is read at most, like
            ``"10m"``.
        take_over
            Whether a checkpoint that another process goes on with is taken from it: that one can then write
            no more.
        on_change
            Where the checkpoint is of another plan: ``"refuse"``; ``"continue"``, state that fits is kept
            and the new plan holds from the next epoch on; or ``"rebuild"``, the sources are read again as
            far as they were, and the output is corrected to what the new plan would have given. The same
            plan is rebuilt where a file that was read has been written anew, which is refused otherwise.
        final_rows
            Where a rebuild would touch rows that were final: ``"refuse"`` lists them, ``"keep"`` leaves
            them, ``"new_generation"`` begins the whole output anew beside the old.
        state_memory
            Of the texts and other wide values that a bucket holds, how much lies in memory, like
            ``"1 GB"``; the rest lies on the worker's disk. Without it, all lie in memory.
        record
            For how long, like ``"10m"``, rows that come in are kept beside the checkpoint, at most 64 MB of
            them, so that ``query.replay()`` has a stretch of rows that cannot be read again.
        allow_unbounded
            Whether a plan whose state would grow without bound is started all the same, with a warning of
            what will grow; by default it is refused.
        lifetimes
            By source, how long its events live at most, where `check` cannot know.
        bounded_columns
            By source, which columns have a bounded set of values.
        name
            What Spark's pages, metrics and logs call it.
        metrics_port
            Where metrics for Prometheus are served, to this machine; or an address like ``"0.0.0.0:9464"``.

        Returns
        -------
        caesura.spark.SparkQuery
            The query that runs.

        See Also
        --------
        Stream.run : run to the end, in this process.
        Stream.query : a query that is fed and stepped.
        Stream.preview : the first rows.
        Stream.run_batch : one epoch on Spark.
        Stream.to_spark : a DataFrame of changes.
        Stream.create_view : a view of Spark SQL.
        session : a SparkSession set as Caesura needs it.
        caesura.spark.SparkQuery.wait : waits for the end.
        caesura.spark.start : a plan with several outputs.

        Examples
        --------
        The same plan as in this process::

            query = speeds.start(cz.session(), sink="out/", checkpoint="state/", trigger="available")
            query.finish()
        """
        from caesura.spark import start

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
            on_change=on_change,
            final_rows=final_rows,
            state_memory=state_memory,
            record=record,
            allow_unbounded=allow_unbounded,
            lifetimes=lifetimes,
            bounded_columns=bounded_columns,
            name=name,
            metrics_port=metrics_port,
        )

    def run_batch(self, spark: SparkSession, *, output: Output = "changes") -> Result:
        """Runs the plan on Spark over all there is now, as one epoch.

        Parameters
        ----------
        spark
            The session.
        output
            What is taken of the stream, as in `run`.

        Returns
        -------
        Result
            What `run` would give in this process.

        See Also
        --------
        Stream.start : a streaming query on Spark.
        Stream.to_spark : a DataFrame of changes.
        Stream.create_view : a view of Spark SQL.
        caesura.spark.run_batch : a plan as one epoch.

        Examples
        --------
        It answers as `run` does, from Spark's workers::

            print(speeds.tumbling(10).agg(n=cz.count()).run_batch(cz.session()))
        """
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
        """A temporary view of Spark SQL: the stream's history, with LE and RE.

        Parameters
        ----------
        spark
            The session.
        name
            What the view is called.
        sink
            The sink of a query of this plan, or the folder that it writes to: then the view is what that
            holds as of its last epoch, the table by key or the history. Call it again to see later ones.
            Without it the plan runs over all there is now.
        output
            What is taken of the stream, as in `run`.

        See Also
        --------
        Stream.start : a streaming query on Spark.
        Stream.run_batch : one epoch on Spark.
        Stream.to_spark : a DataFrame of changes.
        caesura.spark.SparkQuery.table : what the sink holds.
        caesura.spark.create_view : a plan as a view.

        Examples
        --------
        From then on SQL reads it::

            speeds.create_view(spark, "speeds", sink="out/")
            spark.sql("SELECT * FROM speeds WHERE RE IS NULL").show()
        """
        from caesura.spark import create_view

        try:
            create_view(self.node, spark, name, sink=sink, output=output)
        except CaesuraError as error:
            raise error.at("create_view", here()) from None

    def to_spark(
        self, spark: SparkSession, *, output: Output = "changes", loop_log: str | Path | None = None
    ) -> DataFrame:
        """The plan as a DataFrame of changes.

        Parameters
        ----------
        spark
            The session.
        output
            What is taken of the stream, as in `run`.
        loop_log
            A folder of this query's own, needed by a plan in which something goes backwards: feedback, or a
            loop over several buckets.

        Returns
        -------
        pyspark.sql.DataFrame
            ``kind``, ``LE``, ``RE``, ``RE_new`` and the payload columns; streaming where a source is.

        Notes
        -----
        The checkpoint is Spark's alone. What the state itself says is compared in the first epoch: another
        plan, another number of ``spark.sql.shuffle.partitions`` and another query's checkpoint are refused
        there by name, as `start` refuses them before. Where a busy machine does not start Python in time,
        start the query again: nothing is lost.

        See Also
        --------
        Stream.start : a streaming query on Spark.
        Stream.run_batch : one epoch on Spark.
        Stream.create_view : a view of Spark SQL.
        caesura.spark.to_spark : a plan as a DataFrame.

        Examples
        --------
        Any sink of Spark takes it::

            changes = speeds.to_spark(spark)
            changes.writeStream.format("console").start()
        """
        from caesura.spark import to_spark

        return to_spark(self.node, spark, output=output, loop_log=loop_log)
