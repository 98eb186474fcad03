"""Loops whose rows lie in all buckets, over hops that change bucket: at rest, the rows of one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_plans as given
from killed_run import ways

import caesura as cz
from caesura import col
from caesura.events import History
from caesura.plan import Node
from caesura.runtime.query.result import run
from caesura.spark import MemorySink, start

LONG = pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="one bucket count shows it")


def chain(folder: Path, links: int) -> dict[str, Node]:
    """What lies behind the first of a row of links: each node once, and how far it is."""
    rows = [{"ts": 1, "a": n, "b": n + 1, "w": 1} for n in range(links)]
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "links.parquet")
    read = cz.read.parquet(folder, time="ts", punctuate=cz.delay(4), name="links").set_duration(50)
    roads = read.where(col("w") >= 0)
    seed = read.where(col("a") == 0).select(node=col("a"), far=col("w") - 1)

    def hop(r: cz.Stream) -> cz.Stream:
        return r.join(roads, on={"node": "a"}).select(node=col("b"))

    def drive(r: cz.Stream) -> cz.Stream:
        return r.join(roads, on={"node": "a"}).select(node=col("b"), far=col("far") + col("w"))

    far = cz.fixpoint(seed, drive, keep=cz.least("far", per="node"), buckets="all")
    met = cz.fixpoint(seed.select("node"), hop, keep="distinct", buckets="all")
    return {"met": met.node, "far": far.node}


@pytest.mark.parametrize("count", [2, pytest.param(1, marks=LONG), pytest.param(5, marks=LONG)])
def test_a_loop_across_buckets_that_has_come_to_rest_has_given_all_its_rows(
    spark: Any, buckets: Any, tmp_path: Path, count: int
) -> None:
    buckets(count)
    outputs = chain(tmp_path / "in", 6)
    assert _at_rest(outputs, spark, tmp_path) == {name: run(node).history for name, node in outputs.items()}


@LONG
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_loop_across_buckets_says_what_one_process_says(
    spark: Any, buckets: Any, tmp_path: Path, count: int
) -> None:
    buckets(count)
    given.write(given.readings(120, seed=7), tmp_path / "in", [70])
    node = ways(tmp_path).node
    assert _at_rest({"out": node}, spark, tmp_path) == {"out": run(node).history}


def _at_rest(outputs: dict[str, Node], spark: Any, folder: Path) -> dict[str, History]:
    """The whole histories when all files are read and nothing goes around any more."""
    sink = MemorySink()
    query = start(outputs, spark, sink=sink, checkpoint=folder / "cp", trigger="available")
    query.wait()
    return {name: History.of(sink.items(name), node.schema) for name, node in outputs.items()}
