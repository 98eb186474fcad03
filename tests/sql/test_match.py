"""MATCH_RECOGNIZE says what trying all ways says, and what the manuals say of their stock tickers."""

from __future__ import annotations

import pytest
from depth import examples
from match_patterns import check

import caesura as cz
from caesura.contracts import Verdict
from caesura.events import History
from caesura.ops.match import matcher
from caesura.ops.match.scalars import BeyondScalarsError

BLOCKS = 4
ACME = [12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22]
GLOBEX = [11, 12, 13, 12, 11, 10, 9, 8, 9, 9, 9, 10, 11, 12, 11, 10, 9, 8, 7, 6]
"""Oracle's ticker."""
UP_AND_DOWN = "DEFINE DOWN AS DOWN.price < PREV(DOWN.price), UP AS UP.price > PREV(UP.price)"


@pytest.mark.parametrize("block", range(BLOCKS))
def test_drawn_patterns_match_what_trying_all_ways_in_order_of_preference_matches(block: int) -> None:
    count = examples(50, short=3)
    found = sum(check(seed) for seed in range(block * count, (block + 1) * count))
    assert found >= count // 4


@pytest.mark.parametrize("seed", range(1, 7))
def test_conditions_by_columns_say_what_registers_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise BeyondScalarsError

    monkeypatch.setattr(matcher, "ConditionRegisters", none)
    check(seed)


def test_what_failed_once_is_not_tried_again() -> None:
    """There are 2 to the power of 30 ways to share the rows between A and B."""
    clauses = """MEASURES COUNT(*) AS n PATTERN ((A | B)+ C)
        DEFINE A AS price >= COALESCE(LAST(A.price, 1), 0), C AS price > 100 + FIRST(A.price)"""
    assert rows(clauses, ticker(("XYZ", [1, 2, 3] * 10))) == []


@pytest.mark.parametrize(
    ("condition", "how"),
    [
        ("price > PREV(price)", "conditions by columns, one pass"),
        ("price > LAST(B.price, 1) AND AVG(B.price) < 3.5", "B by registers"),
        ("price % 2 = LAST(A.price)", "B tried row by row"),
    ],
)
def test_the_plan_says_how_matches_are_searched(condition: str, how: str) -> None:
    matching = f"ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A B+) DEFINE B AS {condition}"
    assert how in cz.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({matching})", t=ORACLE).explain()


def ticker(*symbols: tuple[str, list[int]], every: int = 1) -> cz.Stream:
    rows = [
        {"ts": n * every, "symbol": symbol, "price": price}
        for symbol, prices in symbols
        for n, price in enumerate(prices)
    ]
    return cz.from_rows(sorted(rows, key=lambda row: row["ts"]), time="ts", punctuate=cz.delay(0))


def rows(clauses: str, stream: cz.Stream) -> list[tuple[object, ...]]:
    text = f"SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {clauses}) MR"
    made = cz.sql(text, Ticker=stream)
    changes, final = (History.of(made.run(output=o).items, made.schema).rows() for o in ("changes", "final"))
    assert changes == final
    return [(le, *row) for le, _, row in changes]


ORACLE = ticker(("ACME", ACME), ("GLOBEX", GLOBEX))


def test_a_v_shape() -> None:
    measures = "MEASURES STRT.ts AS start, LAST(DOWN.ts) AS bottom, LAST(UP.ts) AS stop"
    skip = "ONE ROW PER MATCH AFTER MATCH SKIP TO LAST UP PATTERN (STRT DOWN+ UP+)"
    assert rows(f"{measures} {skip} {UP_AND_DOWN}", ORACLE) == [
        (8, "GLOBEX", 2, 7, 8),
        (9, "ACME", 4, 5, 9),
        (12, "ACME", 9, 11, 12),
        (17, "ACME", 13, 15, 17),
    ]


def test_all_rows_of_a_v_shape() -> None:
    measures = """MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS c, FINAL COUNT(UP.ts) AS ups,
        FINAL COUNT(ts) AS total, RUNNING COUNT(ts) AS n, price - STRT.price AS differs"""
    skip = "ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST UP PATTERN (STRT DOWN+ UP+)"
    found = [row[1:] for row in rows(f"{measures} {skip} {UP_AND_DOWN}", ORACLE) if row[1] == "ACME"]
    assert found[:6] == [
        ("ACME", 4, 1, "STRT", 4, 6, 1, 0, 25),
        ("ACME", 5, 1, "DOWN", 4, 6, 2, -13, 12),
        ("ACME", 6, 1, "UP", 4, 6, 3, -10, 15),
        ("ACME", 7, 1, "UP", 4, 6, 4, -5, 20),
        ("ACME", 8, 1, "UP", 4, 6, 5, -1, 24),
        ("ACME", 9, 1, "UP", 4, 6, 6, 0, 25),
    ]
    assert len(found) == 15


