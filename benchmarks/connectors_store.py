"""What an epoch of a checkpoint costs on this disk, and in an object store: a real server on this machine."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import uuid

import caesura as cz
from benchmarks.report import Report
from caesura.io.places import objects


def saved(place: str, epochs: int) -> float:
    """How long it takes to save an epoch of a small grouped count, in seconds: the median."""
    rows = [{"ts": ts, "id": ts % 50} for ts in range(200 * epochs)]
    readings = cz.from_rows(rows, time="ts", punctuate=cz.delay(100), name="readings", batch_size=200)
    counted = readings.group_by("id").tumbling(1000).agg(n=cz.count())
    query = counted.query(checkpoint=f"{place}/checkpoint", sink=f"{place}/out", every="1h")
    took: list[float] = []
    while query.step():
        began = time.perf_counter()
        query.save()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def report_epochs(report: Report, pairs: int) -> None:
    """Epochs on the disk and in the store, in turns."""
    from local_s3 import BUCKET, Server

    disk: list[float] = []
    store: list[float] = []
    with Server() as server:
        os.environ |= server.environment
        objects._opened.cache_clear()
        for _ in range(pairs):
            with tempfile.TemporaryDirectory() as folder:
                disk.append(saved(folder, 10))
            store.append(saved(f"s3://{BUCKET}/{uuid.uuid4().hex}", 10))
    ratios = [d / s for d, s in zip(disk, store, strict=True)]
    report.add("an epoch saved on this disk", ms=round(statistics.median(disk) * 1000, 1))
    ms = round(statistics.median(store) * 1000, 1)
    report.add("an epoch saved in S3 on this machine", None, {"disk": statistics.median(ratios)}, ms=ms)
