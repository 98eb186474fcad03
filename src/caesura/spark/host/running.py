"""Starting a plan on Spark, as a stream or as one batch, and watching it run."""

from __future__ import annotations

import dataclasses
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from caesura.contracts.check import require_all_safe
from caesura.errors import StreamError, looked_up
from caesura.events.identity import Secret
from caesura.events.paging import memory_size
from caesura.feedback.predicates import Meant
from caesura.io.places import Place
from caesura.io.places.lease import Lease
from caesura.io.sinks.keyed import netted_outputs, outputs_for
from caesura.io.sinks.protocol import Sink
from caesura.io.sources.source import Source
from caesura.misuse import renamed
from caesura.plan import Node, Speculate, here
from caesura.plan.duration import Duration, ticks
from caesura.plan.prune import prune
from caesura.punctuation import Intent
from caesura.runtime.buckets.labels import OUT
from caesura.runtime.durable.change import OnChange, check_choices
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.feedback.consumer import StandingFeedback
from caesura.runtime.metrics.plan_shape import PlanShape
from caesura.runtime.metrics.read_rate import ReadRate
from caesura.runtime.metrics.saved_status import save_shape, saved_board
from caesura.runtime.metrics.served import timed
from caesura.runtime.metrics.status import COURSE, Board, Status
from caesura.runtime.query.closing import Closing
from caesura.runtime.query.recorded_rows import RecordedRows
from caesura.runtime.query.result import Output, Result, delivered, pace_of
from caesura.runtime.sinks.held import held_table
from caesura.runtime.sinks.memory import MemorySink
from caesura.runtime.sinks.named import as_sink
from caesura.spark.errors import TRIES, asking_spark, not_started, ours, patiently
from caesura.spark.host.checkpoint import buckets_of, query_id, refuse_unknown, secret_of_checkpoint
from caesura.spark.host.connect import refuse_loop, refuse_sink
from caesura.spark.host.epoch_function import EpochFunction
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.frames import framed, hops
from caesura.spark.host.host import make_job, packets, refuse_idle_log
from caesura.spark.host.listening import RUNNING
from caesura.spark.host.moved import follow_move
from caesura.spark.host.observing import observed, told_by_name
from caesura.spark.host.part import SparkPart
from caesura.spark.host.read_files import check_folders, check_unchanged
from caesura.spark.host.replay import read_again_on_spark
from caesura.spark.host.shape import shape_of_job
from caesura.spark.host.source_log import check_logs, last_commit, last_offsets
from caesura.spark.host.speaking import CheckpointSpeaker
from caesura.spark.host.stepping import replay
from caesura.spark.host.switch import go_on
from caesura.spark.session import check_session, over_connect, retained_epochs
from caesura.spark.sinks.epochs import EpochWriter, check_form
from caesura.spark.worker.admission import EVERYTHING, EpochLimits
from caesura.spark.worker.chunk_files import FOLDER
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from caesura.console.web.own_page import OwnPage
    from caesura.console.web.server import ConsoleServer
    from caesura.console.web.stretch_rows import StretchRows
    from caesura.runtime.metrics.endpoint import MetricsEndpoint
    from caesura.runtime.metrics.figures import Figures
    from caesura.runtime.query.recording import Recording

T = TypeVar("T")
Begun = tuple["StreamingQuery", list[Exception]]
"""A query of Spark, and what goes wrong in its epochs on the driver, as ours."""
Trigger = Literal["continuous", "available"] | str
EDGE_ROWS = 200
"""So many of the last rows of each lane are read again for pages that show the rows between steps."""
log = logging.getLogger("caesura.spark")


