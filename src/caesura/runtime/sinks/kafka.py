"""A topic of Kafka as a sink: an epoch is one transaction, which notes the epoch's number itself.

On Spark every bucket writes its own changes in its worker, each in a transaction of its own; what is taken
whole, on the driver or in this process, is written by one. With punctuation every writer says in every
partition what it promises, so that `cz.read.kafka_changes` knows what is final.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError, closest
from caesura.events import Item, Page
from caesura.io.codecs.json import JsonCodec
from caesura.io.codecs.protocol import RecordCodec
from caesura.io.kafka.cluster import Cluster
from caesura.io.kafka.epoch_notes import EpochNotes
from caesura.io.kafka.promised import Share, given_promises, promise_records
from caesura.io.kafka.transactions import FencedError, Target, TopicWriter
from caesura.io.kafka.written import OutRecord, changes, upserts
from caesura.io.sinks.protocol import BucketWriter, EpochSink
from caesura.io.sinks.rows import row_schema, rows_table
from caesura.misuse import strict
from caesura.plan import Duration, Node, here, seconds
from caesura.punctuation import Pattern, Promises
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.metrics.status import Board

RecordsAs = Literal["changes", "upserts"]
NOTES = "caesura-epochs"
Late = Mapping[str, Sequence[pa.RecordBatch]]


@dataclass(frozen=True)
class RecordsForm:
    """What records of a topic are made of; it travels to workers."""

    key: tuple[str, ...]
    records: RecordsAs
    punctuation: bool
    late: str | None
    value: RecordCodec
    schema: pa.Schema
    time: pa.DataType

    def rows(self, items: Sequence[Item], partitions: int) -> Iterator[OutRecord]:
        """The rows among items as records."""
        rows = rows_table([item for item in items if isinstance(item, Page)], self.schema, self.time)
        if self.records == "upserts":
            return upserts(rows, self.key, self.value)
        return changes(rows, self.key, partitions if self.punctuation else 0, self.value)


class EpochRecords:
    """Writes the output of one writer, epoch by epoch, and what it promises."""

    def __init__(self, writer: TopicWriter, target: Target, form: RecordsForm, share: Share) -> None:
        self._writer, self._target, self._form = writer, target, form
        self._share = share
        self._given = Promises()
        """What was promised since this process began to write: a partition that is added gets it too."""
        self._partitions = 0

    @property
    def last(self) -> int | None:
        return self._writer.last

    def write(self, epoch: int, items: Sequence[Item], late: Late) -> None:
        """Writes an epoch, in one transaction."""
        with self._writer.epoch(epoch) as writer:
            partitions = self._known_partitions() if self._form.punctuation else 0
            writer.put(self._target.topic, self._form.rows(items, partitions))
            for source, batches in late.items() if self._form.late else ():
                for batch in batches:
                    writer.put(self._form.late or "", _late_records(source, batch))
            patterns = given_promises(items) if self._form.punctuation else []
            if patterns:
                self._promise(patterns)
        for pattern in patterns:
            self._given.add(pattern)

    def _promise(self, patterns: Sequence[Pattern]) -> None:
        """Promises in every partition that rows can have gone to: none is added while they are listed."""
        self._writer.flush()
        before, now = self._partitions, self._known_partitions()
        added = range(before, now) if before else ()
        if added:
            known = self._given.patterns()
            self._writer.put(self._target.topic, promise_records(known, self._share, now, added))
        self._writer.put(self._target.topic, promise_records(patterns, self._share, now))
        self._partitions = now

    def _known_partitions(self) -> int:
        return len(self._target.cluster.partitions(self._target.topic))


class KafkaSink(EpochSink):
    """Writes the rows of an output into a topic."""

    def __init__(
        self,
        target: Target,
        *,
        key: Sequence[str],
        records: RecordsAs,
        punctuation: bool,
        late: str | None,
        value: RecordCodec | None,
    ) -> None:
        self._target, self._late, self._value = target, late, value
        self._key, self._records, self._punctuation = tuple(key), records, punctuation
        if punctuation:
            self.takes = ("changes", "final")  # type: ignore[misc]
        self.keeps_late = late is not None
        self.board = Board()
        self._query = ""
        self._epochs: EpochRecords | None = None

    def open(self, outputs: Mapping[str, Node]) -> None:
        """Refuses several outputs, and keys that there are not; asks for the topics."""
        if len(outputs) != 1:
            raise PlanError(
                f"a topic holds one output, and there are {len(outputs)}: {', '.join(outputs)}.",
                remedy="Start a query for each, with a topic of its own.",
            ).at("kafka", here())
        [node] = outputs.values()
        for name in self._key:
            if name not in node.schema.names:
                raise PlanError(
                    f"the output has no column '{name}' for a key.", remedy=closest(name, node.schema.names)
                ).at("kafka", here())
        columns = node.schema if self._records == "upserts" else row_schema(node.schema, node.time)
        try:
            value = (self._value or JsonCodec(columns)).for_rows(columns)
        except CaesuraError as error:
            raise error.at("kafka", here()) from None
        options = (self._key, self._records, self._punctuation, self._late, value)
        self._form = RecordsForm(*options, node.schema, node.time)
        for topic in (self._target.topic, *([self._late] if self._late else [])):
            self._target.cluster.partitions(topic)

    def attach(self, query: str) -> None:
        """Fences earlier starts, and reads which epoch they committed last."""
        self._query = query
        self._form.value.prepare()
        target = self._target
        EpochNotes(target.cluster, target.topic, target.name(None), target.notes).prepare()
        self._epochs = EpochRecords(TopicWriter(target, query), target, self._form, Share(0, 1))

    def last_epoch(self) -> int | None:
        return None if self._epochs is None else self._epochs.last

    def take(self, epoch: Epoch) -> None:
        """Writes an epoch and notes its number, in one transaction."""
        if self._epochs is None:
            self.attach(self._query)
        epochs, self._epochs = self._epochs, None
        assert epochs is not None
        items = [item for some in epoch.items.values() for item in some]
        epochs.write(epoch.number, items, epoch.late)
        self._epochs = epochs

    def bucket_writer(self, epoch: int, buckets: int) -> BucketWriter | None:
        """What writes the changes of a bucket in its worker; upserts are the net of all buckets."""
        if self._records == "upserts":
            return None
        return BucketEpochs(self._target, self._form, self._query, epoch, buckets, self.last_epoch())


WRITERS: dict[tuple[Target, str, int], EpochRecords] = {}
"""The writers of this process, by topic, query and bucket; one that was fenced or failed is no more here."""


@dataclass(frozen=True)
class BucketEpochs:
    """Writes what buckets give in one epoch; it travels to workers."""

    target: Target
    form: RecordsForm
    query: str
    epoch: int
    buckets: int
    before: int | None
    """The last epoch that was written whole."""

    @property
    def _there(self) -> bool:
        return self.before is not None and self.before >= self.epoch

    def prepare(self, buckets: Sequence[int]) -> None:
        """Takes the transactional ids of buckets."""
        for bucket in buckets:
            place = (self.target, self.query, bucket)
            if place not in WRITERS and not self._there:
                WRITERS[place] = self._opened(bucket)

    def _opened(self, bucket: int) -> EpochRecords:
        writer = TopicWriter(self.target, self.query, bucket)
        return EpochRecords(writer, self.target, self.form, Share(bucket, self.buckets))

    def __call__(self, bucket: int, items: Sequence[Item], late: Late) -> None:
        """Writes a bucket's share, unless it is there: an attempt that runs again gives the same."""
        if self._there:
            return
        place = (self.target, self.query, bucket)
        if place in WRITERS:
            with suppress(FencedError):  # another process had the bucket in between
                self._write(place, WRITERS.pop(place), items, late)
                return
        self._write(place, self._opened(bucket), items, late)

    def _write(
        self, place: tuple[Target, str, int], epochs: EpochRecords, items: Sequence[Item], late: Late
    ) -> None:
        if epochs.last is None or epochs.last < self.epoch:
            epochs.write(self.epoch, items, late)
        WRITERS[place] = epochs


