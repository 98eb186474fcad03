"""What a newcomer tries first on Spark: a frame in and out, a run, its late rows and its state."""

from __future__ import annotations

import json
import runpy
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from caesura.cli import app
from caesura.spark.host.state import read_state

EXAMPLES = Path(__file__).parents[2] / "examples"
FLOW = """
import caesura as cz
clicks = cz.read.csv("clicks", time="ts", punctuate=cz.delay(5), name="clicks")
per_ten = clicks.group_by("id").tumbling(10).agg(n=cz.count())
"""


def test_a_frame_goes_in_and_comes_out_as_on_the_embedded_engine(spark: Any) -> None:
    example = runpy.run_path(str(EXAMPLES / "frames" / "pipeline.py"))
    schema = "ts timestamp, segment int, mph double"
    frame = spark.read.csv(str(EXAMPLES / "frames" / "data" / "readings.csv"), header=True, schema=schema)
    rows = example["on_spark"](spark, frame).collect()
    kept = sorted((r.LE, r.segment, r.mph, r.readings) for r in rows if r.kind == "+")
    wanted = example["speeds"].run().table().to_pylist()
    assert kept == sorted((r["LE"], r["segment"], r["mph"], r["readings"]) for r in wanted)


def test_a_run_leaves_rows_late_rows_and_state_that_the_command_line_shows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("caesura.cli.run._session", lambda: spark)
    Path("clicks").mkdir()
    Path("clicks/a.csv").write_text("ts,id\n1,7\n2,8\n24,7\n3,7\n")
    Path("flow.py").write_text(FLOW)
    ran = CliRunner().invoke(
        app, ["run", "flow.py:per_ten", "--sink", "out", "--checkpoint", "keep", "--json", "--strict"]
    )
    assert ran.exit_code == 3, ran.output
    status = json.loads(ran.stdout.splitlines()[-1])
    assert status["sources"]["clicks"]["late"] == 1
    late = CliRunner().invoke(app, ["late", "out", "--json"])
    assert [row["LE"] for row in json.loads(late.stdout)["clicks"]] == [3]
    held = [one for one in read_state(spark, "keep", "tumbling") if one.rows.num_rows]
    assert {one.step for one in held} == {"tumbling"}
    assert any(row.get("id") == 7 for one in held for row in one.rows.to_pylist())


def test_of_the_live_map_a_freeway_that_nobody_looks_at_is_not_read(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "traffic"))
    arrivals = runpy.run_path(str(EXAMPLES / "traffic" / "data.py"))["arriving"](tmp_path / "in", minutes=10)
    list(islice(arrivals, 10))
    live = runpy.run_path(str(EXAMPLES / "traffic" / "pipeline.py"))["live_map"](tmp_path / "in")
    options: dict[str, Any] = {"sink": "memory", "checkpoint": tmp_path / "state", "feedback": True}
    with live.start(spark, output="marked", **options) as query:
        query.drain()
        assert all(source.rows_unread == 0 for source in query.status().sources.values())
        query.assume("freeway <> 1")
        for _ in range(4):  # the first epoch hears it, the next ones read less
            list(islice(arrivals, 5))
            query.drain()
        sources = query.status().sources
    assert sources["sensors"].rows_unread > 1_000 and sources["probes"].rows_unread > 100
    assert sources["sensors"].bytes_unread > 0
