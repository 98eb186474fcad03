"""A query: equal steps run once, punctuation is merged before it acts, counters tell what goes on."""

from __future__ import annotations

import pyarrow as pa
import pytest
from runtime_steps import drawn, numbers

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError
from caesura.events import pages, parse
from caesura.ops.deliver import Deliver
from caesura.punctuation import cti
from caesura.runtime import Query

READINGS = pa.schema([("id", pa.int64()), ("v", pa.float64())])


def readings(label: str = "readings") -> Stream:
    return cz.input_stream(label, READINGS)


def test_punctuations_in_one_inbox_that_a_later_one_covers_are_merged_before_they_act() -> None:
    query = Query({"out": readings().group_by("id").tumbling(10).agg(n=cz.count()).node})
    for item in parse(" LE RE | id v |\n 3 4 | 1 0.5 | +\n-- 1 --\n-- 2 --\n-- 5 --\n-- 12 --", READINGS):
        query.feed("readings", item)
    query.run()
    assert query.counters()["tumbling"].sweeps == 1
    assert [str(i) for i in query.take("out")[1:]] == ["definite: time < 10"]


def test_the_last_time_before_the_end_is_not_merged_into_it() -> None:
    query = Query({"out": readings().group_by("id").tumbling(10).agg(n=cz.count()).node})
    for item in parse(" LE RE | id v |\n 3 inf | 1 0.5 | +\n-- 22 --\n-- definite: * --", READINGS):
        query.feed("readings", item)
    query.run()
    windows = [row[:2] for page in pages(query.take("out")) for row in page.rows()]
    assert windows == [(0, 10), (10, 20), (20, 30)]


def test_equal_sub_plans_run_once() -> None:
    def hot() -> Stream:
        return readings().where(col("v") > 0.5).select("id")

    left, right = hot(), hot()
    query = Query({"out": left.union(right.shift(1)).node, "also": hot().distinct().node})
    assert sorted(query.counters()) == ["distinct", "input", "select", "shift", "union", "where"]


def test_counters_say_what_came_what_left_and_what_is_held() -> None:
    met = readings("a").join(readings("b").select("id", w=col("v")), on="id")
    query = Query({"out": met.node})
    for label, text in (
        ("a", " LE RE | id v |\n 3 9 | 1 0.5 | +\n 4 9 | 2 0.5 | +\n-- 5 --"),
        ("b", " LE RE | id v |\n 1 4 | 1 0.5 | +"),
    ):
        for item in parse(text, READINGS):
            query.feed(label, item)
    query.run()
    join = query.counters()["join"]
    assert (join.rows_in, join.rows_out, join.pages_in) == (3, 1, 2)
    assert join.state_rows == 2
    assert join.state_bytes > 0
    assert str(join.punctuation_in) == "definite: time < 5"
    assert join.last_out == ""
    assert join.held_by == "the right input"
    query.feed("b", cti(20))
    query.run()
    after = query.counters()["join"]
    assert (after.last_out, after.held_by, after.state_rows) == ("definite: time < 5", "", 0)


def test_an_output_that_waits_for_an_end_says_so() -> None:
    from caesura.ops.deliver import Deliver

    query = Query({"out": Deliver(inputs=(readings().node,), mode="final")})
    for item in parse(" LE RE | id v |\n 3 90 | 1 0.5 | +\n-- 50 --", READINGS):
        query.feed("readings", item)
    query.run()
    counters = query.counters()["output final"]
    assert counters.held_by == "a row from 3 on may still change its end"
    assert (counters.rows_in, counters.rows_out) == (1, 0)


def test_a_query_is_saved_between_any_two_steps() -> None:
    kept: dict[str, bytes | None] = {}
    query, items = Query({"out": Deliver(inputs=(numbers(),), mode="final")}), []
    for item in drawn(" LE RE | id |\n 3 4 | 1 | +\n-- 5 --\n 6 7 | 2 | +\n-- 9 --"):
        query.feed("numbers", item)
    while True:
        kept |= query.snapshot()
        query = Query({"out": Deliver(inputs=(numbers(),), mode="final")})
        query.restore({name: data for name, data in kept.items() if data is not None})
        if not query.step():
            break
        items += query.take("out")
    assert [row for page in pages(items) for row in page.rows()] == [(3, 4, None, (1,)), (6, 7, None, (2,))]


def test_an_unknown_input_is_refused_with_those_there_are() -> None:
    with pytest.raises(StreamError, match="There are: numbers"):
        Query({"out": numbers()}).feed("nombers", cti(3))
