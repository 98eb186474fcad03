"""A plan as one Structured Streaming query: a chain of stages over packets, one action per epoch."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.identity import Secret
from caesura.io.sources.protocol import ListedFiles
from caesura.io.sources.source import Source
from caesura.ops.observe import refuse_observed_twice
from caesura.ops.pass_through import PassThrough
from caesura.plan import Node, Speculate, here, walk
from caesura.plan.cut import Stages, cut
from caesura.plan.prune import prune
from caesura.runtime.buckets.clock import clock_readings, listening, period
from caesura.spark.errors import asking_spark
from caesura.spark.host.frames import framed
from caesura.spark.host.table_files import send_tables
from caesura.spark.session import check_session
from caesura.spark.worker.admission import EpochLimits
from caesura.spark.worker.job import PACKETS, Job, as_batch
from caesura.spark.worker.priority import reorders
from caesura.spark.worker.reading import packets_of, read_files, reading, resume
from caesura.spark.worker.shipped import ShippedJob
from caesura.udm import homes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LISTING = "path string, modificationTime timestamp_ltz, length long, content binary"
"""As the file source has it, whatever a plain `timestamp` means to the session."""


def make_job(
    outputs: Mapping[str, Node],
    buckets: int,
    *,
    speculate: Speculate,
    closes: bool,
    name: str = "",
    loop: str = "",
    takes_feedback: bool = False,
    ahead: int | None = None,
    secret: Secret | None = None,
) -> Job:
    """A plan, cut for a number of buckets; ``loop`` is where its loop log lies, if it needs one.

    It does where anything goes backwards, its consumer will be ``heard``, or files wait for slower sources.
    """
    _ship_modules(outputs)
    stages = cut(prune(outputs), buckets)
    refuse_observed_twice(walk(*stages.outputs.values()))
    for source in stages.sources:
        _refuse_mode(_checked(source), streaming=not closes)
    if closes:
        _refuse_batch_loop(stages)
    if stages.backward and not loop and not closes:
        raise PlanError(
            "something goes back to an earlier stage (a loop, feedback, ahead=), and needs a folder.",
            remedy="Use start(spark, checkpoint=...), or give to_spark(spark, loop_log=...) a folder.",
        )
    if ahead is not None and ahead < 0:
        raise PlanError(
            f"no source can be read {ahead} ticks ahead of the slowest.", remedy="Give 0 or more, like '10m'."
        )
    ahead = ahead if len(stages.sources) > 1 else None
    log = loop if stages.backward or takes_feedback or ahead is not None else ""
    priorities = takes_feedback or any(node.sends_feedback for stage in stages.stages for node in stage.nodes)
    return Job(
        name or uuid.uuid4().hex, stages, buckets, speculate, closes, log, ahead, priorities, secret=secret
    )


def _refuse_mode(source: Source, *, streaming: bool) -> None:
    """Refuses a DataFrame that Spark would not run so: a batch in a stream, a stream in a batch.

    Nor does a stream of Spark's read on in a file that has grown.
    """
    if streaming and source.reader.appended:
        raise PlanError(
            f"'{source.step}' is read with appended=True, and Spark reads a file once: what is appended to "
            "one that was read would be left out.",
            remedy="Have new rows written to new files; or run it in this process: query(checkpoint=...).",
            step=source.step,
            place=source.place,
        )
    if source.reader.spark_form != "frame" or framed(source.reader).streaming == streaming:
        return
    if streaming:
        problem = f"'{source.step}' reads a batch DataFrame, and a streaming query waits for more"
        remedy = "Read it with spark.readStream; or take run_batch(spark) for what is there now."
    else:
        problem = f"'{source.step}' reads a streaming DataFrame, and a batch ends with what is there now"
        remedy = (
            "Use start(spark, ...), with trigger='available' to stop at the end of the input; or read it "
            "with spark.read in the place of spark.readStream."
        )
    raise PlanError(f"{problem}.", remedy=remedy, step=source.step, place=source.place)


def _refuse_batch_loop(stages: Stages) -> None:
    """Refuses a batch that would go around: it is one epoch.

    Steps that send feedback to save work, as `pace` does, give the same without anybody who hears it.
    """
    saying = next((n for stage in stages.stages for n in stage.nodes if isinstance(n, PassThrough)), None)
    if saying is not None:
        raise PlanError(
            "it gives feedback to steps in front of it, which in a batch have read all there is by then.",
            remedy="Use start(spark, checkpoint=..., trigger='available'), or run() in this process.",
        ).at(saying.step, saying.place)
    if stages.loops:
        raise PlanError(
            "a loop crosses the buckets of this plan, which takes several epochs, and a batch is one.",
            remedy="Leave buckets='all' out of the loop; or use start(spark, checkpoint=..., "
            "trigger='available'), or run() in this process.",
        )


def refuse_idle_log(job: Job, given: str) -> None:
    """Refuses a folder for what goes back where nothing does: it would stay empty."""
    if given and not job.loop:
        raise PlanError(
            "loop_log= is given, and nothing in this query goes back to an earlier stage.",
            remedy="Leave it out.",
        ).at("to_spark", here())


def _ship_modules(outputs: Mapping[str, Node]) -> None:
    """Users' modules that are not installed travel with the plan, by value."""
    from pyspark.cloudpickle import register_pickle_by_value

    for module in homes(*outputs.values()):
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def packets(spark: SparkSession, job: Job, *, streaming: bool, limits: EpochLimits) -> DataFrame:
    """The packets that leave the last stage."""
    check_session(spark)
    _ = spark.streams  # starts what coordinates state stores, which Spark 4.2 does for streams only
    job = send_tables(spark, job)
    shipped = ShippedJob.of(job)
    frames = [_source(spark, shipped, _checked(s), streaming, limits) for s in job.stages.sources]
    frame = frames[0]
    if job.loop:
        frames.append(_returning(spark, job, shipped, limits))
    if streaming and (every := period(job.stages)) is not None:
        frames.append(_clock(spark, job, every))
    if not streaming and any(_checked(source).stamped for source in job.stages.sources):
        frames.append(_one_reading(spark, job))
    for more in frames[1:]:
        frame = frame.unionAll(more)
    for stage in job.stages.stages[1:]:
        frame = _stage(frame, shipped, stage.number)
    return frame


