"""A query whose JVM is gone, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_a_query_whose_jvm_was_killed_says_so_whatever_it_is_asked(tmp_path: Path) -> None:
    script = Path(__file__).with_name("lost_jvm.py")
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (tmp_path / "said.json").exists(), ended.stderr[-3000:]
    said = json.loads((tmp_path / "said.json").read_text())
    assert {name for name, text in said.items() if "Spark's JVM is gone" not in text} == set(), said
