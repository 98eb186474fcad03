"""A query of `benchmarks.peers` with Bytewax, in a process and an environment of its own."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.files import CSVSource
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, run_main
from peers_clock import measure

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counted(name, rows, key, seconds):
    clock = win.EventClock(
        lambda row: EPOCH + timedelta(microseconds=int(row["ts"])), wait_for_system_duration=timedelta(days=1)
    )
    windows = win.TumblingWindower(length=timedelta(seconds=seconds), align_to=EPOCH)
    return win.count_window(name, rows, clock, windows, key).down


def flow_of(name, path, out):
    flow = Dataflow(name)
    rows = op.input("rows", flow, CSVSource(path))
    if name == "y1":
        with (path.parent / "campaigns.csv").open() as lines:
            campaign = {row["ad"]: row["campaign"] for row in csv.DictReader(lines)}
        views = op.filter("views", rows, lambda row: row["kind"] == "0")
        found = counted("count", views, lambda row: campaign[row["ad"]], 1)
    elif name == "q1":
        found = op.map("euros", rows, lambda row: (row["auction"], row["bidder"], 0.908 * int(row["price"])))
    else:
        found = counted("count", rows, lambda row: row["bidder"], 10)
    op.output("out", found, TestingSink(out))
    return flow


def answer(name, path):
    out = []
    run_main(flow_of(name, path, out))
    return len(out), sum(row[2] for row in out) if name == "q1" else sum(count for _, (_, count) in out)


if __name__ == "__main__":
    measure("bytewax", answer)
