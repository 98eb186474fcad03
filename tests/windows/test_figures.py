"""The paper's tables and figures come out as they are kept, here and in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "streaminsight" / "figures.py"
GOLDEN = Path(__file__).parent / "golden_figures.txt"


def test_every_figure_comes_out_as_it_is_kept() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == GOLDEN.read_text()
