"""A query says at every instant what DuckDB says of the rows alive then; windows, names and refusals."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from depth import DEPTH, examples
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
BLOCKS = 4 if DEPTH == 1 else 20


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_drawn_queries_say_at_every_instant_what_duckdb_says(block: int) -> None:
    count = examples(25, short=8)  # 2,000 in all at the depth of `make soak`
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


def test_windows_that_grow_by_a_step() -> None:
    windows = "TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), 5, 10))"
    shown = "SELECT count(*) AS n, window_start AS f, window_end AS e"
    text = f"{shown} FROM {windows} WHERE ts < 12 GROUP BY window_start, window_end"
    assert rows(text) == [(0, 5, 2, 0, 5), (0, 10, 2, 0, 10)]
    late = f"{shown} FROM {windows} WHERE ts > 30 GROUP BY window_start, window_end"
    assert rows(late) == [(30, 35, 1, 30, 35), (30, 40, 1, 30, 40)]


def test_windows_by_lifetimes_and_by_counts() -> None:
    snapshots = "SELECT count(*) AS n FROM TABLE(SNAPSHOT(TABLE bids)) GROUP BY window_start, window_end"
    assert rows(snapshots, bids=BIDS.where("start() < 10").set_duration(5)) == [
        (1, 4, 1),
        (4, 6, 2),
        (6, 9, 1),
    ]
    counts = (
        "SELECT sum(price) AS s FROM TABLE(COUNT_WINDOW(TABLE bids, DESCRIPTOR(ts), 2)) GROUP BY window_start"
    )
    assert [row[2] for row in rows(counts)] == [12, 14, 11, 7]


def test_a_frame_without_a_bound_reaches_back_to_the_first_row() -> None:
    over = "OVER (PARTITION BY item ORDER BY ts"
    for frame in (")", " RANGE UNBOUNDED PRECEDING)", " ROWS UNBOUNDED PRECEDING)"):
        found = rows(f"SELECT sum(price) {over}{frame} AS s FROM bids WHERE item = 7")
        assert [row[2] for row in found] == [3, 8, 9]
    first = rows(f"SELECT first_value(price) {over}) AS f FROM bids WHERE item = 7")
    assert [row[2] for row in first] == [3, 3, 3]


def test_a_frame_of_all_rows_counts_rows_of_one_instant_one_by_one() -> None:
    twice = cz.from_rows([{"ts": t, "v": v} for t, v in ((1, 5), (1, 7), (2, 1), (2, 1))], time="ts")
    made = cz.sql("SELECT v, sum(v) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) AS s FROM t", t=twice)
    assert "all rows before" in made.explain()
    assert sorted(row for _, _, row in made.run().history.rows()) == [(1, 13), (1, 14), (5, 5), (7, 12)]
    late = cz.from_rows([{"ts": t, "v": v} for t, v in ((2, 1), (1, 5), (2, 1), (1, 7))], time="ts")
    assert made.run().history == late.over(rows=cz.INFINITY).agg(s=cz.sum("v")).run().history


def test_a_percentile_that_may_be_near_is_the_value_itself() -> None:
    found = rows(
        "SELECT percentile_approx(v, 0.5, 100) AS p FROM t", t=cz.table([{"v": v} for v in range(8)])
    )
    assert found[0][2] == 3


def test_texts_are_listed_in_the_order_that_is_asked_for() -> None:
    some = cz.table([{"v": 3, "s": "a"}, {"v": None, "s": "b"}, {"v": 5, "s": "c"}, {"v": 4, "s": None}])
    for order, wanted in (("v", "b-a-c"), ("v DESC", "c-a-b"), ("v NULLS LAST", "a-c-b")):
        texts = (f"string_agg(s, '-' ORDER BY {order})", f"listagg(s, '-') WITHIN GROUP (ORDER BY {order})")
        for text in texts:
            assert rows(f"SELECT {text} AS s FROM t", t=some)[0][2] == wanted
    assert rows("SELECT string_agg(v, '-' ORDER BY v) AS s FROM t", t=some)[0][2] == "3-4-5"


def test_null_stands_where_it_is_said() -> None:
    some = cz.table([{"v": 1}, {"v": None}, {"v": 2}])
    for order, wanted in (("v NULLS LAST", 1), ("v DESC NULLS FIRST", None), ("v", None), ("v DESC", 2)):
        assert rows(f"SELECT v FROM t ORDER BY {order} LIMIT 1", t=some)[0][2] == wanted


ASKED = cz.from_rows([{"ts": 2, "item": 7}, {"ts": 12, "item": 7}, {"ts": 3, "item": 9}], time="ts")


def test_a_row_meets_the_last_row_before_it() -> None:
    text = "SELECT a.ts, price FROM a ASOF {} bids b ON a.item = b.item AND {}"
    same = text.format("JOIN", "a.ts >= b.ts")
    assert [row[2:] for row in rows(same, a=ASKED, bids=BIDS)] == [(2, 3), (12, 5)]
    before = text.format("LEFT JOIN", "b.ts < a.ts")
    assert [row[2:] for row in rows(before, a=ASKED, bids=BIDS)] == [(2, 3), (3, None), (12, 3)]
    behind = text.format("JOIN", "a.ts <= b.ts")
    assert [row[2:] for row in rows(behind, a=ASKED, bids=BIDS)] == [(2, 5), (12, 5)]


def test_as_of_joins_of_rows_that_stay_say_at_every_instant_what_duckdb_says() -> None:
    bids, asked = BIDS.run().table(), ASKED.run().table()
    text = "SELECT a.ts, b.price FROM a ASOF LEFT JOIN b ON a.item = b.item AND a.ts >= b.ts"
    found = rows(text, a=ASKED.forever(), b=BIDS.forever())
    base = duckdb.connect()
    for at in range(1, 32):
        for name, table in (("a", asked), ("b", bids)):
            some = table.filter(pc.field("LE") <= at).rename_columns(["ts", *table.column_names[1:]])
            base.register(name, some)
        wanted = sorted(base.execute(text).fetchall(), key=str)
        assert sorted((row[2:] for row in found if row[0] <= at < row[1]), key=str) == wanted


def test_a_row_meets_what_is_there_when_it_starts() -> None:
    text = "SELECT a.ts, price FROM a JOIN bids FOR SYSTEM_TIME AS OF a.ts AS b ON a.item = b.item"
    assert rows(text, a=ASKED, bids=BIDS.latest("item")) == [(2, 3, 2, 3), (12, 13, 12, 5)]
    stays = rows(text, a=ASKED.forever(), bids=BIDS.latest("item"))
    assert stays == [(2, cz.INFINITY, 2, 3), (12, cz.INFINITY, 12, 5)]


@pytest.mark.parametrize("type", [pa.date32(), pa.timestamp("us"), pa.float64(), pa.int32()])
def test_groups_by_columns_of_any_type_are_cut_into_stages(type: pa.DataType) -> None:
    rows = pa.table({"at": [1], "d": pa.array([0], type)})
    made = cz.sql(
        "SELECT d, count(*) AS n FROM t GROUP BY d HAVING count(*) > 1", t=cz.from_arrow(rows, time="at")
    )
    assert "alive: by d" in cz.sql("SELECT n, d FROM m", m=made.join(made.select("d"), on="d")).explain(
        "spark"
    )
