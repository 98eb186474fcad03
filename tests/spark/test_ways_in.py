"""Each way in × each setting that may change between two starts: right, or refused by name.

Spark itself is not started: a start goes as far as the query that it would launch, and state goes from the
fragments of one job to those of the next. What both hand on is compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError
from caesura.events.identity import Secret
from caesura.runtime.buckets.owner import KeptPlan
from caesura.spark.host import running
from caesura.spark.session import DEFAULTS, check_session
from caesura.spark.worker.bucket import _restored
from caesura.spark.worker.job import Job, refuse_partitions

PARTITIONS = "spark.sql.shuffle.partitions"
SECRET = Secret(bytes(Secret.SIZE))


@dataclass
class Start:
    """How a query is started: the session's settings, the plan, and where things lie."""

    folder: Path
    conf: dict[str, str] = field(default_factory=lambda: {**DEFAULTS, PARTITIONS: "2"})
    minutes: int = 10
    given: str = "in"
    checkpoint: str = "checkpoint"

    @property
    def stream(self) -> Stream:
        rows = cz.read.parquet(self.folder / self.given, time="ts", punctuate=cz.delay("1m"), name="rows")
        return rows.group_by("k").tumbling(f"{self.minutes}m").agg(n=cz.count())

    @property
    def place(self) -> Path:
        return self.folder / self.checkpoint

    @property
    def session(self) -> Any:
        context = SimpleNamespace(master="local[2]", pythonExec=sys.executable)
        return SimpleNamespace(conf=self.conf, sparkContext=context, streams=SimpleNamespace(active=[]))

    @property
    def text(self) -> str:
        return f"""
            CREATE STREAM rows FROM parquet '{self.folder / self.given}' (TIME ts, DELAY '1m');
            CREATE SINK out TO parquet '{self.folder}/out';
            INSERT INTO out SELECT k, count(*) AS n
            FROM TABLE(TUMBLE(TABLE rows, DESCRIPTOR(ts), INTERVAL '{self.minutes}' MINUTE))
            GROUP BY k, window_start, window_end;
        """


def by_method(start: Start) -> None:
    start.stream.start(start.session, sink="memory", checkpoint=start.place)


def by_function(start: Start) -> None:
    cz.spark.start({"out": start.stream.node}, start.session, sink="memory", checkpoint=start.place)


def by_pipeline(start: Start) -> None:
    views = cz.pipeline(counts=start.stream)
    views.start(start.session, path=start.folder / "views", checkpoint=start.place)


def by_script(start: Start) -> None:
    cz.script(start.text).start(start.session, checkpoint=start.place)


WAYS: dict[str, Callable[[Start], None]] = {
    "start": by_method,
    "caesura.spark.start": by_function,
    "pipeline": by_pipeline,
    "script": by_script,
}


def moved(start: Start, name: str) -> None:
    (start.folder / getattr(start, name)).rename(start.folder / "elsewhere")
    setattr(start, name, "elsewhere")


CHANGES: dict[str, tuple[Callable[[Start], None], str]] = {
    "nothing": (lambda start: None, ""),
    "partitions": (lambda start: start.conf.update({PARTITIONS: "4"}), "made with 2 buckets; this"),
    "cores": (lambda start: start.conf.update({PARTITIONS: "16"}), "made with 2 buckets; this"),
    "plan": (lambda start: setattr(start, "minutes", 20), "belongs to another plan"),
    "input": (lambda start: moved(start, "given"), "belongs to another plan"),
    "checkpoint": (lambda start: moved(start, "checkpoint"), ""),
    "time zone": (lambda start: start.conf.update({"spark.sql.session.timeZone": "Asia/Tokyo"}), ""),
    "ANSI": (lambda start: start.conf.update({"spark.sql.ansi.enabled": "false"}), ""),
    "timestampType": (lambda start: start.conf.update({"spark.sql.timestampType": "TIMESTAMP_NTZ"}), ""),
    "AQE": (lambda start: start.conf.update({"spark.sql.adaptive.enabled": "true"}), ""),
}


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that would have been launched."""
    jobs: list[Job] = []

    def launch(job: Job, *_: Any, lease: Any, **__: Any) -> Any:
        jobs.append(job)
        lease.release()
        return SimpleNamespace(shape=None)

    monkeypatch.setattr(running, "launch", launch)
    return jobs


@pytest.fixture
def first(tmp_path: Path) -> Start:
    times = pa.array([60_000_000 * m for m in range(5)], pa.timestamp("us", "UTC"))
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"ts": times, "k": [0, 1, 2, 0, 1]}), tmp_path / "in" / "0.parquet")
    return Start(tmp_path)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", WAYS)
def test_a_start_goes_on_with_the_same_or_is_refused(
    way: str, change: str, first: Start, launched: list[Job]
) -> None:
    make, why = CHANGES[change]
    WAYS[way](first)
    make(first)
    if why:
        with pytest.raises(CaesuraError, match=why):
            WAYS[way](first)
        assert len(launched) == 1
        return
    WAYS[way](first)
    then, now = launched
    assert (then.buckets, KeptPlan.of(then.stages)) == (now.buckets, KeptPlan.of(now.stages))
    assert then.secret is not None
    assert now.secret is not None
    assert then.secret.key == now.secret.key


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "checkpoint"])
def test_the_state_of_a_dataframe_of_changes_is_taken_up_or_refused(change: str, first: Start) -> None:
    """What a worker does, with the partitions that Spark's log names: those of the first start."""
    make, why = CHANGES[change]
    then = job_of(first)
    fragments = [_restored(then, 1, bucket, None) for bucket in range(then.buckets)]
    held = [{n: d for n, d in one.snapshot().items() if d is not None} for one in fragments]
    make(first)
    now = job_of(first)

    def go_on() -> None:
        refuse_partitions(now, then.partitions)
        for bucket, chunks in enumerate(held):
            _restored(now, 1, bucket, chunks)

    if not why:
        go_on()
        return
    with pytest.raises(CaesuraError, match=why):
        go_on()
    with pytest.raises(CaesuraError):  # whoever forgets to ask for the partitions is refused by the state
        _restored(now, 1, 0, held[0])


def job_of(start: Start) -> Job:
    """What to_spark would give to Spark; the secret is that of one query."""
    buckets = check_session(start.session)
    options: dict[str, Any] = {"speculate": "arrival", "closes": False}
    made = running.make_job({"out": start.stream.node}, buckets, **options)
    return replace(made, partitions=buckets, secret=SECRET)


def test_the_checkpoint_of_a_dataframe_is_not_taken_over_by_a_start(
    first: Start, launched: list[Job]
) -> None:
    offsets = first.place / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n{}")
    for way in WAYS.values():
        with pytest.raises(CaesuraError, match="has not started: it has no caesura"):
            way(first)
    assert not launched
    assert not (first.place / "caesura.json").exists()
