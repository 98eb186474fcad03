"""A plan as one Structured Streaming query: a chain of stages over packets, one action per epoch."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from caesura.errors import PlanError
from caesura.events.identity import Secret
from caesura.io.sources.files import FileReader
from caesura.io.sources.pruning import Pruning
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.buckets.clock import listening, period
from caesura.runtime.packets.packet import decode
from caesura.spark.host.frames import FrameReader
from caesura.spark.session import check_session
from caesura.spark.worker import worker
from caesura.spark.worker.admission import HELD, Most, admitted, epoch_here, held, limit
from caesura.spark.worker.priority import choose, lined_up, orders, wait, waits
from caesura.spark.worker.worker import PACKETS, Job, Store
from caesura.udm import homes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Speculate = Literal["arrival", "watermark"]
CHUNK_ROWS = 1 << 18
"""How many rows are read and sent on at a time: a task does nothing else with them."""
LISTING = "path string, modificationTime timestamp, length long, content binary"


def make_job(
    outputs: Mapping[str, Node],
    buckets: int,
    *,
    speculate: Speculate,
    closes: bool,
    name: str = "",
    loop: str = "",
    heard: bool = False,
    ahead: int | None = None,
    secret: Secret | None = None,
) -> Job:
    """A plan, cut for a number of buckets; ``loop`` is where its loop log lies, if it needs one.

    It does where anything goes backwards, its consumer will be ``heard``, or files wait for slower sources.
    """
    _ship_modules(outputs)
    stages = cut(prune(outputs), buckets)
    if stages.backward and not loop:
        raise PlanError(
            "something in this plan goes back to an earlier stage, and there is no place for it to wait.",
            remedy="Use start(spark, checkpoint=...), or give to_spark(spark, loop_log=...) a folder.",
        )
    if ahead is not None and ahead < 0:
        raise PlanError(
            f"no source can be read {ahead} ticks ahead of the slowest.", remedy="Give 0 or more, like '10m'."
        )
    ahead = ahead if len(stages.sources) > 1 else None
    log = loop if stages.backward or heard or ahead is not None else ""
    wishes = heard or any(node.sends_feedback for stage in stages.stages for node in stage.nodes)
    return Job(
        name or uuid.uuid4().hex, stages, buckets, speculate, closes, log, ahead, wishes, secret=secret
    )


def _ship_modules(outputs: Mapping[str, Node]) -> None:
    """Users' modules that are not installed travel with the plan, by value."""
    from pyspark.cloudpickle import register_pickle_by_value

    for module in homes(*outputs.values()):
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def packets(spark: SparkSession, job: Job, *, streaming: bool, most: Most) -> DataFrame:
    """The packets that leave the last stage."""
    check_session(spark)
    frames = [_source(spark, job, _checked(s), streaming, most) for s in job.stages.sources]
    frame = frames[0]
    if job.loop:
        frames.append(_returning(spark, job, most))
    if streaming and (every := period(job.stages)) is not None:
        frames.append(_clock(spark, job, every))
    for more in frames[1:]:
        frame = frame.unionAll(more)
    for stage in job.stages.stages[1:]:
        frame = _stage(frame, job, stage.number)
    return frame


