"""A row for which an expression has no value stops the query, or waits in the late table."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream, col
from caesura.expr import RowError
from caesura.plan.prune import prune
from caesura.runtime import Query

ROWS = [{"t": 1, "a": 5}, {"t": 2, "a": 2**62}, {"t": 3, "a": None}, {"t": 4, "a": 7}]


def readings() -> Stream:
    return cz.from_rows(ROWS, time="t", name="readings")


def test_the_query_stops_with_the_step_and_the_row() -> None:
    with pytest.raises(RowError) as error:
        readings().select(b=col("a") * 4).named("fourfold").run()
    assert error.value.step == "fourfold"
    assert "the row is (a = 4611686018427387904)" in str(error.value)


def test_a_row_without_a_value_waits_in_the_late_table_with_the_reason() -> None:
    result = readings().select(b=col("a") * 4).on_bad("late").run()
    assert [row[3] for page in result.items if hasattr(page, "rows") for row in page.rows()] == [
        (20,), (None,), (28,),
    ]  # fmt: skip
    (refused,) = result.late["select"].to_pylist()
    assert refused["reason"] == "'a * 4' of (4611686018427387904, 4) is no bigint"
    assert (refused["kind"], refused["LE"], refused["a"]) == ("+", 2, 2**62)


@pytest.mark.parametrize("buckets", [1, 3])
def test_buckets_refuse_the_same_rows(buckets: int) -> None:
    plan = readings().where(col("a") * 4 > 0).on_bad("late").group_by("a").tumbling(9).agg(n=cz.count())
    alone = Query(prune({"out": plan.node}))
    alone.run()
    cluster = Cluster({"out": plan.node}, buckets)
    (source,) = cluster.stages.sources
    cluster.epoch([(source, raw) for raw in source.read({})], closes=True)  # type: ignore[attr-defined]
    late = pa.Table.from_batches(cluster.late["where"]).to_pylist()
    assert late == alone.late()["where"].to_pylist()
    assert [row["a"] for row in late] == [2**62]


def test_a_column_that_nobody_reads_still_refuses_its_rows() -> None:
    plan = readings().with_columns(b=col("a") * 4).on_bad("late").select("a")
    assert plan.run().late["select"].num_rows == 1


def test_a_counter_of_a_loop_that_leaves_its_range_is_an_error() -> None:
    seed = cz.from_rows([{"t": 0, "n": 2**63 - 10}], time="t").set_duration(9)
    loop = cz.fixpoint(seed, lambda rows: rows.where(col("n") < 2**63 - 1).select(n=col("n") + 4), keep="all")
    with pytest.raises(RowError, match="is no bigint"):
        loop.run()


NS = pa.timestamp("ns")
FINE = pa.array([1_000, 1_001, 2_000], NS)
DEEP = pa.StructArray.from_arrays([FINE, pa.array([1, 2, None])], ["at", "n"])
DEEPER = pa.StructArray.from_arrays([DEEP, pa.array(["a", "b", "c"])], ["in", "s"])


@pytest.mark.parametrize(
    "times",
    [FINE, FINE.dictionary_encode(), DEEP, DEEPER],
    ids=["plain", "dictionary", "struct", "struct in a struct"],
)
def test_timestamps_that_microseconds_cannot_hold_do_not_become_one_key(times: pa.Array) -> None:
    table = pa.table({"t": [1, 2, 3], "key": times})
    result = cz.from_arrow(table, time="t", name="events").run()
    assert len(result.table()) == 2
    assert result.late["events"]["reason"].to_pylist() == [
        "has a timestamp that microseconds cannot hold: it is finer, or too far away"
    ]


def test_a_struct_that_is_null_or_coarse_enough_is_kept() -> None:
    struct = pa.StructArray.from_arrays([FINE], ["at"], mask=pa.array([False, True, False]))
    result = cz.from_arrow(pa.table({"t": [1, 2, 3], "key": struct})[1:], time="t").run()
    assert result.table()["key"].to_pylist() == [None, {"at": dt.datetime(1970, 1, 1, 0, 0, 0, 2)}]
