"""Any Spark DataFrame as a source: its rows hop into workers as Arrow batches and become packets.

With ``lane`` and ``offset`` columns (a Kafka partition and its offset) lateness is exact: each lane's
rows are judged in order. Without them the rows of an epoch have no order among them: a row is late by
earlier epochs only, as with Spark's own watermark; explain says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from caesura.errors import PlanError, StreamError
from caesura.io.ingress.policy import delay
from caesura.io.sources.memory import columns_key
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.read import Events, source_of
from caesura.io.sources.source import Source
from caesura.plan import Raw, here
from caesura.spark.errors import asking_spark
from caesura.spark.host.connect import refuse_preview
from caesura.spark.session import over_connect
from caesura.spark.worker.job import PACKETS, Job
from caesura.spark.worker.reading import packets_of, reading
from caesura.spark.worker.shipped import ShippedJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

HOP_ROWS = 2048
"""How many rows of a DataFrame, or packets of half a MB, go to a worker at a time."""
CHUNK_ROWS, CHUNK_BYTES = 1 << 20, 64 << 20
"""How many rows of a DataFrame, and bytes of them, are worked on at a time."""
NEVER = str(2**31 - 1)
WATERMARK = "spark.watermarkDelayMs"
"""What Spark notes beside a column that has a watermark: by how many milliseconds rows may be late."""
FILE_SOURCE = re.compile(r"\bFileSource\[([^\]\n]*)\]")
ROOTED = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
"""A path that means the same from wherever it is looked up, as on a Connect server."""
FRAME = "frame"
"""What stands for every frame in a worker, which has none."""


class FrameReader(Reader):
    """Reads a DataFrame; only the Spark host can."""

    spark_form = "frame"

    def __init__(self, frame: DataFrame, *, lane: str | None, offset: str | None, lanes: int) -> None:
        self.frame, self.origin = frame, FRAME if frame is None else frame
        self.lane, self.offset, self.unordered = lane, offset, lane is None
        own = {c for c in (lane, offset) if c is not None}
        whole = pa.schema([_arrow_field(field) for field in frame.schema])
        self.schema = pa.schema([field for field in whole if field.name not in own])
        self.lanes = lanes
        self.key = f"frame:{columns_key(whole)}:{lane}:{offset}:{lanes}"

    def narrowed(self, columns: Sequence[str]) -> FrameReader:
        """The same frame, of which only these columns hop."""
        other = FrameReader(self.frame, lane=self.lane, offset=self.offset, lanes=self.lanes)
        other.schema = pa.schema([self.schema.field(name) for name in columns])
        other.key = f"{self.key}:{','.join(columns)}"
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Workers get everything but the frame itself."""
        return {**self.__dict__, "frame": None, "origin": FRAME}

    @property
    def streaming(self) -> bool:
        return bool(self.frame.isStreaming)

    @property
    def folders(self) -> list[str]:
        """The folders whose files a streaming frame reads, as Spark's own plan of it names them."""
        frame: Any = self.frame
        if not over_connect(frame.sparkSession):
            return FILE_SOURCE.findall(frame._jdf.queryExecution().analyzed().toString())
        return [f for f in FILE_SOURCE.findall(frame._explain_string(extended=True)) if ROOTED.match(f)]

    def cannot_replay(self) -> str:
        return "a Spark DataFrame can be read by the Spark host only"

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        raise StreamError(
            f"{self.cannot_replay()}.",
            remedy="Use start(spark, ...), to_spark(spark) or run_batch(spark); preview reads files, tables.",
        )

    def sample(self, limit: int) -> Iterator[Raw]:
        """The first rows that Spark gives, collected here; of a streaming frame, of what is there now."""
        wanted = [*self.schema.names, *(c for c in (self.lane, self.offset) if c is not None)]
        plain = self.frame.select(*map(_quoted, wanted))
        with asking_spark():
            table = _first_of(plain, limit) if self.streaming else plain.limit(limit).toArrow()
        rows = table.cast(pa.schema([_in_utc(field) for field in table.schema])).combine_chunks()
        for batch in rows.to_batches():
            for raw, _ in _chunks(batch, self.schema, self.lane, self.offset, (0, 0)):
                yield raw

    def describe(self) -> str:
        ordered = "" if self.lane else "; no lane column: a row is late by earlier epochs only"
        return f"DataFrame({', '.join(self.schema.names)}){ordered}"

    def packets(self, shipped: ShippedJob, source: Source) -> DataFrame:
        """The frame's rows as packets."""
        fingerprint, schema = source.fingerprint, self.schema
        lane, offset = self.lane, self.offset
        wanted = [*self.schema.names, *(c for c in (lane, offset) if c is not None)]

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context, job = TaskContext.get(), shipped.job
            part = context.partitionId() if context is not None else 0
            with reading(job.source(fingerprint)):
                for number, plain in enumerate(gathered(batches, CHUNK_ROWS, CHUNK_BYTES)):
                    batch = plain.rename_columns(wanted)
                    for raw, order in _chunks(batch, schema, lane, offset, (part, number)):
                        yield packets_of(job, fingerprint, raw, order)

        plain = self.frame.select(*map(_quoted, wanted)).toDF(*(f"c{n}" for n in range(len(wanted))))
        return plain.mapInArrow(read, PACKETS)


