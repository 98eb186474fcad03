"""On a cluster that shares nothing but the checkpoint's place, a killed executor changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from cluster_run import pipeline
from clusters import SOURCES, package, standalone
from spark_plans import readings, write

from caesura import Stream
from caesura.events import History
from caesura.io.sinks.rows import changed_page
from caesura.spark import ParquetSink


def test_executors_with_other_roots_one_of_them_killed_give_what_this_process_gives(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    write(readings(), shared / "in", [60, 170, 300])
    with standalone(tmp_path / "cluster") as master:
        _run(tmp_path, master)
    told = json.loads((shared / "killed").read_text())
    worker = str(tmp_path / "cluster" / "worker-")
    assert "caesura.zip" in told["package"]
    assert all(told[name].startswith(worker) for name in ("home", "tmp", "cwd")), told
    here = pipeline(str(shared), kills=False)
    own = here.query(sink=tmp_path / "own", checkpoint=tmp_path / "cp-own")
    own.run()
    assert _history(here, shared / "out") == _history(here, tmp_path / "own")
    assert _late(shared / "out") == _late(tmp_path / "own") > 0


def _run(folder: Path, master: str) -> None:
    script = Path(__file__).with_name("cluster_run.py")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}  # a client's
    env = {**kept, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, str(script), str(folder), master, str(package(folder))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads((folder / "answer.json").read_text())
    assert answer == {"ended": True, "epochs": 4}


def _history(stream: Stream, folder: Path) -> History:
    sink, node = ParquetSink(str(folder)), stream.node
    sink.open({"out": node})
    return History.of([changed_page(sink.read_back("out"), node.schema, node.time)], node.schema)


def _late(folder: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in (folder / "_late").glob("*.parquet"))
