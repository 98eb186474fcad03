"""One thread against several: wall time in turns, and for how much of a run Python's lock is held.

The share of the lock is sampled: a thread that sleeps for a millisecond at a time notes how often it has to
wait for the lock when it wakes. ``busy`` is CPU over wall time: how many cores were at work. Small pages are
measured in CPU time: a filter, hopping windows and final delivery, from a page's arrival until all has left.

With ``--apart`` as many processes run the same query at once, each on one thread, over all events: how much
more they do than one alone is what these cores give at most, whoever divides the work.

With ``--halves`` threads are held against processes that could not be dealt less work: a fork that runs over
the second half of the events and gives its rows back through a pipe, while the process itself runs over the
first, with nothing to exchange and nothing to put together. How long it takes to lay all events into shared
memory, which a process that was started before would read them from, is told beside it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import caesura as cz
from benchmarks.core import y1_stream
from benchmarks.report import Report
from benchmarks.y1_data import ads
from caesura import col
from caesura.events import Page
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import cti
from caesura.runtime.query.result import Output, query_of

WAITED = 0.0003
"""Seconds beyond its sleep after which a sample counts as one that found the lock held."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench threads")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", default="", help="comma-separated: y1, hopping, groups, pages")
    parser.add_argument("--apart", action="store_true", help="processes at once, in place of threads")
    parser.add_argument("--halves", action="store_true", help="threads, and a process for half of the events")
    options = parser.parse_args(arguments)
    report = Report("threads", options.json)
    wanted = options.only.split(",") if options.only else [*CASES, "pages"]
    for name in wanted:
        if name == "pages":
            small_pages(report)
        elif options.apart:
            apart(report, name, options)
        elif options.halves:
            halves(report, name, options)
        else:
            compare(report, name, stream_of(name, options.events), options)


def hopping_events(events: int) -> pa.Table:
    random = np.random.default_rng(4)
    return pa.table(
        {"ts": np.arange(events), "key": random.integers(0, 10_000, events), "v": random.random(events)}
    )


def hopping(table: pa.Table, events: int) -> cz.Stream:
    """The mean of 10 K keys over hopping windows."""
    rows = cz.from_arrow(table, time="ts", punctuate=cz.delay(10))
    return rows.group_by("key").hopping(events // 5, every=events // 10).agg(mean=cz.avg("v"))


def group_events(events: int) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "ts": np.arange(events),
            "user": random.integers(0, 1_000_000, events),
            "spent": random.random(events),
        }
    )


def million_groups(table: pa.Table, events: int) -> cz.Stream:
    rows = cz.from_arrow(table, time="ts", punctuate=cz.delay(10))
    return rows.group_by("user").tumbling(events).agg(n=cz.count(), spent=cz.sum("spent"))


def y1(table: pa.Table, events: int) -> cz.Stream:
    return y1_stream(table)


Made = tuple[Callable[[int], pa.Table], Callable[[pa.Table, int], cz.Stream]]
CASES: dict[str, Made] = {
    "y1": (ads, y1),
    "hopping": (hopping_events, hopping),
    "groups": (group_events, million_groups),
}


def stream_of(name: str, events: int) -> cz.Stream:
    table, stream = CASES[name]
    return stream(table(events), events)


def compare(report: Report, name: str, stream: cz.Stream, options: argparse.Namespace) -> None:
    """Runs with one thread and with several in turns."""
    one, more = (lambda n=n: stream.run(output="final", threads=n) for n in (1, options.threads))
    assert one().table().num_rows == more().table().num_rows
    taken: list[list[tuple[float, float]]] = [[], []]
    for _ in range(options.times):
        for runs, run in zip(taken, (one, more), strict=True):
            gc.collect()
            began, cpu = time.perf_counter(), time.process_time()
            run()
            runs.append((time.perf_counter() - began, time.process_time() - cpu))
    walls = [statistics.median(wall for wall, _ in runs) for runs in taken]
    busy = statistics.median(cpu / wall for wall, cpu in taken[1])
    report.add(
        name,
        options.events / walls[1],
        {"one_thread": walls[0] / walls[1]},
        one_thread_events_per_s=round(options.events / walls[0]),
        busy=round(busy, 2),
        cpu_to_one_thread=round(
            statistics.median(c for _, c in taken[1]) / statistics.median(c for _, c in taken[0]), 2
        ),
        lock_held=round(lock_share(one), 2),
    )


def apart(report: Report, name: str, options: argparse.Namespace) -> None:
    """One process alone, then several at once; each says how long a run takes it by the clock and in CPU."""
    spawned = multiprocessing.get_context("spawn")
    medians = []
    for count in (1, options.threads):
        start = spawned.Barrier(count)
        said = spawned.SimpleQueue()
        each = (name, options.events, options.times, start, said)
        processes = [spawned.Process(target=_alone, args=each) for _ in range(count)]
        for process in processes:
            process.start()
        runs = [said.get() for _ in processes]
        for process in processes:
            process.join()
        medians.append([statistics.fmean(column) for column in zip(*runs, strict=True)])
    (wall, cpu), (walls, cpus) = medians
    report.add(
        f"{name}_apart",
        options.threads * options.events / walls,
        {"one_process": options.threads * wall / walls},
        cpu_to_one_process=round(cpus / cpu, 2),
    )


