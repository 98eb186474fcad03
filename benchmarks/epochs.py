"""What an epoch on Spark costs, as a sum of few terms; and what a large cluster would make of them.

     make bench NAME=epochs ARGS="--json"                     measure, fit, simulate
     make bench NAME=epochs ARGS="--rate 1e7 --executors 100"

Epochs of windows by key are measured with one of rows, buckets, stages and keys larger at a time, on
``local[2]``; so are Spark's own tasks and shuffle blocks without rows. Terms that cannot be negative are
fitted to the medians by least squares. The simulation draws epochs of more executors from these terms: the
driver launches one task after the other, each slot works on its own, tasks vary as epochs were seen to.
It knows no network and no other tenant, and is no better than its terms: it says what grows, and what first.
"""

from __future__ import annotations

import argparse
import heapq
import math
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report
from benchmarks.spark import WARM, durations
from caesura import Stream, col

SLOTS = 2
FILES = 2
"""So many files are read in an epoch, each by a task of its own."""
TERMS = ("epoch", "stage", "task", "row", "key")


@dataclass(frozen=True)
class Shape:
    """What an epoch has to do."""

    rows: int = 200_000
    buckets: int = 2
    stages: int = 1
    keys: int = 1_000

    @property
    def tasks(self) -> int:
        return FILES + self.buckets * self.stages

    @property
    def terms(self) -> list[float]:
        """What each term is multiplied with; rows and keys are shared by the slots."""
        return [1, self.stages, self.tasks, self.rows / SLOTS, min(self.keys, self.rows) / SLOTS]


SHAPES = (
    Shape(),
    Shape(rows=1_000_000),
    Shape(rows=3_000_000),
    Shape(buckets=8),
    Shape(buckets=24),
    Shape(stages=2),
    Shape(stages=3),
    Shape(keys=50_000),
    Shape(keys=150_000),
    Shape(rows=1_000_000, buckets=8, stages=2, keys=50_000),
)


@dataclass(frozen=True)
class Model:
    """Seconds for each term; and what Spark takes for a task and for a block of a shuffle, without rows."""

    cost: dict[str, float]
    launch: float
    block: float
    spread: float
    """How much epochs of one kind differ, as a share of their median."""
    files: tuple[float, float]
    """Files written for an epoch, and for each of its tasks."""

    def seconds(self, shape: Shape) -> float:
        return float(np.dot([self.cost[name] for name in TERMS], shape.terms))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench epochs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--epochs", type=int, default=6, help="steady epochs for each shape")
    parser.add_argument("--rate", type=float, default=1e7, help="events a second, for the simulation")
    parser.add_argument("--executors", default="1,4,20,100", help="with four slots each")
    parser.add_argument("--latency", default="0,0.02,0.1", help="seconds that the store takes for a file")
    options = parser.parse_args(arguments)
    report = Report("epochs", options.json)
    model = measured(report, options.epochs)
    for executors in map(int, options.executors.split(",")):
        for latency in map(float, options.latency.split(",")):
            simulated(report, model, 4 * executors, options.rate, latency)


# Measuring.


def measured(report: Report, epochs: int) -> Model:
    spark = cz.session("caesura-epochs", master=f"local[{SLOTS}]", spark_driver_memory="4g")
    try:
        launch, block = spark_alone(spark)
        report.add("spark alone", task_ms=round(1e3 * launch, 2), shuffle_block_us=round(1e6 * block, 1))
        seen = []
        for shape in SHAPES:
            took, files = steady(spark, shape, epochs)
            seen.append((shape, took, files))
            report.add(
                f"{shape.rows // 1000}K rows, {shape.buckets} buckets, {shape.stages} stages, "
                f"{shape.keys // 1000}K keys",
                shape.rows / statistics.median(took),
                epoch_s=round(statistics.median(took), 3),
                files=round(files, 1),
            )
    finally:
        spark.stop()
    model = fitted(seen, launch, block)
    report.add(
        "the model",
        ms={name: round(1e3 * model.cost[name], 3) for name in TERMS[:3]},
        us={name: round(1e6 * model.cost[name], 3) for name in TERMS[3:]},
        files={"epoch": round(model.files[0], 1), "task": round(model.files[1], 2)},
        spread=round(model.spread, 2),
        off_by=[round(model.seconds(s) / statistics.median(t) - 1, 2) for s, t, _ in seen],
    )
    return model


def spark_alone(spark: Any) -> tuple[float, float]:
    """Seconds of Spark's own for one more task, and for one more block of a shuffle, without rows."""

    def job(tasks: int, *, shuffled: bool) -> float:
        frame = spark.range(0, tasks, 1, tasks)
        if shuffled:
            frame = frame.repartition(tasks, "id")
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    spark.conf.set("spark.sql.adaptive.enabled", "false")
    few, many = 20, 220
    for shuffled in (False, True):
        job(few, shuffled=shuffled)
    times = {
        (n, shuffled): statistics.median(job(n, shuffled=shuffled) for _ in range(5))
        for n in (few, many)
        for shuffled in (False, True)
    }
    spark.conf.unset("spark.sql.adaptive.enabled")
    launch = max(0.0, times[many, False] - times[few, False]) / (many - few)
    more = times[many, True] - times[few, True] - 2 * launch * (many - few)
    return launch, max(0.0, more) / (many**2 - few**2)


def rows_of(shape: Shape, number: int) -> pa.Table:
    """One file: rows in the order of time, of keys as they come."""
    count = shape.rows // FILES
    random = np.random.default_rng(number)
    ts = (number * count + np.arange(count)) * 1_000_000 // shape.rows
    return pa.table({"ts": pa.array(ts, pa.timestamp("us")), "k": random.integers(0, shape.keys, count)})


