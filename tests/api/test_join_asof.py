"""As-of and interval joins against pandas and DuckDB, and what users see of them."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pandas as pd
import pytest

import caesura as cz
from caesura import Stream

Draw = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def drawn(seed: int) -> Draw:
    """Trades and quotes of a few symbols; no two quotes of a symbol at one time."""
    draw = random.Random(seed)
    times = sorted(draw.sample(range(200), 60))
    trades = [{"t": draw.randrange(200), "sym": draw.choice("abc"), "n": i} for i in range(50)]
    quotes = [{"t": t, "sym": draw.choice("abx"), "bid": draw.random()} for t in times]
    return sorted(trades, key=lambda row: row["t"]), quotes


def streams(rows: Draw, seed: int) -> tuple[Stream, Stream]:
    """Both in an order of arrival of their own."""
    draw = random.Random(seed)
    trades, quotes = (draw.sample(side, len(side)) for side in rows)
    late = cz.delay(1000)
    return (
        cz.from_rows(trades, time="t", punctuate=late),
        cz.from_rows(quotes, time="t", punctuate=late),
    )


def plain(result: Any) -> list[tuple[Any, ...]]:
    """The rows of a result with their starts, sorted; null is written as -1."""
    return sorted((r[0], *(-1 if v is None else v for v in r[-1])) for r in result.history.rows())


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize(("tolerance", "exact"), [(None, True), (7, True), (None, False)])
def test_an_as_of_join_is_that_of_pandas(direction: Any, tolerance: int | None, exact: bool) -> None:
    rows = drawn(len(direction))
    left, right = streams(rows, 5)
    made = left.join_asof(
        right, "sym", direction=direction, tolerance=tolerance, allow_exact_matches=exact
    ).run()
    wanted = pd.merge_asof(
        *map(pd.DataFrame, rows),
        on="t",
        by="sym",
        direction=direction,
        tolerance=tolerance,
        allow_exact_matches=exact,
    )
    filled = wanted.astype({"bid": object}).where(wanted.notna(), -1)
    assert plain(made) == sorted((r.t, r.sym, r.n, r.bid) for r in filled.itertuples())


def test_an_as_of_join_is_that_of_duckdb() -> None:
    rows = drawn(8)
    left, right = streams(rows, 6)
    made = left.join_asof(right, "sym", how="inner").run()
    trades, quotes = map(pd.DataFrame, rows)
    found = duckdb.sql(
        "SELECT trades.t, sym, n, bid FROM trades ASOF JOIN quotes USING (sym, t) ORDER BY ALL"
    ).fetchall()
    assert len(trades) and len(quotes) and plain(made) == found


BOUNDS = [(-5, 9), (0, 0), (3, 8), (-9, -2), (-4, 0)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_a_join_within_an_interval_has_the_pairs_of_sql(low: int, high: int, how: Any) -> None:
    rows = drawn(low * 31 + high)
    left, right = streams(rows, 7)
    made = left.join(right, "sym", how=how, within=(low, high)).run()
    trades, quotes = map(pd.DataFrame, rows)
    columns = "trades.sym, n, bid" if how in ("inner", "left") else "trades.sym, n"
    start = "greatest(trades.t, quotes.t)" if how == "inner" else "trades.t"
    found = duckdb.sql(
        f"SELECT {start}, {columns} FROM trades {how} JOIN quotes ON trades.sym = quotes.sym "
        f"AND quotes.t BETWEEN trades.t + ({low}) AND trades.t + ({high})"
    ).fetchall()
    assert len(trades) and len(quotes)
    assert plain(made) == sorted(tuple(-1 if v is None else v for v in row) for row in found)


def test_an_interval_join_keeps_what_may_still_meet_and_no_more() -> None:
    late = cz.delay(1)
    left, right = (
        cz.from_rows([{"t": t, name: t} for t in range(300)], time="t", punctuate=late, batch_size=10)
        for name in ("a", "b")
    )
    joined = left.join(right, on=(), within=(-3, 3))
    assert joined.check().safe
    query = joined.query()
    most = 0
    while query.step():
        most = max(most, max(cell.operator.measure().state_rows for cell in query.graph.cells))
    assert 0 < most < 60


def test_a_late_quote_corrects_the_trades_behind_it() -> None:
    trades = cz.from_rows([{"t": t, "n": t} for t in (5, 9)], time="t", punctuate=cz.delay(50))
    quotes = cz.from_rows([{"t": t, "bid": t} for t in (1, 7, 4)], time="t", punctuate=cz.delay(50))
    made = trades.join_asof(quotes)
    assert [row[-1] for row in made.run().history.rows()] == [(5, 4), (9, 7)]
    assert made.check(bounded_columns={}).safe is True


def test_what_an_as_of_join_keeps_is_said_before_it_runs() -> None:
    trades = cz.from_rows([{"t": 1, "id": 1}], time="t", punctuate=cz.delay(5))
    quotes = cz.from_rows([{"t": 1, "id": 1, "bid": 2}], time="t", punctuate=cz.delay(5), name="quotes")
    assert trades.join_asof(quotes, "id", direction="nearest", tolerance=3).check().safe
    last = trades.join_asof(quotes, "id")
    assert "the last right rows" in str(last.check())
    assert last.check(bounded_columns={"quotes": ["id"]}).safe
    assert "the next event of the right may come at any time" in str(
        trades.join_asof(quotes, "id", direction="forward").check()
    )
