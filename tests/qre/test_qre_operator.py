"""A query over a stream: order, corrections, ticks, lifetimes, bad input."""

from __future__ import annotations

from typing import Any

import paper_queries as paper
import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import qre
from caesura.errors import CaesuraError, PlanError, StreamError
from caesura.events import History, parse
from caesura.expr import col
from caesura.ops.input import Input
from caesura.plan.cut import cut
from caesura.qre.language.query import Query
from caesura.runtime import Query as Running

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])
ITEMS = qre.items(SCHEMA)
M, E = (col("k") == x for x in "ME")
EPISODES = qre.iter_last(
    qre.split(
        qre.iter(qre.atom(M, col("v"), items=ITEMS), qre.sum()), qre.match(E, items=ITEMS), op=col("_0")
    )
)


def run(drawn: str, query: Query, schema: pa.Schema = SCHEMA, **options: Any) -> str:
    node = qre.over(Input(label="in", payload=schema), query, **options)
    running = Running({"out": node})
    for item in parse(drawn, schema):
        running.feed("in", item)
    running.run()
    return str(History.of(running.take("out"), node.schema))


def same(got: str, wanted: str) -> bool:
    return [line.split() for line in got.strip().splitlines()] == [
        line.split() for line in wanted.strip().splitlines()
    ]


def test_disorder_never_shows() -> None:
    drawn = """
     LE RE | k v |
      3  4 | E null | +
      1  2 | M 4 | +
      2  3 | M 5 | +
    -- 5 --
    """
    wanted = """
     LE RE | value |
      3  4 | 9     | +
    """
    assert same(run(drawn, EPISODES), wanted)


def test_a_full_retraction_takes_the_item_out_and_a_change_of_its_end_changes_nothing() -> None:
    drawn = """
     LE RE | k v |
      1  9 | M 4 | +
      2  9 | M 5 | +
      1  9->1 | M 4 | -
      2  9->4 | M 5 | -
      3  4 | E null | +
    -- 9 --
    """
    assert same(run(drawn, EPISODES), " LE RE | value |\n 3 4 | 5 | +")


def test_ties_go_by_the_named_column() -> None:
    drawn = " LE RE | k v |\n 1 2 | M 7 | +\n 1 2 | M 3 | +\n-- 5 --"
    last = qre.map(col("v"), items=ITEMS)
    got = run(
        drawn,
        last >> qre.iter_last(qre.split(qre.atom(op=col("value")), qre.atom(op=col("value")), op=col("_1"))),
        order_by="v",
    )
    assert same(got, " LE RE | value |\n 1 2 | 7 | +")


def test_an_answer_may_live_until_the_next() -> None:
    drawn = " LE RE | k v |\n 1 2 | M 7 | +\n 3 4 | M 3 | +\n-- 2 --\n 6 7 | M 1 | +\n-- 9 --"
    total = qre.iter1(qre.atom(op=col("v"), items=ITEMS), qre.sum())
    wanted = """
     LE RE  | value |
      1  3  | 7     | +
      3  6  | 10    | +
      6 inf | 11    | +
    """
    assert same(run(drawn, total, lives="until_next"), wanted)


def test_ticks_fire_for_empty_periods_too_and_once() -> None:
    of = qre.items(SCHEMA, ticks=True)
    per_tick = qre.iter_last(
        qre.split(
            qre.iter(qre.atom(~qre.TICK, 1, items=of), qre.count()),
            qre.match(qre.TICK, items=of),
            op=col("_0"),
        )
    )
    events = " LE RE | k v |\n 1 2 | M 7 | +\n 3 4 | M 3 | +\n"
    drawn = events + "-- 17 --\n 31 32 | M 1 | +\n-- 35 --\n-- definite: * --"
    wanted = """
     LE RE | value |
     10 11 | 2     | +
     20 21 | 0     | +
     30 31 | 0     | +
     40 41 | 1     | +
    """
    assert same(run(drawn, per_tick, ticks_every=10), wanted)