class SparkQuery(Closing):
    """A query that runs on Spark; made by `Stream.start`, `Pipeline.start` and `Script.start`.

    ``with stream.start(...) as query: ...`` stops it at the end. ``active`` says whether it runs, ``name``
    what Spark calls it, ``sink`` where its output goes.
    """

    def __init__(
        self,
        query: StreamingQuery,
        sink: Sink,
        failures: list[Exception],
        consumer: CheckpointFeedback,
        outputs: Mapping[str, Node],
        lease: Lease | None = None,
        name: str = "",
        board: Callable[[], Board] | None = None,
    ) -> None:
        self.query = query
        self._board = board or (lambda: sink.board)
        self.name = name or str(query.id)
        """What Spark's pages, metrics and logs call it."""
        self.sink = sink
        self.outputs = outputs
        self.consumer = consumer
        self._lease = lease
        self._ended_by: Exception | None = None
        """Why it has ended, once somebody has asked."""
        if lease is not None:
            lease.needed = self._runs
        self._again: Callable[[], Begun] | None = None
        """Starts it anew on its checkpoint; None once it is to end."""
        self._starting, self._tries, self._written = Lock(), TRIES, -1
        self._failures = failures
        """What went wrong in an epoch on the driver, as ours."""
        self._began, self._rate = time.time(), ReadRate()
        self._endpoint: MetricsEndpoint | None = None
        self._parts: dict[int, dict[str, float]] = {}
        """What the last epochs spent their seconds on, as far as somebody asked."""
        self.shape = PlanShape(())
        """Its plan, in words."""
        self.planned = outputs
        """The plan as it was cut."""
        self.reread: Callable[[Node, int], Recording]
        """Reads so many of its last rows again, for a plan over its sources."""

    def wait(self, seconds: int | None = None) -> bool:
        """Waits for the end. A failure in a worker is raised as one of ours.

        Parameters
        ----------
        seconds
            For how long at most; by default for ever.

        Returns
        -------
        bool
            Whether the end has come.

        See Also
        --------
        caesura.spark.SparkQuery.drain : waits for what is there.
        caesura.spark.SparkQuery.stop : at once.
        caesura.spark.SparkQuery.finish : behind the epoch that is at work.
        caesura.Stream.start : a streaming query on Spark.

        Examples
        --------
        For all there is now::

            query = speeds.start(spark, sink="out/", checkpoint="state/", trigger="available")
            query.wait()
        """
        ended = self._asked(lambda: self._ended(seconds))
        if ended:
            self._leave()
        return ended

    def _ended(self, seconds: int | None) -> bool:
        return self._forever() if seconds is None else bool(self.query.awaitTermination(seconds))

    def _asked(self, call: Callable[[], T]) -> T:
        """What the query says, which may have ended meanwhile; asked again where it goes on."""
        while True:
            try:
                return call()
            except Exception as error:
                if not self._goes_on(error):
                    raise self._ours(error) from error

    def _goes_on(self, error: Exception) -> bool:
        """Starts a query anew that has ended since a busy machine did not start Python in time, a few times.

        Whoever asks does so, and so does whoever renews its lease.
        """
        if self._again is None or self._ended_by is not None or not not_started(error):
            return False
        with self._starting:
            if self.query.isActive:
                return True
            written = self.progress().get("batchId", -1)
            self._tries = TRIES if written != self._written else self._tries - 1
            self._written = written
            if self._tries <= 0:
                return False
            log.warning("Spark could not start Python in time; '%s' starts again", self.name)
            with asking_spark():
                self.query, self._failures = self._again()
        return True

    def _ours(self, error: Exception) -> Exception:
        """Why it has ended: if another start has taken over then that, whatever Spark stumbled on."""
        if self._ended_by is None:
            deposed = self._deposed(error)
            self._release()
            self._ended_by = deposed or (self._failures[-1] if self._failures else ours(error))
        return self._ended_by

    def _deposed(self, error: Exception) -> StreamError | None:
        """That another start has taken the checkpoint over, if it has and the checkpoint can be asked."""
        try:
            if self._lease is not None:
                self._lease.check()
        except StreamError as deposed:
            deposed.__cause__ = error
            return deposed
        except OSError:
            return None  # the place is out of reach: what happened says more
        return None

    def _release(self) -> None:
        """Gives the checkpoint back to whoever starts next."""
        if self._lease is not None:
            self._lease.release()

    def _forever(self) -> bool:
        self.query.awaitTermination()
        return True

    def _wait_for(self, file: Place) -> None:
        """Waits for a file that the query makes."""
        while not (file.is_file() or self.wait(1)):
            pass

    def drain(self) -> None:
        """Waits until everything that is there has been processed; the query runs on.

        See Also
        --------
        caesura.spark.SparkQuery.wait : waits for the end.
        caesura.spark.SparkQuery.stop : at once.
        caesura.spark.SparkQuery.finish : behind the epoch that is at work.

        Examples
        --------
        In a test::

            query.drain()
            print(cz.draw(query.sink.items()))
        """
        self._asked(lambda: self.query.processAllAvailable())

    def stop(self) -> None:
        """Stops at once; an epoch that is cut off runs again at the next start.

        See Also
        --------
        caesura.spark.SparkQuery.wait : waits for the end.
        caesura.spark.SparkQuery.drain : waits for what is there.
        caesura.spark.SparkQuery.finish : behind the epoch that is at work.
        caesura.spark.SparkQuery.close : what `with` calls.

        Examples
        --------
        At any time::

            query.stop()
        """
        self._again = None
        with asking_spark():
            self.query.stop()
        self._leave()

    def close(self) -> None:
        """Stops, as ``stop()``; what ``with`` calls at the end.

        See Also
        --------
        caesura.spark.SparkQuery.stop : at once.

        Examples
        --------
        Without calling it::

            with speeds.start(spark, sink="memory") as query:
                query.drain()
        """
        self.stop()

    def _leave(self) -> None:
        """Ended as it should. The metrics of a query that failed say so until the process ends."""
        self._release()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    def finish(self, seconds: float = 60.0) -> None:
        """Stops behind the epoch that is at work.

        Parameters
        ----------
        seconds
            For how long that is waited for at most.

        See Also
        --------
        caesura.spark.SparkQuery.wait : waits for the end.
        caesura.spark.SparkQuery.drain : waits for what is there.
        caesura.spark.SparkQuery.stop : at once.

        Examples
        --------
        Before a new version is started::

            query.finish()
        """
        deadline, before = time.monotonic() + seconds, self.progress().get("batchId", -1)
        while self.active and time.monotonic() < deadline:
            with asking_spark():
                works = bool(self.query.status["isTriggerActive"])
            if not works or self.progress().get("batchId", -1) != before:
                break
            time.sleep(0.05)
        self.stop()

    def serve_metrics(self, port: int | str = 9464) -> MetricsEndpoint:
        """Serves metrics for Prometheus at the driver, and whether the query is alive and ready.

        Parameters
        ----------
        port
            A port, 0 for any that is free; ``"0.0.0.0:9464"`` lets other machines ask.

        Returns
        -------
        MetricsEndpoint
            Its ``url``; ``close()`` ends it.

        See Also
        --------
        caesura.spark.SparkQuery.status : how the query stands.
        caesura.spark.SparkQuery.progress : what Spark says.
        caesura.spark.SparkQuery.watch : the query in the terminal.
        caesura.spark.SparkQuery.console : pages that show the query.

        Examples
        --------
        Of a query that runs::

            print(query.serve_metrics(9464).url)
        """
        from caesura.runtime.metrics.endpoint import MetricsEndpoint

        self._endpoint = MetricsEndpoint(self._figures, port)
        return self._endpoint

    @property
    def metrics_url(self) -> str:
        """Where its metrics are, if they are served."""
        return "" if self._endpoint is None else self._endpoint.url

    def _figures(self) -> Figures:
        from caesura.runtime.metrics.figures import Figures

        durations = self.progress().get("durationMs", {})
        return Figures(
            self.name,
            self.status(),
            active=self._runs(),
            timed=timed(self.outputs.values()),
            began=self._began,
            starts=1 if self._lease is None else self._lease.number,
            parts={part: ms / 1000 for part, ms in durations.items()},
            buckets=self._board().buckets(),
        )

    @property
    def active(self) -> bool:
        """Whether it still runs."""
        with asking_spark():
            if self.query.isActive:
                return True
            error = None if self._again is None else self.query.exception()
            return error is not None and self._goes_on(error)

    def _runs(self) -> bool:
        """Whether it needs its checkpoint; a JVM that is gone runs nothing."""
        try:
            return self.active
        except StreamError:
            return False

    def table(self, output: str = "out") -> pa.Table:
        """What the sink holds as of its last epoch.

        Parameters
        ----------
        output
            The output: ``"out"``, or a view.

        Returns
        -------
        pyarrow.Table
            A table by key, or a history with LE and RE.

        See Also
        --------
        caesura.Stream.create_view : a view of Spark SQL.

        Examples
        --------
        Of a query that runs::

            query.table().to_pandas()
        """
        return held_table(self.sink, output, looked_up(self.outputs, output, "output", "table"))

    def assume(self, what: Meant, *, output: str | None = None) -> StandingFeedback:
        """These rows will be ignored: from the next epoch on, steps need not make them.

        Parameters
        ----------
        what
            A predicate of the output's columns, ``col("id") == 4``, its text, or a `cz.Pattern`.
        output
            Which output; needed only where there are several.

        Returns
        -------
        StandingFeedback
            What ``withdraw`` takes.

        See Also
        --------
        caesura.spark.SparkQuery.desire : rows that are wanted first.
        caesura.spark.SparkQuery.demand : rows that are wanted now.
        caesura.spark.SparkQuery.withdraw : feedback taken back.
        caesura.spark.SparkQuery.feedback : the feedback that stands.
        caesura.spark.SparkQuery.speaker : feedback as texts.

        Examples
        --------
        Of a query that was started with ``feedback=True``::

            told = query.assume("segment <> 1")
            query.withdraw(told)
        """
        return self.consumer.give(Intent.ASSUMED, what, output)

    def desire(self, what: Meant, *, output: str | None = None) -> StandingFeedback:
        """These rows first, where rows wait.

        Parameters
        ----------
        what
            A predicate of the output's columns, its text, or a `cz.Pattern`.
        output
            Which output; needed only where there are several.

        Returns
        -------
        StandingFeedback
            What ``withdraw`` takes.

        See Also
        --------
        caesura.spark.SparkQuery.assume : rows that will be ignored.
        caesura.spark.SparkQuery.demand : rows that are wanted now.
        caesura.spark.SparkQuery.withdraw : feedback taken back.
        caesura.spark.SparkQuery.feedback : the feedback that stands.

        Examples
        --------
        Of a query that was started with ``feedback=True``::

            query.desire("segment = 1")
        """
        return self.consumer.give(Intent.DESIRED, what, output)

    def demand(self, what: Meant = True, *, output: str | None = None) -> None:
        """What there is of these rows now, marked as partial.

        Parameters
        ----------
        what
            A predicate of the output's columns, its text, or a `cz.Pattern`; ``True`` for all.
        output
            Which output; needed only where there are several.

        See Also
        --------
        caesura.spark.SparkQuery.assume : rows that will be ignored.
        caesura.spark.SparkQuery.desire : rows that are wanted first.
        caesura.spark.SparkQuery.withdraw : feedback taken back.
        caesura.spark.SparkQuery.feedback : the feedback that stands.

        Examples
        --------
        Of a query that was started with ``feedback=True``::

            query.demand("segment = 1")
        """
        self.consumer.demand(what, output)

    @renamed(spoken="feedback")
    def withdraw(self, feedback: StandingFeedback | int) -> None:
        """Takes feedback back; what lost rows by it stays suppressed until it is closed.

        Parameters
        ----------
        feedback
            What ``assume`` or ``desire`` gave, or its number.

        See Also
        --------
        caesura.spark.SparkQuery.assume : rows that will be ignored.
        caesura.spark.SparkQuery.desire : rows that are wanted first.
        caesura.spark.SparkQuery.demand : rows that are wanted now.
        caesura.spark.SparkQuery.feedback : the feedback that stands.

        Examples
        --------
        Of a query that was started with ``feedback=True``::

            query.withdraw(1)
        """
        self.consumer.withdraw(feedback)

    def feedback(self) -> list[str]:
        """The feedback that stands, and what is still suppressed as of the last epoch.

        Returns
        -------
        list of str
            A line for each, with its number.

        See Also
        --------
        caesura.spark.SparkQuery.assume : rows that will be ignored.
        caesura.spark.SparkQuery.desire : rows that are wanted first.
        caesura.spark.SparkQuery.demand : rows that are wanted now.
        caesura.spark.SparkQuery.withdraw : feedback taken back.

        Examples
        --------
        Of a query that was started with ``feedback=True``::

            print(query.feedback())
        """
        return self.consumer.standing()

    def speaker(self) -> CheckpointSpeaker:
        """Takes feedback as texts of SQL: for pages, and whoever else has words only.

        Returns
        -------
        CheckpointSpeaker
            It assumes, desires, demands and withdraws by text.

        See Also
        --------
        caesura.spark.SparkQuery.assume : rows that will be ignored.

        Examples
        --------
        Of a query that was started with ``feedback=True``::

            speaker = query.speaker()
        """
        return CheckpointSpeaker(self.consumer)

    def progress(self) -> dict[str, Any]:
        """What Spark says of the last epoch.

        Returns
        -------
        dict
            Spark's own: durations, offsets, its state store; ``observedMetrics`` by name, in a classic
            session and over Spark Connect. Empty before the first epoch.

        See Also
        --------
        caesura.spark.SparkQuery.status : how the query stands.
        caesura.spark.SparkQuery.watch : the query in the terminal.
        caesura.spark.SparkQuery.console : pages that show the query.
        caesura.spark.SparkQuery.serve_metrics : figures for Prometheus.

        Examples
        --------
        Of a query that runs::

            query.progress()["durationMs"]
        """
        with asking_spark():
            last = self.query.lastProgress
        if last is None:
            return {}
        return {**last, "observedMetrics": told_by_name(last.get("observedMetrics", {}))}

    def _epoch_parts(self) -> dict[int, dict[str, float]]:
        """What each of the last epochs spent its seconds on, as Spark tells."""
        last = self.progress().get("batchId", -1)
        if last not in self._parts:
            with asking_spark():
                recent = [dict(one) for one in self.query.recentProgress]
            for one in recent:
                spent = {part: ms / 1000 for part, ms in one["durationMs"].items()}
                if "addBatch" in spent:
                    self._parts[one["batchId"]] = spent
            self._parts = dict(sorted(self._parts.items())[-COURSE:])
            self._parts.setdefault(last, {})
        return self._parts

    def status(self) -> Status:
        """How the query stands, for each source and step, as a query in this process tells it too.

        Returns
        -------
        Status
            Rows, state, promises and rates; ``to_json()`` for programs.

        See Also
        --------
        caesura.spark.SparkQuery.progress : what Spark says.
        caesura.spark.SparkQuery.watch : the query in the terminal.
        caesura.spark.SparkQuery.console : pages that show the query.
        caesura.spark.SparkQuery.serve_metrics : figures for Prometheus.

        Examples
        --------
        Of a query that runs::

            query.status().rows_per_second
        """
        status, last = self._board().status(), self.progress()
        if not last:
            return status
        rate = self._rate.of(sum(source.rows for source in status.sources.values()))
        seconds = last["durationMs"].get("triggerExecution", 0) / 1000
        return dataclasses.replace(status, epoch=last["batchId"], seconds=seconds, rows_per_second=rate)

    def console(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        password_file: str | Path | None = None,
        proxy: str | None = None,
        read_only: bool = False,
        open_page: bool = True,
        pages: Sequence[OwnPage] = (),
    ) -> ConsoleServer:
        """Serves pages that show the query as it runs, and opens them in the browser.

        Parameters
        ----------
        port
            A port, 0 for any that is free.
        host
            Who may look: this machine alone, unless it is another address; then a ``password_file`` is
            needed.
        password_file
            A file with the password.
        read_only
            Whether the pages can send no feedback.
        open_page
            Whether the browser is opened.
        proxy
            Or the header that a proxy sets and where it asks from: ``"X-Forwarded-User@10.0.0.5"``.
        pages
            Pages of your own beside them; the first is opened.

        Returns
        -------
        ConsoleServer
            Its ``url``; ``close()`` ends it. Needs the extra ``console``.

        See Also
        --------
        caesura.spark.SparkQuery.status : how the query stands.
        caesura.spark.SparkQuery.progress : what Spark says.
        caesura.spark.SparkQuery.watch : the query in the terminal.
        caesura.spark.SparkQuery.serve_metrics : figures for Prometheus.
        caesura.spark.SparkQuery.replay : a stretch of its input.

        Examples
        --------
        Of a query that runs::

            served = query.console()
        """
        from caesura.console.web.opening import opened
        from caesura.console.web.sink_folder import SinkFolder
        from caesura.console.web.watched import Watched
        from caesura.console.web.written_times import WrittenTimes

        speaker = self.speaker() if self.consumer.reached else None
        folder = SinkFolder(self.sink.folder) if self.sink.folder else None
        times = WrittenTimes(self.shape, self._board, folder, self._epoch_parts)
        watched = Watched(
            self.name,
            self.shape,
            self._figures,
            "on Spark",
            self._stretch_rows().rows,
            speaker,
            self.outputs,
            tracer=lambda rows, assumed: self.replay().trace(rows, assume=assumed or None),
            stretch=self.replay,
            times=times,
            pages=tuple(pages),
        )
        return opened(
            watched,
            host=host,
            port=port,
            password_file=password_file,
            proxy=proxy,
            read_only=read_only,
            open_page=open_page,
        )

    def replay(self, rows: int = 2_000, *, output: str | None = None) -> Recording:
        """The last rows that the query has read, read again from its sources: a stretch to look into.

        The plan runs over them in this process, from an empty state; the query runs on.

        Parameters
        ----------
        rows
            How many of each lane, or of the files of the last epochs.
        output
            The output whose plan runs over them; by default the first.

        Returns
        -------
        caesura.runtime.Recording
            What can be traced, stepped through, compared and saved as a test.

        See Also
        --------
        caesura.spark.SparkQuery.console : pages that show the query.

        Examples
        --------
        Of a query that runs::

            query.replay(rows=500).save_test("tests/test_speeds.py", stream="flow.py:speeds")
        """
        chosen = output or next(iter(self.outputs))
        looked_up(self.outputs, chosen, "output", "replay")
        return self.reread(prune(self.outputs)[chosen], rows)

    def _stretch_rows(self) -> StretchRows:
        from caesura.console.web.stretch_rows import StretchRows

        return StretchRows(self.planned, lambda output: self.reread(self.planned[output], EDGE_ROWS))

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def watch(self, every: float = 0.5) -> None:
        """Shows the query in the terminal until it ends or is interrupted.

        Parameters
        ----------
        every
            After how many seconds the view is drawn anew.

        See Also
        --------
        caesura.spark.SparkQuery.status : how the query stands.
        caesura.spark.SparkQuery.progress : what Spark says.
        caesura.spark.SparkQuery.console : pages that show the query.
        caesura.spark.SparkQuery.serve_metrics : figures for Prometheus.

        Examples
        --------
        Of a query that runs::

            query.watch()
        """
        from caesura.console.live import watch

        watch(self.status, lambda: self.active, every=every)
        if not self.active:
            self.wait()


