"""What Spark's ``observedMetrics`` says of our queries: true rows and promises, and what `observe` counts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_plans as given

import caesura as cz
from caesura.io.sinks.protocol import LATE
from caesura.spark.host.observing import told_by_name

FILES = [30, 170, 290]


def _plan(folder: Path) -> cz.Stream:
    read = cz.read.parquet(folder, time="ts", punctuate=cz.delay(2), name="readings")
    seen = read.observe("seen", n=cz.count(), fast=cz.count(where="mph > 20"), total=cz.sum("mph"))
    windows = seen.observe(
        "speeds", top=cz.max("mph"), mean=cz.avg("mph"), seg=cz.sum("seg"), segs=cz.avg("seg")
    )
    return windows.group_by("seg").tumbling(10).agg(n=cz.count()).observe("windows", rows=cz.sum("n"))


def _told(query: Any, name: str) -> list[dict[str, Any]]:
    """What Spark said of each epoch that had data."""
    recent = [told_by_name(one["observedMetrics"]) for one in query.query.recentProgress]
    return [told[name] for told in recent if told]


def _written(folder: Path, *, late: bool) -> int:
    """How many rows the sink has files of."""
    files = [file for file in (folder / "out").rglob("*.parquet") if (LATE in file.parts) == late]
    return sum(pq.read_metadata(file).num_rows for file in files)


def _added(told: list[dict[str, Any]], name: str) -> Any:
    return sum(one[name] or 0 for one in told)


@pytest.fixture(scope="module")
def epochs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A query over four files, an epoch each, and the same plan in this process."""
    folder = tmp_path_factory.mktemp("observed")
    given.write(given.readings(), folder / "in", FILES)
    options: dict[str, Any] = {"sink": folder / "out", "checkpoint": folder / "checkpoint"}
    options |= {"trigger": "available", "files_per_epoch": 1, "allow_unbounded": True}
    query = _plan(folder / "in").start(spark, **options)
    query.wait()
    return folder, query, options


def test_spark_tells_true_rows_of_each_epoch(epochs: Any) -> None:
    folder, query, _ = epochs
    told = _told(query, "caesura")
    edges = [0, *FILES, given.readings().num_rows]
    assert [one["rows_in"] for one in told] == [b - a for a, b in pairwise(edges)]
    late = _written(folder, late=True)
    assert _added(told, "late") == late > 0
    assert _added(told, "rows_out") == _written(folder, late=False) > 0


def test_spark_tells_the_promise_of_each_epoch(epochs: Any) -> None:
    _, query, _ = epochs
    bounds = [one["promised"] for one in _told(query, "caesura")]
    assert (
        bounds == sorted(bounds) and query.progress()["observedMetrics"]["caesura"]["promised"] == bounds[-1]
    )
    assert bounds[-1] == min(
        step.promised for name, step in query.status().steps.items() if name == "windows"
    )


def test_what_is_observed_on_spark_is_what_is_observed_here(epochs: Any) -> None:
    folder, query, _ = epochs
    here = _plan(folder / "in").run().observed
    assert query.status().observed == here
    told = {name: _told(query, name) for name in here}
    assert _added(told["seen"], "n") == here["seen"]["n"]
    assert _added(told["seen"], "total") == pytest.approx(here["seen"]["total"])
    assert max(one["top"] for one in told["speeds"]) == here["speeds"]["top"]
    assert _added(told["speeds"], "seg") == here["speeds"]["seg"]
    assert _added(told["windows"], "rows") == here["windows"]["rows"]


def test_a_restart_tells_of_its_own_epochs_and_counts_on(epochs: Any, spark: Any) -> None:
    folder, query, options = epochs
    before = query.status().observed["seen"]["n"]
    more = pa.Table.from_pylist(
        [{"ts": 500 + i, "seg": 1, "car": "a", "mph": 30.0} for i in range(12)], given.READINGS
    )
    pq.write_table(more, folder / "in" / "later.parquet")
    again = _plan(folder / "in").start(spark, **options)
    again.wait()
    assert [one["rows_in"] for one in _told(again, "caesura")] == [12]
    assert [one["n"] for one in _told(again, "seen")] == [12]
    assert [(one["mean"], one["segs"]) for one in _told(again, "speeds")] == [(30.0, 1.0)]
    assert again.status().observed["seen"]["n"] == before + 12


def test_a_batch_observes_too(epochs: Any, spark: Any) -> None:
    folder, _, _ = epochs
    plan = _plan(folder / "in")
    assert plan.run_batch(spark).observed == plan.run().observed
