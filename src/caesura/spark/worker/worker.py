"""What runs in Spark's Python workers: stage 0 on chunks, and one fragment per bucket and stage.

Live fragments stay in the worker between epochs. A fragment is used again only if its stamp equals
the one that the state store holds, here or in a sibling that is asked to step it (`neighbours`): a
retried task finds another stamp and restores from the store.
"""

from __future__ import annotations

import gc
import json
import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from caesura.errors import CaesuraError, StreamError
from caesura.events.identity import Secret
from caesura.io.sources.pruning import Pruning
from caesura.io.sources.source import Source
from caesura.plan import Raw
from caesura.plan.cut import Stages
from caesura.punctuation import Pattern
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.labels import READERS, UNREAD
from caesura.runtime.buckets.source_pruning import Ignored, unneeded_rows
from caesura.runtime.buckets.stage0 import Mapper
from caesura.runtime.packets.packet import KEYED_ROWS, Packet, Row
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.worker import neighbours
from caesura.spark.worker.admission import note_progress
from caesura.spark.worker.bucket_keys import bucket_keys
from caesura.spark.worker.neighbours import Place, Worked
from caesura.spark.worker.priority import note_wanted, orders, wanted_of
from caesura.spark.worker.sealed import new_seal

if TYPE_CHECKING:
    import pandas as pd

SECRET = "caesura.secret"
"""The file beside a checkpoint that only its owner may read."""
SPARK_TYPES = {pa.int32(): "int", pa.int64(): "long", pa.string(): "string", pa.binary(): "binary"}
PACKETS = ", ".join(f"{column.name} {SPARK_TYPES[column.type]}" for column in KEYED_ROWS)
"""The columns of packets, as Spark writes a schema."""


@dataclass(frozen=True)
class Job:
    """A plan on its way to the workers."""

    name: str
    stages: Stages
    buckets: int
    speculate: Literal["arrival", "watermark"]
    closes: bool
    """Whether the input of an epoch is all there ever is."""
    loop: str = ""
    """Where the loop log lies, if the plan has anything that goes backwards."""
    ahead: int | None = None
    """How far a source may be read ahead of the slowest, in ticks; None for any distance."""
    wishes: bool = False
    """Whether anybody may ask for some rows before others."""
    wakes: bool = False
    """Whether work that waits asks for another epoch, through the loop log."""
    seal: bytes = field(default_factory=new_seal, repr=False)
    """What the workers of this query prove themselves to each other with."""
    secret: Secret | None = None
    """What the identities of rows begin with; None where Spark alone knows the checkpoint: `secret_of`."""

    @cached_property
    def keys(self) -> list[int]:
        """The key of each bucket."""
        return bucket_keys(self.buckets)

    @property
    def last(self) -> int:
        """The stage behind which packets leave."""
        return len(self.stages.stages) - 1

    def source(self, fingerprint: str) -> Source:
        found = next(s for s in self.stages.sources if s.fingerprint == fingerprint)
        assert isinstance(found, Source)
        return found


MOST_JOBS = 16
IGNORED = ".ignored"
"""What a bucket stops at its gates, for the tasks that read."""
SUPPRESSED = ".suppressed"
"""What a bucket keeps back after a withdrawal, for whoever asks."""
_MAPPERS: dict[tuple[str, str], Mapper] = {}
_LIVE: dict[Place, tuple[str, Fragment]] = {}
MANY_OBJECTS = 20_000


def _set_aside() -> None:
    """Exempts all there is from later garbage collections, once much has come to be.

    Spark's daemon collects after every task, and to look through the modules, kernels and plan that a
    worker has loaded for good takes longer than most epochs.
    """
    if len(gc.get_objects()) > MANY_OBJECTS:
        gc.collect()
        gc.freeze()


def mapper(job: Job, fingerprint: str) -> Mapper:
    """Stage 0 for a source, made once per worker."""
    place = (job.name, fingerprint)
    if place not in _MAPPERS:
        _forget_old(job.name)
        _MAPPERS[place] = Mapper(job.stages, job.source(fingerprint), job.buckets, secret_of(job))
    return _MAPPERS[place]


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


def _forget_old(name: str) -> None:
    """Lets go of queries that this worker served long ago."""
    names = list(dict.fromkeys([*(n for n, _ in _MAPPERS), *(n for n, _, _ in _LIVE)]))
    for old in [n for n in names if n != name][:-MOST_JOBS]:
        for place in [p for p in _MAPPERS if p[0] == old]:
            del _MAPPERS[place]
        for held in [p for p in _LIVE if p[0] == old]:
            _LIVE.pop(held)[1].release()


def packets_of(job: Job, fingerprint: str, raw: Raw, order: tuple[Any, ...]) -> pa.RecordBatch:
    """The packets that a chunk makes, as a batch of rows for Spark."""
    with telling(job.source(fingerprint)):
        rows = [p for whole in mapper(job, fingerprint).map(raw, order) for p in whole.split()]
    return as_batch(rows, job.keys)


