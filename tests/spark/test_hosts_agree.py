"""Embedded and Spark, any number of buckets, any cut into epochs: the same history, the same late rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import spark_plans as given
from window_plans import window_plans

from caesura.events import History, violations
from caesura.runtime.query.result import run
from caesura.spark import MemorySink, run_all, start


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("streams")
    given.write(given.readings(), base / "readings", [30, 31, 170, 390])
    given.write(given.changes(), base / "changes", [70, 75])
    return base


@pytest.mark.parametrize("count", [1, 5])
def test_a_batch_on_spark_says_what_the_embedded_engine_says(
    spark: Any, buckets: Any, folder: Path, count: int
) -> None:
    buckets(count)
    streams = given.plans(folder)
    results = run_all({name: stream.node for name, stream in streams.items()}, spark)
    for name, stream in streams.items():
        wanted = run(stream.node).history
        assert results[name].history == wanted, (name, results[name].history.difference(wanted))
        assert violations(results[name].items) == []


def test_windows_and_modules_on_spark_say_what_the_embedded_engine_says(
    spark: Any, buckets: Any, folder: Path
) -> None:
    buckets(3)
    streams = window_plans(folder)
    results = run_all({name: stream.node for name, stream in streams.items()}, spark)
    for name, stream in streams.items():
        wanted = run(stream.node).history
        assert len(wanted) > 0, name
        assert results[name].history == wanted, (name, results[name].history.difference(wanted))
        assert violations(results[name].items) == []


def test_aggregates_on_spark_say_what_the_embedded_engine_says(
    spark: Any, buckets: Any, folder: Path
) -> None:
    buckets(3)
    streams = given.aggregate_plans(folder)
    results = run_all({name: stream.node for name, stream in streams.items()}, spark)
    for name, stream in streams.items():
        wanted = run(stream.node).history
        assert len(wanted) > 9, name
        assert results[name].history == wanted, (name, results[name].history.difference(wanted))
        assert violations(results[name].items) == []


def test_epochs_say_the_same_up_to_the_last_promise(spark: Any, buckets: Any, folder: Path) -> None:
    buckets(2)
    streams = given.plans(folder)
    sink = MemorySink()
    query = start(
        {name: stream.node for name, stream in streams.items()},
        spark,
        sink=sink,
        trigger="available",
        files_per_epoch=2,
        allow_unbounded=True,
    )
    query.wait()
    assert len(sink.epochs) >= 3
    for name, stream in streams.items():
        items = sink.items(name)
        assert violations(items) == []
        bound = max((i.pattern.time_bound or 0 for i in items if not hasattr(i, "le")), default=0)
        got, wanted = History.of(items, stream.schema).before(bound), run(stream.node).history.before(bound)
        assert got == wanted, (name, got - wanted, wanted - got)


def test_late_rows_are_kept_with_their_reason(spark: Any, folder: Path) -> None:
    streams = given.plans(folder)
    results = run_all({name: streams[name].node for name in ("whole", "climbs")}, spark)
    got = results["whole"].late["readings"]
    wanted = run(streams["whole"].node).late["readings"]
    assert _bag(got) == _bag(wanted)
    assert got.num_rows > 0
    astray = run(streams["climbs"].node).late["qre"]
    assert _bag(results["climbs"].late["qre"]) == _bag(astray)
    assert astray.num_rows > 0


def _bag(table: Any) -> Counter[tuple[object, ...]]:
    some = table.select(["reason", "LE", "RE", "car", "mph"]).to_pylist()
    return Counter(tuple(row.values()) for row in some)
