"""Beside streaming engines that pip installs: Flink SQL, Bytewax and Pathway, over the same CSV files.

Each engine runs in a process of its own, on one thread, from an environment that is made of
``benchmarks/requirements-<engine>.txt`` when it is first asked for. Three queries: Y1 counts views per
campaign and second, ``q1`` converts the prices of NEXMark's bids, ``q12`` counts bids per bidder and ten
seconds of their own time. All answers must be the same. CPU seconds are those of all processes of an
engine: up to the end of a run over a thousand events, which is its start, for the run over all that follows,
and for one more like it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from benchmarks.nexmark_data import house
from benchmarks.report import Report
from benchmarks.y1_data import ads, campaigns

HERE = Path(__file__).parent
ENGINES = ("caesura", "bytewax", "pathway", "flink")
QUERIES = ("y1", "q1", "q12")
FEW = 1_000


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench peers")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--folder", type=Path, default=Path("build/peers"), help="where environments lie")
    options = parser.parse_args(arguments)
    report = Report("peers", options.json)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.queries.split(","):
            few, many = (written(name, count, Path(folder)) for count in (FEW, options.events))
            compare(report, name, few, many, options)


def compare(report: Report, name: str, few: Path, many: Path, options: argparse.Namespace) -> None:
    """All engines in turn; each answer is that of the first one."""
    wanted = None
    for engine in options.engines.split(","):
        took = run(interpreter(engine, options.folder), engine, name, few, many)
        wanted = wanted or took["answer"]
        assert took["answer"] == wanted, (engine, name, took["answer"], wanted)
        seconds = {key: round(took[key], 2) for key in ("start_cpu_s", "cpu_s", "again_cpu_s", "wall_s")}
        rate = options.events / took["cpu_s"]
        report.add(f"{name} {engine} {took['version']}", rate, **seconds, answer=wanted)


def written(name: str, events: int, folder: Path) -> Path:
    """The events of a query as CSV, for Flink also without the line of names; times are microseconds."""
    if name == "y1":
        table = ads(events)
        csv.write_csv(campaigns().select(["ad", "campaign"]), folder / "campaigns.csv")
    else:
        bid = house(events * 50 // 46).bid.slice(0, events)
        table = bid.select(["dateTime", "auction", "bidder", "price"])
    times = np.asarray(table.column(0).cast(pa.int64()))
    table = table.set_column(0, "ts", pa.array(times))
    path = folder / f"{name}-{events}.csv"
    csv.write_csv(table, path)
    csv.write_csv(table, path.with_suffix(".rows"), csv.WriteOptions(include_header=False))
    return path


def interpreter(engine: str, folder: Path) -> str:
    """The Python of an engine's environment, which is made first where there is none."""
    if engine == "caesura":
        return sys.executable
    place = folder / f"venv-{engine}"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        wanted = HERE / f"requirements-{engine}.txt"
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", wanted], check=True)
    return str(python)


def run(python: str, engine: str, name: str, few: Path, many: Path) -> dict[str, Any]:
    """All runs in a process of its own: version, answer, CPU and wall seconds."""
    command = [python, HERE / f"peers_{engine}.py", name, few, many]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{engine} did not run {name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])  # type: ignore[no-any-return]