def unread_report(job: Job, fingerprint: str, pruning: Pruning) -> pa.RecordBatch:
    """What was not read, or before others, on its way to whoever watches the query."""
    source = job.source(fingerprint)
    told = {"source": source.step, "rows": pruning.rows, "bytes": pruning.bytes, "groups": pruning.groups}
    told |= {"first": pruning.moved}
    return as_batch([Packet(0, UNREAD, 0, uuid.uuid4().hex, 0, told)], job.keys)


def as_batch(packets: list[Packet], keys: list[int]) -> pa.RecordBatch:
    """Packets as rows; each goes to the partition of its bucket."""
    rows = [(keys[p.bucket], *p.to_row()) for p in packets]
    columns = [[row[i] for row in rows] for i in range(len(KEYED_ROWS))]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, KEYED_ROWS, strict=True)], schema=KEYED_ROWS
    )


def run_bucket(
    job: Job, stage: int, key: int, rows: Iterator[pd.DataFrame], store: Store
) -> Iterator[pd.DataFrame]:
    """One epoch of one bucket: its packets through its fragment; others are passed on.

    Behind the last stage, what goes backwards is written to the loop log.
    """
    import pandas as pd

    mine: list[Row] = []
    returning: list[pd.DataFrame] = []
    logs = bool(job.loop) and stage == job.last
    for frame in rows:
        others = frame[frame["stage"] != stage]
        if logs:
            returning.append(others[others["stage"] < 0])
            others = others[others["stage"] >= 0]
        if len(others):
            yield others[KEYED_ROWS.names]
        for row in frame[frame["stage"] == stage].itertuples(index=False):
            cells: Any = row
            mine.append(tuple(cells[1:]))
    bucket = job.keys.index(key)
    out = _step(job, stage, bucket, mine, store) if mine else []
    if logs:
        returning.append(_frame(job, bucket, [row for row in out if row[0] < 0]))
        _log(job, bucket, pd.concat(returning))
        out = [row for row in out if row[0] >= 0]
    if out:
        yield _frame(job, bucket, out)


def _step(job: Job, stage: int, bucket: int, rows: list[Row], store: Store) -> list[Row]:
    """One epoch of a bucket, here or where a sibling holds its fragment; the store has what changed."""
    _set_aside()
    neighbours.know(job.name, job.seal)
    place, held = (job.name, stage, bucket), store.stamp()
    worked = None if held is None else _work_on(place, held, rows, job.closes)
    if worked is None and held is not None:
        worked = neighbours.ask(place, held, rows, job.closes)
    if worked is None:
        fragment = _restored(job, stage, bucket, None if held is None else store.read())
        worked = _work(place, fragment, rows, job.closes)
    if job.loop:
        ignored = {READERS: job.stages.readers, **worked.ignored} if worked.ignored else {}
        _tell(job, f"{stage}-{bucket}{IGNORED}", json.dumps(ignored), "{}")
        _tell(job, f"{stage}-{bucket}{SUPPRESSED}", json.dumps(worked.suppressed), "[]")
        if job.wishes:
            note_wanted(job, stage, bucket, worked.wanted)
    if job.ahead is not None and bucket == 0:
        note_progress(job, stage, worked.reached)
    store.write(worked.chunks, worked.stamp)
    return worked.rows


def _work_on(place: Place, stamp: str, rows: list[Row], closes: bool) -> Worked | None:
    """Steps the live fragment of a place, if it stands where the store does."""
    live = _LIVE.pop(place, None)
    if live is not None and live[0] == stamp:
        return _work(place, live[1], rows, closes)
    if live is not None:
        live[1].release()
    return None


def _work(place: Place, fragment: Fragment, rows: list[Row], closes: bool) -> Worked:
    """One epoch of a fragment, which is live from then on: one that failed half way is not used again."""
    packets = [Packet.from_row(row) for row in rows]
    out = [*fragment.step(packets, closes=closes), fragment.report()]
    ignored = {label: [p.to_json() for p in some] for label, some in fragment.ignored().items()}
    wanted = {label: [p.to_json() for p in some] for label, some in fragment.wanted().items()}
    stamp, rows = uuid.uuid4().hex, [p.to_row() for p in out]
    told = (ignored, fragment.reached(), wanted, fragment.suppressed())
    worked = Worked(rows, fragment.snapshot(), stamp, *told)
    _LIVE[place] = (stamp, fragment)
    neighbours.tell(place, stamp, _work_on)
    return worked