def start(
    outputs: Mapping[str, Node],
    spark: SparkSession,
    *,
    sink: Sink | str | Path | None = None,
    checkpoint: str | Path | None = None,
    output: Output = "changes",
    speculate: Speculate | None = None,
    trigger: Trigger = "continuous",
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
    """Starts a plan with several outputs as one streaming query; `Stream.start` calls it.

    Parameters
    ----------
    outputs
        The last step of each output, by name: ``{"out": stream.node}``.
    spark
        The session.
    sink
        As in `Stream.start`.
    checkpoint
        As in `Stream.start`.
    output
        As in `Stream.start`.
    speculate
        As in `Stream.start`.
    trigger
        As in `Stream.start`.
    files_per_epoch
        As in `Stream.start`.
    bytes_per_epoch
        As in `Stream.start`.
    feedback
        As in `Stream.start`.
    max_buckets
        As in `Stream.start`.
    ahead
        As in `Stream.start`.
    take_over
        As in `Stream.start`.
    on_change
        As in `Stream.start`.
    final_rows
        As in `Stream.start`.
    state_memory
        As in `Stream.start`.
    record
        As in `Stream.start`.
    allow_unbounded
        As in `Stream.start`.
    lifetimes
        As in `Stream.start`.
    bounded_columns
        As in `Stream.start`.
    name
        As in `Stream.start`.
    metrics_port
        As in `Stream.start`.

    Returns
    -------
    caesura.spark.SparkQuery
        The query that runs.

    See Also
    --------
    caesura.Stream.start : a streaming query on Spark.

    Examples
    --------
    With a session at hand::

        query = start({"slow": slow.node, "fast": fast.node}, spark, sink="out/", checkpoint="state/")
    """
    given = {name: delivered(node, output) for name, node in outputs.items()}
    require_all_safe(
        given.values(),
        allow_unbounded=allow_unbounded,
        lifetimes=lifetimes,
        bounded_columns=bounded_columns,
    )
    check_choices(on_change, final_rows)
    target = as_sink(sink, "start")
    check_form(target, output)
    refuse_sink(spark, target)
    target.reach()
    _refuse_running(spark, name)
    place = None if checkpoint is None else Place.of(checkpoint).absolute().reach()
    partitions = check_session(spark)
    limits = EpochLimits(files_per_epoch, bytes_per_epoch)
    chosen = pace_of(output, speculate)
    nodes = outputs_for(target, given)
    place = place or Place.of(tempfile.mkdtemp(prefix="caesura-checkpoint-"))
    part = SparkPart.of(place)
    query_id(part.folder)  # one that is cut off would be Spark's own error
    bound = None if ahead is None else ticks(ahead, next(iter(nodes.values())).time, "bound on reading ahead")
    cut = partial(make_job, nodes, speculate=chosen, closes=False, takes_feedback=feedback, ahead=bound)
    job = cut(buckets_of(place, partitions, max_buckets), loop=f"{part.folder}/loop")
    refuse_loop(spark, job, "start")
    lease = Lease.take(place, take_over=take_over)
    try:
        refuse_unknown(place, last_offsets(place))
        check_logs(part.folder)
        check_folders(part, job)
        if on_change != "rebuild":
            check_unchanged(part, job)
        follow_move(part.folder)
        secret = secret_of_checkpoint(place)
        job, part = go_on(part, job, nodes, target, partitions, on_change, cut, final_rows)
        shape = shape_of_job(job.stages, job.buckets)
        save_shape(place, shape, name=name or "", timed=timed(nodes.values()), folder=target.folder)
        bytes_held = None if state_memory is None else memory_size(state_memory)
        ring = None if record is None else RecordedRows.at(part.folder, record)
        if ring is not None:
            ring.forget_behind(last_commit(part.folder))
        job = dataclasses.replace(
            job, secret=secret, fence=lease.number, state_memory=bytes_held, recorded=ring
        )
        if part.like is not None:
            ready = _ready(job, nodes, spark, target, part, wakes=False)
            part = replay(part, ready, nodes, spark)
            job = dataclasses.replace(job, replayed=part.replayed)
        options: dict[str, Any] = {"trigger": trigger, "limits": limits, "lease": lease, "name": name or ""}
        made = launch(job, nodes, spark, target, part, **options)
    except BaseException:
        lease.release()
        raise
    made.shape = shape
    if part.becomes is not None:
        made._wait_for(part.folder / "commits" / str(part.replayed))
    if metrics_port is not None:
        made.serve_metrics(metrics_port)
    return made


def _refuse_running(spark: SparkSession, name: str | None) -> None:
    """Refuses the name of a query that runs in this session."""
    if name is not None and any(query.name == name for query in spark.streams.active):
        raise StreamError(
            f"a query called '{name}' runs in this session already.",
            remedy="Stop it, or give this one another name=.",
        ).at("start", here())


def _ready(
    job: Job, nodes: Mapping[str, Node], spark: SparkSession, target: Sink, part: SparkPart, *, wakes: bool
) -> Job:
    """A job that knows where its state goes, and what of its output."""
    netted = {OUT + name: layout for name, layout in netted_outputs(target, nodes).items()}
    chunks, retained = f"{part.folder}/{FOLDER}", retained_epochs(spark)
    wakes = wakes and bool(job.loop)
    return dataclasses.replace(job, wakes=wakes, netted=netted, chunks=chunks, retained=retained)


def launch(
    job: Job,
    nodes: Mapping[str, Node],
    spark: SparkSession,
    target: Sink,
    part: SparkPart,
    *,
    trigger: Trigger = "continuous",
    limits: EpochLimits = EVERYTHING,
    lease: Lease | None = None,
    name: str = "",
) -> SparkQuery:
    """Starts a plan that is cut already."""
    job = _ready(job, nodes, spark, target, part, wakes=trigger != "available")

    def begin() -> Begun:
        frame = observed(packets(spark, job, streaming=True, limits=limits), job, own=True)
        writer, away = EpochWriter.of(target, nodes, job.buckets, part.checkpoint), over_connect(spark)
        part.enter(target)
        epoch = EpochFunction.of(writer, part, job, name, away=away)
        stream = _triggered(frame.writeStream.outputMode("append").foreachBatch(epoch), trigger)
        stream = stream.option("checkpointLocation", part.folder.hadoop)
        stream = stream.queryName(name) if name else stream
        with hops(spark, job):
            query = stream.start()
        if not away:
            writer.attach(str(query.id))
        return query, epoch.failures

    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)  # it repeats what is raised anyway
    away = over_connect(spark)
    with asking_spark():
        query, failures = patiently(begin)
    log.info("started on %s", part.checkpoint, extra={"query": name or str(query.id)})
    board = partial(saved_board, part.checkpoint) if away else lambda: target.board
    feedback = CheckpointFeedback.of(job, nodes)
    made = SparkQuery(query, target, failures, feedback, nodes, lease, name, board=board)
    made._again = partial(patiently, begin)
    made.planned = job.stages.outputs
    made.reread = partial(read_again_on_spark, part, job)
    RUNNING[str(query.id)] = made
    return made


