"""How far consistent states lie apart, what tokens and labels cost, and where the period settles.

The paper's section 6: two joins on different columns of the same two streams, and a third over their
outputs; keys are uniform in 1..5000, and once the same on both streams ("synchronised").
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import caesura as cz
from benchmarks import consistency_plots as plots
from benchmarks.consistency_bank import bank, bank_on_spark
from benchmarks.pairs import resampled
from benchmarks.report import Report
from caesura import Stream, col
from caesura.consistency import Mode
from caesura.consistency.token_period import TokenPeriod
from caesura.events import Page
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.runtime import LongestQueue, Query

KEYS = 5000
WINDOW = 5000
BLOCK = 65_536
PERIODS = (1, 3, 10, 30, 100, 250, 1000, 3000, 10_000, 30_000, 100_000)
"""The paper's end at 10,000."""


def table(rows: int, seed: int, keys: str) -> pa.Table:
    """One stream's events, one per tick."""
    rng = np.random.default_rng(7 if keys == "synchronised" else seed)
    x, y = rng.integers(1, KEYS + 1, rows), rng.integers(1, KEYS + 1, rows)
    return pa.table({"t": np.arange(rows), "id": np.arange(rows), "x": x, "y": y})


def streams(rows: int, page: int, keys: str = "uniform") -> tuple[Stream, Stream]:
    made = []
    for seed in (1, 2):
        read = cz.from_arrow(table(rows, seed, keys), time="t", punctuate=cz.delay(0), batch_size=page)
        made.append(read.set_duration(WINDOW))
    return made[0], made[1]


def joins(a: Stream, b: Stream, count: int) -> Stream:
    """A plan with one to four joins; three are the paper's query."""
    by_x, by_y = (b.select(key, other=col("id")) for key in ("x", "y"))
    first = a.join(by_x, on="x", name="on x").select("id", "other")
    if count == 1:
        return first
    second = a.join(by_y, on="y", name="on y").select("id", "other")
    if count == 2:
        return first.union(second)
    third = first.join(second.select("id", last=col("other")), on="id", name="of both")
    if count == 3:
        return third
    return third.join(a.select("id", "x"), on="id", name="again")


# -- how far apart ----------------------------------------------------------------------------------------


def distances(rows: int, page: int, keys: str) -> list[int]:
    """Rows between consecutive consistent states under heeding, as a busy scheduler leaves them."""
    a, b = streams(rows, page, keys)
    query = Query({"out": joins(a, b, 3).node}, schedule=LongestQueue(), claims=cz.heeding())
    feed_ahead(query, 16 if page == 1 else 3)
    rows_at = sorted({claim.output["out"] for claim in query.claims})
    return [later - earlier for earlier, later in pairwise(rows_at)]


def feed_ahead(query: Query, ahead: int) -> None:
    """Runs with so many batches in front of the plan, so that steps work on different parts of the input."""
    claiming = query.claiming
    assert claiming is not None
    going = True
    while going:
        going = False
        for _ in range(ahead):
            going = type(claiming).__mro__[1].pull(claiming) or going
        while query.graph.ready():
            query.step()
    query.run()


def histogram(report: Report, rows: int) -> None:
    for keys in ("uniform", "synchronised"):
        for page in (1, 65_536):
            some = distances(rows if page == 1 else 6 * page, page, keys)
            bins = Counter(0 if d == 0 else 10 ** int(np.log10(d)) for d in some)
            report.add(
                f"distance, page {page}, {keys}", states=len(some) + 1, median=int(median(some or [0]))
            )
            for low in sorted(bins):
                where = f"    {low:>6} .. {max(0, low * 10 - 1):<8}"
                more = {"low": low, "page": page, "keys": keys}
                report.add(where, count=bins[low], bar=bar(bins[low], some), **more)


def bar(count: int, of: list[Any], width: int = 40) -> str:
    return "#" * max(1, round(width * count / max(1, len(of))))


# -- the U ------------------------------------------------------------------------------------------------


