"""Workers of Spark that come near the memory they may take say so, before the system ends them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_worker_that_comes_near_its_limit_stops_the_query_and_says_what_to_do(tmp_path: Path) -> None:
    script = Path(__file__).with_name("memory_run.py")
    own = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    told = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "2g"],
        capture_output=True,
        text=True,
        timeout=600,
        env=own,  # a client of Spark Connect, if there was one in this process, has left its settings
    )
    near = "MB of the 2147 MB that it may: its state is too large for it."
    assert near in told.stdout or "there is not enough memory" in told.stdout, told
    assert "state_memory=" in told.stdout
    assert "worker.py" not in told.stdout
