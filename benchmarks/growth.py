"""How cost grows: with events, keys, windows a row and buckets; CPU seconds.

Where cost is a straight line through the origin, seconds for one unit of work stay the same: an event of
Y1, a bid of NEXMark's q5, an event by so many keys, in so many windows, in a plan cut into so many buckets.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import caesura as cz
from benchmarks.nexmark_data import house
from benchmarks.report import Report
from benchmarks.y1_data import ads, views

Case = Iterator[tuple[int, int, cz.Stream]]
"""How much of what grows, how many units of work, and the stream to run."""


def y1(largest: int) -> Case:
    for events in _steps(largest // 100, largest):
        yield events, events, views(cz.from_arrow(ads(events), time="ts", punctuate=cz.delay("1s")))


def q5(largest: int) -> Case:
    for events in _steps(largest // 1_000, largest // 10):
        bid = cz.from_arrow(house(events).bid, time="dateTime", punctuate=cz.delay("3s"))
        yield events, events, bid.group_by("auction").hopping("10s", every="2s").agg(num=cz.count())


def keys(largest: int) -> Case:
    events = largest // 10
    for count in _steps(1_000, max(events, 1_000)):
        spread = np.random.default_rng(1).integers(0, count, events)
        stream = cz.from_arrow(pa.table({"t": np.arange(events), "k": spread}), time="t")
        yield count, events, stream.group_by("k").tumbling(events).agg(n=cz.count())


def windows(largest: int) -> Case:
    events = max(1_000, largest // 100)
    for count in _steps(10, 10_000):
        rows = pa.table({"t": np.arange(events), "v": np.arange(events) % 7})
        stream = cz.from_arrow(rows, time="t").hopping(count, every=1).agg(total=cz.sum("v"))
        yield count, events, stream


def buckets(largest: int) -> Case:
    events = largest // 100
    spread = np.random.default_rng(1).integers(0, max(1, events // 10), events)
    stream = cz.from_arrow(pa.table({"t": np.arange(events), "k": spread}), time="t")
    for count in (1, 2, 4, 8, 16, 32, 64):
        yield count, events, stream.group_by("k").tumbling(events).agg(n=cz.count())


CASES: dict[str, Callable[[int], Case]] = {
    "y1": y1,
    "q5": q5,
    "keys": keys,
    "windows": windows,
    "buckets": buckets,
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench growth")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=100_000_000, help="of the largest run")
    parser.add_argument("--only", default="", help=f"comma-separated cases: {', '.join(CASES)}")
    options = parser.parse_args(arguments)
    report = Report("growth", options.json)
    for name in options.only.split(",") if options.only else CASES:
        for size, work, stream in CASES[name](options.events):
            threads = size if name == "buckets" else 1
            spent = measured(lambda s=stream, n=threads: s.run(output="final", threads=n))
            report.add(f"{name} {size:,}", cpu_s=round(spent, 3), ns_each=round(1e9 * spent / work, 1))


def measured(run: Callable[[], object]) -> float:
    """CPU seconds, the least of two runs behind one that compiles."""
    taken = []
    for _ in range(3):
        before = time.process_time()
        run()
        taken.append(time.process_time() - before)
    return min(taken[1:])


def _steps(first: int, last: int) -> list[int]:
    """Ten times as much with every step.

    >>> _steps(10, 1000)
    [10, 100, 1000]
    """
    return [first * 10**n for n in range(round(math.log10(last / first)) + 1)]
