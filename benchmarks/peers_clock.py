"""What a run of `benchmarks.peers` takes, whatever the engine: this file needs nothing but Python.

The first run, over few events, is what starting takes; the second, over many, is what is compared, and the
third, over the same, is what they take once all code is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def cpu() -> float:
    """CPU seconds of this process and of those that it started, as Linux counts them."""
    spent, parent = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        number = int(path.parent.name)
        parent[number], spent[number] = int(fields[1]), sum(map(int, fields[11:13]))
    ours = {os.getpid()}
    while more := {n for n, above in parent.items() if above in ours} - ours:
        ours |= more
    return sum(spent[number] for number in ours) / os.sysconf("SC_CLK_TCK")


def measure(package: str, answer: Callable[[str, Path], tuple[int, float]]) -> None:
    """Answers the query that the command line names over both its files; prints what that took, as JSON."""
    name, few, many = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    answer(name, few)
    start, began = cpu(), time.perf_counter()
    rows, total = answer(name, many)
    taken = {"start_cpu_s": start, "cpu_s": cpu() - start, "wall_s": time.perf_counter() - began}
    before = cpu()
    answer(name, many)
    taken["again_cpu_s"] = cpu() - before
    print(json.dumps({"version": version(package), "answer": [rows, round(total)], **taken}))
