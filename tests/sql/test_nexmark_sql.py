"""NEXMark's queries in SQL over streams equal DuckDB's answers over the tables."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.nexmark import Bench, answer, counted
from benchmarks.nexmark_data import house
from benchmarks.nexmark_sql import SQL
from nexmark_stream_sql import FLINK, QUERIES

import caesura as cz
from caesura.events import History
from caesura.runtime import Query


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(house(6000), tmp_path_factory.mktemp("nexmark"))


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_equals_duckdb(bench: Bench, name: str) -> None:
    streams = bench.streams("3 s late")
    made = cz.sql(
        QUERIES[name],
        bid=streams.bid.forever(),
        auction=streams.auction.forever(),
        person=streams.person.forever(),
        side=cz.table(streams.side),
        closing=streams.open_auction.points_at_end().with_columns(closes=cz.start()),
    )
    found = answer(made, "changes")
    wanted = bench.duckdb(name, 1)()
    assert len(found) > 0
    if set(found.column_names) != set(wanted.column_names):
        found = pa.table(found.columns, wanted.column_names)
    assert counted(found.select(wanted.column_names)) == counted(wanted)


@cz.udf
def count_char(text: str, letter: str) -> int:
    return text.count(letter)


@pytest.mark.parametrize("name", [name for name in FLINK if name != "q12"])
def test_a_query_in_flinks_dialect_equals_duckdb(bench: Bench, name: str) -> None:
    streams = bench.streams("3 s late")
    tables = {"bid": streams.bid.forever(), "auction": streams.auction.forever()}
    made = cz.sql(FLINK[name], dialect="flink", count_char=count_char, **tables)
    wanted = bench.duckdb(name, 1)()
    found = pa.table(answer(made, "changes").select(made.columns).columns, wanted.column_names)
    if name == "q17":  # whole, as Flink has it
        wanted = wanted.set_column(
            wanted.column_names.index("avg"), "avg", pc.cast(wanted["avg"], "int64", safe=False)
        )
    if name == "q14":  # exact, where DuckDB's text has doubles
        at = wanted.column_names.index("price")
        found = found.set_column(at, "price", found["price"].cast(pa.float64()))
    assert counted(found) == counted(wanted)


def test_windows_of_processing_time_count_by_the_readings_of_the_run(bench: Bench) -> None:
    arriving = bench.streams("in order").arriving
    views = {
        "seen": cz.sql("SELECT bidder, PROCTIME() AS arrived FROM bid", dialect="flink", bid=arriving),
        "ours": cz.sql(
            FLINK["q12"],
            dialect="flink",
            arriving=cz.sql("SELECT *, PROCTIME() AS came FROM bid", dialect="flink", bid=arriving),
        ),
    }
    query = Query({name: view.node for name, view in views.items()})
    query.run()
    tables = {name: History.of(query.take(name), view.schema).table() for name, view in views.items()}
    base = duckdb.connect()
    base.register("bid", tables["seen"])
    assert counted(tables["ours"].drop_columns(["LE", "RE"])) == counted(
        base.sql(SQL["q12"]).to_arrow_table()
    )
    with pytest.raises(cz.PlanError, match="when a row came"):
        cz.sql("SELECT PROCTIME() AS t FROM bid", dialect="flink", bid=bench.streams("in order").bid)