def _triggered(stream: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    if trigger == "available":
        return stream.trigger(availableNow=True)
    return stream if trigger == "continuous" else stream.trigger(processingTime=trigger)


def run_all(
    outputs: Mapping[str, Node],
    spark: SparkSession,
    *,
    output: Output = "changes",
    speculate: Speculate | None = None,
) -> dict[str, Result]:
    """Runs several outputs of a plan over all there is now, as one epoch that is also the last.

    Parameters
    ----------
    outputs
        The last step of each output, by name: ``{"out": stream.node}``.
    spark
        The session.
    output
        What is taken of the streams, as in `Stream.run`.
    speculate
        When windows speak, as in `Stream.run`.

    Returns
    -------
    dict of str to Result
        What came out, by output.

    See Also
    --------
    caesura.spark.run_batch : a plan as one epoch.

    Examples
    --------
    With a session at hand::

        results = run_all({"slow": slow.node, "fast": fast.node}, spark)
    """
    buckets = check_session(spark)
    chosen = pace_of(output, speculate)
    nodes = {name: delivered(node, output) for name, node in outputs.items()}
    job = make_job(nodes, buckets, speculate=chosen, closes=True, secret=Secret.drawn())
    frame = packets(spark, job, streaming=False, limits=EVERYTHING)

    def written() -> MemorySink:
        sink = MemorySink()
        EpochWriter.of(sink, nodes, buckets).write(0, frame)
        return sink

    with asking_spark():
        sink = patiently(written)
    late, counted = sink.late(), sink.board.status().counters()
    return {name: Result(sink.items(name), node, late, counted) for name, node in outputs.items()}


def run_batch(
    node: Node, spark: SparkSession, *, output: Output = "changes", speculate: Speculate | None = None
) -> Result:
    """Runs a plan over all there is now, as one epoch that is also the last; `Stream.run_batch` calls it.

    Parameters
    ----------
    node
        The last step: ``stream.node``.
    spark
        The session.
    output
        What is taken of the stream, as in `Stream.run`.
    speculate
        When windows speak, as in `Stream.run`.

    Returns
    -------
    Result
        What came out.

    See Also
    --------
    caesura.Stream.run_batch : one epoch on Spark.
    caesura.spark.run_all : several outputs as one epoch.

    Examples
    --------
    With a session at hand::

        print(run_batch(speeds.node, spark))
    """
    return run_all({"out": node}, spark, output=output, speculate=speculate)["out"]


def to_spark(
    node: Node,
    spark: SparkSession,
    *,
    output: Output = "changes",
    speculate: Speculate | None = None,
    loop_log: str | Path | None = None,
) -> DataFrame:
    """A plan as a DataFrame of changes; `Stream.to_spark` calls it.

    Parameters
    ----------
    node
        The last step: ``stream.node``.
    spark
        The session.
    output
        What is taken of the stream, as in `Stream.run`.
    speculate
        When windows speak, as in `Stream.run`.
    loop_log
        A folder of this query's own, needed by a plan in which something goes backwards.

    Returns
    -------
    pyspark.sql.DataFrame
        ``kind``, ``LE``, ``RE``, ``RE_new`` and the payload columns.

    See Also
    --------
    caesura.Stream.to_spark : a DataFrame of changes.

    Examples
    --------
    With a session at hand::

        to_spark(speeds.node, spark).writeStream.format("console").start()
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from caesura.io.sinks.rows import row_schema
    from caesura.spark.worker.decode import decoder

    log = "" if loop_log is None else str(Place.of(loop_log).absolute().reach())
    buckets = check_session(spark)
    chosen = pace_of(output, speculate)
    last = delivered(node, output)
    streaming = _streaming(node)
    secret = None if streaming else Secret.drawn()
    own: dict[str, Any] = {"closes": not streaming, "loop": log if streaming else "", "secret": secret}
    job = make_job({"out": last}, buckets, speculate=chosen, **own)
    job = dataclasses.replace(job, partitions=buckets if streaming else 0)
    refuse_loop(spark, job, "to_spark")
    refuse_idle_log(job, log)
    with asking_spark():
        made = patiently(lambda: packets(spark, job, streaming=streaming, limits=EVERYTHING))
        frame = observed(made, job, own=False)
    schema = from_arrow_schema(row_schema(node.schema, node.time))
    return frame.filter("stage = 0").mapInArrow(decoder(node.schema, node.time), schema)


def _streaming(node: Node) -> bool:
    if isinstance(node, Source) and node.reader.spark_form == "frame":
        return framed(node.reader).streaming
    return any(_streaming(child) for child in node.inputs)