def _returning(spark: SparkSession, job: Job, most: Most) -> DataFrame:
    """What the query's own last stage sent back in earlier epochs.

    Files that waited are looked at again, and so many of a source are read.
    """
    from caesura.spark.host.loop_source import LoopSource

    spark.dataSource.register(LoopSource)
    frame = spark.readStream.format(LoopSource.name()).option("path", job.loop).load()
    moved = job.wishes and any(orders(_checked(source)) for source in job.stages.sources)
    if job.ahead is None and not moved:
        return frame

    def resume(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files: list[dict[str, Any]] = []
        for batch in batches:
            waited = pc.equal(batch.column("label"), HELD)
            yield batch.filter(pc.invert(waited))
            files += [decode(data)[0] for data in batch.filter(waited).column("data").to_pylist()]
        for source in sorted({file["source"] for file in files}):
            mine = [file for file in files if file["source"] == source]
            paths = sorted(file["path"] for file in mine if "epoch" not in file)
            yield from _read_files(job, source, ((epoch_here(), p) for p in paths), most, files=most.files)
            in_line = [file for file in mine if "epoch" in file]
            if in_line:
                yield from _read_in_line(job, source, in_line, most)

    return frame.mapInArrow(resume, PACKETS)


def _clock(spark: SparkSession, job: Job, every: int) -> DataFrame:
    """Readings of the clock, for the sources whose policies ask for them."""
    from caesura.spark.host.clock_source import ClockSource, about

    spark.dataSource.register(ClockSource)
    told = about(every, listening(job.stages), job.buckets)
    return spark.readStream.format(ClockSource.name()).option("about", told).load()


def _checked(node: Node) -> Source:
    assert isinstance(node, Source)
    return node


def _source(spark: SparkSession, job: Job, source: Source, streaming: bool, most: Most) -> DataFrame:
    """Stage 0 for one source: a frame of packets."""
    reader = source.reader
    if isinstance(reader, FrameReader):
        return reader.packets(job, source)
    if isinstance(reader, FileReader):
        return _files(spark, job, source, reader, streaming, most)
    if streaming:
        raise PlanError(
            f"'{source.step}' lies in memory, so a streaming query has nothing to wait for.",
            remedy="Use run_batch(spark), or write it to files and read those.",
            step=source.step,
            place=source.place,
        )
    return _memory(spark, job, source)


def _files(
    spark: SparkSession, job: Job, source: Source, reader: FileReader, streaming: bool, most: Most
) -> DataFrame:
    """Spark's file source says which files are new; workers read their columns."""
    entry = (spark.readStream if streaming else spark.read).format("binaryFile")
    entry = entry.schema(LISTING).option("recursiveFileLookup", "true")
    if streaming:
        entry = entry.options(**most.options())
    listing = entry.load(str(reader.folder)).select("path")
    fingerprint, suffix = source.fingerprint, reader.suffixes

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        paths = (path for batch in batches for path in sorted(batch.column(0).to_pylist()))
        mine = ((epoch_here(), path) for path in paths if path.endswith(suffix))
        yield from _read_files(job, fingerprint, mine, most, new=streaming)

    return listing.mapInArrow(read, PACKETS)


def _read_files(
    job: Job,
    fingerprint: str,
    named: Iterable[tuple[int, str]],
    most: Most,
    *,
    files: int | None = None,
    new: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The packets of files, named in an epoch; of those that have to wait only that they do.

    They lie too far ahead, are too many, or stand in line while others are wanted first.
    """
    source = job.source(fingerprint)
    with worker.reading(source):
        chunks, pruning = _chunks(job, fingerprint), worker.pruning(job, source)
        bound, done = limit(job, fingerprint), 0
        in_line = new and wait(job, source, pruning, most)
        for epoch, path in named:
            if in_line:
                yield worker.as_batch([waits(fingerprint, path, epoch)], job.keys)
            elif done == files or not admitted(chunks, path, source.shape.time, bound):
                yield worker.as_batch([held(fingerprint, path)], job.keys)
            else:
                done += 1
                yield from _packets(job, fingerprint, chunks, pruning, epoch, path)
        if pruning is not None and (pruning.rows or pruning.moved):
            yield worker.unread_report(job, fingerprint, pruning)


def _read_in_line(
    job: Job, fingerprint: str, headers: list[dict[str, Any]], most: Most
) -> Iterator[pa.RecordBatch]:
    """The packets of those files that wait which are read now; the names of the others."""
    source = job.source(fingerprint)
    with worker.reading(source):
        chunks, pruning = _chunks(job, fingerprint), worker.pruning(job, source)
        bound, time = limit(job, fingerprint), source.shape.time
        files = lined_up(source, headers)
        ready = list(takewhile(lambda file: admitted(chunks, file.path, time, bound), files))
        chosen, left = choose(ready, pruning, most, epoch_here())
        left += files[len(ready) :]
        for file in chosen:
            yield from _packets(job, fingerprint, chunks, pruning, file.epoch, file.path)
        if left:
            packets = [waits(fingerprint, file.path, file.epoch) for file in left]
            yield worker.as_batch(packets, job.keys)
        if pruning is not None and (pruning.rows or pruning.moved):
            yield worker.unread_report(job, fingerprint, pruning)


def _chunks(job: Job, fingerprint: str) -> FileReader:
    """A source's files, in parts as large as a task takes."""
    reader = worker.mapper(job, fingerprint).source.reader
    assert isinstance(reader, FileReader)
    return reader.batched(CHUNK_ROWS)


def _packets(
    job: Job, fingerprint: str, chunks: FileReader, pruning: Pruning | None, epoch: int, path: str
) -> Iterator[pa.RecordBatch]:
    for number, raw in enumerate(chunks.read_file(path, pruning)):
        yield worker.packets_of(job, fingerprint, raw, (epoch, path, number))


def _memory(spark: SparkSession, job: Job, source: Source) -> DataFrame:
    fingerprint = source.fingerprint

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = job.source(fingerprint)
        with worker.reading(source):
            for _ in batches:
                for number, raw in enumerate(source.read_between({})):
                    yield worker.packets_of(job, fingerprint, raw, (number,))

    return spark.range(0, 1, 1, 1).mapInArrow(read, PACKETS)


def _stage(frame: DataFrame, job: Job, number: int) -> DataFrame:
    """One stateful stage: the packets of each bucket through its fragment."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Bucket(StatefulProcessor):
        """A bucket of a stage at work."""

        def init(self, handle: Any) -> None:
            self.store = Store(handle)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            try:
                yield from worker.run_bucket(job, number, int(key[0]), rows, self.store)
            except Exception as error:
                raise worker.failed(error) from error

        def close(self) -> None:
            return None

    return frame.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Bucket(), outputStructType=PACKETS, outputMode="Append", timeMode="None"
    )
