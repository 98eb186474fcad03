"""The command line says what it found, and exits so that a script can tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from caesura.cli import app
from caesura.cli.doctor import Finding

FLOW = """
import caesura as cz
rows = [{"ts": 1, "id": 7}, {"ts": 2, "id": 8}]
clicks = cz.from_rows(rows, time="ts").where(cz.col("id") > 7)
"""


@pytest.fixture
def flow(tmp_path: Path) -> str:
    file = tmp_path / "flow.py"
    file.write_text(FLOW)
    return str(file)


def test_the_doctor_finds_this_installation_sound() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"], env={"PYSPARK_PYTHON": None})
    assert {f["name"] for f in json.loads(result.stdout)} >= {"Python", "Java", "pyspark", "pandas"}


def test_what_is_wrong_comes_with_its_remedy() -> None:
    assert (
        Finding("Java", False, "not found", "Install a JDK.").line()
        == "wrong Java: not found\n      Install a JDK."
    )


def test_a_preview_draws_the_stream_of_a_file(flow: str) -> None:
    result = CliRunner().invoke(app, ["preview", flow])
    assert result.stdout == " LE  RE | id |\n  2  3  | 8  | +\n"


def test_explain_prints_the_plan(flow: str) -> None:
    assert "where r0: id > 7" in CliRunner().invoke(app, ["explain", flow + ":clicks"]).stdout


def test_an_embedded_run_needs_no_java(flow: str) -> None:
    assert "-- definite: * --" in CliRunner().invoke(app, ["run", flow, "--embedded"]).stdout


def test_a_wrong_name_lists_the_right_ones(flow: str) -> None:
    result = CliRunner().invoke(app, ["explain", flow + ":click"])
    assert result.exit_code == 1
    assert "Did you mean 'clicks'?" in result.stderr


def test_feedback_can_be_given_and_explained(flow: str) -> None:
    shown = CliRunner().invoke(app, ["feedback", flow, "id = 8"]).stdout
    assert "r1 := where: stops id = 8 at its input; tells r0 id = 8" in shown
    ran = CliRunner().invoke(app, ["run", flow, "--embedded", "--assume", "id = 8"]).stdout
    assert ran.splitlines()[-2:] == ["-- definite: * --", "#1 assumed: id = 8 (over: punctuation covers it)"]
    assert "| 8" not in ran
