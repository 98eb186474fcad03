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
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks import feedback_data as data
from benchmarks.feedback_spark import bytes_on_spark
from benchmarks.pairs import Laps, paired
from benchmarks.report import Report
from caesura import Pattern, Stream, col
from caesura.consistency.token import Marks, is_token, pieces
from caesura.events import Item, Page
from caesura.plan import Properties
from caesura.punctuation import INFINITY, TIME, cti, ge, lt, value
from caesura.runtime import Query
from caesura.runtime.graph import graph
from caesura.runtime.query.runner import Runner

Feed = Mapping[str, list[Item]]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench feedback")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true", help="the thesis' sizes, 20 runs")
    parser.add_argument("--runs", type=int, default=0, help="runs of each way, where the default is too many")
    parser.add_argument(
        "--only", default="", help="comma-separated: 1, 2, 3, 4, 5, thrifty, bytes, moments, spark"
    )
    options = parser.parse_args(arguments)
    report = Report("feedback", options.json)
    minutes, runs = (1440, 20) if options.full else (144, 5)
    runs = options.runs or runs
    pairs = options.runs or max(15, runs)
    suites: dict[str, Callable[[Report, int, int], None]] = {
        "1": partial(aware, pairs=pairs),
        "2": partial(sending, pairs=pairs),
        "3": useful,
        "4": how_far,
        "5": savings,
        "thrifty": empty_windows,
        "bytes": bytes_not_read,
        "moments": moments,
        "spark": bytes_on_spark,
    }
    for name in options.only.split(",") if options.only else list(suites):
        gc.collect()
        suites[name](report, minutes, runs)


def play(
    plan: Stream, feed: Feed, said: Pattern | None = None, *, late: float = 0.0
) -> tuple[float, Query, int]:
    """CPU seconds of one run, the query, and how many rows came out; feedback comes after a share of it."""
    query = plan.query(speculate="watermark")
    lists = [(label, items) for label, items in feed.items() if label in query.inputs]
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


class PrimeCell(graph.Cell):
    """A cell as it was before feedback: nobody speaks, no guard is looked for, no wish is looked up."""

    def work(self, port: int) -> None:
        edge = self.inputs[port]
        if self.watch is not None and is_token(edge.items[0]):
            raise AssertionError("these runs make no claims")
        self.send(self.receive(port, edge.items.popleft()))

    def receive(self, port: int, item: Item) -> Any:
        counters = self.operator.counters
        if isinstance(item, Page):
            counters.pages_in += 1
            counters.rows_in += len(item)
            if isinstance(item.tags, Marks):
                return self.carry(port, item, item.tags)
            return self.guarded(self.operator.page, port, item)
        counters.punctuation_in = item
        return self.guarded(self.operator.punctuation, port, item)

    def send(self, items: Any) -> None:
        counters = self.operator.counters
        for item in items:
            if isinstance(item, Page):
                marked = isinstance(item.tags, Marks)
                if len(item) == 0 and not marked:
                    continue
                counters.rows_out += len(item)
            else:
                marked = False
                counters.punctuation_out = item
            for edge in self.outputs:
                edge.push(item)
            for tap in self.taps:
                for part in pieces(item) if marked and isinstance(item, Page) else (item,):
                    tap.append(part)


def prime_step(runner: Runner) -> bool:
    """One step of a query without feedback."""
    edge = runner._next()
    if edge is None:
        return runner._pull()
    assert edge.target is not None
    edge.target.work(edge.port)
    return True


def laps_of(plan: Stream, *, aware: bool = True) -> Laps:
    """A run over files; where nobody is aware of feedback, its cells know nothing of it."""
    kept = graph.Cell
    graph.Cell = kept if aware else PrimeCell  # type: ignore[misc]
    try:
        query = plan.query(speculate="watermark")
    finally:
        graph.Cell = kept  # type: ignore[misc]
    if not aware:
        query.runner._step = MethodType(prime_step, query.runner)  # type: ignore[method-assign]
    if "location" in query.inputs:
        for item in located_items():
            query.feed("location", item)
    taken, lap = 0, LAP * len(query.graph.cells)
    while query.step():
        taken += 1
        if taken % lap == 0:
            query.take("out")
            yield
    query.take("out")


LAP = 16
"""So many items are taken before it is the other run's turn."""


def located() -> Stream:
    """The locations, alive for all time."""
    table = data.locations()
    known = Properties(insert_only=True)
    from caesura.ops.input import Input

    return Stream(Input(label="location", payload=table.schema, known=known))


def located_items() -> list[Item]:
    batch = data.locations().combine_chunks().to_batches()[0]
    return [Page.of(batch, le=[0] * len(batch), re=[INFINITY] * len(batch)), cti(INFINITY)]


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


def aware(report: Report, minutes: int, runs: int, pairs: int) -> None:
    """Suite 1: what the readiness for feedback costs when nobody speaks.

    As in the thesis rows and punctuation lie in text files, and the clock runs from the first line on.
    """
    theirs = {
        "a": "9.26 s to 9.43 s, +1.8 %",
        "b": "6.18 s to 6.43 s, +4.0 %",
        "c": "11.76 s to 11.92 s, +1.4 %",
    }
    with tempfile.TemporaryDirectory() as folder:
        numbered, one, other = (Path(folder) / f"{name}.csv" for name in ("numbered", "one", "other"))
        data.write_csv(numbered, minutes, numbered=True)
        sensor = data.csv_stream(data.write_csv(one, minutes))
        also = data.csv_stream(data.write_csv(other, minutes))
        bucket = data.csv_stream(numbered).bucket("ts", 60)
        queries = {
            "a: bucket and max": bucket.group_by("wid").totals(top=cz.max("speed")),
            "b: join": sensor.join(located(), "sensor_id"),
            "c: selects and union": sensor.where(col("occupancy") > 20).union(also.where(col("speed") > 20)),
        }
        for name, plan in queries.items():
            once = partial(laps_of, plan)
            found = paired(partial(once, aware=False), once, pairs)
            report.add(f"suite 1 {name}", thesis=theirs[name[0]], **found)


