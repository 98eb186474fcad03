"""A plan that is shown mended, and bounds in bytes, on streams and in the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura import Stream
from caesura.cli import app
from caesura.errors import CaesuraError


def sessions() -> Stream:
    rows = [{"ts": t, "id": t % 3} for t in range(50)]
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(5)).group_by("id").session(4).agg(n=cz.count())


def test_an_unsafe_plan_is_shown_mended_and_the_mended_plan_is_safe_and_runs() -> None:
    verdict = sessions().check(fix=True)
    assert not verdict.safe and verdict.mended is not None and verdict.mended.safe
    assert "Mended (cut sessions" in str(verdict) and "r1 := session" in str(verdict)
    mended = Stream(verdict.mended.plan)
    assert mended.check().safe and len(mended.run().history) > 0
    assert sessions().check().mended is None


def test_bounds_count_bytes_where_the_width_of_every_column_is_known() -> None:
    rows = [{"ts": t, "id": t % 3, "name": "x"} for t in range(5)]
    read = cz.from_rows(rows, time="ts", punctuate=cz.delay(5))
    rates = {"read": (10, 5, 5)}
    bound = read.select("id").distinct().bounds(rates)[-1]
    assert bound.bytes == bound.rows * (64 + 8)
    assert read.distinct().bounds(rates)[-1].bytes is None
    wide = read.distinct().bounds(rates, widths={"name": 20})[-1]
    assert wide.bytes == wide.rows * (64 + 28)


def test_what_a_query_holds_stays_below_its_bounds() -> None:
    rows = [{"ts": t // 10, "id": t % 7} for t in range(2000)]
    stream = (
        cz.from_rows(rows, time="ts", punctuate=cz.delay(2), batch_size=10).tumbling(20).agg(n=cz.count())
    )
    rows_held = [bound.rows for bound in stream.bounds({"read": (10, 1, 4)})]
    query = stream.query(speculate="watermark")
    most = 0
    while query.step():
        most = max(most, query.state_rows)
    assert 0 < most <= sum(rows_held)


def test_the_command_line_takes_rates_and_shows_the_mended_plan(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(
        "import caesura as cz\n"
        "rows = [{'ts': t, 'id': t % 3} for t in range(50)]\n"
        "read = cz.from_rows(rows, time='ts', punctuate=cz.delay(5))\n"
        "fine = read.tumbling(10).agg(n=cz.count())\n"
        "grows = read.session(4).agg(n=cz.count())\n"
    )
    fine = CliRunner().invoke(app, ["check", f"{flow}:fine", "--rate", "read=1000/5/5"])
    assert fine.exit_code == 0 and "r1 tumbling: holds at most 24000 rows, about 2 MiB" in fine.output
    grows = CliRunner().invoke(app, ["check", f"{flow}:grows", "--fix"])
    assert grows.exit_code == 1 and "Mended (cut sessions" in grows.output
    wrong = CliRunner().invoke(app, ["check", f"{flow}:fine", "--rate", "read=often"])
    assert wrong.exit_code != 0 and "'read=often' is no rate of a source" in wrong.output


def test_the_command_line_takes_longest_lifetimes(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(
        "import caesura as cz\n"
        "rows = [{'ts': 1, 'until': 9, 'id': 3}]\n"
        "read = cz.from_rows(rows, time='ts', end='until', punctuate=cz.delay(5))\n"
        "spans = read.distinct()\n"
    )
    given = ["check", f"{flow}:spans", "--rate", "read=10/5/5"]
    unknown = CliRunner().invoke(app, given)
    assert unknown.exit_code != 0 and "nothing bounds the lifetimes of 'read'" in unknown.output
    known = CliRunner().invoke(app, [*given, "--lifetime", "read=8"])
    assert known.exit_code == 0 and "r1 distinct: holds at most" in known.output
    wrong = CliRunner().invoke(app, [*given, "--lifetime", "read"])
    assert wrong.exit_code != 0 and "'read' is no longest lifetime of a source" in wrong.output


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(CaesuraError, match="describes no stream"):
        sessions().bounds({"read": (0, 5, 5)})
