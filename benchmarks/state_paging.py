"""A join whose state is larger than the memory it may take: one run in a process of its own.

``python -m benchmarks.state_paging MB BUDGET HOW`` fills one side of a join with so many MB of wide rows and
then lets rows of the other side meet some of them; HOW is memory, mapped, read or limited. It prints JSON.
Limited reads too, under a limit of addresses: 1 GB more than the process has before it holds anything.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import caesura as cz
from caesura.events import Page
from caesura.events.paging import StatePages

WIDTH = 1000
ROWS = 1 << 14
FOR_EVER = 10**12
LOOKUPS, LOOKED_UP = 20, 1000


def main(megabytes: int, budget: int, how: str) -> dict[str, Any]:
    sides = [cz.from_rows([{"t": 1, "key": 1, side: "x"}], time="t", name=side) for side in ("left", "right")]
    query = sides[0].join(sides[1], on="key").query()
    join: Any = next(cell.operator for cell in query.graph.cells if cell.label == "join")
    pages = StatePages(budget * 10**6, mapped=how == "mapped")
    if how != "memory":
        query._page_to(pages)
    _look_up(join, np.zeros(1, np.int64))  # kernels are compiled before anything is timed
    if how == "limited":
        room = _status("VmSize") + 10**9
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
    anonymous, count = 0, megabytes * 10**6 // WIDTH
    began = time.perf_counter(), time.process_time()
    for first in range(0, count, ROWS):
        list(join.page(0, _page(first)))
        anonymous = max(anonymous, _status("RssAnon"))
    filled = time.perf_counter(), time.process_time()
    rng, met = np.random.default_rng(1), 0
    for _ in range(LOOKUPS):
        met += _look_up(join, rng.integers(0, count, LOOKED_UP))
        anonymous = max(anonymous, _status("RssAnon"))
    done = time.perf_counter(), time.process_time()
    return {
        "rows": count,
        "met": met,
        "fill_rows_per_s": round(count / (filled[0] - began[0])),
        "fill_cpu_s": round(filled[1] - began[1], 2),
        "lookups_per_s": round(LOOKUPS * LOOKED_UP / (done[0] - filled[0])),
        "lookup_cpu_s": round(done[1] - filled[1], 2),
        "peak_anonymous_mb": anonymous // 10**6,
        "written_mb": pages.written // 10**6,
    }


def _page(first: int) -> Page:
    random = np.random.default_rng(first)
    body = random.integers(97, 123, ROWS * WIDTH, np.uint8)
    offsets = np.arange(ROWS + 1, dtype=np.int32) * WIDTH
    texts = pa.Array.from_buffers(pa.string(), ROWS, [None, pa.py_buffer(offsets), pa.py_buffer(body)])
    batch = pa.record_batch([pa.array(np.arange(first, first + ROWS)), texts], names=["key", "left"])
    return Page(np.zeros(ROWS, np.int64), np.full(ROWS, FOR_EVER), batch)


def _look_up(join: Any, keys: Any) -> int:
    batch = pa.record_batch([pa.array(keys), pa.array(["y"] * len(keys))], names=["key", "right"])
    page = Page(np.zeros(len(keys), np.int64), np.ones(len(keys), np.int64), batch)
    return sum(item.payload.num_rows for item in join.page(1, page))


def _status(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
