"""Windows: built-in aggregates on grids and snapshots, user-defined ones, window size, lateness.

make bench NAME=windows ARGS="--events 5000000"
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import caesura as cz
from benchmarks.core import best
from benchmarks.report import Report
from caesura.events import Page
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import Pattern, Punctuation, cti
from caesura.runtime import Query

SECOND = 1_000_000
PAGE = 65_536


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench windows")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument(
        "--only", default="", help="comma-separated cases: hopping, snapshot, modules, size, late"
    )
    options = parser.parse_args(arguments)
    report = Report("windows", options.json)
    cases: dict[str, Callable[[Report, int], None]] = {
        "hopping": hopping,
        "snapshot": snapshot,
        "modules": modules,
        "size": window_sizes,
        "late": lateness,
    }
    for name in options.only.split(",") if options.only else list(cases):
        cases[name](report, options.events)


def points(events: int, keys: int, rate: int = 100_000, seed: int = 1) -> tuple[Input, list[Page]]:
    """Point events with a value, so many a second, on uniform keys."""
    random = np.random.default_rng(seed)
    le = np.arange(events) * (SECOND // rate)
    payload = pa.record_batch({"key": random.integers(0, keys, events), "v": random.random(events)})
    source = Input(
        label="a",
        payload=payload.schema,
        time_type=pa.timestamp("us"),
        known=Properties(insert_only=True, points=True, max_duration=1),
    )
    cuts = range(0, events, PAGE)
    return source, [Page(le[i : i + PAGE], le[i : i + PAGE] + 1, payload.slice(i, PAGE)) for i in cuts]


def drive(node: Any, pages: list[Page], *, pace: str = "watermark") -> Query:
    """Feeds pages, each followed by its CTI, until the end."""
    query = Query({"out": node}, speculate=pace)  # type: ignore[arg-type]
    for page in pages:
        query.feed("a", page)
        query.feed("a", cti(int(page.le[-1])))
        query.run()
        query.take("out")
    query.feed("a", Punctuation(Pattern()))
    query.run()
    return query


def hopping(report: Report, events: int) -> None:
    source, pages = points(events, 10_000)
    for name, aggregate in (("avg", cz.avg("v")), ("min", cz.min("v"))):
        stream = cz.Stream(source).group_by("key").hopping("10s", every="1s").agg(x=aggregate)
        drive(stream.node, pages[:20])
        taken = best(lambda node=stream.node: drive(node, pages), times=2)
        report.add(f"hopping_{name}_10s_by_1s", events / taken, keys=10_000)
    stream = cz.Stream(source).group_by("key").tumbling("10s").agg(x=cz.avg("v"))
    report.add("tumbling_avg_10s", events / best(lambda: drive(stream.node, pages), times=1), keys=10_000)


def intervals(events: int, seed: int = 2) -> tuple[Input, list[Page]]:
    """Interval events, one a tick, that live 100 ticks on average."""
    random = np.random.default_rng(seed)
    le = np.arange(events)
    re = le + 1 + random.exponential(100, events).astype(np.int64)
    payload = pa.record_batch({"v": random.integers(0, 100, events)})
    source = Input(label="a", payload=payload.schema, known=Properties(insert_only=True))
    cuts = range(0, events, PAGE)
    return source, [Page(le[i : i + PAGE], re[i : i + PAGE], payload.slice(i, PAGE)) for i in cuts]


def snapshot(report: Report, events: int) -> None:
    count = max(20_000, events * 2 // 5)
    source, pages = intervals(count)
    for name, aggregate in (("count", cz.count()), ("avg", cz.avg("v")), ("max", cz.max("v"))):
        node = cz.Stream(source).snapshot().agg(x=aggregate).node
        drive(node, pages[:2])
        report.add(f"snapshot_{name}", count / best(lambda node=node: drive(node, pages), times=3))
    time = {"t": np.concatenate([p.le for p in pages]), "end": np.concatenate([p.re for p in pages])}
    stream = cz.from_arrow(pa.table(time), time="t", end="end", punctuate=cz.delay(0))
    counts = stream.snapshot().agg(x=cz.count())
    for output in ("changes", "final"):
        taken = best(lambda output=output: counts.run(output=output), times=3)
        report.add(f"snapshot_count_run_{output}", count / taken)


@cz.uda
def mean(values: list[float]) -> float:
    """Recomputes."""
    return sum(values) / len(values)


@cz.uda
class Mean:
    """The same, kept by adding and removing."""

    def init(self) -> list[float]:
        return [0.0, 0.0]

    def add(self, state: list[float], value: float) -> None:
        state[0] += value
        state[1] += 1

    def remove(self, state: list[float], value: float) -> None:
        state[0] -= value
        state[1] -= 1

    def compute(self, state: list[float]) -> float:
        return state[0] / state[1] if state[1] else 0.0


@cz.uda(returns="double", vectorised=True)
def means(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Many windows at once."""
    ends = np.append(starts[1:], len(values))
    return np.add.reduceat(values, starts) / (ends - starts)


