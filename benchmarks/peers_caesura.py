"""A query of `benchmarks.peers` with Caesura, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.csv as csv
from peers_clock import measure

import caesura as cz
from caesura import col


def stream(name: str, path: Path) -> cz.Stream:
    rows = cz.read.csv(path, time="ts", punctuate=cz.delay(0))
    if name == "y1":
        lookup = cz.table(csv.read_csv(path.parent / "campaigns.csv"))
        views = rows.where(col("kind") == 0).select("ad").join(lookup, on="ad")
        return views.group_by("campaign").tumbling(1_000_000).agg(n=cz.count())
    if name == "q1":
        return rows.select("auction", "bidder", price=0.908 * col("price"))
    return rows.group_by("bidder").tumbling(10_000_000).agg(n=cz.count())


def answer(name: str, path: Path) -> tuple[int, float]:
    table = stream(name, path).run(output="final").table()
    return table.num_rows, pc.sum(table["price" if name == "q1" else "n"]).as_py()


if __name__ == "__main__":
    measure("caesura", answer)
