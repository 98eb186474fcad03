"""Chapter 7 of the feedback thesis on our engine: what feedback costs, and what it saves.

make bench NAME=feedback ARGS="--full"      the thesis' sizes and 20 runs; without it a tenth, and 5 runs

Each figure stands beside the thesis' own (NiagaraST, 2010, another machine: compare shapes, not seconds).
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks import feedback_data as data
from benchmarks.report import Report
from caesura import Pattern, Stream, col
from caesura.events import Item, Page
from caesura.plan import Properties
from caesura.punctuation import INFINITY, cti, ge, lt, value
from caesura.runtime import Query, graph

Feed = Mapping[str, list[Item]]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench feedback")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true", help="the thesis' sizes, 20 runs")
    parser.add_argument("--only", default="", help="comma-separated: 1, 2, 3, 4, 5, bytes, moments")
    options = parser.parse_args(arguments)
    report = Report("feedback", options.json)
    minutes, runs = (1440, 20) if options.full else (144, 5)
    suites: dict[str, Callable[[Report, int, int], None]] = {
        "1": aware,
        "2": sending,
        "3": useful,
        "4": how_far,
        "5": savings,
        "bytes": bytes_not_read,
        "moments": moments,
    }
    for name in options.only.split(",") if options.only else list(suites):
        gc.collect()
        suites[name](report, minutes, runs)


def play(
    plan: Stream, feed: Feed, said: Pattern | None = None, *, late: float = 0.0
) -> tuple[float, Query, int]:
    """CPU seconds of one run, the query, and how many rows came out; feedback comes after a share of it."""
    query = plan.query(speculate="watermark")
    lists = [(label, items) for label, items in feed.items() if label in query._inputs]
    longest = max(len(items) for _, items in lists)
    rows = 0
    began = time.process_time()
    for at in range(longest):
        if said is not None and at >= late * longest:
            query.assume(said)
            said = None
        for label, items in lists:
            if at < len(items):
                query.feed(label, items[at])
        query.run()
        rows += sum(len(i) for i in query.take("out") if isinstance(i, Page))
    for label, _ in lists:
        query.feed(label, cti(INFINITY))
    query.run()
    rows += sum(len(i) for i in query.take("out") if isinstance(i, Page))
    return time.process_time() - began, query, rows


def paired(one: Callable[[], float], other: Callable[[], float], pairs: int) -> dict[str, Any]:
    """The difference between two ways, measured in turn: the median of the ratios, and where most lie."""
    one(), other()
    ratios, first, second = [], [], []
    for number in range(pairs):
        a, b = (one(), other()) if number % 2 else (other(), one())[::-1]
        first.append(a)
        second.append(b)
        ratios.append(100 * (b / a - 1))
    ratios.sort()
    edge = len(ratios) // 6
    return {
        "off_s": f"{statistics.mean(first):.3f} ± {statistics.pstdev(first):.3f}",
        "on_s": f"{statistics.mean(second):.3f} ± {statistics.pstdev(second):.3f}",
        "median_percent": round(statistics.median(ratios), 2),
        "two_thirds_lie_in": [round(ratios[edge], 2), round(ratios[-edge - 1], 2)],
        "pairs": pairs,
    }


class PrimeCell(graph.Cell):
    """A cell as it was before feedback: no guard is looked for, no wish is looked up."""

    def work(self, port: int) -> None:
        self.hear()
        item = self.inputs[port].items.popleft()
        self.send(self.receive(port, item))
        self.speak()

    def receive(self, port: int, item: Item) -> Any:
        counters = self.operator.counters
        if isinstance(item, Page):
            counters.pages_in += 1
            counters.rows_in += len(item)
            return self.guarded(self.operator.page, port, item)
        counters.told_in = item
        return self.guarded(self.operator.punctuation, port, item)

    def send(self, items: Any) -> None:
        counters = self.operator.counters
        for item in items:
            if isinstance(item, Page):
                if len(item) == 0:
                    continue
                counters.rows_out += len(item)
            else:
                counters.told_out = item
            for edge in self.outputs:
                edge.push(item)
            for tap in self.taps:
                tap.append(item)


def prime(run: Callable[[], float]) -> float:
    """A run with cells that know nothing of feedback."""
    graph.Cell, kept = PrimeCell, graph.Cell  # type: ignore[misc]
    try:
        return run()
    finally:
        graph.Cell = kept  # type: ignore[misc]


def located() -> Stream:
    """The locations, alive for all time."""
    table = data.locations()
    known = Properties(insert_only=True)
    from caesura.ops.input import Input

    return Stream(Input(label="location", payload=table.schema, known=known))


def located_items() -> list[Item]:
    batch = data.locations().combine_chunks().to_batches()[0]
    return [Page.of(batch, le=[0] * len(batch), re=[INFINITY] * len(batch))]


def windowed_max(minute: int = 60) -> Stream:
    joined = data.sensor_stream().join(located(), "sensor_id")
    return joined.bucket("ts", minute).group_by("wid", "freeway_id", "milepost").totals(top=cz.max("speed"))


def feeds(minutes: int, *, numbered: bool = False, page: int = 1) -> Feed:
    return {
        "sensor": list(data.sensors(minutes, numbered=numbered, page=page)),
        "other": list(data.sensors(minutes, numbered=numbered, page=page)),
        "probe": list(data.probes(minutes)),
        "location": located_items(),
    }


def aware(report: Report, minutes: int, runs: int) -> None:
    """Suite 1: what the readiness for feedback costs when nobody speaks."""
    sensor = data.sensor_stream()
    queries = {
        "a: bucket and max": sensor.bucket("ts", 60).group_by("wid").totals(top=cz.max("speed")),
        "b: join": sensor.join(located(), "sensor_id"),
        "c: selects and union": sensor.where(col("occupancy") > 20).union(
            data.sensor_stream("other").where(col("speed") > 20)
        ),
    }
    theirs = {"a": "+1.8 %", "b": "+4.0 %", "c": "+1.4 %"}
    for name, plan in queries.items():
        feed = feeds(minutes, numbered=name[0] == "a")

        def once(plan: Stream = plan, feed: Feed = feed) -> float:
            return play(plan, feed)[0]

        found = paired(lambda once=once: prime(once), once, max(15, runs))
        report.add(f"suite 1 {name}", thesis=theirs[name[0]], **found)


def sending(report: Report, minutes: int, runs: int) -> None:
    """Suite 2: what it costs to send after every row, through steps that pass it on and do not act on it."""
    feed = feeds(minutes)
    for steps in (1, 5, 10, 15):

        def run(tells: str, steps: int = steps) -> float:
            plan = data.sensor_stream()
            for _ in range(steps):
                plan = plan.where(col("volume") > -1).feedback(exploit=False)
            plan = plan.instrument(every=1, columns=("sensor_id",), tells=tells)  # type: ignore[arg-type]
            return play(plan, feed)[0]

        found = paired(lambda: run("nobody"), lambda: run("upstream"), max(3, runs // 2))
        report.add(f"suite 2 {steps} selects, n = 1", thesis="within the noise", **found)


def useful(report: Report, minutes: int, runs: int) -> None:
    """Suite 3: union, PACE, and PACE with feedback to an imputation that falls behind."""
    items = list(data.sensors(minutes // 2, missing=True))
    archive = cz.Archive(
        pa.table({"sensor_id": range(data.SENSORS), "speed": [55] * data.SENSORS}), ("sensor_id",), "speed"
    )
    theirs = {
        "union": "50.5 % of 324,000",
        "pace": "100 % of 163,829",
        "pace with feedback": "100 % of 175,219",
    }
    for name in theirs:
        sensor = data.sensor_stream()
        clean = sensor.where(col("speed").is_not_null())
        dirty = sensor.where(col("speed").is_null()).impute("speed", archive, budget=15)
        if name == "union":
            plan = clean.union(dirty)
        else:
            tells = "upstream" if name.endswith("feedback") else "nobody"
            plan = clean.pace(dirty, within=5 * data.MINUTE, tells=tells)  # type: ignore[arg-type]
        query = plan.query()
        mark, good, rows = 0, 0, 0
        for item in (*items, cti(INFINITY)):
            query.feed("sensor", item)
            query.run()
            for page in (p for p in query.take("out") if isinstance(p, Page)):
                for start in page.le.tolist():
                    mark = max(mark, start)
                    good += start >= mark - 5 * data.MINUTE
                rows += len(page)
        filled = query.counters()["impute"].extra.get("filled", 0)
        share = round(100 * good / max(1, rows), 1)
        report.add(
            f"suite 3 {name}", thesis=theirs[name], rows=rows, useful=good, share=share, imputed=filled
        )


def how_far(report: Report, minutes: int, runs: int) -> None:
    """Suite 4: the same feedback (windows below 100, or a tenth), told further and further up."""
    feed = feeds(minutes, numbered=True)
    first = 100 if minutes > 1000 else 10
    theirs = {
        "Join": (648000, 648000, 648000, 603019),
        "Bucket": (648000, 648000, 603010, 603012),
        "Average": (1440, 1340, 1340, 1340),
    }
    for level, word in enumerate(("a: none", "b: average", "c: bucket", "d: join")):
        left = data.sensor_stream()
        right = data.sensor_stream("other").select("sensor_id", at=col("ts"))
        join = left.join(right, "sensor_id").feedback(propagate=False)
        bucket = join.bucket("ts", 60).feedback(propagate=level > 2)
        plan = bucket.group_by("wid").totals(speed=cz.avg("speed")).feedback(propagate=level > 1)
        _, query, _ = play(plan, feed, Pattern(wid=lt(first)) if level else None)
        counters = query.counters()
        ours = {
            k: counters[s].rows_out
            for k, s in (("Join", "join"), ("Bucket", "bucket"), ("Average", "totals"))
        }
        report.add(f"suite 4 {word}", thesis={k: v[level] for k, v in theirs.items()}, rows_out=ours)


def savings(report: Report, minutes: int, runs: int) -> None:
    """Suite 5: three queries under feedback that covers nearly everything."""
    sensor = data.sensor_stream()
    averages = data.sensor_stream().tumbling(60).agg(speed=cz.avg("speed"))
    probed = data.probe_stream().tumbling(60).agg(probed=cz.avg("speed"))
    queries: dict[str, tuple[Stream, Pattern, str]] = {
        "1: two filters and a union": (
            sensor.where(col("occupancy") > 20).union(data.sensor_stream("other").where(col("speed") > 20)),
            Pattern(sensor_id=ge(1)),
            "12.22 s to 9.66 s (-21 %)",
        ),
        "2: windowed max over a join": (
            windowed_max(),
            Pattern(milepost=value(100).complement()),
            "7.34 s to 5.54 s (-25 %)",
        ),
        "3: join of windowed averages": (
            averages.join(probed, on=[]),
            Pattern(LE=ge(120)),
            "7.19 s to 6.31 s (-12 %)",
        ),
    }
    for name, (plan, said, theirs) in queries.items():
        for page in (1, 48):
            feed = feeds(minutes, numbered=name[0] == "2", page=page)
            play(plan, feed), play(plan, feed, said)
            plain = [play(plan, feed) for _ in range(runs)]
            told = [play(plan, feed, said) for _ in range(runs)]
            before, after = (query.counters() for query in (plain[-1][1], told[-1][1]))
            seconds = [statistics.median(t[0] for t in some) for some in (plain, told)]
            spread = [statistics.pstdev(t[0] for t in some) for some in (plain, told)]
            report.add(
                f"suite 5 {name}, {450 * page} rows a page",
                thesis=theirs,
                cpu_s=[f"{s:.3f} ± {d:.3f}" for s, d in zip(seconds, spread, strict=True)],
                saved_percent=round(100 * (1 - seconds[1] / seconds[0])),
                rows_out={step: [before[step].rows_out, after[step].rows_out] for step in before},
            )


def bytes_not_read(report: Report, minutes: int, runs: int) -> None:
    """Row groups that cannot contribute are not read: one freeway of five is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        table = data.table_of(list(data.sensors(minutes)))
        for freeway in range(5):
            some = table.filter(pa.compute.equal(pa.compute.divide(table["sensor_id"], 30), freeway))
            pq.write_table(some, Path(folder) / f"{freeway}.parquet", row_group_size=2000)
        size = sum(f.stat().st_size for f in Path(folder).iterdir())
        plan = (
            cz.read.parquet(folder, time="ts", batch_size=2000)
            .group_by("sensor_id")
            .tumbling(60)
            .agg(n=cz.count())
        )
        for name, said in (("all", None), ("one freeway", Pattern(sensor_id=ge(30)))):
            query = plan.query(speculate="watermark")
            if said is not None:
                query.assume(said)
            began = time.process_time()
            query.run()
            told = query.counters()["read"].feedback
            skipped = told.get("bytes not read", 0)
            report.add(
                f"bytes: {name}",
                cpu_s=round(time.process_time() - began, 3),
                rows_not_read=told.get("rows not read", 0),
                bytes_not_read=skipped,
                of=size,
            )


def moments(report: Report, minutes: int, runs: int) -> None:
    """The range of effectiveness: what is saved by the moment at which the same feedback comes."""
    feed = feeds(minutes, numbered=True)
    plan = windowed_max()
    said = Pattern(milepost=value(100).complement())
    whole = min(play(plan, feed)[0] for _ in range(runs))
    for late in (0.0, 0.25, 0.5, 0.75):
        taken = min(play(plan, feed, said, late=late)[0] for _ in range(runs))
        report.add(f"feedback after {late:.0%}", saved_percent=round(100 * (1 - taken / whole)))