def sending(report: Report, minutes: int, runs: int, pairs: int) -> None:
    """Suite 2: what it costs to send after every row, through steps that pass it on and do not act on it.

    As in the thesis the select next to the file does not send on, and a message names the start and the
    sensor of a row; rows of a page are spoken of together. Punctuation that follows the page overtakes the
    message; with punctuation five minutes behind it does not. Two runs of the same way show what chance does.
    """
    theirs = {1: "5.77 s to 5.76 s", 5: "6.29 s to 6.30 s", 10: "7.18 s to 7.21 s", 15: "7.94 s to 7.97 s"}
    with tempfile.TemporaryDirectory() as folder:
        for behind, what, counts in ((0, "overtaken", (1,)), (300, "climbing", (1, 45_000))):
            file = data.write_csv(Path(folder) / f"{behind}.csv", minutes, behind=behind)
            for n in counts:
                for steps in theirs:
                    off, on = (
                        selects(file, steps).instrument(every=n, columns=("sensor_id",), tells=tells)
                        for tells in ("nobody", "upstream")
                    )
                    found = paired(partial(laps_of, off), partial(laps_of, on), pairs)
                    report.add(f"suite 2 {steps} selects, n = {n}, {what}", thesis=theirs[steps], **found)
        for steps in (1, 5):
            same = selects(file, steps).instrument(every=1, columns=("sensor_id",), tells="nobody")
            found = paired(partial(laps_of, same), partial(laps_of, same), pairs)
            report.add(f"suite 2 {steps} selects, beside itself", **found)


def selects(file: Path, steps: int) -> Stream:
    """So many selects that let everything pass, over a file."""
    plan = data.csv_stream(file)
    for number in range(steps):
        plan = plan.where(col("volume") > -1).feedback(exploit=False, propagate=number > 0)
    return plan


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
            both = [(play(plan, feed), play(plan, feed, said)) for _ in range(runs)]
            plain, told = zip(*both, strict=True)
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


def empty_windows(report: Report, minutes: int, runs: int) -> None:
    """A thrifty join tells the sensors when no probe is on the road: three of four hours, in this data.

    The probes come an hour before the sensors, so that a window is known to be empty in time.
    """
    sensed = data.sensor_stream().group_by("sensor_id").tumbling(60).agg(speed=cz.avg("speed"))
    probed = data.probe_stream().tumbling(60).agg(probed=cz.avg("speed"))
    for page in (1, 48):
        items = [
            *_timed("probe", (item for item in data.probes(minutes) if _counts(item)), -3600),
            *_timed("sensor", data.sensors(minutes, page=page), 0),
        ]
        items.sort(key=lambda timed: timed[0])
        both: list[list[float]] = [[], []]
        for _ in range(runs + 1):
            for thrifty in (False, True):
                query = sensed.join(probed, on=[], thrifty=thrifty).query(speculate="watermark")
                rows, began = 0, time.process_time()
                for _, label, item in (*items, (0, "probe", cti(INFINITY)), (0, "sensor", cti(INFINITY))):
                    query.feed(label, item)
                    query.run()
                    rows += sum(len(i) for i in query.take("out") if isinstance(i, Page))
                both[thrifty].append(time.process_time() - began)
        plain, told = (statistics.median(some[1:]) for some in both)
        report.add(
            f"thrifty join, {450 * page} rows a page",
            cpu_s=[round(plain, 3), round(told, 3)],
            saved_percent=round(100 * (1 - told / plain)),
            rows=rows,
            rows_stopped=query.counters()["input"].feedback.get("stopped at the output", 0),
        )


def _counts(item: Item) -> bool:
    """Rows of one hour in four, and promises on time."""
    if isinstance(item, Page):
        return int(item.le[0]) // 3600 % 4 == 0
    return item.pattern.attributes == (TIME,)


def _timed(label: str, items: Iterable[Item], ahead: int) -> Iterator[tuple[int, str, Item]]:
    """Items with when they come: by the last time that a page speaks of, or a promise."""
    for item in items:
        last = int(item.le[-1]) if isinstance(item, Page) else item.pattern.time_bound
        yield (last or 0) + ahead, label, item


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
    plan = windowed_max()
    said = Pattern(milepost=value(100).complement())
    shares = (None, 0.0, 0.25, 0.5, 0.75)
    for page in (1, 48):
        feed = feeds(minutes, numbered=True, page=page)
        taken = [
            [play(plan, feed, None if late is None else said, late=late or 0.0) for late in shares]
            for _ in range(runs)
        ]
        whole, *others = np.median([[seconds for seconds, _, _ in some] for some in taken], axis=0)
        for late, took, (_, _, rows) in zip(shares[1:], others, taken[0][1:], strict=True):
            report.add(
                f"feedback after {late:.0%}, {450 * page} rows a page",
                saved_percent=round(float(100 * (1 - took / whole))),
                rows=[taken[0][0][2], rows],
            )
