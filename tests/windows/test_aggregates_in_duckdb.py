"""Aggregates give what DuckDB gives for the same rows, where the two mean the same."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import caesura as cz

PAIRS: dict[str, tuple[Any, str]] = {
    "some": (cz.any("b"), "bool_or(b)"),
    "every": (cz.all("b"), "bool_and(b)"),
    "tenth": (cz.percentile("x", 0.1), "quantile_cont(x, 0.1)"),
    "high": (cz.percentile("n", 0.9), "quantile_cont(n, 0.9)"),
    "texts": (cz.string_agg("s", "; "), "string_agg(s, '; ' ORDER BY s)"),
    "best": (cz.max_by("s", "x"), "arg_max_null(s, x)"),
    "worst": (cz.min_by(cz.col("n") + 1, "x", filter=cz.col("b")), "arg_min_null(n + 1, x) FILTER (b)"),
    "pop": (cz.covar_pop("x", "n"), "covar_pop(x, n)"),
    "samp": (cz.covar_samp("n", cz.col("x") * 3, where=cz.col("b")), "covar_samp(n, x * 3) FILTER (b)"),
    "in_order": (
        cz.string_agg("s", "; ", order=["n", "x"]),
        "string_agg(s, '; ' ORDER BY n NULLS FIRST, x NULLS FIRST, s)",
    ),
    "turned": (
        cz.string_agg("s", "", order="x", descending=True),
        "string_agg(s, '' ORDER BY x DESC NULLS LAST, s DESC)",
    ),
    "some_texts": (cz.listagg("s", "", where=cz.col("b")), "string_agg(s, '' ORDER BY s) FILTER (b)"),
}


def drawn(seed: int) -> pa.Table:
    """Rows with nulls in every column, a few values each."""
    luck = random.Random(seed)
    rows = [
        {
            "ts": n,
            "k": luck.randrange(4),
            "b": luck.choice([True, True, False, None]),
            "x": luck.choice([luck.uniform(-5, 5), None]),
            "n": luck.choice([luck.randrange(6), None]),
            "s": luck.choice(["a", "b c", "", "é", None]),
        }
        for n in range(luck.randrange(1, 60))
    ]
    types = [("ts", pa.int64()), ("k", pa.int64()), ("b", pa.bool_()), ("x", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema([*types, ("n", pa.int64()), ("s", pa.string())]))


def near(row: dict[str, Any]) -> dict[str, Any]:
    return {n: pytest.approx(v, rel=1e-12, abs=1e-12) if isinstance(v, float) else v for n, v in row.items()}


def test_aggregates_give_what_duckdb_gives() -> None:
    sql = ", ".join(f"{text} AS {name}" for name, (_, text) in PAIRS.items())
    for seed in range(12):
        rows = drawn(seed)
        plan = cz.from_arrow(rows, time="ts").group_by("k").tumbling(1000)
        ours = plan.agg(**{name: one for name, (one, _) in PAIRS.items()}).run(output="final")
        names = ["k", *PAIRS]
        got = [dict(zip(names, payload, strict=True)) for _, _, payload in ours.history.rows()]
        got.sort(key=lambda row: row["k"])
        wanted = duckdb.sql(f"SELECT k, {sql} FROM rows GROUP BY k ORDER BY k").to_arrow_table().to_pylist()
        assert got == [near(row) for row in wanted], seed


def test_a_struct_of_columns_is_taken_from_the_row_that_began_first() -> None:
    rows = [{"ts": t, "who": w, "bid": b} for t, w, b in ((3, "c", 9), (1, "b", 9), (1, "a", 9), (0, "d", 2))]
    bids = cz.from_rows([*rows, {"ts": 5, "who": "e", "bid": None}], time="ts").tumbling(10)
    best = bids.agg(top=cz.max_by(cz.functions.struct("who", "bid"), "bid"), low=cz.min_by("who", "bid"))
    assert best.run().history.rows() == [(0, 10, ({"who": "a", "bid": 9}, "d"))]