def modules(report: Report, events: int) -> None:
    """Results over windows of 1000 events: one for each event that comes, or for each that leaves."""
    sliding_modules(report, events)
    speculative_modules(report, events)
    large = min(events, 1_000_000)
    source, pages = points(large, 1)
    windows = cz.Stream(source).tumbling("10ms")
    drive(windows.agg(x=means("v")).node, pages[:2])
    builtin = large / best(lambda: drive(windows.agg(x=cz.avg("v")).node, pages), times=3)
    vector = large / best(lambda: drive(windows.agg(x=means("v")).node, pages), times=3)
    report.add("avg_1000_events", builtin)
    report.add("uda_vectorised_1000_events", vector, {"built_in": vector / builtin})


def sliding_modules(report: Report, events: int) -> None:
    """A window of 1000 events that moves on by one event."""
    count = min(20_000, max(4_000, events // 200))
    source, (page,) = points(count, 1)
    small = [page.slice(i, 2_000) for i in range(0, count, 2_000)]
    windows = cz.Stream(source).hopping("10ms", every="10us")
    speed = {}
    for name, use in (("recompute", mean("v")), ("incremental", Mean("v"))):
        node = windows.agg(x=use).node
        speed[name] = count / best(lambda node=node: drive(node, small), times=1)
        report.add(f"uda_sliding_{name}", speed[name], {"recompute": speed[name] / speed["recompute"]})


def speculative_modules(report: Report, events: int) -> None:
    """A new result whenever one more event comes to one of 500 windows of 1000 events."""
    keys, rounds = 500, 12
    random = np.random.default_rng(3)
    schema = pa.schema([("key", pa.int64()), ("v", pa.float64())])
    source = Input(label="a", payload=schema, known=Properties(insert_only=True, points=True, max_duration=1))

    def page(first: int, each: int) -> Page:
        le = np.repeat(np.arange(first, first + each), keys)
        columns = [pa.array(np.tile(np.arange(keys), each)), pa.array(random.random(len(le)))]
        return Page(le, le + 1, pa.RecordBatch.from_arrays(columns, schema=schema))

    full, more = page(0, 1_000 - rounds), [page(1_000 - rounds + i, 1) for i in range(rounds)]
    speed = {}
    for name, use in (("recompute", mean("v")), ("incremental", Mean("v"))):
        query = Query({"out": cz.Stream(source).group_by("key").tumbling(1_000).agg(x=use).node})
        query.feed("a", full)
        query.run()
        began = time.perf_counter()
        for item in more:
            query.feed("a", item)
            query.run()
        speed[name] = keys * rounds / (time.perf_counter() - began)
        report.add(f"uda_speculative_{name}", speed[name], {"recompute": speed[name] / speed["recompute"]})


def window_sizes(report: Report, events: int) -> None:
    count = min(events, 1_000_000)
    source, pages = points(count, 1_000)
    for size in (1, 10, 100):
        node = cz.Stream(source).group_by("key").hopping(f"{size}s", every="1s").agg(x=cz.avg("v")).node
        report.add(f"hopping_{size}s_by_1s", count / best(lambda node=node: drive(node, pages), times=1))


def lateness(report: Report, events: int) -> None:
    """What one late event costs when so many are alive."""
    for live in (1_000, 10_000, 100_000, 1_000_000):
        if live > max(events, 10_000):
            continue
        source, pages = intervals(live)
        node = cz.Stream(source).snapshot().agg(n=cz.count()).node
        query = Query({"out": node})
        for page in pages:
            query.feed("a", page)
            query.run()
            query.take("out")
        taken = []
        for number in range(60):
            at = int(pages[0].le[0]) + (number * 7919) % live
            late = Page(np.array([at]), np.array([at + 5]), pa.record_batch({"v": [number]}))
            began = time.perf_counter()
            query.feed("a", late)
            query.run()
            taken.append(time.perf_counter() - began)
            query.take("out")
        report.add(f"late_event_among_{live}", us_median=round(float(np.median(taken)) * 1e6, 1))
