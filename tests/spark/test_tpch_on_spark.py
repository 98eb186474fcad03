"""Views of TPC-H on Spark, over tables whose rows come and go: the answer is DuckDB's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tpch_data import Warehouse, generated
from benchmarks.tpch_spark import on_spark, written

NAMES = ("q13", "q16", "q22")
"""A left join with a condition, NOT IN, a value of a query with NOT EXISTS; a refresh changes each."""


def test_views_of_tpch_equal_duckdb_on_spark(spark: Any, buckets: Any, tmp_path: Path) -> None:
    buckets(2)
    warehouse = Warehouse(generated(0.002, tmp_path), threads=1)
    answers = written(warehouse, tmp_path / "refreshes", 1, 0.02, NAMES)
    assert all(first != later for first, later in answers.values())
    assert on_spark(spark, answers, warehouse, tmp_path / "refreshes") == dict.fromkeys(NAMES, "")