def _alone(name: str, events: int, times: int, start: Any, said: Any) -> None:
    stream = stream_of(name, events)
    stream.run(output="final")
    taken = []
    start.wait()
    for _ in range(times):
        began, cpu = time.perf_counter(), time.process_time()
        stream.run(output="final")
        taken.append((time.perf_counter() - began, time.process_time() - cpu))
    said.put([statistics.median(column) for column in zip(*taken, strict=True)])


def halves(report: Report, name: str, options: argparse.Namespace) -> None:
    """One thread, several, and two processes with a half of the events each, in turns."""
    events, (make, stream_over) = options.events, CASES[name]
    table = make(events)
    whole, first, second = (
        stream_over(part, events) for part in (table, table.slice(0, events // 2), table.slice(events // 2))
    )
    runs: dict[str, Callable[[], object]] = {
        "one": lambda: whole.run(output="final").table(),
        "threads": lambda: whole.run(output="final", threads=options.threads).table(),
        "processes": lambda: beside(first, second),
        "shared": lambda: laid(table),
    }
    taken: dict[str, list[float]] = {each: [] for each in runs}
    for turn in range(1 + options.times):
        for each, run in runs.items():
            gc.collect()
            began = time.perf_counter()
            run()
            if turn:  # the first is to warm up
                taken[each].append(time.perf_counter() - began)
    walls = {each: statistics.median(times) for each, times in taken.items()}
    report.add(
        f"{name}_halves",
        events / walls["processes"],
        {"one_thread": walls["one"] / walls["processes"], "threads": walls["threads"] / walls["processes"]},
        threads_to_one=round(walls["one"] / walls["threads"], 3),
        laid_in_shared_memory=round(walls["shared"] / walls["one"], 2),
    )


def beside(first: cz.Stream, second: cz.Stream) -> list[pa.Table]:
    """The rows of two queries, the second in a fork that gives them back through a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            rows = second.run(output="final").table()
            with os.fdopen(writing, "wb") as pipe, pa.ipc.new_stream(pipe, rows.schema) as stream:
                stream.write_table(rows)
        finally:
            os._exit(0)
    os.close(writing)
    mine = first.run(output="final").table()
    with os.fdopen(reading, "rb") as pipe, pa.ipc.open_stream(pipe) as stream:
        other = stream.read_all()
    os.waitpid(child, 0)
    return [mine, other]


def laid(table: pa.Table) -> None:
    """Writes events to memory that other processes can map."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file, pa.ipc.new_file(file, table.schema) as shared:
        shared.write_table(table)


def lock_share(run: Callable[[], object]) -> float:
    """For how much of a run a thread that wants Python's lock has to wait for it."""
    waits: list[bool] = []
    done = threading.Event()

    def sample() -> None:
        while not done.is_set():
            began = time.perf_counter()
            time.sleep(0.001)
            waits.append(time.perf_counter() - began > 0.001 + WAITED)

    sampler = threading.Thread(target=sample)
    sampler.start()
    run()
    done.set()
    sampler.join()
    return sum(waits) / max(1, len(waits))


def small_pages(report: Report, pages: int = 5_000) -> None:
    """Pages of a few events through a filter, hopping windows and delivery, in CPU time."""
    asked: list[tuple[Output, int]] = [
        *(("final", size) for size in (1, 256, 4096)),
        *(("changes", size) for size in (1, 256)),
    ]
    for output, size in asked:
        some = pages if output == "final" and size < 4096 else pages // 10
        micros = np.array([page_seconds(size, some, output) * 1e6 for _ in range(5)])
        name = f"page_{size}" if output == "final" else f"page_{size}_{output}"
        report.add(name, size / np.median(micros) * 1e6, us=round(float(np.median(micros)), 1))


def page_seconds(size: int, pages: int, output: Output) -> float:
    """CPU seconds of a page, on the average, after the first hundred; a window closes with every fiftieth."""
    random = np.random.default_rng(6)
    count = size * (pages + 100)
    payload = pa.record_batch({"key": random.integers(0, 100, count), "v": random.random(count)})
    le = np.arange(count)
    known = Properties(insert_only=True, points=True)
    rows = cz.Stream(Input(label="rows", payload=payload.schema, known=known))
    hop = 50 * size
    means = rows.where(col("v") > 0.1).group_by("key").hopping(2 * hop, every=hop).agg(mean=cz.avg("v"))
    query = query_of(means.node, output, None, None)
    parts = [slice(start, start + size) for start in range(0, count, size)]
    given = [(Page(le[p], le[p] + 1, payload.slice(p.start, size)), cti(p.stop - 1)) for p in parts]
    began = 0.0
    for number, (page, last) in enumerate(given):
        if number == 100:
            began = time.process_time()
        query.feed("rows", page)
        query.feed("rows", last)
        query.run()
        query.take("out")
    return (time.process_time() - began) / pages
