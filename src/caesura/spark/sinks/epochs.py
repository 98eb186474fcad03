"""An epoch of a Spark query goes to a sink; every sink is idempotent by epoch.

An epoch is evaluated once: by collecting its packets, where the sink takes epochs whole, or by writing parts
in the workers and collecting what was written. One that was committed before runs for its state alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events import Item, Page
from caesura.io.places import Place
from caesura.io.sinks.protocol import LATE as LATE_ROWS
from caesura.io.sinks.protocol import (
    BucketWriter,
    EpochSink,
    Form,
    Part,
    PartWriter,
    Sink,
    TableSink,
    refuse_behind,
    written,
)
from caesura.io.sinks.rows import rows_table
from caesura.plan import Node, here
from caesura.runtime.buckets.aligner import Aligner, Epoch
from caesura.runtime.buckets.labels import COUNTS, LATE, OUT, UNREAD
from caesura.runtime.durable.rebuild import Rebuilt, corrected
from caesura.runtime.metrics.status import Board
from caesura.runtime.packets.packet import Packet, decode
from caesura.runtime.sinks.late_rows import KEPT_EPOCHS, LateAside, LateRows
from caesura.runtime.sinks.parquet import ParquetWriter
from caesura.spark.errors import errors_as_lines
from caesura.spark.session import check_session, over_connect
from caesura.spark.worker.bucket_keys import bucket_keys, spark_hash
from caesura.spark.worker.saving import SAVING, WRITTEN, SavingOrder, SinkRows, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORTS = (COUNTS, UNREAD)
"""What is for the driver's eyes, not for the sink."""
WRITTEN_LINES = pa.schema(
    [
        ("output", pa.string()),
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("sha256", pa.string()),
    ]
)
WRITTEN_COLUMNS = "output string, file string, rows long, size long, sha256 string"


