"""A query of `benchmarks.peers` as SQL of Flink, in processes and an environment of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.csv as csv
from peers_clock import measure
from pyflink.table import EnvironmentSettings, TableEnvironment

COLUMNS = {"y1": "ad BIGINT, kind INT", "q1": "auction BIGINT, bidder BIGINT, price BIGINT"}
FILES = "WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv')"
QUERIES = {
    "y1": (
        "k BIGINT, w TIMESTAMP(3), n BIGINT",
        "SELECT campaign, window_start, COUNT(*) "
        "FROM TABLE(TUMBLE(TABLE found, DESCRIPTOR(t), INTERVAL '1' SECOND)) "
        "GROUP BY campaign, window_start, window_end",
    ),
    "q1": (
        "auction BIGINT, bidder BIGINT, price DOUBLE",
        "SELECT auction, bidder, 0.908E0 * price FROM events",
    ),
    "q12": (
        "k BIGINT, w TIMESTAMP(3), n BIGINT",
        "SELECT bidder, window_start, COUNT(*) "
        "FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(t), INTERVAL '10' SECOND)) "
        "GROUP BY bidder, window_start, window_end",
    ),
}
FOUND = "CREATE TEMPORARY VIEW found AS SELECT t, ad / 10 AS campaign FROM events WHERE kind = 0"
"""The campaign is computed, which is less work: behind a join with a table Flink has no event time."""


def prepare(flink, name, path, out):
    columns = COLUMNS.get(name, COLUMNS["q1"])
    flink.execute_sql(
        f"CREATE TABLE events (ts BIGINT, {columns}, t AS TO_TIMESTAMP_LTZ(ts / 1000, 3), "
        f"WATERMARK FOR t AS t - INTERVAL '0.001' SECOND) {FILES.format(path.with_suffix('.rows'))}"
    )
    if name == "y1":
        flink.execute_sql(FOUND)
    flink.execute_sql(f"CREATE TABLE answers ({QUERIES[name][0]}) {FILES.format(out)}")


def answer(name, path):
    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    flink.get_config().set("parallelism.default", "1")
    flink.get_config().set("table.local-time-zone", "UTC")
    with tempfile.TemporaryDirectory() as folder:
        prepare(flink, name, path, folder)
        flink.execute_sql(f"INSERT INTO answers {QUERIES[name][1]}").wait()
        names = csv.ReadOptions(autogenerate_column_names=True)
        tables = [csv.read_csv(p, names) for p in Path(folder).rglob("*") if p.is_file() and p.stat().st_size]
    return sum(map(len, tables)), sum(pc.sum(table["f2"]).as_py() for table in tables)


if __name__ == "__main__":
    measure("apache-flink", answer)
