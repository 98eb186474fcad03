"""A bank's pipeline on Spark that a test kills: all views and the time-aligned ones, a claim per epoch.

Usage: killed_pipeline.py FOLDER; stops by itself when FOLDER/stop exists and all files are processed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from quick_start import quick_start

import caesura as cz

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "bank"))

import pipeline as bank


def views(folder: Path) -> cz.Pipeline:
    """Ten views over one stream of transactions and cancellations."""
    shape = {"end": "end", "kind": "kind", "new_end": "new_end"}
    read = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(bank.DELAY), **shape)
    return cz.pipeline(**bank.views(read).views, **bank.aligned_views(read).views)


def main() -> None:
    folder = Path(sys.argv[1])
    spark = cz.session("caesura-killed", master="local[2]", buckets=2, **quick_start())
    query = views(folder).start(
        spark,
        path=folder / "out",
        checkpoint=folder / "checkpoint",
        files_per_epoch=1,
        allow_unbounded=True,
    )
    while query.active:
        if (folder / "stop").exists():
            query.drain()
            query.stop()
            break
        time.sleep(0.2)
    query.wait(1)


if __name__ == "__main__":
    main()