def _returning(spark: SparkSession, job: Job, shipped: ShippedJob, limits: EpochLimits) -> DataFrame:
    """What the query's own last stage sent back in earlier epochs.

    Files that waited are looked at again, and so many of a source are read.
    """
    from caesura.spark.host.loop_source import LoopSource

    spark.dataSource.register(LoopSource)
    loop = spark.readStream.format(LoopSource.name()).schema(PACKETS)
    frame = loop.option("path", job.loop).load()
    moved = job.priorities and any(reorders(_checked(source)) for source in job.stages.sources)
    if job.ahead is None and not moved:
        return frame

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from resume(shipped.job, batches, limits)

    return frame.mapInArrow(read, PACKETS)


def _clock(spark: SparkSession, job: Job, every: int) -> DataFrame:
    """Readings of the clock, for the sources whose policies ask for them."""
    from caesura.spark.host.clock_source import ClockSource, about

    spark.dataSource.register(ClockSource)
    options = about(every, listening(job.stages), job.buckets)
    clock = spark.readStream.format(ClockSource.name()).schema(PACKETS)
    return clock.option("about", options).load()


def _one_reading(spark: SparkSession, job: Job) -> DataFrame:
    """The clock as it reads now, for a batch whose rows it times."""
    packets = clock_readings(listening(job.stages), job.buckets, time.time_ns() // 1000, stamps=True)
    reading = as_batch(packets, job.keys)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (reading for _ in batches)

    return spark.range(0, 1, 1, 1).mapInArrow(read, PACKETS)


def _checked(node: Node) -> Source:
    assert isinstance(node, Source)
    return node


def _source(
    spark: SparkSession, shipped: ShippedJob, source: Source, streaming: bool, limits: EpochLimits
) -> DataFrame:
    """Stage 0 for one source: a frame of packets."""
    reader = source.reader
    if reader.spark_form == "frame":
        return framed(reader).packets(shipped, source)
    if reader.spark_form == "files":
        return _files(spark, shipped, source, reader.as_files, streaming, limits)
    if streaming and reader.spark_form == "lanes":
        return _lanes(spark, shipped, source)
    if streaming:
        raise PlanError(
            f"'{source.step}' lies in memory, so a streaming query has nothing to wait for.",
            remedy=reader.streaming_remedy,
            step=source.step,
            place=source.place,
        )
    return _memory(spark, shipped, source)


def _files(
    spark: SparkSession,
    shipped: ShippedJob,
    source: Source,
    reader: ListedFiles,
    streaming: bool,
    limits: EpochLimits,
) -> DataFrame:
    """Spark's file source says which files are new; workers read their columns."""
    entry = (spark.readStream if streaming else spark.read).format("binaryFile")
    entry = entry.schema(LISTING).option("recursiveFileLookup", "true")
    if streaming:
        entry = entry.options(**limits.options())
    with asking_spark():
        listing = entry.load(reader.folder).select("path")
    fingerprint, suffix = source.fingerprint, reader.suffixes

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        paths = (path for batch in batches for path in sorted(batch.column(0).to_pylist()))
        job = shipped.job
        mine = ((job.order_of(fingerprint, path), path) for path in paths if path.endswith(suffix))
        yield from read_files(job, fingerprint, mine, limits, new=streaming)

    return listing.mapInArrow(read, PACKETS)


def _lanes(spark: SparkSession, shipped: ShippedJob, source: Source) -> DataFrame:
    """A Python data source asks the source how far its lanes have come; workers read them."""
    from caesura.spark.host.lane_source import lane_source

    form = lane_source(shipped, source)
    spark.dataSource.register(form)
    return spark.readStream.format(form.name()).schema(PACKETS).load()


def _memory(spark: SparkSession, shipped: ShippedJob, source: Source) -> DataFrame:
    fingerprint = source.fingerprint

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = shipped.job
        source = job.source(fingerprint)
        with reading(source):
            for _ in batches:
                for number, raw in enumerate(source.read_between({})):
                    yield packets_of(job, fingerprint, raw, (number,))

    return spark.range(0, 1, 1, 1).mapInArrow(read, PACKETS)


def _stage(frame: DataFrame, shipped: ShippedJob, number: int) -> DataFrame:
    """One stateful stage: the packets of each bucket through its fragment."""
    from caesura.spark.worker.processor import BucketProcessor

    processor = BucketProcessor(shipped, number)
    return frame.groupBy("key").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=PACKETS, outputMode="Append", timeMode="None"
    )