def _late_records(source: str, batch: pa.RecordBatch) -> Iterator[OutRecord]:
    """Late rows, with the source that they are of as their key."""
    values = JsonCodec(batch.schema).encode(batch)
    yield from (OutRecord(source.encode(), value) for value in values)


@strict
def kafka(
    servers: str,
    topic: str,
    *,
    key: str | Sequence[str] = (),
    records: RecordsAs = "changes",
    punctuation: bool = False,
    value: RecordCodec | None = None,
    late: str | None = None,
    timeout: Duration = "60s",
    transaction_timeout: Duration = "2m",
    notes: str = NOTES,
    config: Mapping[str, Any] | None = None,
) -> KafkaSink:
    """A topic of Kafka as a sink; every epoch comes once.

    Parameters
    ----------
    servers
        The brokers: ``"kafka:9092"``.
    topic
        The topic.
    key
        The columns of a record's key.
    records
        ``"changes"``: a record is a JSON object with kind, LE, RE, RE_new and the values. ``"upserts"``:
        the row of its key that never ends, and a record without a value deletes one; for compacted topics.
    punctuation
        Whether the topic carries what is final too: then `cz.read.kafka_changes` reads all of it back.
    value
        Another form of records, such as ``cz.avro(registry=..., subject=...)``.
    late
        The topic for late rows, where one is wanted.
    timeout
        For how long brokers may be away.
    transaction_timeout
        Within what time an epoch must be written.
    notes
        The topic that epochs' numbers are noted in.
    config
        Options of the client, by its names.

    Returns
    -------
    KafkaSink
        For ``sink=``, in this process and on Spark.

    Notes
    -----
    An epoch is one transaction, known by its number: exactly once for readers of committed records. Needs
    the extra ``kafka``.

    See Also
    --------
    read.kafka : a topic of Kafka.
    read.kafka_changes : a stream that another query wrote to Kafka.
    parquet : a folder of Parquet files by key.

    Examples
    --------
    With a broker at hand::

        query = speeds.query(sink=cz.kafka("kafka:9092", "averages", punctuation=True), checkpoint="state/")
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    if records not in ("changes", "upserts") or (records == "upserts" and not keys):
        raise PlanError(
            f"records={records!r} with key={key!r} says nothing of what is written.",
            remedy="Give records='changes', or records='upserts' with the columns of a key.",
        ).at("kafka", here())
    if punctuation and records == "upserts":
        raise PlanError(
            "a topic of upserts carries no punctuation: compaction would take it away.",
            remedy="Write records='changes'; or leave punctuation= out: readers are promised nothing then.",
        ).at("kafka", here())
    try:
        wait, longest = seconds(timeout, "timeout"), seconds(transaction_timeout, "transaction_timeout")
    except PlanError as error:
        raise error.at("kafka", here()) from None
    cluster = Cluster(servers, tuple((config or {}).items()), wait)
    target = Target(cluster, topic, notes, longest)
    return KafkaSink(target, key=keys, records=records, punctuation=punctuation, late=late, value=value)
