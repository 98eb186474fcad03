"""A thrifty join says where a side is empty for certain; an impatient one asks for what would meet."""

from __future__ import annotations

import pytest
from feedback_streams import ANY, feed, rows, stream

import caesura as cz
from caesura.errors import PlanError
from caesura.ops.join.thrifty import STANDING_LIMIT


def test_the_other_side_of_an_empty_closed_window_is_not_made() -> None:
    sensors = stream(seg="int").group_by("seg").tumbling(10).agg(n=cz.count())
    probes = stream("b", seg="int").group_by("seg").tumbling(10).agg(m=cz.count())
    plan = sensors.join(probes, "seg", thrifty=True)
    query = plan.query()
    feed(query, " LE RE | seg |\n 1 2 | 1 | +\n-- 10 --\n-- 30 --", "b")
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE in [10..29]"]
    feed(query, " LE RE | seg |\n 2 3 | 1 | +\n 12 13 | 1 | +\n 31 32 | 1 | +\n-- definite: * --")
    feed(query, " LE RE | seg |\n 33 34 | 1 | +\n-- definite: * --", "b")
    assert rows(query, plan) == [(0, 10, 1, 1, 1), (30, 40, 1, 1, 1)]
    assert query.counters()["input"].feedback["stopped at the output"] == 1


def test_a_side_whose_ends_may_change_is_told_nothing() -> None:
    query = stream(known=ANY, seg="int").join(stream("b", seg="int"), "seg", thrifty=True).query()
    feed(query, " LE RE | seg |\n-- 30 --", "b")
    assert query.upstream_feedback("a") == []


def test_an_impatient_join_asks_for_the_keys_that_wait() -> None:
    query = stream(seg="int").join(stream("b", seg="int"), "seg", impatient=True).query()
    feed(query, " LE RE | seg |\n 1 2 | 3 | +\n 1 2 | 5 | +", "b")
    assert [str(m) for m in query.upstream_feedback("a")] == ["desired: seg in {3, 5}"]


def test_an_impatient_join_forgets_old_wishes() -> None:
    plan = stream(seg="int").join(stream("b", seg="int").select("seg", other="seg"), "seg", impatient=True)
    query, most = plan.query(), 0
    for tick in range(3 * STANDING_LIMIT):
        for label in "ab":
            feed(query, f" LE RE | seg |\n {tick} {tick + 2} | {tick} | +\n-- {tick} --", label)
        wishes = sum(
            len(cell.feedback.desired) + sum(len(e.desired) for e in cell.inputs)
            for cell in query.graph.cells
        )
        most = max(most, wishes)
    assert len(rows(query, plan)) == 3 * STANDING_LIMIT
    assert 0 < most <= 6 * (STANDING_LIMIT + 1)


def test_only_inner_joins_seek() -> None:
    with pytest.raises(PlanError, match="a thrifty or impatient join is an inner one"):
        stream(seg="int").join(stream("b", seg="int"), "seg", how="left", thrifty=True)
