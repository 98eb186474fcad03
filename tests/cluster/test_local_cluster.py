"""Executors in processes of their own, on this machine, give the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import spark_plans as given


def test_separate_executor_processes_agree_with_the_embedded_engine(tmp_path: Path) -> None:
    given.write(given.readings(), tmp_path / "readings", [30, 170])
    given.write(given.changes(), tmp_path / "changes", [70])
    script = Path(given.__file__).with_name("separate_run.py")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}  # a client's
    env = {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(tmp_path), str(tmp_path / "same.json")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    same = json.loads((tmp_path / "same.json").read_text())
    assert all(same.values()), same
