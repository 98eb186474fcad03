"""`match_rows` is what MATCH_RECOGNIZE is written out as, and says what it says."""

from __future__ import annotations

import pytest

import caesura as cz
from caesura import col, matched

PRICES = [12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19]
TICKER = cz.from_rows(
    [{"ts": n, "symbol": "ACME", "price": p} for n, p in enumerate(PRICES)], time="ts", punctuate=cz.delay(0)
)
TIMED = TICKER.with_columns(ts=cz.start())
DIPS = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
    MEASURES LAST(DOWN.price) AS bottom, FIRST(U.ts) AS since, AVG(DOWN.price) AS mean, COUNT(UP.*) AS ups
    AFTER MATCH SKIP TO LAST UP PATTERN (STRT DOWN+ UP+) WITHIN 10 SUBSET U = (DOWN, UP)
    DEFINE DOWN AS PREV(price) > price AND COUNT(DOWN.*) < 9, UP AS PREV(LAST(UP.price)) < UP.price)"""
ALL = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts
    MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS c, FINAL COUNT(*) AS n, FINAL LAST(price) AS e
    ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B?) DEFINE B AS NEXT(price, 1) < price)"""


def dips() -> cz.Stream:
    return TIMED.group_by("symbol").match_rows(
        "strt down+ up+",
        define={
            "DOWN": (matched.prev("price") > col("price")) & (cz.count("DOWN.*") < 9),
            "UP": matched.prev(matched.last("UP.price")) < col("UP.price"),
        },
        measures={
            "bottom": matched.last("DOWN.price"),
            "since": matched.first("U.ts"),
            "mean": cz.avg("DOWN.price"),
            "ups": cz.count("UP.*"),
        },
        skip="to last UP",
        within=10,
        subsets={"U": ("DOWN", "UP")},
    )


def every() -> cz.Stream:
    return TIMED.match_rows(
        "A B?",
        define={"B": matched.next("price") < col("price")},
        measures={
            "m": matched.number(),
            "c": matched.classifier(),
            "n": matched.final(cz.count()),
            "e": matched.final(matched.last("price")),
        },
        rows="all",
        skip="next row",
    )


def step(stream: cz.Stream) -> str:
    """How the plan shows the step, without the line that it is written in."""
    shown = next(line for line in stream.explain().splitlines() if "match_recognize" in line)
    return shown.split(":=")[1].split("  (")[0]


@pytest.mark.parametrize(("text", "ours"), [(DIPS, dips()), (ALL, every())])
def test_sql_is_written_out_as_the_call_in_python(text: str, ours: cz.Stream) -> None:
    theirs = cz.sql(text, t=TICKER)
    assert step(theirs) == step(ours)
    names = theirs.schema.names
    assert theirs.run().history == ours.select(*names).run().history
    assert len(theirs.run().history.rows()) > 0


def test_a_column_of_a_variable_is_that_of_its_last_row() -> None:
    made = TIMED.match_rows(
        "A+ B", define={"B": "price > 24"}, measures={"a": col("A.price"), "b": "B.price"}
    )
    assert [row for _, _, row in made.run().history.rows()] == [(24, 25)]