class Fed:
    """The three-join query, fed by hand in sections of any size, with a token behind each."""

    def __init__(self, keys: str = "uniform", mode: Mode | None = None) -> None:
        schema = pa.schema([(n, pa.int64()) for n in ("id", "x", "y")])
        known = Properties(insert_only=True, aligned=True, max_duration=WINDOW)
        a, b = (Stream(Input(label=n, payload=schema, known=known)) for n in "ab")
        self.query = joins(a, b, 3).query(claims=mode or cz.tokens(every=1 << 40))
        self.keys = keys
        self.at = 0
        self._blocks: dict[int, dict[str, pa.RecordBatch]] = {}

    def _make(self, block: int) -> None:
        """Draws the events of a block, and forgets those before."""
        if block not in self._blocks:
            self._blocks = {n: made for n, made in self._blocks.items() if n >= self.at // BLOCK}
            self._blocks[block] = {
                label: table(BLOCK, 100 * block + seed, self.keys).combine_chunks().to_batches()[0]
                for seed, label in enumerate("ab")
            }

    def section(self, events: int) -> float:
        """Seconds of work for so many events of each stream and a token."""
        end = self.at + events
        for block in range(self.at // BLOCK, -(-end // BLOCK)):
            self._make(block)
        begun = time.process_time()
        while self.at < end:
            block, place = divmod(self.at, BLOCK)
            size = min(end - self.at, BLOCK - place)
            for label in "ab":
                start = np.arange(self.at, self.at + size)
                page = Page(
                    start,
                    start + WINDOW,
                    self._blocks[block][label].slice(place, size).select(["id", "x", "y"]),
                )
                self.query.feed(label, page)
            self.at += size
            if self.at % BLOCK == 0:
                for label in "ab":
                    self.query.feed(label, cz.cti(self.at))
        self.query.token()
        self.query.run()
        self.query.take("out")
        return time.process_time() - begun


def u_curve(report: Report, rows: int, runs: int, keys: str) -> None:
    """Latency, distance and cumulative latency over the period, at half of what the query can take."""
    whole = Fed(keys)
    alone = median([whole.section(BLOCK) for _ in range(12)][2:]) / BLOCK
    rate = 0.5 / alone
    measured: dict[int, float] = {}
    cheap: dict[int, float] = {}
    for every in PERIODS:
        some, shares = [], []
        for _ in range(runs):
            beside = cumulative(BLOCK, rate, rows, keys)[2]  # as fresh as the one it is held against
            some.append(cumulative(every, rate, rows, keys))
            shares.append(some[-1][2] / beside - 1)
        most, mean = (median([s[i] for s in some]) for i in range(2))
        measured[every] = mean + every / rate
        share = cheap[every] = median(shares)
        report.add(
            f"period {every}, {keys}",
            every=every,
            max_ms=round(most * 1e3, 2),
            mean_ms=round(mean * 1e3, 2),
            distance_ms=round(1e3 * every / rate, 2),
            cumulative_ms=round(1e3 * measured[every], 2),
            cost=f"{100 * share:+.0f} %",
        )
    pace = tuned(rate, keys)
    here = median([sum(cumulative(pace.base, rate, rows, keys)[1:2]) for _ in range(runs)])
    at = {"period": pace.base, "cumulative_ms": round(1e3 * (here + pace.base / rate), 2)}
    report.add(f"tuned, {keys}", **at)
    report.add(f"least of those measured, {keys}", period=min(measured, key=lambda n: measured[n]))
    some_cheap = [n for n in PERIODS if cheap[n] <= 0.03]
    report.add(f"least that costs at most 3 %, {keys}", period=min(some_cheap, default=None))


def cumulative(every: int, rate: float, rows: int, keys: str) -> tuple[float, float, float]:
    """(worst, mean latency of a token, work per event): work is measured, events come at a rate."""
    fed = Fed(keys)
    for _ in range(2):
        fed.section(BLOCK)
    now = free = total = worst = spent = 0.0
    count = max(8, min(100, rows // every))
    for _ in range(count):
        work = fed.section(every)
        now += every / rate
        free = max(free, now) + work
        worst, total, spent = max(worst, free - now), total + free - now, spent + work
    return worst, total / count, spent / (count * every)


def tuned(rate: float, keys: str) -> TokenPeriod:
    """Where the tuner settles on this query at this rate."""
    pace, fed = TokenPeriod(), Fed(keys)
    fed.section(2 * WINDOW)
    for _ in range(60):
        events = pace.every
        pace.section(events, busy=fed.section(events), rate=rate)
    return pace


# -- what it costs ----------------------------------------------------------------------------------------


class Driven:
    """A query that is run batch by batch."""

    def __init__(self, query: Query) -> None:
        self.query, self.over = query, False
        self.took: list[float] = []
        self._may, self._pull = False, query.runner._pull
        query.runner._pull = self._pulled  # type: ignore[method-assign]

    def _pulled(self) -> bool:
        if not self._may:
            return False
        self._may = False
        self.over = not self._pull()
        return not self.over

    def batch(self) -> None:
        """One batch from where it enters to the last of its output."""
        self._may = True
        begun = time.process_time()
        self.query.run()
        self.took.append(time.process_time() - begun)
        self.query.take("out")


def ran(
    rows: int, count: int, modes: dict[str, Mode | None], page: int, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """By mode, (seconds of work, mean latency of a batch); all modes side by side, batch by batch.

    A batch for which one of them took far longer than usual, against the others, is left out for all.
    """
    tables, rng = streams(rows, page), np.random.default_rng(seed)
    some = {name: Driven(joins(*tables, count).query(claims=mode)) for name, mode in modes.items()}
    gc.collect()
    gc.disable()
    while not all(one.over for one in some.values()):
        for name in rng.permutation(list(some)):
            if not some[name].over:
                some[name].batch()
    gc.enable()
    batches = 2 * -(-rows // page)
    took = np.array([one.took[:batches] for one in some.values()])
    against = took / took.min(axis=0)
    calm = (against < 1.4 * np.median(against, axis=1, keepdims=True)).all(axis=0)
    means = took[:, calm].mean(axis=1)
    rest = [sum(one.took[batches:]) for one in some.values()]
    return {n: (m * batches + r, m) for n, m, r in zip(some, means.tolist(), rest, strict=True)}


def peak(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def costs(report: Report, rows: int, pairs: int, page: int) -> None:
    """Each mode beside none, batch by batch in random order, for one to four joins."""
    for count in (1, 2, 3, 4):
        every = settled(8 * rows, count, page)
        modes: dict[str, Mode | None] = {
            "none": None,
            "heeding": cz.heeding(),
            "naive": cz.heeding(scan="naive"),
            "tokens": cz.tokens(every=every),
        }
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in modes}
        bases: dict[str, list[tuple[float, float]]] = {name: [] for name in modes}
        ran(rows, count, modes, page)
        for name, mode in modes.items():
            for turn in range(pairs if mode is not None else 3):
                took = ran(rows, count, {"base": None, name: mode}, page, turn)
                runs[name].append(took[name])
                bases[name].append(took["base"])
        for name, mode in modes.items():
            memory = peak(lambda m=mode, n=count: ran(rows, n, {"alone": m}, page))
            more: dict[str, object] = {"latency_ms": round(1e3 * median(t for _, t in runs[name]), 2)}
            ratio = None
            if name != "none":
                against = list(zip(runs[name], bases[name], strict=True))
                shares = [one[0] / base[0] for one, base in against]
                more["cost"] = interval(shares)
                more["latency"] = interval([one[1] / base[1] for one, base in against])
                ratio = {"none": 1 / median(shares)}
            if name == "tokens":
                more["period"] = every
            label = f"{count} joins, {name}, page {page}"
            rate = 2 * rows / median(w for w, _ in runs[name])
            report.add(label, rate, ratio, memory_mb=round(memory, 1), **more)


def interval(shares: list[float]) -> str:
    """The median of ratios as a cost, and where it lies with 90 % certainty (bootstrap)."""
    ratios = np.array(shares)
    low, high = resampled(lambda some: float(np.median(ratios[some])), len(shares), sure=90)
    return f"{100 * (median(shares) - 1):+.1f} % [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]"


# -- a token per hundred events ---------------------------------------------------------------------------

HUNDRED = 100


def hundred(report: Report, rows: int) -> None:
    """The paper's 6.3: one to four joins with a token for every hundred events of a stream, and without.

    Events come one by one at half of the rate that a query can take. Latency is from when an event comes to
    when the batch of a hundred that it is in has left the plan; memory is the peak, and per throughput.
    """
    for count in (1, 2, 3, 4):
        modes: dict[str, Mode | None] = {"none": None, "tokens": cz.tokens(every=HUNDRED)}
        ran(rows // 10, count, modes, HUNDRED)
        took = ran(rows, count, modes, HUNDRED)
        base = 2 * rows / took["none"][0]
        for name, mode in modes.items():
            work, per_batch = took[name]
            rate = 2 * rows / work
            wait = 2 * HUNDRED / base  # of the middle event: a stream gives a quarter of what can be taken
            memory = peak(lambda m=mode, n=count: ran(rows, n, {"alone": m}, HUNDRED))
            report.add(
                f"{count} joins, {name} per {HUNDRED}",
                rate,
                {"none": rate / base},
                arrival_to_output_ms=round(1e3 * (wait + per_batch), 2),
                memory_mb=round(memory, 1),
                mb_per_million_a_second=round(memory / (rate / 1e6), 1),
            )


# -- where the period settles -----------------------------------------------------------------------------


def settled(rows: int, count: int, page: int = BLOCK) -> int:
    """The period that the tuner ends with on a source that gives as fast as it can."""
    query = joins(*streams(rows, page), count).query(claims=cz.tokens())
    while query.step():
        query.take("out")
    return query.token_figures().period or 0


def tuner(report: Report, rows: int, runs: int) -> None:
    """The same data again and again: how far apart the periods are that it settles on."""
    for page, some in ((BLOCK, 8 * rows), (256, rows)):
        for count in (1, 3):
            found = sorted(settled(some, count, page) for _ in range(runs))
            spread = {"least": found[0], "median": int(median(found)), "most": found[-1]}
            report.add(f"settles, {count} joins, page {page}", runs=runs, **spread)


def main(args: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks consistency", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON line per measurement")
    parser.add_argument("--full", action="store_true", help="longer runs, small pages too, 10 M transactions")
    parts = ("histogram", "u", "costs", "hundred", "tuner", "bank", "spark")
    parser.add_argument("--only", choices=parts, help="one part")
    parser.add_argument("--pairs", type=int, default=40, help="runs of each way beside none, for the costs")
    parser.add_argument("--plots", type=Path, help="a folder for the paper's figures as HTML")
    given = parser.parse_args(args)
    report, full = Report("consistency", given.json), given.full
    joins(*streams(10, 10), 3).run()  # compiles
    if given.only in (None, "histogram"):
        histogram(report, 10_000 if full else 4000)
    if given.only in (None, "u"):
        for keys, runs in (("uniform", 5), ("synchronised", 5 if full else 1)):
            u_curve(report, 200_000 if full else 40_000, runs, keys)
    if given.only in (None, "costs"):
        costs(report, 400_000, given.pairs, BLOCK)
        if full:
            costs(report, 20_000, 15, 256)
    if given.only in (None, "hundred"):
        hundred(report, 100_000 if full else 20_000)
    if given.only in (None, "tuner"):
        tuner(report, 200_000, 10 if full else 4)
    if given.only in (None, "bank"):
        bank(report, 10_000_000 if full else 200_000)
    if given.only in (None, "spark"):
        bank_on_spark(report, 200_000)
    if given.plots is not None:
        plots.write(report.rows, given.plots)