def test_a_partition_answers_per_key_and_frees_it() -> None:
    schema = pa.schema([("k", pa.string()), ("id", pa.int64()), ("v", pa.int64())])
    of = qre.items(schema)
    body = qre.split(
        qre.iter1(qre.atom(M, col("v"), items=of), qre.sum()), qre.match(E, items=of), op=col("_0")
    )
    node = qre.over(Input(label="in", payload=schema), qre.partition(body, by="id"))
    assert node.keys(0) == ("id",) and node.partitioning == "key"
    running = Running({"out": node})
    begun = " LE RE | k id v |\n 1 2 | M 1 7 | +\n 2 3 | M 2 3 | +\n"
    drawn = begun + " 3 4 | E 1 null | +\n 4 5 | E 2 null | +\n-- 9 --"
    for item in parse(drawn, schema):
        running.feed("in", item)
    running.run()
    wanted = " LE RE | id value |\n 3 4 | 1 7 | +\n 4 5 | 2 3 | +"
    assert same(str(History.of(running.take("out"), node.schema)), wanted)


def test_a_null_key_is_refused_with_the_item() -> None:
    query = qre.partition(qre.atom(M, col("v"), items=ITEMS), by="v")
    with pytest.raises(StreamError, match="null key"):
        qre.evaluate(query, pa.RecordBatch.from_pylist([{"k": "M", "v": None}], SCHEMA))


def test_a_step_function_that_raises_or_returns_another_type_is_named() -> None:
    def halve(v: int) -> float:
        return 1 / v

    query = qre.apply(qre.atom(M, col("v"), items=ITEMS), qre.function(halve, returns="double"))
    assert qre.explain(query) == "twin: the operation 'halve' runs in Python only"
    with pytest.raises(StreamError, match="halve raised ZeroDivisionError"):
        qre.evaluate(query, pa.RecordBatch.from_pylist([{"k": "M", "v": 0}], SCHEMA))
    wrong = qre.apply(qre.atom(M, col("v"), items=ITEMS), qre.function(lambda v: "no", returns="double"))
    with pytest.raises(StreamError, match="returned 'no'; it promises double"):
        qre.evaluate(wrong, pa.RecordBatch.from_pylist([{"k": "M", "v": 0}], SCHEMA))


def test_a_value_of_unknown_type_cannot_leave_a_query() -> None:
    query = qre.apply(qre.atom(M, items=ITEMS), lambda item: item)
    with pytest.raises(PlanError, match="no column can hold"):
        qre.over(Input(label="in", payload=SCHEMA), query)


def test_items_that_lead_out_of_the_language_are_counted() -> None:
    running = qre.Evaluator(
        qre.partition(
            qre.split(qre.atom(M, 1, items=ITEMS), qre.atom(E, 1, items=ITEMS), op=col("_0")), by="v"
        )
    )
    rows = [{"k": "E", "v": 1}, {"k": "M", "v": 2}, {"k": "M", "v": 2}, {"k": "M", "v": 3}]
    running.run(pa.RecordBatch.from_pylist(rows, SCHEMA))
    assert running.departures == 2


def test_state_is_bounded_by_the_keys_that_are_open_at_once() -> None:
    import numpy as np

    keys = np.repeat(np.arange(20_000), 4)
    kinds = np.tile(np.array(["M", "M", "M", "E"]), 20_000)
    body = qre.split(
        qre.iter1(qre.atom(M, col("v"), items=ITEMS), qre.sum()), qre.match(E, items=ITEMS), op=col("_0")
    )
    running = qre.Evaluator(qre.partition(body, by="v"))
    running.run(pa.record_batch({"k": kinds, "v": keys}))
    assert running.nbytes < 2_000_000 and running.departures == 0


def test_state_and_work_per_item_do_not_grow_with_the_stream() -> None:
    """Theorem 7, counted: bytes held, and the most instructions that one item took."""
    of = qre.items(pa.schema([("kind", pa.int64()), ("value", pa.float64())]))
    queries = [
        paper.daily_maximum(of),
        paper.good_and_bad_days(of, 3.0),
        paper.p7(of, 10, 2.0),
        paper.after_the_last_extreme(of, 3.0),
    ]
    cycle = {"kind": [0, 1, 1, 1, 2, 0, 1, 2, 3, 1], "value": [0.0, 1, 4, 2, 0, 0, 5, 0, 0, 3]}
    for query in queries:
        seen = set()
        for repeats in (100, 10_000):
            running = qre.Evaluator(query, kernel="table")
            running.run(pa.record_batch({n: v * repeats for n, v in cycle.items()}).cast(of.schema))
            seen.add((running.nbytes, running.operations))
        assert len(seen) == 1


def test_a_query_that_never_answers_is_refused() -> None:
    with pytest.raises(CaesuraError, match="never answers"):
        qre.over(Input(label="in", payload=SCHEMA), qre.value(3).on(ITEMS))


