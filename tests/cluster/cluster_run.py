"""A query on a standalone cluster that loses an executor once. Usage: cluster_run.py FOLDER MASTER ZIP.

FOLDER/shared is all that driver and executors have in common: input, checkpoint and output lie there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import caesura as cz
from caesura import Stream, col


def executor_process(process: int) -> int:
    """The JVM above a Python worker and the daemon that has forked it."""
    for _ in range(6):
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.split("PPid:")[1].split()[0])
        if "CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_text():
            return process
    raise RuntimeError("no executor above this worker")


def pipeline(shared: str, kills: bool) -> Stream:
    """Counts per segment; the task that first sees a full window kills its executor, once."""

    def deadly(seg: int, n: int) -> int:
        if not kills or n < 3:
            return n
        try:
            with os.fdopen(os.open(f"{shared}/killed", os.O_CREAT | os.O_EXCL | os.O_WRONLY), "w") as told:
                import caesura

                own = {"package": caesura.__file__, "home": os.environ["HOME"], "tmp": os.environ["TMPDIR"]}
                told.write(json.dumps({**own, "cwd": str(Path.cwd())}))
        except FileExistsError:
            return n
        os.kill(executor_process(os.getpid()), signal.SIGKILL)
        return n

    points = cz.read.parquet(f"{shared}/in", time="ts", punctuate=cz.delay(4), name="readings")
    counted = points.group_by("seg").tumbling(10).agg(n=cz.count(), mph=cz.avg("mph"))
    return counted.select("seg", "mph", n=cz.udf(deadly, returns="bigint")(col("seg"), col("n")))


def main() -> None:
    folder, master, zipped = sys.argv[1:]
    shared = f"{folder}/shared"
    settings: dict[str, Any] = {
        "spark.submit.pyFiles": zipped,
        "spark.executor.memory": "512m",
        "spark.task.maxFailures": "8",
        "spark.speculation": "true",
    }
    spark = cz.session("caesura-cluster", master=master, buckets=2, **settings)
    stream = pipeline(shared, kills=True)
    started = {"sink": f"{shared}/out", "checkpoint": f"{shared}/cp", "trigger": "available"}
    query = stream.start(spark, **started, files_per_epoch=1)
    ended = query.wait(240)
    answer = {"ended": ended, "epochs": query.status().epoch + 1}
    Path(folder, "answer.json").write_text(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main()
