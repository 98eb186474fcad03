"""A query on Spark under its name, with metrics that Prometheus reads, until it is told to finish."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spark_plans as given
from prometheus_client.parser import text_string_to_metric_families
from served_console import Client

import caesura as cz
from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.runtime.metrics.saved_status import SavedFigures
from caesura.spark import StatusListener


def _descriptions(spark: Any) -> set[str]:
    """What Spark's pages call the jobs of this session."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    told = (jobs.apply(number).description() for number in range(jobs.size()))
    return {text.get() for text in told if text.isDefined()}


def _await(holds: Callable[[], bool]) -> None:
    """Listeners are told a moment later, by a thread of Spark's."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("the listener was not told within a minute")


def _heard(spark: Any, said: dict[str, int]) -> Any:
    """A listener that notes how many rows each query has read."""

    def note(name: str, status: Any) -> None:
        said[name] = sum(source.rows for source in status.sources.values())

    listener = StatusListener(note)
    spark.streams.addListener(listener)
    return listener


def test_a_named_query_shows_its_figures_and_finishes(spark: Any, tmp_path: Path) -> None:
    said: dict[str, int] = {}
    listener = _heard(spark, said)
    given.write(given.readings(), tmp_path / "in", [30, 170])
    read = cz.read.parquet(tmp_path / "in", time="ts", punctuate=cz.delay(5), name="readings")
    plan = read.group_by("seg").tumbling(10).agg(n=cz.count())
    options: dict[str, Any] = {"sink": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    query = plan.start(spark, name="speeds", metrics_port=0, allow_unbounded=True, **options)
    with pytest.raises(StreamError, match="a query called 'speeds' runs in this session already"):
        plan.start(spark, name="speeds", sink=tmp_path / "other")
    query.drain()
    assert "speeds, epoch 0: readings | tumbling" in _descriptions(spark)
    _await(lambda: said == {"speeds": given.readings().num_rows})
    spark.streams.removeListener(listener)
    text = urllib.request.urlopen(query.metrics_url).read().decode()
    found = {
        (sample.name, sample.labels.get("source", sample.labels.get("step", ""))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    status = query.status()
    assert found["caesura_source_rows_total", "readings"] == given.readings().num_rows
    assert found["caesura_epochs_total", ""] == status.epoch + 1
    assert {step for name, step in found if name == "caesura_step_rows_out_total"} == set(status.steps)
    assert 'query="speeds"' in text and 'caesura_bucket_rows_in_total{bucket="1"' in text
    assert 'caesura_epoch_part_seconds{part="addBatch"' in text
    url = query.metrics_url
    assert [one.name for one in spark.streams.active if str(one.id) == str(query.query.id)] == ["speeds"]
    saved = SavedFigures(Place.of(tmp_path / "checkpoint"))
    _check_console(query, saved)
    query.finish()
    assert not query.active and not saved.read().active
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url)


def _check_console(query: Any, saved: SavedFigures) -> None:
    """The pages show the same from the query itself and, to other processes, from its checkpoint."""
    status, figures = query.status(), saved.read()
    assert figures.active and saved.name == "speeds" and saved.shape == query.shape
    assert (figures.status.steps, figures.status.sources) == (status.steps, status.sources)
    assert figures.status.epoch == status.epoch and len(figures.buckets) == 2
    assert {step.label for step in saved.shape.steps if step.stage} == set(status.steps)
    (window,) = [step.number for step in saved.shape.steps if step.label == "tumbling"]
    with query.console(open_page=False) as server:
        page = Client(server).follow_link().ask(f"/?look=step-{window}").body
    assert (
        f"{given.readings().num_rows:,} rows read" in page
        and "2 buckets of stage 1" in page
        and "keeps open windows" in page
    )
