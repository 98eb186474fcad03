"""A query says at every instant what DuckDB says of the rows alive then; windows, names and refusals."""

from __future__ import annotations

import pytest
from depth import examples
from sql_queries import check

import caesura as cz
from caesura import PlanError
from caesura.events import History

BIDS = cz.from_rows(
    [
        {"ts": t, "item": i, "price": p}
        for t, i, p in ((1, 7, 3), (4, 8, 9), (12, 7, 5), (13, 8, 6), (31, 7, 1))
    ],
    time="ts",
)
BLOCKS = 4


@pytest.mark.parametrize("block", range(BLOCKS))
def test_drawn_queries_say_at_every_instant_what_duckdb_says(block: int) -> None:
    count = examples(125, short=15)
    said = sum(check(seed) for seed in range(block * count, (block + 1) * count))
    assert said > count // 4


def rows(text: str, **streams: cz.Stream) -> list[tuple[object, ...]]:
    made = cz.sql(text, **(streams or {"bids": BIDS}))
    return [(le, re, *row) for le, re, row in History.of(made.run().items, made.schema).rows()]


WINDOWED = [(0, 10, 7, 1), (0, 10, 8, 1), (10, 20, 7, 1), (10, 20, 8, 1), (30, 40, 7, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT item, count(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10)) "
        "GROUP BY item, window_start, window_end",
        "SELECT item, count(*) AS n FROM TUMBLE(bids, DESCRIPTOR(ts), 10) b GROUP BY b.item, window_start",
        "SELECT item, count(*) AS n FROM bids GROUP BY TUMBLE(ts, 10), item",
        "SELECT item, count(*) AS n FROM bids GROUP BY item, window(ts, 10)",
    ],
)
def test_windows_are_written_as_in_flink_and_as_in_spark(text: str) -> None:
    assert sorted(rows(text)) == WINDOWED


def test_hops_sessions_and_where_windows_start() -> None:
    late = "FROM bids WHERE ts > 30 GROUP BY"
    hops = f"SELECT item, count(*) AS n, HOP_START(ts, 5, 10) AS f {late} item, HOP(ts, 5, 10)"
    assert rows(hops) == [(25, 35, 7, 1, 25), (30, 40, 7, 1, 30)]
    spark = f"SELECT window.start AS f, window.end AS e, sum(price) AS s {late} window(ts, 10, 5)"
    assert rows(spark) == [(25, 35, 25, 35, 1), (30, 40, 30, 40, 1)]
    gaps = "TABLE(SESSION(TABLE bids, DESCRIPTOR(ts), 7))"
    sessions = f"SELECT count(*) AS n, window_end AS e FROM {gaps} GROUP BY window_start, window_end"
    assert [row[2:] for row in rows(sessions)] == [(2, 11), (2, 20), (1, 38)]


def test_of_rows_that_stay_a_window_is_a_row_that_stays() -> None:
    windows = "TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10))"
    text = f"SELECT max(price) AS m FROM {windows} GROUP BY window_start, window_end"
    assert rows(text, bids=BIDS.forever()) == [
        (0, cz.INFINITY, 9),
        (10, cz.INFINITY, 6),
        (30, cz.INFINITY, 1),
    ]


def test_frames_of_rows_and_of_time_and_neighbours() -> None:
    over = "OVER (PARTITION BY item ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    assert [r[2:] for r in rows(f"SELECT item, sum(price) {over} AS s FROM bids WHERE item = 7")] == [
        (7, 3),
        (7, 8),
        (7, 6),
    ]
    spans = "OVER (ORDER BY ts RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"
    assert [r[2] for r in rows(f"SELECT count(*) {spans} AS n FROM bids")] == [1, 2, 1, 2, 1]
    assert [r[2] for r in rows("SELECT lag(price) OVER (ORDER BY ts) AS b FROM bids")] == [None, 3, 9, 5, 6]


def test_the_plan_is_the_one_that_is_written_in_python() -> None:
    text = (
        "SELECT item, sum(price) AS total FROM TUMBLE(bids, DESCRIPTOR(ts), 10) GROUP BY item, window_start"
    )
    ours = BIDS.group_by("item").tumbling(10).agg({"agg sum(`price`)": cz.sum("price")})
    ours = ours.select("item", total=cz.col("agg sum(`price`)"))
    assert steps(cz.sql(text, bids=BIDS)) == steps(ours)


def steps(stream: cz.Stream) -> list[str]:
    """What is done, without the places in files."""
    return [step for step in stream.explain().replace(__name__, "").split() if ".py:" not in step]


def test_order_and_limit_are_the_first_rows() -> None:
    top = "SELECT item, price * 2 AS double FROM bids ORDER BY double DESC, item LIMIT 2"
    assert sorted(r[2:] for r in rows(top, bids=BIDS.forever()) if r[1] == cz.INFINITY) == [(8, 12), (8, 18)]


def test_a_name_that_is_not_there_is_named_with_its_place() -> None:
    with pytest.raises(
        PlanError, match=r"line 2, column 6: there is no table 'bid'(.|\n)*Did you mean 'bids'"
    ):
        cz.sql("SELECT *\nFROM bid", bids=BIDS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(price), 10)) GROUP BY window_start",
        "SELECT count(*) FROM bids GROUP BY HOP(price, 5, 10)",
        "SELECT sum(price) OVER (ORDER BY price ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM bids",
        "SELECT lag(price) OVER (ORDER BY price) FROM bids",
    ],
)
def test_windows_and_frames_by_another_column_than_the_time_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="'price' is not the time of these rows"):
        cz.sql(text, bids=BIDS)


def test_conditions_stay_behind_joins_that_keep_rows_without_a_match() -> None:
    one, none = cz.table([{"k": 1, "v": 1}]), cz.table([{"k": 1, "w": 2}])
    text = "SELECT c.k FROM a JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k WHERE a.v = b.w"
    assert rows(text, a=one, b=none, c=cz.table([{"k": 1}, {"k": 5}])) == []


def test_columns_that_tables_are_joined_using_are_one() -> None:
    a, b = cz.table([{"k": 1, "v": 1}]), cz.table([{"k": 1, "w": 2}])
    assert cz.sql("SELECT * FROM a JOIN b USING (k) WHERE k = 1", a=a, b=b).columns == ["k", "v", "w"]


def test_row_numbers_of_groups_and_of_limited_rows() -> None:
    stay = BIDS.forever()
    counts = "SELECT item, row_number() OVER (ORDER BY count(*) DESC, item) AS n FROM bids GROUP BY item"
    found = rows(f"SELECT item FROM ({counts}) WHERE n = 1", bids=stay)
    assert [row[2] for row in found if row[1] == cz.INFINITY] == [7]
    limited = (
        "SELECT *, row_number() OVER (PARTITION BY item ORDER BY price) AS n FROM bids ORDER BY price LIMIT 2"
    )
    found = rows(f"SELECT item, price FROM ({limited}) WHERE n <= 1", bids=stay)
    assert [row[2:] for row in found if row[1] == cz.INFINITY] == [(7, 1)]