def _first_of(frame: DataFrame, limit: int) -> pa.Table:
    """The first rows of a streaming frame."""
    refuse_preview(frame.sparkSession)
    tables: list[pa.Table] = []

    def take(batch: DataFrame, _: int) -> None:
        room = limit - sum(table.num_rows for table in tables)
        if room > 0 or not tables:
            tables.append(batch.limit(max(0, room)).toArrow())

    query = frame.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination()
    return pa.concat_tables(tables) if tables else pa.table({name: [] for name in frame.columns})


def _arrow_field(field: StructField) -> pa.Field:
    """A column of Spark's as Arrow has it; refuses what would not come through."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    kind = field.dataType.simpleString()
    text = "F.to_json({})" if "variant" in kind else "{}.cast('string')"
    try:
        if "variant" not in kind:  # its bytes are not its value
            return pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC"), field.nullable)
    except PySparkException:
        pass
    column = f"F.col({field.name!r})"
    raise PlanError(
        f"the column '{field.name}' is of type {kind}, which Arrow lacks.",
        remedy=f"Leave it out, or give it as a text: withColumn({field.name!r}, {text.format(column)}).",
    )


def framed(reader: Reader) -> FrameReader:
    """A reader whose `spark_form` is a frame."""
    return cast("FrameReader", reader)


def _quoted(name: str) -> str:
    """A column's name as Spark reads it whole; on the way to a worker columns have no names with dots."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def hops(spark: SparkSession, job: Job) -> Iterator[None]:
    """Settings for queries that are started within: the rows of a DataFrame are counted, not weighed.

    Spark weighs a batch anew for every row that it adds, which takes longer than everything else about it.
    """
    if not any(isinstance(s, Source) and s.reader.spark_form == "frame" for s in job.stages.sources):
        yield
        return
    wanted = {"maxRecordsPerBatch": str(HOP_ROWS), "maxBytesPerBatch": NEVER}
    names = {f"spark.sql.execution.arrow.{name}": value for name, value in wanted.items()}
    before = {name: spark.conf.get(name) for name in names}
    _set(spark, names)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is not None:
            spark.conf.set(name, value)


def gathered(batches: Iterator[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Small batches as fewer that have at least so many rows, or bytes, the last one aside."""
    some: list[pa.RecordBatch] = []
    count = held = 0
    for batch in batches:
        some.append(batch)
        count += batch.num_rows
        held += batch.nbytes
        if count >= rows or held >= size:
            yield _joined(some)
            some, count, held = [], 0, 0
    if count:
        yield _joined(some)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _chunks(
    batch: pa.RecordBatch, schema: pa.Schema, lane: str | None, offset: str | None, place: tuple[int, int]
) -> Iterator[tuple[Raw, tuple[Any, ...]]]:
    rows = batch.select(schema.names)
    if lane is None:
        yield Raw(0, 0, rows), place
        return
    lanes = batch.column(lane).to_numpy()
    first = batch.column(offset).to_numpy() if offset is not None else None
    for number in sorted(set(lanes.tolist())):
        mine = pa.array((lanes == number).nonzero()[0])
        start = 0 if first is None else int(first[mine[0].as_py()])
        order = (start,) if first is not None else place
        yield Raw(int(number), start, rows.take(mine)), order


def collected(frame: DataFrame, name: str) -> pa.Table:
    """The rows of a DataFrame that is to be a table, here on the driver."""
    if frame.isStreaming:
        raise PlanError(
            "a streaming DataFrame never ends, and a table is all there.",
            remedy="Use from_spark(frame, time=...).forever(), or read the table without readStream.",
            step=name or "table",
            place=here(),
        )
    with asking_spark():
        rows = frame.toArrow()
    wanted = pa.schema([_in_utc(field) for field in rows.schema])
    return rows.cast(wanted)


def _in_utc(field: pa.Field) -> pa.Field:
    """As `FrameReader` has it: timestamps of an instant are in UTC."""
    zoned = pa.types.is_timestamp(field.type) and field.type.tz is not None
    return field.with_type(pa.timestamp("us", "UTC")) if zoned else field


def read_frame(
    frame: DataFrame, *, lane: str | None, offset: str | None, lanes: int, events: Events
) -> Source:
    """A source that reads a DataFrame."""
    events = _with_watermark(frame, events)
    return source_of(lambda: FrameReader(frame, lane=lane, offset=offset, lanes=lanes), events)


def _with_watermark(frame: DataFrame, events: Events) -> Events:
    """The options with what the DataFrame's own `withWatermark` promises, where nothing else is said."""
    marks = {f.name: f.metadata[WATERMARK] for f in frame.schema if WATERMARK in (f.metadata or {})}
    if not marks or events.get("punctuate") is not None:
        return events
    (name, by), *_ = marks.items()
    if list(marks) == [events["time"]]:
        return {**events, "punctuate": delay(f"{by // 1000}s" if by % 1000 == 0 else f"{by}ms")}
    raise PlanError(
        f"the DataFrame has a watermark on '{name}', which is not the column that says when events start.",
        remedy="Say what the stream promises: from_spark(..., punctuate=cz.delay('10m')), or whatever its "
        "bound is. Or leave withWatermark out: nothing is promised then.",
        step=events.get("name") or "from_spark",
        place=here(),
    )
