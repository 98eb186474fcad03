"""Executors in processes of their own give the same answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import spark_plans as given


def test_separate_executor_processes_agree_with_the_embedded_engine(tmp_path: Path) -> None:
    given.write(given.readings(), tmp_path / "readings", [30, 170])
    given.write(given.changes(), tmp_path / "changes", [70])
    script = Path(__file__).with_name("separate_run.py")
    command = [sys.executable, str(script), str(tmp_path), str(tmp_path / "same.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    same = json.loads((tmp_path / "same.json").read_text())
    assert all(same.values()), same


def test_a_query_whose_jvm_was_killed_says_so_whatever_it_is_asked(tmp_path: Path) -> None:
    script = Path(__file__).with_name("lost_jvm.py")
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (tmp_path / "said.json").exists(), ended.stderr[-3000:]
    said = json.loads((tmp_path / "said.json").read_text())
    assert {name for name, text in said.items() if "Spark's JVM is gone" not in text} == set(), said
