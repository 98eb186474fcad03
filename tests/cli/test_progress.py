"""Whoever waits at a terminal sees how far it is: runs, restores, rebuilds, audits, moves, compiles."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura import waiting
from caesura.audit import audit
from caesura.cli import app, shell
from caesura.cli.rescale import rescale
from caesura.io.places import Place
from caesura.kernels import Kernel
from caesura.runtime.sinks.verify import committed_flaws


class Terminal(io.StringIO):
    """A terminal that keeps what is shown on it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal for which nothing is too quick to be shown."""
    shown = Terminal()
    monkeypatch.setattr(waiting, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(waiting, "FIRST", 0.0)
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    return shown


def _said(screen: Terminal) -> list[str]:
    return [line for line in screen.getvalue().split("\r\x1b[K") if line]


def _readings(folder: Path, rows: int = 300) -> cz.Stream:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"t": range(rows), "k": [i % 3 for i in range(rows)]}), folder / "0.parquet")
    return cz.read.parquet(folder, time="t", punctuate=cz.delay(0))


def _counted(folder: Path, size: int) -> cz.Stream:
    _readings(folder)
    return _read(folder, size)


def _read(folder: Path, size: int) -> cz.Stream:
    return (
        cz.read.parquet(folder, time="t", punctuate=cz.delay(0))
        .group_by("k")
        .tumbling(size)
        .agg(n=cz.count())
    )


def test_what_is_restored_and_read_again_is_shown(tmp_path: Path, screen: Terminal) -> None:
    options: dict[str, Any] = {"sink": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    with _counted(tmp_path / "in", 10).query(**options) as query:
        query.run()
    screen.truncate(0)
    _read(tmp_path / "in", 10).query(**options).close()
    assert any(line.startswith("reading the saved state: ") and " files" in line for line in _said(screen))
    with _read(tmp_path / "in", 20).query(**options, on_change="rebuild"):
        again = [line for line in _said(screen) if line.startswith("reading again: ")]
    assert again[-1].startswith("reading again: 300 of 300 rows (100 %)")
    assert screen.getvalue().endswith("\r\x1b[K")


def test_what_is_prepared_is_shown_and_what_was_prepared_is_not_counted(
    tmp_path: Path, screen: Terminal
) -> None:
    options: dict[str, Any] = {"sink": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    with _counted(tmp_path / "in", 10).query(**options) as query:
        query.run()
    screen.truncate(0)
    _read(tmp_path / "in", 20).prepare_upgrade(tmp_path / "checkpoint")
    assert any(line.startswith("preparing: 300 of 300 rows (100 %)") for line in _said(screen))
    pq.write_table(pa.table({"t": range(300, 310), "k": [0] * 10}), tmp_path / "in" / "1.parquet")
    with _read(tmp_path / "in", 10).query(**options) as query:
        query.run()
    screen.truncate(0)
    _read(tmp_path / "in", 20).query(**options, on_change="rebuild").close()
    assert any(line.startswith("reading again: 10 of 10 rows (100 %)") for line in _said(screen))


def test_files_that_are_compared_are_shown_in_bytes(tmp_path: Path, screen: Terminal) -> None:
    options: dict[str, Any] = {"sink": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    with _counted(tmp_path / "in", 10).query(**options) as query:
        query.run()
    screen.truncate(0)
    assert committed_flaws(Place.of(tmp_path / "out"))[1] == []
    assert " MB (100 %)" in _said(screen)[-1] and _said(screen)[-1].startswith("comparing files: ")


def test_an_audit_says_how_many_claims_are_recomputed(tmp_path: Path, screen: Terminal) -> None:
    pipeline = cz.pipeline(counted=_counted(tmp_path / "in", 10))
    pipeline.write(tmp_path / "views")
    screen.truncate(0)
    report = audit(tmp_path / "views", plan=pipeline.nodes)
    claims = len({finding.claim.number for finding in report.findings})
    assert report.right
    assert _said(screen)[-1].startswith(f"recomputing claims: {claims} of {claims} claims (100 %)")


def test_a_first_compile_is_shown(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def double(values: Any, out: Any) -> None:
        for i in range(len(values)):
            out[i] = 2 * values[i]

    kernel: Any = Kernel(double)
    monkeypatch.setattr(Kernel, "_compiles", True)
    monkeypatch.setattr(kernel, "compiled", lambda: double)
    monkeypatch.delenv("CAESURA_KERNELS", raising=False)
    out = np.zeros(3, np.int64)
    kernel(np.arange(3), out)
    assert out.tolist() == [0, 2, 4]
    said = _said(screen)
    assert said[0].startswith("compiling, once for this machine: ")
    kernel(np.arange(3), out)
    assert _said(screen) == said


def test_commands_show_how_far_they_are_in_their_own_line(
    screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with waiting.shown_elsewhere(told.append), waiting.waiting("moving", 4, "files") as progress:
        progress.done = 2
    assert told[-2].startswith("moving: 2 of 4 files (50 %)") and told[-1] == ""
    assert screen.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", screen)
    with shell.working("moving the state"), waiting.waiting("moving the state to 4 buckets"):
        pass
    assert "moving the state" in screen.getvalue()


def test_a_move_to_other_buckets_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[str] = []
    monkeypatch.setattr(waiting, "FIRST", 0.0)
    monkeypatch.setattr("caesura.spark.session", lambda: None)
    monkeypatch.setattr("caesura.spark.host.rescale.rescale", lambda *_: 2)
    with waiting.shown_elsewhere(told.append):
        rescale(checkpoint=str(tmp_path), buckets=4)
    assert told[0] == "moving the state to 4 buckets: 0 s so far"


def test_without_a_terminal_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST", 0.0)
    file = tmp_path / "flow.py"
    _readings(tmp_path / "in")
    file.write_text(
        f"import caesura as cz\nread = cz.read.parquet({str(tmp_path / 'in')!r}, time='t')\n"
        "out = read.tumbling(100).agg(n=cz.count())\n"
    )
    done = CliRunner().invoke(app, ["run", f"{file}:out", "--embedded"])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
