"""Columns over the rows before each row, against DuckDB, and what is kept for them."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pandas as pd
import pytest

import caesura as cz

WINDOWS = [
    ({"rows": 4}, "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW"),
    ({"range": 9}, "RANGE BETWEEN 9 PRECEDING AND CURRENT ROW"),
]


@pytest.mark.parametrize(("frame", "words"), WINDOWS)
def test_columns_over_the_rows_before_are_those_of_sql(frame: Any, words: str) -> None:
    draw = random.Random(words)
    rows = [{"t": draw.randrange(60), "k": draw.choice("ab"), "v": v} for v in draw.sample(range(99), 80)]
    late = cz.delay(1000)
    made = (
        cz.from_rows(rows, time="t", punctuate=late, batch_size=7)
        .group_by("k")
        .over(**frame)
        .agg(n=cz.count(), s=cz.sum("v"), lo=cz.min("v"), was=cz.lag("v", 2), next=cz.lead("v"))
    ).run()
    table = pd.DataFrame(rows)
    by = f"PARTITION BY k ORDER BY t{', v' if 'rows' in frame else ''} {words}"
    order = "PARTITION BY k ORDER BY t, v"
    wanted = duckdb.sql(
        f"SELECT t, k, v, count(*) OVER ({by}), sum(v) OVER ({by})::BIGINT, min(v) OVER ({by}), "
        f"lag(v, 2) OVER ({order}), lead(v) OVER ({order}) FROM table ORDER BY ALL".replace(
            "FROM table", 'FROM "table"'
        )
    ).fetchall()
    assert len(table) == len(wanted)
    assert sorted((r[0], *r[-1]) for r in made.history.rows()) == sorted(wanted, key=lambda r: r[:3])


def test_no_more_is_kept_than_frames_reach() -> None:
    rows = [{"t": t, "k": t % 2, "v": t} for t in range(400)]
    source = cz.from_rows(rows, time="t", punctuate=cz.delay(1), batch_size=10)
    plan = source.group_by("k").over(rows=3).agg(s=cz.sum("v"), was=cz.lag("v"))
    query = plan.query()
    most = 0
    while query.step():
        most = max(most, max(cell.operator.measure().state_rows for cell in query.graph.cells))
    assert 0 < most < 60
    assert "the last rows" in str(plan.check())
    assert plan.check(bounded_columns={"read": ["k"]}).safe
    assert source.over(range=5).agg(n=cz.count()).check().safe


def test_a_late_row_corrects_the_rows_behind_it() -> None:
    rows = [{"t": t, "v": t} for t in (1, 5, 3)]
    made = cz.from_rows(rows, time="t", punctuate=cz.delay(50)).over().agg(was=cz.lag("v")).run()
    assert [row[-1] for row in made.history.rows()] == [(1, None), (3, 1), (5, 3)]


def test_sums_over_frames_are_exact_whatever_is_null_and_however_large_numbers_are() -> None:
    draw = random.Random(5)
    values = [draw.choice((None, 2**61, -(2**61), 2**32, -1, -(2**33) - 5)) for _ in range(60)]
    rows = cz.from_rows([{"t": t, "v": v} for t, v in enumerate(values)], time="t", batch_size=7)
    made = rows.over(rows=3).agg(rows=cz.count(), n=cz.count("v"), s=cz.sum("v"), mean=cz.avg("v")).run()
    wanted = []
    for t in range(60):
        there = [v for v in values[max(0, t - 2) : t + 1] if v is not None]
        total = sum(there) if there else None
        wanted.append((min(t + 1, 3), len(there), total, total / len(there) if there else None))
    assert [r[-1][-4:] for r in sorted(made.history.rows(), key=lambda r: r[0])] == wanted
