"""The examples come out as they are kept, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden_figures.txt"


def test_every_example_comes_out_as_it_is_kept() -> None:
    example = ROOT / "examples" / "fixpoint" / "figures.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == GOLDEN.read_text()
