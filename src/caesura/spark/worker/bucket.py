"""One bucket of a stage in a Spark worker: its packets of an epoch through its fragment.

Live fragments stay in the worker between epochs. A fragment is used again only if its stamp equals
the one that the state store holds, here or in a sibling that is asked to step it (`neighbours`): a
retried task finds another stamp and restores from the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import StreamError
from caesura.events.chunks import Chunks
from caesura.plan import Node
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.packets.packet import KEYED_ROWS, Packet, Row
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import IgnoredRows, SuppressedRows
from caesura.spark.worker import neighbours
from caesura.spark.worker.admission import note_progress
from caesura.spark.worker.job import (
    SECRET,
    Job,
    chunk_files,
    epoch_here,
    partitions_here,
    query_here,
    refuse_partitions,
    secret_of,
)
from caesura.spark.worker.live import FRAGMENTS, LiveFragment, exempt_from_collection, forget_old
from caesura.spark.worker.neighbours import BucketKey, Worked
from caesura.spark.worker.priority import note_wanted
from caesura.spark.worker.saving import SavingOrder, saved, saving_here
from caesura.spark.worker.state_store import ChunkStore

if TYPE_CHECKING:
    import pandas as pd


def run_bucket(
    job: Job, stage: int, key: int, rows: Iterator[pd.DataFrame], store: ChunkStore
) -> Iterator[pd.DataFrame]:
    """One epoch of one bucket: its packets through its fragment; others are passed on.

    Behind the last stage, what goes backwards is written to the loop log.
    """
    import pandas as pd

    mine: list[Row] = []
    leaving: list[Row] = []
    returning: list[pd.DataFrame] = []
    logs = bool(job.loop) and stage == job.last
    saving = saving_here() if stage == job.last else ""
    for frame in rows:
        others = frame[frame["stage"] != stage]
        if logs:
            returning.append(others[others["stage"] < 0])
            others = others[others["stage"] >= 0]
        if saving:
            leaving += _rows(others)
        elif len(others):
            yield others[KEYED_ROWS.names]
        mine += _rows(frame[frame["stage"] == stage])
    bucket = job.keys.index(key)
    if mine:
        out = _step(job, stage, bucket, mine + leaving, store, saving)
    else:
        out = _leaving(leaving, [], job.stages.outputs, bucket, saving)
    if logs:
        returning.append(_frame(job, bucket, [row for row in out if row[0] < 0]))
        _log(job, bucket, pd.concat(returning))
        out = [row for row in out if row[0] >= 0]
    if out:
        yield _frame(job, bucket, out)


def _rows(frame: pd.DataFrame) -> list[Row]:
    """The packets of a frame, without their keys."""
    return [tuple(cells[1:]) for cells in frame.itertuples(index=False, name=None)]


def _step(job: Job, stage: int, bucket: int, rows: list[Row], store: ChunkStore, saving: str) -> list[Row]:
    """One epoch of a bucket, here or where a sibling holds its fragment; the store has what changed."""
    exempt_from_collection()
    refuse_partitions(job, partitions_here())
    neighbours.know(job.name, job.seal)
    place, held = (job.name, stage, bucket), store.stamp()
    files = chunk_files(job, stage, bucket)
    worked = None if held is None else _work_on(place, held, rows, job.closes, saving)
    if worked is None and held is not None:
        worked = neighbours.ask(place, held, rows, job.closes, saving)
    moved: Chunks = {}
    if worked is None:
        chunks, moved = job.carried.over(store.read(files))
        fragment = _restored(job, stage, bucket, chunks)
        worked = _work(place, fragment, rows, job.closes, saving)
    _publish(job, stage, bucket, worked)
    store.write({**moved, **worked.chunks}, worked.stamp, files)
    return worked.rows


def _work_on(place: BucketKey, stamp: str, rows: list[Row], closes: bool, saving: str) -> Worked | None:
    """Steps the live fragment of a place, if it stands where the store does."""
    live = FRAGMENTS.pop(place, None)
    if live is not None and live.stamp == stamp:
        return _work(place, live.fragment, rows, closes, saving)
    if live is not None:
        live.fragment.release()
    return None


def _work(place: BucketKey, fragment: Fragment, rows: list[Row], closes: bool, saving: str) -> Worked:
    """One epoch of a fragment, which is live from then on: one that failed half way is not used again."""
    _, stage, bucket = place
    packets = [Packet.from_row(row) for row in rows if row[0] == stage]
    out = [*fragment.step(packets, closes=closes), fragment.report(), *fragment.observed()]
    feedback = fragment.feedback
    about = (feedback.ignored(), fragment.reached(), feedback.wanted(), fragment.suppressed())
    leaving = [row for row in rows if row[0] != stage]
    stamp, rows = uuid.uuid4().hex, _leaving(leaving, out, fragment.stages.outputs, bucket, saving)
    worked = Worked(rows, fragment.snapshot(), stamp, *about)
    FRAGMENTS[place] = LiveFragment(stamp, fragment)
    neighbours.tell(place, stamp, _work_on)
    return worked


def _leaving(
    before: list[Row], out: list[Packet], outputs: Mapping[str, Node], bucket: int, saving: str
) -> list[Row]:
    """What goes on from a bucket, behind what came to it so: packets, or what was written of them."""
    if saving:
        packets = chain(map(Packet.from_row, before), out)
        return [p.to_row() for p in saved(SavingOrder.of_text(saving), outputs, bucket, packets)]
    return before + [p.to_row() for p in out]


def _restored(job: Job, stage: int, bucket: int, chunks: dict[str, bytes] | None) -> Fragment:
    """A fragment as the store has it, or a new one."""
    forget_old(job.name)
    secret = secret_of(job)
    own = (job.stages, stage, bucket, job.buckets, secret)
    options: dict[str, Any] = {"netted": job.netted, "state_memory": job.state_memory}
    options["owner"] = query_here() or ""
    fragment = Fragment(*own, speculate=job.speculate, wakes=job.wakes, **options)
    if chunks is not None:
        fragment.owner.restore(chunks)
        _refuse_secret(job, chunks.get("query/secret", secret.key) == secret.key)
        fragment.restore(chunks)
    return fragment


def _refuse_secret(job: Job, same: bool) -> None:
    """Refuses state that was saved under another secret, by another way of starting a query."""
    if not same and job.secret is None:
        raise StreamError(
            "the state of this checkpoint was saved by start(...), and to_spark(...) would go on with it.",
            remedy="Go on with start(spark, checkpoint=...), or write the DataFrame with a new checkpoint.",
        )
    if not same:
        raise StreamError(
            "the state of this checkpoint was saved under another secret than the one beside it.",
            remedy=f"Put the file {SECRET} of its first start back, or start with a new checkpoint.",
        )


def _publish(job: Job, stage: int, bucket: int, worked: Worked) -> None:
    """Lets others know, from the next epoch on, how this bucket stands."""
    if job.loop:
        log, ignored = LoopLog(job.loop, job.fence), IgnoredRows(job.stages.readers, worked.ignored)
        log.save(IgnoredRows.name(stage, bucket), ignored)
        log.save(SuppressedRows.name(stage, bucket), SuppressedRows(worked.suppressed))
        if job.priorities:
            note_wanted(job, stage, bucket, worked.wanted)
    if job.ahead is not None and bucket == 0:
        note_progress(job, stage, worked.reached)


def _frame(job: Job, bucket: int, rows: list[Row]) -> pd.DataFrame:
    """Packets as a frame; what leaves or goes backwards stays with the bucket that sent it."""
    import pandas as pd

    table = [(job.keys[row[2] if row[0] > 0 else bucket], *row) for row in rows]
    narrow = {column.name: "int32" for column in KEYED_ROWS if column.type == pa.int32()}
    return pd.DataFrame(table, columns=KEYED_ROWS.names).astype(narrow)


def _log(job: Job, bucket: int, returning: pd.DataFrame) -> None:
    """Writes what goes backwards, addressed to the epoch that will take it."""
    epoch, query = epoch_here(), query_here()
    if epoch < 0 or query is None:
        raise StreamError(
            "something goes back to an earlier stage (a loop, feedback), as only a streaming query can.",
            remedy="Use start(...), with trigger='available' to stop at the end of the input.",
        )
    log = LoopLog(job.loop, job.fence)
    log.own(str(query))
    if len(returning) == 0:
        log.write(epoch, bucket, None)
        return
    rows = returning.assign(stage=~returning["stage"], key=[job.keys[b] for b in returning["bucket"]])
    batch = pa.RecordBatch.from_pandas(rows[KEYED_ROWS.names], schema=KEYED_ROWS, preserve_index=False)
    log.write(epoch, bucket, batch)