def windows(rows: Stream, stages: int) -> Stream:
    """Counts per key and second, then of every two keys, and so on: each stage has other keys."""
    found = rows.group_by("k").tumbling("1s").agg(n=cz.count())
    for stage in range(1, stages):
        keyed = found.select("n", k=col("k") - col("k") % 2**stage).group_by("k")
        found = keyed.tumbling("1s").agg(n=cz.sum("n"))
    return found


def steady(spark: Any, shape: Shape, epochs: int) -> tuple[list[float], float]:
    """Seconds of epochs, the first left out; and how many files each wrote."""
    folder = Path(tempfile.mkdtemp(prefix="caesura-epochs-"))
    try:
        (folder / "in").mkdir()
        for number in range(FILES * (epochs + WARM)):
            pq.write_table(rows_of(shape, number), folder / "in" / f"{number:05d}.parquet")
        rows = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay("1s"))
        spark.conf.set("spark.sql.shuffle.partitions", shape.buckets)
        query = windows(rows, shape.stages).start(
            spark,
            sink=folder / "out",
            checkpoint=folder / "cp",
            output="final",
            trigger="available",
            files_per_epoch=FILES,
        )
        query.wait()
        took = durations(query.query)
        written = sum(1 for kind in ("out", "cp") for f in (folder / kind).rglob("*") if f.is_file())
        return took[WARM:], written / len(took)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fitted(seen: list[tuple[Shape, list[float], float]], launch: float, block: float) -> Model:
    terms = np.array([shape.terms for shape, _, _ in seen])
    medians = np.array([statistics.median(took) for _, took, _ in seen])
    spread = statistics.median(statistics.pstdev(t) / statistics.median(t) for _, t, _ in seen)
    tasks = np.array([[1, shape.tasks] for shape, _, _ in seen])
    files = least_squares(tasks, np.array([files for _, _, files in seen]))
    weights = 1 / medians  # what counts is the share that is missed
    cost = least_squares(terms * weights[:, None], medians * weights)
    return Model(dict(zip(TERMS, cost, strict=True)), launch, block, spread, (files[0], files[1]))


def least_squares(terms: Any, wanted: Any) -> list[float]:
    """The best coefficients of which none is negative: those that would be are left out, the least first."""
    kept = list(range(terms.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(terms[:, kept], wanted, rcond=None)
        if (found >= 0).all():
            cost = np.zeros(terms.shape[1])
            cost[kept] = found
            return [float(c) for c in cost]
        del kept[int(np.argmin(found))]


# Simulating.


def simulated(report: Report, model: Model, slots: int, rate: float, latency: float) -> None:
    """Epochs of windows with one exchange: how long they settle, with as many buckets as serve best."""
    work = rate * model.cost["row"] / slots
    name = f"{slots} slots, {rate / 1e6:g} M events/s, {1e3 * latency:g} ms a file"
    if work >= 1:
        report.add(name, holds=False, why="rows", slots_needed=math.ceil(rate * model.cost["row"] / 0.7))
        return
    found = {buckets: settled(model, slots, buckets, rate, latency) for buckets in _choices(slots)}
    best = min(found, key=lambda buckets: found[buckets][0])
    seconds, parts = found[best]
    most, worst = max(parts.items(), key=lambda part: part[1])
    report.add(
        name,
        holds=math.isfinite(seconds),
        buckets=best,
        epoch_s=round(seconds, 2),
        with_a_bucket_per_slot_s=round(found[slots][0], 2),
        first_to_grow=most,
        share=round(worst / seconds, 2) if math.isfinite(seconds) else None,
    )


def _choices(slots: int) -> list[int]:
    return sorted({slots, *(max(1, slots // share) for share in (2, 4, 8, 16, 32))})


def settled(
    model: Model, slots: int, buckets: int, rate: float, latency: float, draws: int = 9
) -> tuple[float, dict[str, float]]:
    """Seconds that an epoch takes in the long run: it has the rows that came during the one before."""
    seconds, parts = 1.0, dict[str, float]()
    random = np.random.default_rng(1)
    for _ in range(60):
        some = [epoch(model, slots, buckets, rate * seconds, latency, random) for _ in range(draws)]
        parts = {name: statistics.median(one[name] for one in some) for name in some[0]}
        before, seconds = seconds, sum(parts.values())
        if seconds > 3600:
            return math.inf, parts
        if abs(seconds - before) < 0.01 * before:
            break
    return seconds, parts


def epoch(
    model: Model, slots: int, buckets: int, rows: float, latency: float, random: np.random.Generator
) -> dict[str, float]:
    """One epoch: readers, then buckets; each task waits for its launch and for a slot."""
    cost = model.cost
    own = max(0.0, cost["task"] * SLOTS - model.launch)
    parts = {"driver": cost["epoch"] + cost["stage"], "store": latency * (model.files[0] + model.files[1])}
    parts["launches"] = model.launch * (slots + buckets)
    parts["blocks"] = model.block * slots * buckets
    half = cost["row"] * rows / 2  # reading and hashing, then counting
    for name, tasks in (("reading", slots), ("buckets", buckets)):
        noise = np.exp(random.normal(0, model.spread, tasks))
        parts[name] = _makespan((own + half / tasks) * noise, slots)
    return parts


def _makespan(tasks: Any, slots: int) -> float:
    """When the last of some tasks is done, if each slot takes the next one."""
    free = [0.0] * min(slots, len(tasks))
    for took in tasks:
        heapq.heapreplace(free, free[0] + float(took))
    return max(free)