@dataclass
class EpochWriter:
    """Gives the epochs of one start of a query to its sink, and its reports to the sink's board."""

    sink: Sink
    outputs: Mapping[str, Node]
    aligner: Aligner
    late: LateRows | None = None
    """Where late rows are kept that the sink lets go of."""
    expects: Callable[[], int] | None = field(default=None, init=False)
    """Asked once for the last epoch that there can be; a sink that has a later one is refused."""
    _attached: Future[None] | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @staticmethod
    def of(
        sink: Sink, outputs: Mapping[str, Node], buckets: int, checkpoint: Place | None = None
    ) -> EpochWriter:
        """Opens a sink for these outputs."""
        sink.open(outputs)
        Board.given_to(sink)
        late = None if checkpoint is None or sink.keeps_late else LateRows.beside(checkpoint)
        return EpochWriter(sink, outputs, Aligner(buckets), late)

    def attach(self, query: str) -> Future[None]:
        """Has the sink take over for a query, once, while Spark still plans the first epoch."""
        with self._lock:
            if self._attached is None:
                pool = ThreadPoolExecutor(1, "caesura-attach")
                self._attached = pool.submit(self.sink.attach, query)
                pool.shutdown(wait=False)
            return self._attached

    def __getstate__(self) -> dict[str, Any]:
        """On a server a sink takes over there."""
        return {**vars(self), "_attached": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "_lock": Lock()})

    @property
    def attached(self) -> bool:
        """Whether the sink has been told of a query."""
        return self._attached is not None

    def write(self, epoch: int, packets: DataFrame) -> None:
        """Writes an epoch of the query that the sink is attached to, or of a batch; once."""
        self._ready()
        pending = self.sink.pending(epoch, list(self.outputs))
        match self.sink:
            case EpochSink():
                writer = self.sink.bucket_writer(epoch, self.aligner.buckets)
                if writer is None:
                    self._take(self.sink, epoch, packets, again=not pending)
                else:
                    self._spread(self.sink, epoch, packets, writer)
            case TableSink():
                tables = {name: (self.outputs[name].schema, self.outputs[name].time) for name in pending}
                self._put(self.sink, epoch, packets, tables, again=bool(self.outputs) and not pending)

    def correct(
        self,
        epoch: int,
        packets: DataFrame,
        change: Rebuilt,
        switch: Callable[[int], None],
        history: Iterable[list[Packet]] = (),
    ) -> None:
        """Writes the difference between what the sink holds and what the outputs of an epoch say, once.

        The epoch, behind those of the ``history``, holds all that another plan gives. ``switch`` is called
        before it is committed, with the generation that it belongs to; late rows belong to a new one only,
        since the old has them.
        """
        self._ready()
        rows = packets.filter("stage = 0").collect()
        if not self.sink.pending(epoch, list(self.outputs)):
            return
        made, sink, before = self._whole(epoch, [*history, packets_of(rows)]), self.sink, change.before
        assert isinstance(sink, TableSink)
        sink.enter(before.generation, change.plan)
        pages = corrected(sink.read_back, self.outputs, made.items, before, change.final_rows)
        generation = before.generation + (pages is None)
        sink.enter(generation, change.plan)
        sink.begin(epoch)
        given: Mapping[str, Sequence[Item]] = made.items if pages is None else pages
        tables = {
            name: rows_table([i for i in given.get(name, ()) if isinstance(i, Page)], node.schema, node.time)
            for name, node in self.outputs.items()
        }
        if pages is None:
            tables |= {f"{LATE_ROWS}/{step}": table for step, table in made.late_tables().items()}
        write = sink.writer(epoch)
        parts = [
            p for name, table in tables.items() if table.num_rows for p in written(write, name, 0, table)
        ]
        switch(generation)
        sink.commit(epoch, parts)

    def _ready(self) -> None:
        """Waits for the sink; refuses one that has more than the checkpoint."""
        self.attach("").result()
        if self.expects is not None:
            refuse_behind(self.sink, self.expects(), "the last offsets of the checkpoint are gone")
            self.expects = None

    def _whole(self, epoch: int, parts: Iterable[list[Packet]]) -> Epoch:
        """What several epochs say, as one."""
        whole = Epoch(epoch, {}, {}, outputs=self.outputs)
        for part in parts:
            made = self._made(epoch, part)
            for name, items in made.items.items():
                whole.items.setdefault(name, []).extend(items)
            for source, rows in made.late.items():
                whole.late.setdefault(source, []).extend(rows)
        return whole

    def _made(self, epoch: int, some: Sequence[Packet]) -> Epoch:
        """What the packets of an epoch say; the reports among them go to the board."""
        made = replace(self.aligner.epoch(epoch, some), outputs=self.outputs)
        for origin, report in made.reports.items():
            self.sink.board.take(origin, report)
        for report in made.unread:
            self.sink.board.note_unread(report)
        return made

    def _take(self, sink: EpochSink, epoch: int, packets: DataFrame, *, again: bool) -> None:
        rows = packets.filter("stage = 0").collect()
        if again:
            return
        made = self._made(epoch, packets_of(rows))
        if self.late is not None:
            self.late.keep(sink, made)
        sink.take(made)

    def _spread(self, sink: EpochSink, epoch: int, packets: DataFrame, writer: BucketWriter) -> None:
        """Lets every bucket write its share where it is."""
        if self.late is not None:
            writer = LateAside(writer, self.late, epoch)
            self.late.forget(epoch - KEPT_EPOCHS, sink.board.forget)

        partitions = int(packets.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0)
        keys = bucket_keys(self.aligner.buckets)

        def save(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with errors_as_lines(), ThreadPoolExecutor(1) as pool:
                opened = pool.submit(writer.prepare, _buckets_here(keys, partitions))
                for line in _save_buckets(writer, opened, batches):
                    yield pa.RecordBatch.from_pylist([line], WRITTEN_LINES)

        self._report(sink, packets.filter("stage = 0").mapInArrow(save, WRITTEN_COLUMNS).collect())

    @staticmethod
    def _report(sink: Sink, done: Sequence[Any]) -> None:
        """Puts the reports among the lines that workers gave on the sink's board."""
        for report in (json.loads(r.file) for r in done if r.output == COUNTS):
            sink.board.take(report["origin"], report)
        for report in (json.loads(r.file) for r in done if r.output == UNREAD):
            sink.board.note_unread(report)

    def _put(self, sink: TableSink, epoch: int, packets: DataFrame, tables: Tables, *, again: bool) -> None:
        if not again:
            sink.begin(epoch)
        writer = None if again else sink.writer(epoch)
        if self._saves(packets.sparkSession, writer):
            done = self._saved(packets, SavingOrder(cast("ParquetWriter | None", writer), tuple(tables)))
        else:
            leaving = packets.filter("stage = 0")
            done = leaving.mapInArrow(_saver(writer, tables), WRITTEN_COLUMNS).collect()
        self._report(sink, done)
        if not again:
            sink.commit(epoch, [Part(**r.asDict()) for r in done if r.output not in REPORTS])

    def _saves(self, spark: SparkSession, writer: PartWriter | None) -> bool:
        """Whether buckets write what leaves them: each has a partition, and its task hears of it."""
        own = writer is None or isinstance(writer, ParquetWriter)
        return own and not over_connect(spark) and check_session(spark) == self.aligner.buckets

    @staticmethod
    def _saved(packets: DataFrame, saving: SavingOrder) -> list[Any]:
        """Has buckets write their shares; gives what they wrote, and reports.

        So little is left that it is collected as it comes: each step on a DataFrame is planned anew.
        """
        from pyspark.sql import Row

        context = packets.sparkSession.sparkContext
        context.setLocalProperty(SAVING, saving.text())
        try:
            rows = packets.collect()
        finally:
            context.setLocalProperty(SAVING, cast("str", None))
        done = []
        for row in rows:
            if row.label in (WRITTEN, *REPORTS):
                header, _ = decode(bytes(row.data))
                report = {"output": row.label, "file": json.dumps({"origin": row.origin, **header})}
                done.append(Row(**(header if row.label == WRITTEN else report)))
        return done


def packets_of(rows: Iterable[Any]) -> list[Packet]:
    """The packets that were collected as rows of Spark."""
    return [Packet.from_row((r.stage, r.label, r.bucket, r.origin, r.seq, bytes(r.data))) for r in rows]


def check_form(sink: Sink, form: Form) -> None:
    """Refuses a form of output that a sink cannot hold."""
    if form not in sink.takes:
        raise PlanError(
            f"{type(sink).__name__} does not take output='{form}'.",
            remedy=f"It takes: {', '.join(sink.takes)}.",
        ).at("start", here())


def _buckets_here(keys: Sequence[int], partitions: int) -> list[int]:
    """The buckets whose rows come to this task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    here = None if context is None else context.partitionId()
    return [bucket for bucket, key in enumerate(keys) if partitions and spark_hash(key) % partitions == here]


def _save_buckets(
    writer: BucketWriter, opened: Future[None], batches: Iterator[pa.RecordBatch]
) -> Iterator[dict[str, Any]]:
    """Writes the shares of the buckets of one worker, and passes reports on.

    What leaves a bucket comes under its key; its report says which one it is.
    """
    keyed: dict[int, list[tuple[str, str, int, bytes]]] = {}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("key", "label", "origin", "seq", "data"))
        for key, label, origin, seq, data in zip(*columns, strict=True):
            keyed.setdefault(key, []).append((label, origin, seq, data))
    opened.result()
    for rows in keyed.values():
        bucket = 0
        items: list[Item] = []
        late: dict[str, list[pa.RecordBatch]] = {}
        for label, origin, _, data in sorted(rows, key=lambda row: row[:3]):
            header, some = decode(data)
            if label in REPORTS:
                yield {"output": label, "file": json.dumps({"origin": origin, **header}), "rows": 0}
            if label == COUNTS:
                bucket = int(origin.rpartition(":")[2])
            elif label == LATE:
                pages = [item.payload for item in some if isinstance(item, Page)]
                late.setdefault(header["source"], []).extend(pages)
            elif label.startswith(OUT):
                items.extend(some)
        if items or late:
            writer(bucket, items, late)


def _saver(
    writer: PartWriter | None, tables: Tables
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What writes the shares of buckets in a worker behind them."""

    def save(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        worker = context.partitionId() if context is not None else 0
        for line in _save(writer, tables, worker, batches):
            yield pa.RecordBatch.from_pylist([line], WRITTEN_LINES)

    return save


def _save(
    writer: PartWriter | None, tables: Tables, worker: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[dict[str, Any]]:
    """Writes one worker's share of an epoch, and passes reports on."""
    share = SinkRows()
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("label", "origin", "data"))
        for label, origin, data in zip(*columns, strict=True):
            header, some = decode(data)
            if label in REPORTS:
                yield {"output": label, "file": json.dumps({"origin": origin, **header}), "rows": 0}
            share.take(label, header, some)
    if writer is not None:
        yield from map(vars, share.write(writer, tables, worker))