def test_a_w_shape() -> None:
    pattern = "MEASURES STRT.ts AS b, LAST(UP.ts) AS e PATTERN (STRT DOWN+ UP+ DOWN+ UP+)"
    assert rows(f"{pattern} {UP_AND_DOWN}", ORACLE) == [(12, "ACME", 4, 12)]


def test_a_price_that_falls_and_rises_once() -> None:
    prices = [12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19]
    clauses = """
        MEASURES START_ROW.ts AS b, LAST(PRICE_DOWN.ts) AS bottom, LAST(PRICE_UP.ts) AS e
        ONE ROW PER MATCH AFTER MATCH SKIP TO LAST PRICE_UP
        PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
        DEFINE PRICE_DOWN AS
                (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price)
                OR PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
            PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)"""
    assert rows(clauses, ticker(("ACME", prices))) == [(8, "ACME", 4, 7, 8)]


def test_running_averages() -> None:
    prices = [12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30]
    clauses = """
        MEASURES FIRST(A.ts) AS b, LAST(A.ts) AS e, AVG(A.price) AS mean
        ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS AVG(A.price) < 15"""
    assert rows(clauses, ticker(("ACME", prices))) == [(4, "ACME", 0, 3, 14.5), (11, "ACME", 5, 10, 13.5)]


def test_a_drop_of_ten_within_an_hour() -> None:
    prices = [20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19]
    clauses = """
        MEASURES C.ts AS at, A.price - C.price AS drop PATTERN (A B* C) WITHIN 60
        DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10"""
    assert rows(clauses, ticker(("ACME", prices), every=20)) == [(180, "ACME", 180, 14)]


def test_greedy_and_reluctant() -> None:
    prices = [10, 11, 12, 13, 14, 16]
    define = "DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12"
    stream = ticker(("XYZ", prices))
    greedy = rows(f"MEASURES C.price AS last PATTERN (A B* C) {define}", stream)
    assert [row[2] for row in greedy] == [16]
    reluctant = rows(f"MEASURES C.price AS last PATTERN (A B*? C) {define}", stream)
    assert [row[2] for row in reluctant] == [13, 16]


def test_a_match_lives_as_its_last_row_does_and_joins_as_a_table() -> None:
    text = """SELECT m.symbol, top, price FROM t AS x MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY ts MEASURES LAST(B.price) AS top PATTERN (A B+)
        DEFINE B AS price > PREV(price)) AS m JOIN t ON m.symbol = t.symbol WHERE price = top"""
    stream = ticker(("XYZ", [3, 5, 9, 2])).forever()
    made = cz.sql(text, t=stream)
    assert History.of(made.run().items, made.schema).rows() == [(2, cz.INFINITY, ("XYZ", 9, 9))]


def test_the_time_of_a_match_is_the_time_of_its_row() -> None:
    matching = "ORDER BY ts MEASURES MATCH_ROWTIME() AS at PATTERN (A B) DEFINE B AS price > PREV(price)"
    text = """SELECT window_end, count(*) AS n FROM TABLE(TUMBLE(TABLE m, DESCRIPTOR(at), 4))
        GROUP BY window_start, window_end"""
    text = f"WITH m AS (SELECT * FROM t MATCH_RECOGNIZE ({matching})) {text}"
    made = cz.sql(text, t=ticker(("XYZ", [3, 5, 4, 2, 7, 8, 9])))
    assert [row for _, _, row in History.of(made.run().items, made.schema).rows()] == [(4, 1), (8, 2)]


def test_time_bounds_what_is_kept_and_without_it_check_says_what_is() -> None:
    stream = cz.from_rows([{"ts": 1, "v": 2}], time="ts", punctuate=cz.delay(2))

    def checked(within: str) -> Verdict:
        matching = f"MEASURES COUNT(*) AS n PATTERN (A B+) {within} DEFINE B AS v > 1"
        return cz.sql(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts {matching})", t=stream).check()

    assert checked("WITHIN 9").safe
    assert "within= (SQL: WITHIN INTERVAL) bounds it" in str(checked(""))
