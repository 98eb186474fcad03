"""The embedded engine beside DuckDB: Yahoo Y1, the temporal join, corrections, page sizes, groups, memory.

All cases run on data made from a seed, in one process, one after the other. DuckDB does the same
computation as one batch query with two threads; ours runs on one thread, in pages of 64 K rows.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

import caesura as cz
from benchmarks.report import Report
from benchmarks.y1_data import ADS, ads, campaigns, later, views
from caesura import col
from caesura.events import Page
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import cti
from caesura.runtime import Query

PAGE = 65_536
SECOND = 1_000_000


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench core")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument(
        "--only",
        default="",
        help="comma-separated cases: y1, join, late, texts, pages, groups, memory, alive, latest",
    )
    options = parser.parse_args(arguments)
    report = Report("core", options.json)
    cases: dict[str, Callable[[Report, int], None]] = {
        "y1": y1,
        "join": temporal_join,
        "late": y1_corrected,
        "texts": texts_corrected,
        "pages": page_sizes,
        "groups": million_groups,
        "memory": flat_memory,
        "alive": running_views,
        "latest": current_rows,
    }
    wanted = options.only.split(",") if options.only else list(cases)
    for name in wanted:
        gc.collect()
        cases[name](report, options.events)


def best(run: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of some runs, in seconds; the first, which compiles, does not count."""
    run()
    taken = []
    for _ in range(times):
        began = clock()
        run()
        taken.append(clock() - began)
    return min(taken)


# Yahoo Y1: filter views, look the campaign up, count per campaign and second.


def y1_stream(table: pa.Table, **events: object) -> cz.Stream:
    return views(cz.from_arrow(table, time="ts", **{"punctuate": cz.delay("1s"), **events}))


def y1(report: Report, events: int) -> None:
    table = ads(events)
    stream = y1_stream(table)
    ours = best(lambda: stream.run(output="final"))
    theirs = best(lambda: duck_y1(table))
    got = stream.run(output="final").table().num_rows
    wanted = duck_y1(table).num_rows
    assert got == wanted, (got, wanted)
    report.add(
        "y1", events / ours, {"duckdb_2_threads": theirs / ours}, duckdb_events_per_s=round(events / theirs)
    )


def duck_y1(table: pa.Table) -> pa.Table:
    import duckdb

    with duckdb.connect() as db:
        db.execute("SET threads = 2")
        db.register("clicks", table)
        db.register("campaigns", campaigns())
        return db.execute(
            "SELECT campaign, time_bucket(INTERVAL 1 second, ts) AS w, count(*) AS n "
            "FROM clicks JOIN campaigns USING (ad) WHERE kind = 0 GROUP BY ALL"
        ).to_arrow_table()


# The temporal join.


def intervals(events: int, keys: int, lifetime: int, seed: int) -> list[Page]:
    """Interval events, one a tick, on uniform keys with exponential lifetimes; pages of 10 K."""
    random = np.random.default_rng(seed)
    le = np.arange(events) * 2
    re = le + 1 + random.exponential(2 * lifetime, events).astype(np.int64)
    payload = pa.record_batch({"key": random.integers(0, keys, events), f"v{seed}": np.arange(events)})
    step = 10_000
    return [Page(le[i : i + step], re[i : i + step], payload.slice(i, step)) for i in range(0, events, step)]


