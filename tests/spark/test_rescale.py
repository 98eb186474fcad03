"""A stopped query whose buckets are moved goes on exactly where it stood."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import spark_plans as given
from killed_run import plan
from lease_holder import another_process

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.lease import Lease
from caesura.runtime.query.result import run
from caesura.spark.host.rescale import rescale


def _feed(folder: Path, table: Any, numbers: range) -> None:
    (folder / "in").mkdir(exist_ok=True)
    for number in numbers:
        file = folder / "in" / f"{number}.parquet"
        pq.write_table(table.slice(number * 80, 80), file)
        os.utime(file, (1_700_000_000 + number,) * 2)


def _go_on(folder: Path, spark: Any, most: int | None = None) -> None:
    out, place = folder / "out", folder / "checkpoint"
    query = plan(folder).start(
        spark, sink=out, checkpoint=place, output="final", trigger="available", max_buckets=most
    )
    query.wait()


def _refuse_while_another_has_it(folder: Path, spark: Any) -> None:
    with another_process(folder / "checkpoint"):
        with pytest.raises(StreamError, match="in use by process"):
            rescale(spark, folder / "checkpoint", 3)
        with pytest.raises(StreamError, match="in use by process"):
            _go_on(folder, spark)


def _take_over_while_it_runs(folder: Path, table: Any, spark: Any) -> None:
    """A query that another start has deposed commits nothing more."""
    place = folder / "checkpoint"
    query = plan(folder).start(spark, sink=folder / "out", checkpoint=place, output="final")
    query.drain()
    commits = set((folder / "out" / "_commits").iterdir())
    with Lease.take(Place.of(place)):
        _feed(folder, table, range(5, 6))
        with pytest.raises(StreamError, match="was taken over by process"):
            query.drain()
    assert set((folder / "out" / "_commits").iterdir()) == commits


def test_moved_buckets_go_on_and_other_numbers_are_refused(spark: Any, buckets: Any, tmp_path: Path) -> None:
    place, table = tmp_path / "checkpoint", given.readings(480, seed=7)
    _feed(tmp_path, table, range(3))
    buckets(2)
    _go_on(tmp_path, spark, most=5)
    _refuse_while_another_has_it(tmp_path, spark)
    _feed(tmp_path, table, range(3, 5))
    buckets(3)
    with pytest.raises(StreamError, match="2 buckets; this session has 3"):
        _go_on(tmp_path, spark)
    with pytest.raises(StreamError, match="over 1 to 5 buckets, not 6"):
        rescale(spark, place, 6)
    assert rescale(spark, place, 3) == 2
    assert rescale(spark, place, 3) == 3
    _take_over_while_it_runs(tmp_path, table, spark)
    _go_on(tmp_path, spark)

    wanted = run(plan(tmp_path).node, output="final")
    bounds = [i.pattern.time_bound for i in wanted.items if not hasattr(i, "le")]
    bound = max(b for b in bounds if b is not None and b < 2**62)
    got = [tuple(r.values()) for r in pq.read_table(tmp_path / "out" / "out").to_pylist() if r["LE"] < bound]
    assert Counter(got) == Counter(tuple(r.values()) for r in wanted.changes().to_pylist() if r["LE"] < bound)
    assert got
