"""NEXMark's q12: bids in windows of processing time, which differ from run to run, beside DuckDB.

The readings of the clock that a run gave its rows are a second output of that run; DuckDB counts over them.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa

import caesura as cz
from benchmarks.nexmark_queries import QUERIES, Streams
from benchmarks.nexmark_sql import SQL
from caesura.events import History
from caesura.runtime import Query


def arriving(read: Callable[..., cz.Stream], bid: object) -> cz.Stream:
    """The bids, timed by the clock as they come."""
    return read(bid, time=cz.ingestion_time(every="100ms"))


def beside_readings(streams: Streams, name: str = "q12") -> tuple[pa.Table, pa.Table]:
    """Our answer, and DuckDB's over the readings of the same run."""
    seen = streams.arriving.select("bidder", arrived=cz.start())
    views = {"ours": QUERIES[name](streams), "seen": seen}
    query = Query({view: stream.node for view, stream in views.items()})
    query.run()
    ours, read = (History.of(query.take(view), stream.schema).table() for view, stream in views.items())
    base = duckdb.connect()
    base.register("bid", read)
    return ours.drop_columns(["LE", "RE"]), base.sql(SQL[name]).to_arrow_table()
