"""How long the first answer takes, from a process that has just begun: imports, kernels, first rows.

Every run is a process of its own. CPU seconds, user and system, of the whole process, and wall seconds;
medians. Bytecode is on disk, as in every run but the first. ``libraries`` is what NumPy, Arrow and, where
it is installed, pandas take alone: Arrow imports pandas with the first value that it converts. ``first
kernels`` starts with an empty folder of machine code, and says how long the slowest one took.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import Report

LIBRARIES = "import pyarrow as pa, pyarrow.compute as pc; pc.add(pa.array([1]), 1)"
IMPORT = "import caesura"
ROWS = 'rows = [{"ts": t, "seg": t % 3, "mph": 1.0 * t} for t in range(100)]'
PREVIEW = f"""
import caesura as cz
from caesura import col
{ROWS}
speeds = cz.from_rows(rows, time="ts").where(col("mph") > 3)
print(speeds.group_by("seg").tumbling(10).agg(mph=cz.avg("mph"), n=cz.count()).preview())
"""
QRE = f"""
import caesura as cz
from caesura import qre
from caesura.expr import col
{ROWS}
speeds = cz.from_rows(rows, time="ts")
items = qre.items(speeds.schema)
fast = qre.atom(col("mph") > 50, col("mph"), items=items)
slow = qre.atom(~(col("mph") > 50), col("mph"), items=items)
print(speeds.match(qre.split(qre.iter(slow, qre.max()), qre.iter1(fast, qre.max()), op=col("_1"))).preview())
"""
KERNELS = """
import time
from benchmarks.core import ads, y1_stream
import numba.core.dispatcher as d
compile, slowest, depth = d.Dispatcher.compile, [0.0], [0]
def timed(self, sig):
    began = time.process_time()
    depth[0] += 1
    try:
        return compile(self, sig)
    finally:
        depth[0] -= 1
        if not depth[0]:
            slowest[0] = max(slowest[0], time.process_time() - began)
d.Dispatcher.compile = timed
y1_stream(ads(200_000)).run(output="final").table()
print(slowest[0])
"""
WARM = {"import caesura": IMPORT, "libraries": LIBRARIES, "preview": PREVIEW, "qre": QRE}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench start")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--times", type=int, default=7)
    options = parser.parse_args(arguments)
    report = Report("start", options.json)
    with tempfile.TemporaryDirectory() as folder:
        warm = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        for case, text in WARM.items():
            run(text, warm)
            add(report, case, [run(text, warm) for _ in range(options.times)])
        fresh = {**warm, "NUMBA_CACHE_DIR": f"{folder}/machine", "CAESURA_CACHE": f"{folder}/written"}
        cpu, wall, said = run(KERNELS, fresh)
        report.add(
            "first kernels (Y1)", cpu_s=round(cpu, 2), wall_s=round(wall, 2), slowest_s=round(float(said), 2)
        )


def run(text: str, environment: dict[str, str]) -> tuple[float, float, str]:
    """CPU and wall seconds of a new process, and what it printed."""
    root = Path(__file__).parent.parent
    path = os.pathsep.join([str(root / "src"), str(root)])
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall, done.stdout


def add(report: Report, case: str, runs: list[tuple[float, float, str]]) -> None:
    cpu, wall = (statistics.median(one[i] for one in runs) for i in (0, 1))
    report.add(case, cpu_s=round(cpu, 3), wall_s=round(wall, 3))
