"""A day of events in three thousand epochs: at its end a query holds what it held at its beginning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EPOCHS = int(os.environ.get("CAESURA_DAY_EPOCHS", "3000"))
"""Of half a minute each: 3,000 are 25 hours."""
SETTLED = 100
"""Epochs after which nothing is missing that is retained: checkpoints of twenty, and what Spark lists."""
HELD = ("driver", "jvm", "heap", "workers", "cp", "cp files", "logs")


def tenths(sizes: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """What each part took on average in the first and in the last tenth, once the query has settled."""
    settled = [size for size in sizes if size["epoch"] > SETTLED]
    many = max(1, len(sizes) // 10)
    return {
        name: (_mean(name, settled[:many]), _mean(name, settled[-many:])) for name in HELD if name in sizes[0]
    }


def _mean(name: str, some: list[dict[str, float]]) -> float:
    return sum(size[name] for size in some) / len(some)


@pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="half an hour, for make soak")
@pytest.mark.parametrize("host", ["embedded", "spark"])
def test_a_day_of_events_leaves_no_trace(host: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("day_run.py")
    command = [sys.executable, str(script), str(tmp_path), host, str(EPOCHS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    sizes = [json.loads(line) for line in (tmp_path / "sizes.jsonl").read_text().splitlines()]
    assert sizes[-1]["epoch"] == EPOCHS
    for name, (first, last) in tenths(sizes).items():
        assert last <= 1.05 * first, f"{name}: {first:.0f} in the first tenth, {last:.0f} in the last"


def test_what_grows_by_a_sixteenth_is_seen() -> None:
    names = dict.fromkeys(HELD, 100.0)
    flat = [{"epoch": n, **names} for n in range(10, 3001, 10)]
    assert set(tenths(flat).values()) == {(100.0, 100.0)}
    grown = [{**size, "heap": 100 + 6 * size["epoch"] / 3000} for size in flat]
    first, last = tenths(grown)["heap"]
    assert last > 1.05 * first
