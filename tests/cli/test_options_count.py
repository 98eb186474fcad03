"""No option of a command is without effect: in every way to run, each acts or is refused."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura.cli import app
from caesura.cli import run as run_room

FLOW = """
import caesura as cz
rows = [{"ts": 1, "id": 1}, {"ts": 20, "id": 2}, {"ts": 3, "id": 3}]
clicks = cz.from_rows(rows, time="ts", punctuate=cz.delay(5), batch_size=1)
per_ten = clicks.tumbling(10).agg(n=cz.count())
"""
GIVEN = {
    "sink": ("--sink", "out"),
    "checkpoint": ("--checkpoint", "state"),
    "output": ("--output", "final"),
    "trigger": ("--trigger", "10 seconds"),
    "take_over": ("--take-over",),
    "allow_unbounded": ("--allow-unbounded",),
    "assume": ("--assume", "n = 7"),
    "desire": ("--desire", "n = 7"),
    "feedback": ("--feedback",),
    "log": ("--log",),
    "name": ("--name", "taps"),
    "metrics_port": ("--metrics-port", "0"),
    "log_level": ("--log-level", "INFO"),
    "log_json": ("--log-json",),
    "strict": ("--strict",),
    "as_json": ("--json",),
}
"""How each option of `caesura run` is written."""
HERE_REFUSED = {"sink", "checkpoint", "trigger", "take_over", "allow_unbounded", "feedback", "name"}
"""With --embedded alone."""
SAVED = ("--embedded", "--checkpoint", "state", "--sink", "out")
SAVED_REFUSED = {"trigger", "allow_unbounded", "feedback", "name"}
"""With --embedded, a checkpoint and a sink."""
BATCH_REFUSED = {"take_over", "allow_unbounded", "name", "metrics_port"}
"""On Spark, of rows in memory, which are one batch unless a checkpoint, sink or trigger says otherwise."""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_room, "set_log_level", lambda *given, **more: None)  # it would last for ever
    (tmp_path / "flow.py").write_text(FLOW)
    return "flow.py:per_ten"


def ended(*words: str) -> Any:
    return CliRunner().invoke(app, ["run", *words])


def commands() -> dict[str, Any]:
    return {info.callback.__name__: inspect.unwrap(info.callback) for info in app.registered_commands}


def test_every_option_of_every_command_is_read() -> None:
    looked_at = 0
    for name, command in commands().items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(command)))
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        options = set(inspect.signature(command).parameters)
        assert options <= read, (name, options - read)
        looked_at += len(options)
    assert looked_at > 70


def test_every_option_of_run_is_tried_here() -> None:
    own = {"context", "target", "embedded"}
    assert set(inspect.signature(inspect.unwrap(run_room.run)).parameters) - own == set(GIVEN)


@pytest.mark.parametrize("option", sorted(GIVEN))
def test_an_option_beside_embedded_acts_or_is_refused(option: str, flow: str, tmp_path: Path) -> None:
    plain, result = ended(flow, "--embedded"), ended(flow, "--embedded", *GIVEN[option])
    if option in HERE_REFUSED:
        assert result.exit_code == 2 and GIVEN[option][0] in result.output, result.output
        return
    assert result.exit_code == (3 if option == "strict" else 0), result.output
    seen = {"strict": True, "assume": True, "desire": True}
    seen |= dict.fromkeys(("metrics_port", "log_level", "log_json"), True)  # tests of their own
    assert seen.get(option) or result.output != plain.output


@pytest.mark.parametrize("option", sorted(set(GIVEN) - {"checkpoint", "sink"}))
def test_an_option_beside_embedded_and_a_checkpoint_acts_or_is_refused(
    option: str, flow: str, tmp_path: Path
) -> None:
    result = ended(flow, *SAVED, *GIVEN[option])
    if option in SAVED_REFUSED:
        assert result.exit_code == 2 and GIVEN[option][0] in result.output, result.output
        return
    assert result.exit_code == (3 if option == "strict" else 0), result.output
    assert (tmp_path / "state").is_dir() and list((tmp_path / "out").rglob("*.parquet"))
    assert option == "as_json" or "written to out" in result.output


def test_a_query_that_the_command_saved_goes_on_where_it_was(flow: str) -> None:
    rows = []
    for _ in range(2):
        assert ended(flow, *SAVED).exit_code == 0
        rows.append(sum(pq.read_table(one).num_rows for one in Path("out/out").rglob("*.parquet")))
    assert rows == [2, 2]  # no window comes twice


class StartedError(Exception):
    """What stands for a start on Spark, with what it was given."""


@pytest.mark.parametrize("option", sorted(GIVEN))
def test_an_option_on_spark_is_handed_on_or_refused(
    option: str, flow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: dict[str, Any] = {}

    def start(self: cz.Stream, spark: Any, **options: Any) -> Any:
        handed.update(options)
        raise StartedError

    def batch(self: cz.Stream, spark: Any, **options: Any) -> Any:
        handed.update(options, batch=True)
        return self.run(**options)

    monkeypatch.setattr(run_room, "_session", lambda: None)
    monkeypatch.setattr(cz.Stream, "start", start)
    monkeypatch.setattr(cz.Stream, "run_batch", batch)
    result = ended(flow, *GIVEN[option])
    if option in BATCH_REFUSED:
        assert result.exit_code == 2 and GIVEN[option][0] in result.output, result.output
        return
    if option in ("sink", "checkpoint", "trigger"):
        assert handed[option] == GIVEN[option][1]
    elif option in ("assume", "desire", "feedback"):
        assert handed["feedback"] is True
    else:
        assert handed["batch"] and result.exit_code == (3 if option == "strict" else 0)


@pytest.mark.parametrize("wrong", ["sometimes", "10", "1M", "-5s"])
def test_a_trigger_that_is_none_is_refused_before_anything_begins(wrong: str, flow: str) -> None:
    result = ended(flow, f"--trigger={wrong}")
    assert result.exit_code == 2 and "--trigger" in result.output


def test_an_option_of_another_command_that_would_do_nothing_is_refused(flow: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "out" / "_commits").mkdir(parents=True)
    for words in (
        ("late", "state", "--replay", "--strict"),
        ("late", "state", "--replay", "--rows", "3"),
        ("late", flow, "--json", "--rows", "3"),
        ("audit", "out", "--limit", "3"),
        ("audit", "out", "--flow", flow),
        ("feedback", flow, "n = 7", "--output", "out"),
        ("feedback", "state", "list", "--output", "out"),
        ("feedback", "state", "list", "3"),
        ("feedback", "state", "assume", "n = 7", "--audit"),
        ("state", "state", "--rows", "3"),
        ("upgrade", "state", flow, "--final-rows", "keep"),
    ):
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 2 and "does nothing" in " ".join(result.output.split()), words


def test_a_lifetime_counts_for_what_check_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "import caesura as cz\nrows = [{'ts': 1, 'to': 5, 'id': 7}]\n"
    text += "spans = cz.from_rows(rows, time='ts', end='to', punctuate=cz.delay(5), name='spans')\n"
    (tmp_path / "spans.py").write_text(text)
    result = CliRunner().invoke(app, ["check", "spans.py", "--lifetime", "nobody=5"])
    assert result.exit_code == 1 and "nobody" in result.output
    assert CliRunner().invoke(app, ["check", "spans.py", "--lifetime", "spans=5"]).exit_code == 0
