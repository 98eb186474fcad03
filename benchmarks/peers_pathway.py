"""A query of `benchmarks.peers` with Pathway, in a process and an environment of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pathway as pw
import pyarrow.compute as pc
import pyarrow.csv as csv
from pathway.internals.parse_graph import G
from peers_clock import measure


class Ad(pw.Schema):
    ts: int
    ad: int
    kind: int


class Campaign(pw.Schema):
    ad: int
    campaign: int


class Bid(pw.Schema):
    ts: int
    auction: int
    bidder: int
    price: int


def counted(rows, instance, length):
    windows = pw.temporal.windowby(
        rows, rows.ts, window=pw.temporal.tumbling(duration=length), instance=instance
    )
    return windows.reduce(key=pw.this._pw_instance, start=pw.this._pw_window_start, n=pw.reducers.count())


def table_of(name, path):
    if name == "y1":
        rows = pw.io.csv.read(path, schema=Ad, mode="static")
        known = pw.io.csv.read(path.parent / "campaigns.csv", schema=Campaign, mode="static")
        views = rows.filter(pw.this.kind == 0)
        found = views.join(known, views.ad == known.ad).select(ts=views.ts, campaign=known.campaign)
        return counted(found, found.campaign, 1_000_000)
    rows = pw.io.csv.read(path, schema=Bid, mode="static")
    if name == "q1":
        return rows.select(pw.this.auction, pw.this.bidder, price=0.908 * pw.this.price)
    return counted(rows, rows.bidder, 10_000_000)


def answer(name, path):
    G.clear()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.csv"
        pw.io.csv.write(table_of(name, path), out)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        table = csv.read_csv(out)
    return len(table), pc.sum(table["price" if name == "q1" else "n"]).as_py()


if __name__ == "__main__":
    measure("pathway", answer)
