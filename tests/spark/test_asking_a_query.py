"""What a query on Spark is asked and told, without Spark: the query that runs is played."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import pytest

import caesura as cz
from caesura.spark import MemorySink, SparkQuery
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.host import make_job


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
