"""A plan that gains an output: it has agreed to nothing, so nothing is left out for it."""

from __future__ import annotations

import pytest
from cluster import Cluster
from feedback_streams import feed, rows, stream
from test_feedback_buckets import source

import caesura as cz
from caesura import Pattern, Stream, col
from caesura.events import History
from caesura.feedback.messages import assumed
from caesura.punctuation import ge
from caesura.runtime import Query

BOTH = " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +"


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_a_new_output_gets_rows_that_an_old_one_ignores(order: str) -> None:
    readings = stream(id="int").where(col("id") >= 0)
    plans = {"x": readings.select("id"), "y": readings.select(k=col("id"))}
    before = Query({"x": plans["x"].node})
    before.assume(Pattern(id=1))
    after = Query({name: plans[name].node for name in order})
    after.restore({name: data for name, data in before.snapshot().items() if data is not None})
    feed(after, BOTH)
    assert rows(after, plans["y"], "y") == [(1, 2, 1), (1, 2, 2)]
    assert rows(after, plans["x"], "x") == [(1, 2, 2)]
    assert after.feedback() == ["#1 assumed: id = 1"]
    after.withdraw(1)
    feed(after, BOTH)
    assert len(rows(after, plans["x"], "x")) == 2


def test_windows_that_lost_rows_are_not_shown_to_a_new_output_either() -> None:
    windows = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    before = Query({"x": windows.node})
    before.assume(Pattern(id=1))
    feed(before, BOTH)
    more = windows.select("n", k=col("id"))
    after = Query({"x": windows.node, "y": more.node})
    after.restore({name: data for name, data in before.snapshot().items() if data is not None})
    feed(after, " LE RE | id |\n 3 4 | 1 | +\n 13 14 | 1 | +")
    assert rows(after, more, "y") == [(10, 20, 1, 1)]  # of the first window a row is lost
    assert "still suppressed at 'tumbling': LE < 2, id = 1" in after.feedback()


@pytest.mark.parametrize("buckets", [1, 2, 5])
def test_a_new_output_in_buckets_gets_what_an_old_one_ignores(buckets: int) -> None:
    batches = [[(5 * n + t, t, 1) for t in range(4)] for n in range(8)]
    src = source(batches, 3)
    windows = Stream(src).group_by("id").tumbling(5).agg(n=cz.count())
    plan = windows.group_by("n").tumbling(10).agg(k=cz.count(), most=cz.max("id"))
    more = plan.select("n", "k")
    raws = list(src.read({}))
    first = Cluster({"out": plan.node}, buckets)
    first.say(assumed(Pattern(LE=ge(10)), standing=True))
    for raw in raws[:2]:
        first.epoch([(src, raw)])
    second = Cluster({"out": plan.node, "more": more.node}, buckets)
    second.restore({name: data for name, data in first.snapshot().items() if data is not None})
    for raw in raws[2:]:
        second.epoch([(src, raw)])
    second.epoch([], closes=True)
    second.drain()
    shown = History.of(second.items["more"], more.schema).rows()
    assert [row[:2] for row in shown][-2:] == [(20, 30), (30, 40)]  # the one before may lack something
    assert not History.of(second.items["more"], more.schema).bag - more.run().history.bag
