"""Killed at any point and started again: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import spark_plans as given
from killed_run import looked_up, outputs

from caesura.runtime.query.result import run

KILLS = int(os.environ.get("CAESURA_KILLS", "1"))
"""The first kill is between the loop log and the commit, every second one at any moment."""
FILES = 2 * KILLS + 2


def _start(folder: Path) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("killed_run.py")
    log = (folder / "log").open("ab")
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)], stdout=log, stderr=log, start_new_session=True
    )


def _commits(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def _feed(folder: Path, table: Any, numbers: range) -> None:
    size = table.num_rows // FILES
    for number in numbers:
        partial = folder / f"{number}.partial"
        pq.write_table(table.slice(number * size, size), partial)
        os.utime(partial, (1_700_000_000 + number,) * 2)  # Spark takes files in the order of their times
        partial.rename(folder / "in" / f"{number:03d}.parquet")


def _wait_for_commit(folder: Path, process: subprocess.Popen[bytes], before: int) -> None:
    _until(lambda: _commits(folder) > before, folder, process)


def _until(there: Callable[[], bool], folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 600
    while not there():
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
        time.sleep(0.005)


def _half_done(folder: Path) -> bool:
    """Whether an epoch has sent something back and is not committed."""
    sent = [int(f.name.split("-")[0]) for f in (folder / "checkpoint" / "loop").glob("*.arrow")]
    return bool(sent) and not (folder / "checkpoint" / "commits" / str(max(sent))).exists()


def test_a_run_killed_again_and_again_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = given.readings(FILES * 40, seed=7)
    _feed(tmp_path, table, range(0, 2))
    for kill in range(KILLS):
        before = _commits(tmp_path)
        process = _start(tmp_path)
        _feed(tmp_path, table, range(2 + 2 * kill, 4 + 2 * kill))
        _wait_for_commit(tmp_path, process, before)
        if kill % 2:
            time.sleep(0.13 * (kill % 7))
        else:  # between the loop log and the commit
            _until(lambda: _half_done(tmp_path), tmp_path, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (tmp_path / "stop").touch()
    process = _start(tmp_path)
    assert process.wait(timeout=900) == 0, (tmp_path / "log").read_text()[-3000:]
    for name, node in outputs(tmp_path).items():
        wanted = run(node, output="final")
        bound = _last_bound(wanted)
        got = pq.read_table(tmp_path / "out" / name).to_pylist()
        assert _bag(got, bound) == _bag(wanted.changes().to_pylist(), bound), name
        _check_commits(tmp_path, name)
    wanted = run(looked_up(tmp_path).node, output="final")
    given_ = pq.read_table(tmp_path / "given").to_pylist()
    assert _bag(given_, _last_bound(wanted)) == _bag(wanted.changes().to_pylist(), _last_bound(wanted))


def _last_bound(result: Any) -> int:
    """The last time before the end that the output had passed."""
    bounds = [i.pattern.time_bound for i in result.items if not hasattr(i, "le")]
    return max(b for b in bounds if b is not None and b < 2**62)


def _bag(rows: list[dict[str, Any]], bound: int) -> Counter[tuple[object, ...]]:
    return Counter(tuple(r.values()) for r in rows if r["LE"] < bound)


def _check_commits(folder: Path, output: str) -> None:
    """Each file of the output belongs to exactly one committed epoch."""
    named: Counter[str] = Counter()
    for commit in (folder / "out" / "_commits").glob("*.json"):
        named.update(f["file"] for f in json.loads(commit.read_text())["files"] if f["output"] == output)
    assert set(named) == {f.name for f in (folder / "out" / output).glob("*.parquet")}
    assert set(named.values()) == {1}
