"""What the steps of a checkpoint hold: Spark's state store, read through its `statestore` data source, and
the files that it names.

A checkpoint keeps, per bucket, named chunks. Those under a step's fingerprint are its own: tables of
rows (which are decoded), and notes such as its promises. `caesura.json` says which step it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import StreamError, closest
from caesura.events.stored import is_run, stored_rows
from caesura.io.places import Place
from caesura.spark.errors import ours
from caesura.spark.host.checkpoint import NAME, read_plan, spark_folder
from caesura.spark.host.moved import refuse_moved
from caesura.spark.worker.bucket_keys import bucket_keys
from caesura.spark.worker.chunk_files import FOLDER, FileRow, MissingFileError, read_named
from caesura.spark.worker.state_store import ROW, STAMP, from_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Buckets = dict[int, dict[str, bytes]]
"""Chunks by bucket."""


@dataclass(frozen=True)
class Held:
    """One table of one step in one bucket."""

    step: str
    stage: int
    place: str
    bucket: int
    table: str
    rows: pa.Table
    bytes: int

    def to_json(self) -> dict[str, Any]:
        own = {"step": self.step, "stage": self.stage, "place": self.place, "bucket": self.bucket}
        return {**own, "table": self.table, "count": self.rows.num_rows, "bytes": self.bytes}


def read_state(spark: SparkSession, checkpoint: str | Path, step: str | None = None) -> list[Held]:
    """Every table that the steps of a checkpoint hold as of the last epoch, or those of one step.

    Parameters
    ----------
    spark
        The session.
    checkpoint
        The folder that was ``checkpoint=`` when the query was started.
    step
        One step, by name.

    Returns
    -------
    list of Held
        ``step``, ``stage``, ``bucket``, ``table``, ``rows`` and ``bytes`` of each.

    Examples
    --------
    Of a query that was stopped::

        for held in read_state(spark, "state/", "tumbling"):
            print(held.bucket, held.rows.num_rows)
    """
    place = Place.of(checkpoint)
    saved_plan, folder = plan_of(place), spark_folder(place)
    refuse_moved(folder, place)
    place = folder
    stores = sorted(int(e.name) for e in (place / "state").entries() if e.name.isdigit())
    keys = bucket_keys(saved_plan["buckets"])
    held: list[Held] = []
    for store in stores:
        for bucket, chunks in _buckets(spark, place, store, keys).items():
            held += tables(saved_plan.get("steps", {}), bucket, chunks)
    names = {one.step for one in held} | {s["step"] for s in saved_plan.get("steps", {}).values()}
    if step is not None and step not in names:
        raise StreamError(f"the checkpoint has no step '{step}'.", remedy=closest(step, names))
    held = [one for one in held if step is None or one.step == step]
    return sorted(held, key=lambda one: (one.stage, one.step, one.bucket, one.table))


def plan_of(checkpoint: Place) -> dict[str, Any]:
    """What a checkpoint belongs to; refuses a folder that is none."""
    saved_plan = read_plan(checkpoint)
    if saved_plan is None:
        raise StreamError(
            f"'{checkpoint}' is no checkpoint of Caesura: it has no {NAME}.",
            remedy="Give the folder that was checkpoint= when the query was started.",
        )
    return saved_plan


def _buckets(spark: SparkSession, checkpoint: Place, store: int, keys: list[int]) -> Buckets:
    """The chunks of one stateful stage, by bucket."""
    try:
        return _version(spark, checkpoint, store, keys)
    except MissingFileError:  # the query runs, and has gone on so far that the file is not retained any more
        return _version(spark, checkpoint, store, keys)


def _version(spark: SparkSession, checkpoint: Place, store: int, keys: list[int]) -> Buckets:
    """The same as of the last epoch."""
    source = spark.read.format("statestore").option("operatorId", store).option("stateVarName", "chunks")
    try:
        rows = source.load(checkpoint.hadoop).select("key", "user_map_key", "user_map_value").collect()
    except Exception as error:
        raise ours(error) from error
    found: Buckets = {}
    for key, name, data in rows:
        chunks = found.setdefault(keys.index(int(key[0])), {})
        if name[0] == ROW:
            chunks |= read_named(checkpoint / FOLDER, FileRow.of_text(data[0]))
        elif name[0] != STAMP:
            chunks[str(name[0])] = from_text(data[0])
    return found


def tables(steps: dict[str, Any], bucket: int, chunks: dict[str, bytes]) -> list[Held]:
    """The tables among the chunks of one bucket."""
    runs: dict[tuple[str, str], dict[str, bytes]] = {}
    for name, data in chunks.items():
        owner, table, run = _parts(name)
        if is_run(run):
            runs.setdefault((owner, table), {})[run] = data
    return [_held(steps, owner, table, bucket, mine) for (owner, table), mine in runs.items()]


def _parts(name: str) -> tuple[str, str, str]:
    """Whose chunk it is, of which table, and which part of it."""
    pieces = name.split("/")
    owner, rest = ("/".join(pieces[:2]), pieces[2:]) if len(pieces) > 2 else (name, [])
    return owner, "/".join(rest[:-2]), "/".join(rest[-2:])


def _held(steps: dict[str, Any], owner: str, table: str, bucket: int, runs: dict[str, bytes]) -> Held:
    place, fingerprint = owner.split("/", 1)
    rows, size = stored_rows(runs), sum(map(len, runs.values()))
    if place == "query" and fingerprint in steps:
        own = steps[fingerprint]
        return Held(own["step"], own["stage"], own["place"], bucket, table, rows, size)
    where = "gate" if place == "gate" else fingerprint
    return Held(where, 0, "", bucket, table or fingerprint, rows, size)


def total(held: Iterable[Held]) -> int:
    """How many rows all tables hold."""
    return sum(one.rows.num_rows for one in held)
