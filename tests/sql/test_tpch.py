"""TPC-H under change: after every refresh each of the 22 views equals DuckDB on the same tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from depth import examples

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tpch_data import Warehouse, generated
from benchmarks.tpch_queries import QUERIES
from benchmarks.tpch_view import View, differences

SCALE = 0.002
FULL = {"q1", "q3", "q4", "q9", "q10", "q12", "q13", "q14", "q15", "q16", "q22"}
"""Those that have rows at this scale."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return generated(SCALE, Path(tmp_path_factory.mktemp("tpch")))


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", QUERIES)
def test_a_view_of_tpch_equals_duckdb_after_every_refresh(name: str, tables: dict[str, Any]) -> None:
    warehouse = Warehouse(tables, threads=1)
    view = View(name, warehouse)
    view.apply(view.feed(0, view.pages(0, {table: warehouse.first(table) for table in view.columns})))
    for at in range(1, examples(12, short=2) + 1):
        changes = warehouse.refresh(at, share=0.02)
        view.apply(view.feed(at, view.pages(at, changes)))
        assert not differences(view.rows, warehouse.base.execute(view.text).fetchall())
    assert view.rows or name not in FULL
