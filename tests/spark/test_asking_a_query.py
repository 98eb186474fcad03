"""What a query on Spark is asked and told, without Spark: the query that runs is played."""

from __future__ import annotations

import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.events.page import Page
from caesura.io.places import Place
from caesura.plan import walk
from caesura.spark import MemorySink, SparkQuery
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.host import make_job
from caesura.spark.host.part import SparkPart
from caesura.spark.host.replay import read_again_on_spark
from caesura.spark.host.shape import shape_of_job


class Played:
    """A streaming query of Spark that has run one epoch."""

    id = "7f"
    isActive = True  # noqa: N815 - as Spark calls it
    lastProgress: ClassVar[dict[str, Any]] = {  # noqa: N815
        "batchId": 0,
        "durationMs": {"triggerExecution": 1500},
    }

    def stop(self) -> None:
        self.isActive = False

    def awaitTermination(self, seconds: int | None = None) -> bool:
        return not self.isActive


def played(folder: Path) -> SparkQuery:
    node = cz.from_rows([{"ts": 1, "id": 7}], time="ts").tumbling(10).agg(n=cz.count()).node
    options: dict[str, Any] = {"speculate": "watermark", "closes": False, "takes_feedback": True}
    job = make_job({"out": node}, 1, loop=str(folder), **options)
    running: Any = Played()
    return SparkQuery(running, MemorySink(), [], CheckpointFeedback.of(job, {"out": node}), {"out": node})


def test_a_demand_waits_in_the_loop_log_for_the_next_epoch(tmp_path: Path) -> None:
    query = played(tmp_path)
    query.demand("n > 3")
    assert len(list(tmp_path.rglob("*.feedback"))) == 1
    assert query.feedback() == []  # it is answered once, and does not stand
    assert query.speaker().outputs() == ["out"]


def test_a_query_tells_how_it_stands_until_it_is_closed(tmp_path: Path) -> None:
    query = played(tmp_path)
    assert query.progress()["batchId"] == query.status().epoch == 0
    url = query.serve_metrics(0).url
    assert b"caesura_epochs_total" in urllib.request.urlopen(url).read()
    assert not query.wait(1)
    query.close()
    assert not query.active and query.wait(1)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url)


def test_a_query_is_watched_until_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = played(tmp_path)
    query.stop()
    query.watch(every=0.01)
    assert "epoch 0" in capsys.readouterr().out


def test_rows_between_steps_are_the_last_files_run_through_the_plan_here(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in (0, 1):
        ts = list(range(number * 10, number * 10 + 10))
        pq.write_table(pa.table({"ts": ts, "id": [t % 3 for t in ts]}), tmp_path / "in" / f"{number}.parquet")
        _put(tmp_path, f"offsets/{number}", "v1", '{"conf": {}}', f'{{"logOffset": {number}}}')
        path = (tmp_path / "in" / f"{number}.parquet").as_uri()
        _put(
            tmp_path,
            f"sources/0/{number}",
            "v1",
            f'{{"path": "{path}", "timestamp": 1, "batchId": {number}}}',
        )
    clicks = cz.read.parquet(tmp_path / "in", time="ts", punctuate=cz.delay(5), name="clicks")
    node = clicks.where("id > 0").group_by("id").tumbling(10).agg(n=cz.count()).node
    job = make_job({"out": node}, 2, speculate="watermark", closes=False)
    running: Any = Played()
    query = SparkQuery(running, MemorySink(), [], CheckpointFeedback.of(job, {"out": node}), {"out": node})
    query.planned = job.stages.outputs
    query.reread = partial(read_again_on_spark, SparkPart(Place.of(tmp_path), Place.of(tmp_path)), job)
    assert dict(query.replay(15).rows) == {"clicks": 15} and dict(query.replay().rows) == {"clicks": 20}
    shown = query._stretch_rows()
    steps = list(walk(*job.stages.outputs.values()))
    counts = [sum(len(i) for i in shown.rows(n).items if isinstance(i, Page)) for n in range(len(steps))]
    assert counts[:2] == [20, 13] and all(counts)
    assert shape_of_job(job.stages, 2).steps[1].label == steps[1].step == "where"


def _put(folder: Path, name: str, *lines: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines))
