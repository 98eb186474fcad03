"""What people guess from PySpark and pandas is right: keys, joins, columns and aggregates as expressions."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream, col
from caesura.events import History
from caesura.expr import Column, same
from caesura.testing import assert_history

ROWS = [{"t": n, "k": n % 3, "v": float(n), "n": "abc"[n % 3]} for n in range(9)]
OTHERS = [{"t": n, "person": n % 3, "v": n * 10, "n": "ABC"[n % 3]} for n in range(9)]


def left() -> Stream:
    return cz.from_rows(ROWS, time="t", punctuate=cz.delay(2), name="left")


def right() -> Stream:
    return cz.from_rows(OTHERS, time="t", punctuate=cz.delay(2), name="right")


def rows(stream: Stream) -> list[dict[str, Any]]:
    """What a stream gives, the same alone and in three buckets."""
    alone = stream.run()
    cluster = Cluster({"out": stream.node}, 3)
    cluster.run()
    assert History.of(cluster.items["out"], stream.node.schema) == alone.history
    return [{name: row[name] for name in stream.columns} for row in alone.table().to_pylist()]


def test_groups_are_made_by_expressions_too() -> None:
    by_name = left().group_by(odd=col("k") % 2).tumbling(20).agg(n=cz.count())
    assert rows(by_name) == [{"odd": 0, "n": 6}, {"odd": 1, "n": 3}]
    unnamed = left().groupBy(col("k") % 2, "n").tumbling(20).agg(cz.count().alias("c"))
    assert unnamed.columns == ["k % 2", "n", "c"]
    assert sorted(tuple(r.values()) for r in rows(unnamed)) == [(0, "a", 3), (0, "c", 3), (1, "b", 3)]
    assert left().group_by(col("k").alias("key")).tumbling(20).agg(n=cz.count()).columns == ["key", "n"]


@pytest.mark.parametrize(
    "on",
    [
        cz.left("k") == cz.right("person"),
        cz.right("person") == cz.left("k"),
        col("k") == col("person"),
        {"k": "person"},
        [col("k") == col("person")],
    ],
    ids=str,
)
def test_keys_of_a_join_may_have_two_names(on: Any) -> None:
    joined = left().join(right(), on=on, suffixes=("", "_r"))
    assert joined.columns == ["k", "v", "n", "v_r", "n_r"]
    assert [(r["k"], r["v"], r["v_r"]) for r in rows(joined)] == [(n % 3, float(n), n * 10) for n in range(9)]


def test_the_streams_own_columns_tell_the_sides_apart() -> None:
    people, sales = left(), right()
    joined = people.where("v > 3").join(sales, on=people["k"] == sales["person"], prefix="r_")
    assert [r["r_v"] for r in rows(joined)] == [40, 50, 60, 70, 80]


def test_a_column_of_a_stream_is_sent_without_it() -> None:
    sent = pickle.loads(pickle.dumps(left()["k"] > 3))
    assert same(sent, col("k") > 3)
    assert type(sent.args[0]) is Column


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_keys_of_a_join_are_computed(how: Any) -> None:
    joined = left().join(right(), on=cz.left("n").upper() == cz.right("n"), how=how, suffixes=("_l", "_r"))
    assert joined.columns == ["k", "v_l", "n_l", "person", "v_r", "n_r"]
    assert {(r["n_l"], r["n_r"]) for r in rows(joined)} == {("a", "A"), ("b", "B"), ("c", "C")}
    assert len(rows(joined)) == 9


def test_what_is_no_equality_is_looked_at_for_pairs_of_equal_keys() -> None:
    on = (cz.left("k") == cz.right("person")) & (cz.right("v") > 30) & (cz.left("v") < 6)
    assert [r["v"] for r in rows(left().join(right(), on=on, prefix="r_"))] == [4.0, 5.0]
    narrow = left().join(right(), on={"k": "person"}, where="v < 2 AND r_v >= 10", prefix="r_")
    assert [r["v"] for r in rows(narrow)] == [1.0]
    every = left().join(right(), on=[], where=cz.left("v") * 10 < cz.right("v") + 1, prefix="r_")
    assert len(rows(every)) == 9


def test_keys_of_two_types_meet_in_the_wider_one() -> None:
    joined = left().join(right(), on=cz.left("v") == cz.right("v"), prefix="r_")
    assert [(r["v"], r["r_v"]) for r in rows(joined)] == [(0.0, 0)]


def test_columns_are_named_as_in_pyspark() -> None:
    stream = left()
    assert stream.select("*", w=col("v") * 2).columns == ["k", "v", "n", "w"]
    assert stream.select(["k", col("v").alias("x")]).columns == ["k", "x"]
    assert stream.selectExpr("k", "upper(n) AS big").columns == ["k", "big"]
    assert stream.exclude("v").columns == stream.drop("v").columns == ["k", "n"]
    assert stream.withColumn("w", col("v") + 1).columns == ["k", "v", "n", "w"]
    assert stream.withColumnRenamed("v", "w").columns == ["k", "w", "n"]
    assert stream.rename({"v": "w"}).columns == stream.rename({"w": "v"}).columns == ["k", "w", "n"]
    assert stream.rename({"k": "v", "v": "k"}).columns == ["v", "k", "n"]
    assert stream.unionByName(stream.select("n", "v", "k")).columns == ["k", "v", "n"]
    padded = stream.unionByName(stream.select("n"), allowMissingColumns=True)
    assert [r["k"] for r in rows(padded)].count(None) == 9


def test_aggregates_are_reckoned_with() -> None:
    made = (
        left()
        .group_by("k")
        .tumbling(20)
        .agg(
            cz.sum("v").alias("total"),
            span=cz.max("v") - cz.min("v"),
            mean=cz.sum("v") / cz.count(),
            twice=(cz.avg("v") * 2).round(1),
            some=cz.count(filter="v > 3") + col("k"),
            n=cz.count(),
        )
    )
    assert made.columns == ["k", "total", "span", "mean", "twice", "some", "n"]
    assert rows(made)[1] == {"k": 1, "total": 12.0, "span": 6.0, "mean": 4.0, "twice": 8.0, "some": 3, "n": 3}


def test_reckoning_follows_corrections() -> None:
    drawn = " LE RE | k v |\n 1 2 | 1 5 | +\n 3 4 | 1 9 | +\n 6 7 | 1 7 | +\n 3 4->3 | 1 9 | -"
    stream = cz.from_items(drawn)
    made = stream.group_by("k").tumbling(10).agg(span=cz.max("v") - cz.min("v"))
    assert_history(made.run().history, " LE RE | k span |\n 0 10 | 1 2 | +")


def test_filter_is_another_name_for_where() -> None:
    aggregates = (cz.sum, cz.avg, cz.min, cz.max, cz.first, cz.last, cz.count, cz.median, cz.mode, cz.stddev)
    for one in aggregates:
        given, other = one("v", filter=col("v") > 3), one("v", where="v > 3")
        assert given.key == other.key, one


def test_names_of_pysparks_columns_are_understood() -> None:
    made = [
        col("a").isNull(),
        col("a").isNotNull(),
        col("a").substr(1, 2),
        col("a").astype("int"),
        col("a").isin(1, 2),
    ]
    assert [str(e) for e in made] == [
        "a IS NULL",
        "a IS NOT NULL",
        "substring(a, 1, 2)",
        "CAST(a AS INT)",
        "a IN (1, 2)",
    ]
    assert not hasattr(col("a"), "nothing_like_it")
    assert not hasattr(left(), "nothing_like_it")
    with pytest.raises(AttributeError, match=r"caesura\.functions\.lower"):
        _ = cz.lower