def _restored(job: Job, stage: int, bucket: int, chunks: dict[str, bytes] | None) -> Fragment:
    """A fragment as the store has it, or a new one."""
    _forget_old(job.name)
    secret = secret_of(job)
    own = (job.stages, stage, bucket, job.buckets, secret)
    fragment = Fragment(*own, speculate=job.speculate, wakes=job.wakes)
    if chunks is not None:
        if chunks.get("query/secret", secret.key) != secret.key:
            raise StreamError(
                "the state of this checkpoint was saved under another secret than the one beside it.",
                remedy=f"Put the file {SECRET} of its first start back, or start with a new checkpoint.",
            )
        fragment.restore(chunks)
    return fragment


def _tell(job: Job, name: str, text: str, nothing: str) -> None:
    """Lets others know, from the next epoch on, how this bucket stands."""
    log = LoopLog(job.loop)
    if (log.noted(name) or nothing) != text:
        log.note(name, text)


def pruning(job: Job, source: Source) -> Pruning | None:
    """What a source need not read in this epoch; None where it reads everything."""
    if not job.loop:
        return None
    log = LoopLog(job.loop)
    said: dict[tuple[int, int], Ignored] = {}
    for stage in range(1, len(job.stages.stages)):
        for bucket in range(job.buckets):
            text = log.noted(f"{stage}-{bucket}{IGNORED}")
            if text is None:
                continue
            told = json.loads(text)
            if told.pop(READERS, None) != job.stages.readers:
                continue
            said[stage, bucket] = {label: [Pattern.from_json(p) for p in ps] for label, ps in told.items()}
    patterns = unneeded_rows(job.stages, source, said, job.buckets)
    wanted = wanted_of(job, source) if job.wishes and orders(source) else []
    return source.pruned_by(lambda: patterns, lambda: wanted) if patterns or wanted else None


def _frame(job: Job, bucket: int, rows: list[Row]) -> pd.DataFrame:
    """Packets as a frame; what leaves or goes backwards stays with the bucket that sent it."""
    import pandas as pd

    table = [(job.keys[row[2] if row[0] > 0 else bucket], *row) for row in rows]
    narrow = {column.name: "int32" for column in KEYED_ROWS if column.type == pa.int32()}
    return pd.DataFrame(table, columns=KEYED_ROWS.names).astype(narrow)


def _log(job: Job, bucket: int, returning: pd.DataFrame) -> None:
    """Writes what goes backwards, addressed to the epoch that will take it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    epoch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    query = query_here()
    if epoch is None or query is None:
        raise StreamError(
            "a plan in which something goes backwards runs only as a streaming query.",
            remedy="Use start(...), with trigger='available' to stop at the end of the input.",
        )
    log = LoopLog(job.loop)
    log.own(str(query))
    if len(returning) == 0:
        log.write(int(epoch), bucket, None)
        return
    rows = returning.assign(stage=~returning["stage"], key=[job.keys[b] for b in returning["bucket"]])
    batch = pa.RecordBatch.from_pandas(rows[KEYED_ROWS.names], schema=KEYED_ROWS, preserve_index=False)
    log.write(int(epoch), bucket, batch)


class Store:
    """The chunks of one bucket in Spark's state store, as text: bytes come back from it more slowly."""

    def __init__(self, handle: Any) -> None:
        self._chunks = handle.getMapState("chunks", "name string", "data string")
        self._stamp = handle.getValueState("stamp", "stamp string")

    def stamp(self) -> str | None:
        held = self._stamp.get()
        return None if held is None else str(held[0])

    def read(self) -> dict[str, bytes]:
        """All chunks, one at a time: an iterator over them would hold thousands in one message."""
        keys = self._chunks.keys()
        names = [str(key[0]) for key in keys]
        return {name: from_text(self._chunks.getValue((name,))[0]) for name in names}

    def write(self, chunks: dict[str, bytes | None], stamp: str) -> None:
        for name, data in chunks.items():
            if data is None:
                if self._chunks.containsKey((name,)):
                    self._chunks.removeKey((name,))
            else:
                self._chunks.updateValue((name,), (as_text(data),))
        self._stamp.update((stamp,))


def as_text(data: bytes) -> str:
    """Bytes as the state store holds them."""
    return b64encode(data).decode("ascii")


def from_text(text: str) -> bytes:
    """What `as_text` took."""
    return b64decode(text)


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """A task that reads a source."""
    _set_aside()
    with telling(source):
        yield


@contextmanager
def telling(source: Source) -> Iterator[None]:
    """Errors while a source is read name it and the user's line, and survive the way home."""
    try:
        yield
    except CaesuraError as error:
        raise failed(error.at(source.step, source.place)) from error


@contextmanager
def told() -> Iterator[None]:
    """Errors that survive the way home."""
    try:
        yield
    except CaesuraError as error:
        raise failed(error) from error


def failed(error: Exception) -> Exception:
    """An error of ours as one line that survives the way through the JVM."""
    if isinstance(error, CaesuraError):
        return RuntimeError(f"CAESURA<<{type(error).__name__}|{error}>>")
    return error
