"""NEXMark's queries in SQL over streams equal DuckDB's answers over the tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.nexmark import Bench, answer, counted
from benchmarks.nexmark_data import house
from nexmark_stream_sql import QUERIES

import caesura as cz


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(house(6000), tmp_path_factory.mktemp("nexmark"))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_equals_duckdb(bench: Bench, name: str) -> None:
    streams = bench.streams("3 s late")
    made = cz.sql(
        QUERIES[name],
        bid=streams.bid.forever(),
        auction=streams.auction.forever(),
        person=streams.person.forever(),
        side=cz.table(streams.side),
    )
    found = answer(made, "changes")
    wanted = bench.duckdb(name, 1)()
    assert len(found) > 0
    if set(found.column_names) != set(wanted.column_names):
        found = pa.table(found.columns, wanted.column_names)
    assert counted(found.select(wanted.column_names)) == counted(wanted)
