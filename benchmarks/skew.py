"""One key with 99 % of the rows: what the busiest bucket has to do, with its key whole and spread.

An epoch lasts as long as its busiest bucket, stage by stage, so that is what is added up: ``busiest`` is the
CPU time of the busiest bucket of each stage, over all epochs, and ``rows`` the largest share of the rows that
one bucket got. Buckets are stepped one after the other in one process, with real packets; ``--spark`` takes
the time of epochs on ``local[2]`` besides.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report
from benchmarks.spark import WARM, durations
from caesura.events.identity import LOCAL
from caesura.io.sources.source import Source
from caesura.plan import Raw
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.stage0 import Mapper
from caesura.runtime.packets.packet import Packet

KEYS = 1000


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench skew")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=2_000_000, help="in each epoch")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--buckets", default="2,4,8")
    parser.add_argument("--hot", type=float, default=0.99, help="the share of one key in the rows")
    parser.add_argument("--spark", action="store_true")
    options = parser.parse_args(arguments)
    report = Report("skew", options.json)
    for hot in (options.hot, 0.0):
        for buckets in map(int, options.buckets.split(",")):
            compare(report, options, buckets, hot)
    if options.spark:
        on_spark(report, options)


def events(count: int, first: int, hot: float) -> pa.Table:
    """So many rows in the order of time, a second of them for every fifth of an epoch."""
    random = np.random.default_rng(first)
    keys = random.integers(1, KEYS, count)
    keys[random.random(count) < hot] = 0
    ts = (first + np.arange(count)) * 5_000_000 // count
    return pa.table(
        {"ts": pa.array(ts).cast(pa.timestamp("us")), "key": keys, "v": random.normal(size=count)}
    )


def windows(rows: cz.Stream, *, skewed: bool) -> cz.Stream:
    made = {"n": cz.count(), "total": cz.sum("v"), "mean": cz.avg("v"), "most": cz.max("v")}
    return rows.group_by("key").tumbling("1s").agg(**made, skewed=skewed)


def compare(report: Report, options: argparse.Namespace, buckets: int, hot: float) -> None:
    batches = [events(options.events, n * options.events, hot) for n in range(options.epochs + WARM)]
    found = {skewed: _stepped(batches, buckets, skewed=skewed) for skewed in (False, True)}
    whole, spread = found[False], found[True]
    for name, one in (("whole", whole), ("spread", spread)):
        report.add(
            f"{name}_{buckets}_buckets_{hot:.0%}",
            ratio_to={"whole": whole["busiest"] / one["busiest"]},
            busiest_ms=round(1000 * one["busiest"] / options.epochs, 1),
            all_ms=round(1000 * one["all"] / options.epochs, 1),
            rows=f"{one['rows']:.1%}",
            partials=round(one["partials"] / options.epochs),
        )


def _stepped(batches: list[pa.Table], buckets: int, *, skewed: bool) -> dict[str, float]:
    """CPU seconds of the busiest bucket and of all, the largest share of rows, rows between the stages."""
    rows = cz.from_arrow(pa.concat_tables(batches), time="ts", punctuate=cz.delay("1s"), name="rows")
    stages = cut(prune({"out": windows(rows, skewed=skewed).node}), buckets)
    (source,) = stages.sources
    assert isinstance(source, Source)
    mapper = Mapper(stages, source, buckets, LOCAL)
    numbers = range(1, len(stages.stages))
    fragments = [
        [Fragment(stages, n, b, buckets, LOCAL, speculate="watermark") for b in range(buckets)]
        for n in numbers
    ]
    found = {"busiest": 0.0, "all": 0.0, "rows": 0.0, "partials": 0.0}
    got = np.zeros(buckets)
    for epoch, batch in enumerate(batches):
        offset = epoch * batch.num_rows
        raw = Raw(0, offset, batch.combine_chunks().to_batches()[0])
        packets = [part for whole in mapper.map(raw, (epoch,)) for part in whole.split()]
        for stage in fragments:
            taken, spent, packets = _stage(stage, packets)
            if epoch < WARM:
                continue
            found["busiest"] += max(spent)
            found["all"] += sum(spent)
            if stage is fragments[0]:
                got += taken
            else:
                found["partials"] += sum(taken)
    found["rows"] = float(got.max() / got.sum())
    return found


def _stage(stage: list[Fragment], packets: list[Packet]) -> tuple[list[int], list[float], list[Packet]]:
    number = stage[0].stage.number
    arrived = [Packet.from_row(p.to_row()) for p in packets]
    out = [p for p in arrived if p.stage != number]
    taken, spent = [], []
    for fragment in stage:
        mine = [p for p in arrived if p.stage == number and p.bucket == fragment.bucket]
        taken.append(sum(len(item) for p in mine for item in p.items if hasattr(item, "le")))
        began = time.process_time()
        out += fragment.step(mine) if mine else []
        spent.append(time.process_time() - began)
    return taken, spent, out


def on_spark(report: Report, options: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="caesura-bench-"))
    spark = cz.session("caesura-bench", master="local[2]", buckets=2, spark_driver_memory="4g")
    try:
        (folder / "in").mkdir()
        for number in range(2 * (options.epochs + WARM)):
            table = events(options.events, number * options.events, options.hot)
            pq.write_table(table, folder / "in" / f"{number:05d}.parquet", row_group_size=1 << 18)
        whole, spread = (_epochs(spark, folder, skewed=skewed) for skewed in (False, True))
        for name, one in (("whole", whole), ("spread", spread)):
            report.add(
                f"spark_{name}_2_buckets_{options.hot:.0%}",
                2 * options.events / statistics.median(one[WARM:]),
                {"whole": statistics.median(whole[WARM:]) / statistics.median(one[WARM:])},
                epoch_s=round(statistics.median(one[WARM:]), 2),
            )
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _epochs(spark: Any, folder: Path, *, skewed: bool) -> list[float]:
    out = folder / f"skewed-{skewed}"
    rows = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay("1s"))
    query = windows(rows, skewed=skewed).start(
        spark,
        sink=out / "data",
        checkpoint=out / "cp",
        output="final",
        trigger="available",
        files_per_epoch=2,
    )
    query.wait()
    return durations(query.query)
