"""The log of section 6.3: per step, with the user's own keys, in this process and in buckets."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import Cluster
from typer.testing import CliRunner

import caesura as cz
from caesura import col
from caesura.errors import CaesuraError

ROWS = [{"ts": t, "k": t % 2, "v": t} for t in range(10)]


@cz.udf
def checked(v: int) -> int:
    """Counts what it takes for odd."""
    cz.note("odd values", v % 2)
    return v


def stream() -> cz.Stream:
    rows = cz.from_rows(ROWS, time="ts")
    return (
        rows.where(col("v") > 1)
        .select("k", v=checked(col("v")))
        .group_by("k")
        .tumbling(10)
        .agg(n=cz.sum("v"))
    )


def test_every_step_reports_what_it_counted_and_what_the_user_did() -> None:
    log = stream().run().log()
    assert (log["where"]["rows in"], log["where"]["rows out"]) == (10, 8)
    assert log["select"]["odd values"] == 4
    assert "  odd values" in str(log)


def test_a_report_may_be_of_some_steps() -> None:
    query = stream().query()
    query.run()
    assert list(query.log("where")) == ["where"]
    with pytest.raises(CaesuraError, match="wherever"):
        query.log("wherever")


def test_keys_of_all_buckets_add_up() -> None:
    rows = cz.from_rows(ROWS, time="ts").group_by("k").tumbling(10).agg(n=cz.sum("v"))
    made = rows.select("k", n=checked(col("n")))
    cluster = Cluster({"out": made.node}, 3)
    cluster.run()
    alone = made.run().log()["select"]["odd values"]
    assert alone > 0
    counted = [f.query.counters().get("select") for stage in cluster.fragments for f in stage]
    assert sum(c.extra.get("odd values", 0) for c in counted if c is not None) == alone


def test_outside_of_a_step_nothing_is_noted() -> None:
    cz.note("nowhere")
    assert "nowhere" not in str(stream().run().log())


def test_the_command_line_prints_the_log_behind_the_rows(tmp_path: Path) -> None:
    from caesura.cli.main import app

    file = tmp_path / "flow.py"
    file.write_text(
        "import caesura as cz\nstream = cz.from_rows([{'ts': 1, 'v': 2}], time='ts').where(cz.col('v') > 1)\n"
    )
    done = CliRunner().invoke(app, ["run", str(file), "--embedded", "--log"])
    assert done.exit_code == 0, done.output
    assert "rows out" in done.stderr
