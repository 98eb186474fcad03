"""A plan on its way to the workers, the query and epoch of a task, and packets as rows of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pickle import loads
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.cloudpickle import dumps

from caesura.errors import StreamError
from caesura.events.identity import Secret
from caesura.io.places import Place
from caesura.io.sinks.current import TableLayout
from caesura.io.sources.source import Source
from caesura.ops.held import Fetch, shipped
from caesura.plan import Speculate
from caesura.plan.cut import Stages
from caesura.runtime.buckets.owner import buckets_remedy
from caesura.runtime.packets.packet import KEYED_ROWS, Packet
from caesura.spark.worker.bucket_keys import bucket_keys
from caesura.spark.worker.carried import CarriedState
from caesura.spark.worker.chunk_files import ChunkFiles
from caesura.spark.worker.sealed import new_seal

if TYPE_CHECKING:
    from caesura.runtime.query.recorded_rows import RecordedRows

SECRET = "caesura.secret"
"""The file beside a checkpoint that only its owner may read."""
SQL_TYPES = {pa.int32(): "int", pa.int64(): "long", pa.string(): "string", pa.binary(): "binary"}
STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
"""The property of a task; Spark sets it from the log of the checkpoint."""
PACKETS = ", ".join(f"{column.name} {SQL_TYPES[column.type]}" for column in KEYED_ROWS)
"""The same as Spark writes it."""


@dataclass(frozen=True)
class Job:
    """A plan on its way to the workers."""

    name: str
    stages: Stages
    buckets: int
    speculate: Speculate
    closes: bool
    """Whether the input of an epoch is all there ever is."""
    loop: str = ""
    """Where the loop log lies, if the plan has anything that goes backwards."""
    ahead: int | None = None
    """How far a source may be read ahead of the slowest, in ticks; None for any distance."""
    priorities: bool = False
    """Whether anybody may ask for some rows before others."""
    fence: int = 0
    """The number of the lease that the query runs under; 0 for none."""
    wakes: bool = False
    """Whether work that waits asks for another epoch, through the loop log."""
    chunks: str = ""
    """Where large chunks of state lie; empty where Spark alone knows the checkpoint: all in its store."""
    state_memory: int | None = None
    """How many bytes of the texts and other wide values of a bucket lie in memory; None for all."""
    retained: int = 0
    """Of how many epochs Spark retains the state."""
    seal: bytes = field(default_factory=new_seal, repr=False)
    """What the workers of this query prove themselves to each other with."""
    secret: Secret | None = None
    """What the identities of rows begin with; None where Spark alone knows the checkpoint: `secret_of`."""

    netted: Mapping[str, TableLayout] = field(default_factory=dict)
    """By label, the outputs of which a table holds the net change of an epoch, and nothing else counts."""

    recorded: RecordedRows | None = None
    """Where rows are kept as they come in, if they are."""

    tables: Mapping[str, Fetch] = field(default_factory=dict)
    """By key, the tables that were sent ahead of the plan, and how a worker gets them."""

    partitions: int = 0
    """How many partitions state lies in, where the checkpoint does not say it; else 0."""
    carried: CarriedState = field(default_factory=CarriedState)
    """What has become of the names that state lies under."""
    first_read: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By source and file, the place in which files were read first that are read once more."""
    replayed: int = 0
    """The last epoch in which that is so."""

    def __getstate__(self) -> dict[str, bytes]:
        with shipped(self.tables):
            return {"job": dumps(self.__dict__)}  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.__dict__.update(loads(state["job"]))

    @cached_property
    def keys(self) -> list[int]:
        """The key of each bucket."""
        return bucket_keys(self.buckets)

    @property
    def last(self) -> int:
        """The stage behind which packets leave."""
        return len(self.stages.stages) - 1

    def order_of(self, fingerprint: str, path: str) -> int:
        """The place of a file among those of its source: the epoch, or that in which it was read first."""
        known, epoch = self.first_read.get(fingerprint), epoch_here()
        if known is None or epoch > self.replayed:
            return epoch
        return known.get(Place.of(path).identity, epoch)  # over Connect no task knows that it is later

    def source(self, fingerprint: str) -> Source:
        found = next(s for s in self.stages.sources if s.fingerprint == fingerprint)
        assert isinstance(found, Source)
        return found


def secret_of(job: Job) -> Secret:
    """The secret of a query: its checkpoint's, or one made of the random name that Spark keeps there."""
    if job.secret is not None:
        return job.secret
    name = query_here()
    if name is None:
        raise StreamError(
            "a streaming DataFrame was used outside a streaming query.", remedy="Write it with writeStream."
        )
    return Secret(blake2b(name.encode(), person=b"query", digest_size=Secret.SIZE).digest())


def query_here() -> str | None:
    """The name of the streaming query that this task belongs to, which its checkpoint keeps."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("sql.streaming.queryId")


def partitions_here() -> int:
    """In how many partitions the checkpoint of this task's query has its state; 0 outside a streaming query.

    Spark writes it down with the first epoch, and goes on so whatever the session says later.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(STATE_PARTITIONS)
    return 0 if number is None else int(number)


def refuse_partitions(job: Job, here: int) -> None:
    """Refuses a checkpoint whose state lies in another number of partitions than the plan was cut for.

    A bucket of which the state knows nothing would begin anew, so this is asked before any is looked for.
    """
    if job.partitions and here and job.partitions != here:
        raise StreamError(
            f"the checkpoint was made with {here} buckets; this plan was cut for {job.partitions}.",
            remedy=buckets_remedy(here),
        )


def epoch_here() -> int:
    """The number of the epoch that this task belongs to; -1 outside a streaming query."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return -1 if number is None else int(number)


def chunk_files(job: Job, stage: int, bucket: int) -> ChunkFiles | None:
    """Where a bucket's large chunks lie, for the attempt that this task is; None for the state store."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if not job.chunks or context is None:
        return None
    own = {"epoch": epoch_here(), "attempt": context.attemptNumber(), "retained": job.retained}
    return ChunkFiles(Place.of(job.chunks), f"{stage}-{bucket}", **own)


def as_batch(packets: list[Packet], keys: list[int]) -> pa.RecordBatch:
    """Packets as rows; each goes to the partition of its bucket."""
    rows = [(keys[p.bucket], *p.to_row()) for p in packets]
    columns = [[row[i] for row in rows] for i in range(len(KEYED_ROWS))]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, KEYED_ROWS, strict=True)], schema=KEYED_ROWS
    )
