"""Tables in memory on their way to workers: a file per table, which Spark brings to each executor once.

A small table travels with the plan. A table in files does not travel: workers read it themselves.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.ops.held import HeldTable, table_below
from caesura.ops.look_up import LookUp
from caesura.plan.node import walk
from caesura.spark.session import over_connect
from caesura.spark.worker.job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = 1 << 16
"""A table of fewer bytes goes with the plan."""


@dataclass(frozen=True)
class SentFile:
    """How a worker gets a table that was sent: from the file that its executor has."""

    name: str

    def __call__(self) -> pa.RecordBatch:
        from pyspark import SparkFiles

        with pa.memory_map(SparkFiles.get(self.name)) as file:
            return pa.ipc.open_file(file).get_batch(0)


def send_tables(spark: SparkSession, job: Job) -> Job:
    """The job, its tables in memory sent ahead of it."""
    nodes = walk(*job.stages.outputs.values())
    held = {node.table.key: node.table for node in nodes if isinstance(node, LookUp)}
    large = {key: table for key, table in held.items() if _travels(table)}
    for key, table in large.items():
        if over_connect(spark):
            spark.addArtifacts(str(_written(key, table)), file=True)
        else:
            spark.sparkContext.addFile(str(_written(key, table)))
    return replace(job, tables={key: SentFile(_name(key)) for key in large}) if large else job


def _travels(table: HeldTable) -> bool:
    if table.node is None:
        return False
    source = table_below(table.node)
    return bool(source.in_memory) and source.known_bytes >= SMALL


@cache
def _folder() -> Path:
    """Where this process writes tables; a name stands for one content as long as it lives."""
    return Path(tempfile.mkdtemp(prefix="caesura-tables-"))


def _name(key: str) -> str:
    return f"caesura-table-{key}.arrow"


def _written(key: str, table: HeldTable) -> Path:
    file = _folder() / _name(key)
    if not file.exists():
        batch = table.batch()
        partial = file.with_suffix(".tmp")
        with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        partial.rename(file)
    return file