def temporal_join(report: Report, events: int) -> None:
    count = max(20_000, events * 2 // 5)
    left, right = intervals(count, 10_000, 5_000, 1), intervals(count, 10_000, 5_000, 2)
    peak = {"rows": 0, "live": 0, "matches": 0}
    ours = best(lambda: run_join(left, right, peak))
    theirs = best(lambda: duck_join(left, right), times=1)
    report.add(
        "temporal_join",
        2 * count / ours,
        {"duckdb_2_threads": theirs / ours},
        matches_per_event=round(peak["matches"] / (2 * count), 2),
        most_state_rows=peak["rows"],
        most_live_rows=peak["live"],
    )


def run_join(left: list[Page], right: list[Page], peak: dict[str, int]) -> None:
    known = Properties(insert_only=True)
    a = Input(label="a", payload=left[0].schema, known=known)
    b = Input(label="b", payload=right[0].schema, known=known)
    query = Query({"out": cz.Stream(a).join(cz.Stream(b), on="key").node})
    peak["matches"] = 0
    for number, (x, y) in enumerate(zip(left, right, strict=True)):
        query.feed("a", x)
        query.feed("b", y)
        query.run()
        edge = int(x.le[-1]) + 2
        query.feed("a", cti(edge))
        query.feed("b", cti(edge))
        query.run()
        peak["matches"] += sum(len(item) for item in query.take("out") if isinstance(item, Page))
        if number % 20 == 19:
            peak["rows"] = max(peak["rows"], query.state_rows)
            live = sum(
                int((p.re > edge).sum())
                for side in (left, right)
                for p in side[max(0, number - 30) : number + 1]
            )
            peak["live"] = max(peak["live"], live)


def duck_join(left: list[Page], right: list[Page]) -> int:
    import duckdb

    def table(pages: list[Page]) -> pa.Table:
        batches = [
            p.payload.append_column("le", pa.array(p.le)).append_column("re", pa.array(p.re)) for p in pages
        ]
        return pa.Table.from_batches(batches)

    with duckdb.connect() as db:
        db.execute("SET threads = 2")
        db.register("a", table(left))
        db.register("b", table(right))
        query = "SELECT count(*) FROM a JOIN b ON a.key = b.key AND a.le < b.re AND b.le < a.re"
        return int(db.execute(query).fetchone()[0])


# Y1 with late and retracted events.


def corrected(events: int, seed: int = 3) -> pa.Table:
    """Y1 events as physical rows: 5 % come up to a second late, 5 % are retracted a little later."""
    random = np.random.default_rng(seed)
    table = ads(events)
    ts = table["ts"].to_numpy().astype("datetime64[us]").astype(np.int64)
    arrival = ts + np.where(random.random(events) < 0.05, random.integers(0, SECOND, events), 0)
    gone = np.flatnonzero(random.random(events) < 0.05)
    rows = np.concatenate([np.arange(events), gone])
    order = np.argsort(np.concatenate([arrival, arrival[gone] + SECOND // 4]), kind="stable")
    rows = rows[order]
    kind = np.concatenate([np.zeros(events, bool), np.ones(len(gone), bool)])[order]
    plain = table.take(pa.array(rows)).combine_chunks()
    le = plain["ts"].cast(pa.int64()).to_numpy()
    return (
        plain.append_column("end", pa.array(le + 1, pa.timestamp("us")))
        .append_column("new_end", pa.array(np.where(kind, le, le + 1), pa.timestamp("us")))
        .append_column("sign", pa.array(np.where(kind, "-", "+")))
    )


def y1_corrected(report: Report, events: int) -> None:
    """CPU seconds, late and retracted beside clean."""
    table = ads(events)
    clean = y1_stream(table)
    rough_table = corrected(events)
    rough = y1_stream(rough_table, kind="sign", end="end", new_end="new_end", punctuate=cz.delay("2s"))
    base = best(lambda: clean.run(output="final"), clock=time.process_time)
    ours = best(lambda: rough.run(output="final"), clock=time.process_time)
    speed = rough_table.num_rows / ours
    report.add("y1_late_and_retracted", speed, {"y1_clean": speed / (events / base)})


def texts_corrected(report: Report, events: int) -> None:
    """The same with texts: views per page, whose name is a text of some 40 characters. CPU seconds."""
    names = pa.array([f"https://shop.example/campaign/{ad // 10}/ad/{ad}" for ad in range(ADS)])

    def stream(table: pa.Table, **how: object) -> cz.Stream:
        rows = table.append_column("page", pc.take(names, table["ad"])).drop_columns(["ad"])
        views = cz.from_arrow(rows, time="ts", **how).where(col("kind") == 0)
        return views.group_by("page").tumbling("1s").agg(n=cz.count())

    rough_table = corrected(events)
    how = {"kind": "sign", "end": "end", "new_end": "new_end"}
    clean = stream(ads(events), punctuate=cz.delay("1s"))
    rough = stream(rough_table, punctuate=cz.delay("2s"), **how)
    base = best(lambda: clean.run(output="final"), clock=time.process_time)
    speed = rough_table.num_rows / best(lambda: rough.run(output="final"), clock=time.process_time)
    report.add("texts_late_and_retracted", speed, {"clean": speed / (events / base)})


# Page sizes, many groups, memory.


def page_sizes(report: Report, events: int) -> None:
    table = ads(min(events, 2_000_000))
    for size in (1, 16, 256, 4096, 65536):
        count = min(table.num_rows, size * 2_000)
        latencies = page_latencies(table.slice(0, count), size)
        latencies = page_latencies(table.slice(0, count), size)
        micros = np.array(latencies) * 1e6
        report.add(
            f"page_{size}",
            count / sum(latencies),
            p50_us=round(float(np.percentile(micros, 50)), 1),
            p99_us=round(float(np.percentile(micros, 99)), 1),
        )


def page_latencies(table: pa.Table, size: int) -> list[float]:
    """Seconds from a page's arrival until all that it causes has left, for every page."""
    batch = table.combine_chunks().to_batches()[0]
    le = batch.column("ts").cast(pa.int64()).to_numpy()
    payload = batch.select(["ad", "kind"])
    known = Properties(insert_only=True, points=True)
    clicks = cz.Stream(
        Input(label="clicks", payload=payload.schema, time_type=pa.timestamp("us"), known=known)
    )
    query = Query({"out": views(clicks).node}, speculate="watermark")
    query.run()
    taken = []
    for start in range(0, len(le), size):
        part = le[start : start + size]
        page = Page(part, part + 1, payload.slice(start, size))
        began = time.perf_counter()
        query.feed("clicks", page)
        query.feed("clicks", cti(int(part[-1])))
        query.run()
        taken.append(time.perf_counter() - began)
        query.take("out")
    return taken


def million_groups(report: Report, events: int) -> None:
    random = np.random.default_rng(5)
    count = max(1_000_000, events)
    table = pa.table(
        {"ts": np.arange(count), "user": random.integers(0, 1_000_000, count), "spent": random.random(count)}
    )
    stream = (
        cz.from_arrow(table, time="ts", punctuate=cz.delay(10))
        .group_by("user")
        .tumbling(count)
        .agg(n=cz.count(), spent=cz.sum("spent"))
    )
    ours = best(lambda: stream.run(output="final"), times=1)
    theirs = best(lambda: duck_groups(table), times=1)
    one, duck = cpu_in_turns(lambda: stream.run(output="final"), lambda: duck_groups(table, threads=1))
    ratios = {"duckdb_2_threads": theirs / ours, "duckdb_1_thread_cpu": duck / one}
    report.add("million_groups", count / ours, ratios)


def cpu_in_turns(*runs: Callable[[], object], times: int = 5) -> list[float]:
    """The median CPU seconds of each of some runs, which take turns."""
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(times):
        for mine, run in zip(taken, runs, strict=True):
            began = time.process_time()
            run()
            mine.append(time.process_time() - began)
    return [statistics.median(mine) for mine in taken]


def duck_groups(table: pa.Table, threads: int = 2) -> pa.Table:
    import duckdb

    with duckdb.connect() as db:
        db.execute(f"SET threads = {threads}")
        db.register("t", table)
        return db.execute("SELECT user, count(*) AS n, sum(spent) AS s FROM t GROUP BY user").to_arrow_table()


def batches(events: int, rounds: int) -> Iterator[pa.RecordBatch]:
    """The same second of ad events again and again, its time moved on."""
    table = ads(events).combine_chunks()
    for number in range(rounds):
        yield from later(table, number * events).to_batches(max_chunksize=PAGE)


def flat_memory(report: Report, events: int) -> None:
    one = min(events, 1_000_000)
    rounds = max(50, events // one) if events >= 1_000_000 else 5
    schema = ads(10).schema
    reader = pa.RecordBatchReader.from_batches(schema, batches(one, rounds))
    from caesura.runtime.query.result import query_of

    query = query_of(y1_stream(reader).node, "final", None, None)
    process = psutil.Process(os.getpid())
    seen: list[int] = []
    steps = 0
    began, cpu = time.perf_counter(), time.process_time()
    while query.step():
        query.take("out")
        steps += 1
        if steps % 500 == 0 or not seen:
            seen.append(process.memory_info().rss)
    taken = time.perf_counter() - began
    third = max(1, len(seen) // 3)
    report.add(
        "memory",
        one * rounds / taken,
        events=one * rounds,
        state_rows_at_end=query.state_rows,
        rss_mb_after_third=round(seen[third - 1] / 2**20),
        rss_mb_at_end=round(seen[-1] / 2**20),
        most_rss_mb=round(max(seen) / 2**20),
        cpu_s=round(time.process_time() - cpu, 1),
    )


def running_views(report: Report, events: int) -> None:
    """Aggregates of what is alive, of rows that never end: how many rows a second change a view."""
    random = np.random.default_rng(7)
    count = min(events, 1_000_000)
    table = pa.table(
        {"ts": np.arange(count), "k": random.integers(0, 10_000, count), "v": random.integers(0, 1000, count)}
    )
    rows = cz.from_arrow(table, time="ts", punctuate=cz.delay(10)).forever()
    views: dict[str, dict[str, Any]] = {
        "sums": {"n": cz.count(), "total": cz.sum("v"), "mean": cz.avg("v")},
        "distinct": {"d": cz.count_distinct("v")},
        "spread": {"var": cz.variance("v")},
    }
    for groups, grouped in (("10_k_keys", rows.group_by("k")), ("one_key", rows)):
        for name, view in views.items():
            stream = grouped.alive().agg(**view)
            report.add(f"alive_{name}_{groups}", count / best(lambda s=stream: s.run(), times=1), {})


def current_rows(report: Report, events: int) -> None:
    """The current row of every key: how many rows a second replace others, in order and up to a page late."""
    random = np.random.default_rng(8)
    count = min(events, 1_000_000)
    texts = pa.array([f"place {i}" for i in range(1000)])
    table = pa.table(
        {
            "ts": np.arange(count),
            "k": random.integers(0, 10_000, count),
            "v": random.random(count),
            "s": texts.take(pa.array(random.integers(0, 1000, count))),
        }
    )
    late = table.take(pa.array(np.argsort(np.arange(count) + random.integers(0, PAGE, count), kind="stable")))
    for name, rows, delay in (("in_order", table, 10), ("late", late, PAGE)):
        stream = cz.from_arrow(rows, time="ts", punctuate=cz.delay(delay)).latest(key="k")
        report.add(f"latest_{name}", count / best(lambda s=stream: s.run(), times=1), {})
