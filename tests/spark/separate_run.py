"""Runs in separate executor processes: prints whether each output equals the embedded engine's.

First a batch; then a stream whose tasks fail once in every epoch, behind steps that keep state, so
that they are tried again from the state of the epoch before.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import spark_plans as given
from window_plans import example_plans

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Page
from caesura.runtime.query.result import run
from caesura.spark import MemorySink, run_all, start


def flaky(folder: str) -> Stream:
    """A count per segment whose task fails once for each of two segments, when their count is first 2."""

    def fails_once(seg: int, n: int) -> int:
        if seg not in (1, 3) or n < 2:
            return n
        try:
            os.close(os.open(f"{folder}/failed-{seg}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return n
        raise RuntimeError("this task fails once")

    points = cz.read.parquet(f"{folder}/readings", time="ts", punctuate=cz.delay(4), name="readings")
    counted = points.group_by("seg").tumbling(10).agg(n=cz.count())
    return counted.select("seg", n=cz.udf(fails_once, returns="bigint")(col("seg"), col("n")))


def main() -> None:
    folder = sys.argv[1]
    streams = {**given.plans(Path(folder)), **example_plans()}
    spark = cz.session("caesura-separate", master="local-cluster[2,1,1024]", buckets=3)
    results = run_all({name: stream.node for name, stream in streams.items()}, spark)
    same = {name: results[name].history == run(stream.node).history for name, stream in streams.items()}
    for name, stream in streams.items():
        came = {item.schema for item in results[name].items if isinstance(item, Page)}
        same[f"schema of {name}"] = came == {stream.schema}
    same |= retried(folder, spark)
    Path(sys.argv[2]).write_text(json.dumps(same))
    spark.stop()


def retried(folder: str, spark: object) -> dict[str, bool]:
    stream = flaky(folder)
    sink = MemorySink()
    query = start({"out": stream.node}, spark, sink=sink, trigger="available", files_per_epoch=1)  # type: ignore[arg-type]
    query.wait()
    failures = len(list(Path(folder).glob("failed-*")))
    items = sink.items("out")
    bound = max(i.pattern.time_bound or 0 for i in items if not hasattr(i, "le"))
    wanted = run(flaky(folder).node).history.before(bound)
    got = History.of(items, stream.schema).before(bound)
    return {"some tasks failed": failures == 2, "retried": got == wanted and len(wanted) > 0}


if __name__ == "__main__":
    main()