LEFT = "the pattern can match no stream that goes on from this item"


def departed(drawn: str, query: Query, schema: pa.Schema = SCHEMA, **options: Any) -> tuple[Any, Running]:
    node = qre.over(Input(label="in", payload=schema), query, **options)
    running = Running({"out": node})
    for item in parse(drawn, schema):
        running.feed("in", item)
    running.run()
    table = running.late().get("qre")
    return [] if table is None else table.to_pylist(), running


@pytest.mark.parametrize("kernel", ["twin", "table", "generated"])
def test_a_stream_that_leaves_the_language_for_ever_is_told_of_once(kernel: str) -> None:
    pair = qre.split(qre.atom(M, 1, items=ITEMS), qre.atom(E, 1, items=ITEMS), op=col("_0"))
    drawn = " LE RE | k v |\n 1 2 | M 1 | +\n 2 3 | E 1 | +\n 3 4 | E 2 | +\n 4 5 | M 3 | +\n-- 9 --"
    rows, running = departed(drawn, pair, kernel=kernel)
    assert [(r["LE"], r["k"], r["v"]) for r in rows] == [(3, "E", 2)]
    assert rows[0]["reason"] == f"{LEFT}; the query will not answer any more"
    assert running.late() == {}


@pytest.mark.parametrize("kernel", ["twin", "table", "generated"])
def test_a_key_that_leaves_is_told_of_once_and_freed(kernel: str) -> None:
    pair = qre.split(qre.atom(M, 1, items=ITEMS), qre.atom(E, 1, items=ITEMS), op=col("_0"))
    query = qre.partition(pair, by="v")
    drawn = " LE RE | k v |\n 1 2 | E 1 | +\n 2 3 | E 1 | +\n 3 4 | M 2 | +\n 4 5 | M 2 | +\n 5 6 | M 2 | +\n"
    more = " 6 7 | E 2 | +\n 7 8 | M 4 | +\n 8 9 | E 4 | +\n-- 9 --"
    rows, running = departed(drawn + more, query, kernel=kernel)
    assert [(r["LE"], r["v"]) for r in rows] == [(1, 1), (4, 2)]
    assert rows[0]["reason"] == f"{LEFT}; the state of its v is freed, and begins anew"
    counters = next(c for c in running.counters().values() if "keys" in c.extra)
    assert counters.extra["keys"] == 0 and counters.extra["left the rate's language"] == 3


@pytest.mark.parametrize("kernel", ["twin", "table", "generated"])
def test_a_key_that_answered_and_stays_closed_has_not_left(kernel: str) -> None:
    pair = qre.split(qre.atom(M, 1, items=ITEMS), qre.atom(E, 1, items=ITEMS), op=col("_0"))
    query = qre.partition(pair, by="v", again=False)
    drawn = " LE RE | k v |\n 1 2 | M 1 | +\n 2 3 | E 1 | +\n 3 4 | E 1 | +\n"
    rows, _ = departed(drawn + " 4 5 | E 2 | +\n 5 6 | E 2 | +\n-- 9 --", query, kernel=kernel)
    assert [(r["LE"], r["v"]) for r in rows] == [(4, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["table", "generated"])
def test_maps_that_can_come_no_more_are_told_of_and_freed(kernel: str) -> None:
    body = qre.split(
        qre.iter1(qre.atom(M, 1, items=ITEMS), qre.sum()), qre.match(E, items=ITEMS), op=col("_0")
    )
    query = qre.map_collect(E, "v", body, every=qre.letter(E))
    drawn = " LE RE | k v |\n 1 2 | M 1 | +\n 2 3 | E 0 | +\n 3 4 | M 7 | +\n 4 5 | E 0 | +\n"
    rows, running = departed(drawn + " 5 6 | M 8 | +\n 6 7 | E 0 | +\n-- 9 --", query, kernel=kernel)
    assert [r["LE"] for r in rows] == [4]
    counters = next(c for c in running.counters().values() if "keys" in c.extra)
    assert counters.extra["keys"] == 0


def test_synchronisation_items_go_to_every_bucket_and_keyed_items_to_their_own():
    source = cz.from_rows([{"t": 0, "id": 1, "v": 1}], time="t").node
    of, high = qre.items(source.schema), col("v") > 9
    own, end = qre.atom(~high.coalesce(False), 1, items=of), qre.match(high, items=of)
    body = qre.split(qre.iter1(own, qre.sum()), end, op=col("_0"))
    maps = qre.map_collect(high, "id", body, every=qre.letter(high))
    routes = [
        a.route() for s in cut({"out": qre.over(source, qre.iter_last(maps))}, 3).stages for a in s.arrivals
    ]
    assert sorted(routes) == ["a copy to every bucket", "by id"]
    once = [a.route() for s in cut({"out": qre.over(source, maps)}, 3).stages for a in s.arrivals]
    assert sorted(once) == ["a copy to every bucket", "by id"]


def test_ticks_of_the_whole_stream_go_to_every_bucket_where_maps_go_on():
    source = cz.from_rows([{"t": 0, "id": 1}], time="t").node
    of = qre.items(source.schema, ticks=True)
    end = qre.match(qre.TICK, items=of)
    some = qre.split(qre.iter1(qre.atom(~qre.TICK, 1, items=of), qre.sum()), end, op=col("_0"))
    maps = qre.map_collect(
        qre.TICK, "id", qre.split(qre.match(qre.star(qre.TICK), items=of), some, op=col("_1"))
    )
    node = qre.over(source, qre.apply(maps, qre.rel().best()), ticks_every=5)
    stages = cut({"out": node}, 3).stages
    routes = [[a.route() for a in s.arrivals] for s in stages]
    assert routes == [[], ["all to one bucket"], ["by id", "a copy to every bucket"], ["all to one bucket"]]


def test_a_pipe_goes_by_the_keys_of_its_first_query_and_then_by_those_of_the_next():
    source = cz.from_rows([{"t": 0, "id": 1, "v": 1}], time="t").node
    first = qre.partition(
        qre.atom(op={"v": col("v"), "id": col("id")}, items=qre.items(source.schema)), by={"_": "id"}
    )
    mean = qre.iter1(qre.atom(op=col("v")), qre.avg())
    plans = [first >> mean, first >> qre.partition(mean, by={"who": "id"})]
    routes = [
        [a.route() for s in cut({"out": qre.over(source, p)}, 3).stages for a in s.arrivals] for p in plans
    ]
    assert routes == [["by id", "all to one bucket"], ["by id", "by answer id"]]
    leaves = first >> qre.split(qre.atom(op=col("v")), qre.atom(op=col("v")), op=col("_0") + col("_1"))
    (route,) = [a.route() for s in cut({"out": qre.over(source, leaves)}, 3).stages for a in s.arrivals]
    assert route == "all to one bucket"


@pytest.mark.parametrize("buckets", [1, 2, 3, 5])
def test_a_tick_that_no_bucket_has_is_put_in_where_maps_are_united(buckets: int) -> None:
    rows = [{"t": 7 if key < 4 else 29, "id": key} for key in range(5)]
    source = cz.from_rows(rows, time="t").node
    of = qre.items(source.schema, ticks=True)
    own, end = qre.atom(~qre.TICK, 1, items=of), qre.match(qre.TICK, items=of)
    body = qre.split(qre.iter1(own, qre.sum()), end, op=col("_0"))
    maps = qre.iter_last(qre.map_collect(qre.TICK, "id", body, every=qre.letter(qre.TICK)))
    node = qre.over(source, qre.apply(maps, qre.rel().count()), ticks_every=5)
    cluster = Cluster({"out": node}, buckets)
    cluster.run(every=2)
    got = History.of(cluster.items["out"], node.schema)
    drawn = (
        " LE RE | value |\n 10 11 | 4 | +\n 15 16 | 0 | +\n 20 21 | 0 | +\n 25 26 | 0 | +\n 30 31 | 1 | +\n"
    )
    assert got == History.of(parse(drawn, node.schema), node.schema)


@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_an_answer_that_is_called_as_the_key_is_not_taken_for_it(buckets: int) -> None:
    rows = [{"t": t, "id": t % 5} for t in range(20)]
    source = cz.from_rows(rows, time="t")
    halved = qre.partition(
        qre.atom(op={"id": col("id") % 2}, items=qre.items(source.schema)), by={"_id": "id"}
    )
    node = source.match(halved).group_by("id").tumbling(20).agg(n=cz.count()).node
    cluster = Cluster({"out": node}, buckets)
    cluster.run(every=3)
    got = History.of(cluster.items["out"], node.schema)
    assert got == History.of(
        parse(" LE RE | id n |\n 0 20 | 0 12 | +\n 0 20 | 1 8 | +\n", node.schema), node.schema
    )
