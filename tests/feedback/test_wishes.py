"""Desired feedback changes order only; demanded feedback gives what there is, to be corrected."""

from __future__ import annotations

from statistics import median

import pytest
from feedback_streams import feed, rows, stream

import caesura as cz
from caesura import Pattern, Stream
from caesura.events import History, Page, draw, parse
from caesura.runtime import Query


def waiting(query: Query, text: str) -> None:
    """Queues a drawn stream without working on it."""
    schema = query.parts.inputs["a"].target.node.schema  # type: ignore[union-attr]
    for item in parse(text, schema):
        query.feed("a", item)


PAGES = "\n\n".join(f" LE RE | id |\n {t} {t + 1} | {t % 4} | +" for t in range(12))


def test_wanted_rows_of_waiting_pages_come_first() -> None:
    positions = {}
    for wanted in (False, True):
        query = stream(id="int").where(cz.col("id") >= 0).query()
        if wanted:
            query.desire(Pattern(id=3))
        for page in PAGES.split("\n\n"):
            waiting(query, page)
        query.run()
        ids = [r[3][0] for p in query.take("out") if isinstance(p, Page) for r in p.rows()]
        positions[wanted] = median(i for i, n in enumerate(ids) if n == 3)
        assert sorted(ids) == sorted(t % 4 for t in range(12))
    assert positions == {False: 7, True: 1}


def test_no_row_is_brought_forward_past_a_punctuation() -> None:
    query = stream(id="int").query()
    query.desire(Pattern(id=3))
    waiting(query, " LE RE | id |\n 1 2 | 1 | +\n-- 2 --\n 3 4 | 1 | +\n 3 4 | 3 | +")
    query.run()
    assert draw(query.take("out")) == draw(
        parse(" LE RE | id |\n 1 2 | 1 | +\n-- 2 --\n 3 4 | 3 | +\n 3 4 | 1 | +")
    )


def test_a_wish_climbs_through_what_it_cannot_say_exactly() -> None:
    plan = stream(id="int", v="int").select("id", w=cz.col("v") * 2)
    query = plan.query()
    query.desire(Pattern(id=3, w=8))
    assert [str(m) for m in query.upstream_feedback("a")] == ["desired: id = 3 (standing)"]


BLOCKED: dict[str, Stream] = {
    "tumbling": stream(id="int").group_by("id").tumbling(10).agg(n=cz.count()),
    "totals": stream(id="int").group_by("id").totals(n=cz.count()),
    "hopping": stream(id="int").group_by("id").hopping(10, every=10, offset=0).agg(n=cz.count()),
    "session": stream(id="int").group_by("id").session(3).agg(n=cz.count()),
}


@pytest.mark.parametrize("name", BLOCKED)
def test_a_blocking_step_gives_what_it_has_marked_partial_and_corrects_it(name: str) -> None:
    plan = BLOCKED[name]
    query = plan.query(speculate="watermark")
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 2 3 | 2 | +")
    assert query.take("out") == []
    query.demand(Pattern(id=1))
    now = query.take("out")
    assert [(p.partial, p.rows()[0][3]) for p in now if isinstance(p, Page)] == [(True, (1, 1))]
    assert "~" in draw(now)
    feed(query, " LE RE | id |\n 3 4 | 1 | +\n-- definite: * --")
    later = [*now, *query.take("out")]
    final = History.of(later, plan.schema).rows()
    assert sorted(r[2] for r in final) == [(1, 2), (2, 1)]


def test_a_demand_goes_through_two_blocking_steps_from_the_top() -> None:
    plan = stream(id="int").group_by("id").tumbling(5).agg(n=cz.count()).tumbling(10).agg(k=cz.sum("n"))
    query = plan.query(speculate="watermark")
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 2 3 | 2 | +")
    query.demand()
    assert rows(query, plan) == [(0, 10, 2)]


def test_final_output_gives_on_demand_what_still_waits_and_corrects_it() -> None:
    plan = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query(output="final")
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 2 3 | 2 | +")
    query.demand(Pattern(id=1))
    now = query.take("out")
    assert [(p.partial, p.rows()[0][3]) for p in now if isinstance(p, Page)] == [(True, (1, 1))]
    feed(query, " LE RE | id |\n 3 4 | 1 | +\n-- definite: * --")
    items = [*now, *query.take("out")]
    assert sorted(r[2] for r in History.of(items, plan.schema).rows()) == [(1, 2), (2, 1)]
    assert query.counters()["output final"].state_rows == 0


def test_a_row_that_was_shown_and_stays_is_not_given_again() -> None:
    from feedback_streams import ANY

    plan = stream(known=ANY, id="int")
    query = plan.query(output="final")
    feed(query, " LE RE | id |\n 1 9 | 1 | +\n 2 9 | 2 | +")
    query.demand()
    feed(query, " LE RE | id |\n 1 9->5 | 1 | -\n 2 9->2 | 2 | -\n-- definite: * --")
    assert rows(query, plan) == [(1, 5, 1)]


def test_a_deadline_demands_when_no_result_came_in_time() -> None:
    plan = stream(id="int").tumbling(100).agg(n=cz.count()).deadline(5)
    query = plan.query(speculate="watermark")
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n-- 2 --\n-- 4 --")
    assert rows(query, plan) == []
    feed(query, " LE RE | id |\n 5 6 | 1 | +\n-- 9 --")
    assert rows(query, plan) == [(0, 100, 2)]


def test_rows_of_one_stream_are_feedback_on_another() -> None:
    data, control = stream(id="int"), stream("b", id="int")
    plan = data.where(cz.col("id") >= 0).feedback_from(control, "assumed", on="id")
    query = plan.query()
    feed(query, " LE RE | id |\n 1 2 | 7 | +", "b")
    feed(query, " LE RE | id |\n 1 2 | 7 | +\n 1 2 | 8 | +")
    assert rows(query, plan) == [(1, 2, 8)]
    assert query.counters()["where"].feedback["guards at the input"] == 1


def test_what_leaves_the_control_stream_is_withdrawn() -> None:
    from feedback_streams import ANY

    data, control = stream(id="int"), stream("b", ANY, id="int")
    plan = data.where(cz.col("id") >= 0).feedback_from(control, "assumed", on="id")
    query = plan.query()
    feed(query, " LE RE | id |\n 1 9 | 7 | +", "b")
    feed(query, " LE RE | id |\n 1 2 | 7 | +")
    feed(query, " LE RE | id |\n 1 9->1 | 7 | -", "b")
    feed(query, " LE RE | id |\n 2 3 | 7 | +")
    assert rows(query, plan) == [(2, 3, 7)]


def test_a_wish_survives_a_restart_wherever_it_has_climbed_to() -> None:
    plan = stream(seg="int").where(cz.col("seg") >= 0).join(stream("b", seg="int"), "seg", impatient=True)
    query, again = plan.query(), plan.query()
    feed(query, " LE RE | seg |\n 1 9 | 3 | +", "b")  # the join asks for what would meet it
    query.upstream_feedback("a")
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    waiting(again, " LE RE | seg |\n 1 2 | 1 | +\n 1 2 | 3 | +")
    again.run()
    assert again.cell_of("a").feedback.desired == [Pattern(seg=3)]
    assert sum(edge.moved for edge in again.graph.edges) == 1


def test_what_enters_a_list_is_demanded_and_what_leaves_it_assumed_away() -> None:
    from feedback_streams import ANY

    counts = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    listed = stream("b", ANY, id="int")
    plan = counts.feedback_from(listed, "demanded", on="id", leaving="assumed")
    query = plan.query(speculate="watermark")
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 1 2 | 2 | +")
    feed(query, " LE RE | id |\n 0 9 | 1 | +", "b")
    shown = query.take("out")
    assert [p.rows()[0][3] for p in shown if isinstance(p, Page)] == [(1, 1)]  # what there is of it is shown
    feed(query, " LE RE | id |\n 0 9->0 | 1 | -\n 2 inf | 2 | +", "b")
    feed(query, " LE RE | id |\n 3 4 | 2 | +\n 12 13 | 1 | +\n 12 13 | 2 | +\n-- definite: * --")
    final = History.of([*shown, *query.take("out")], plan.schema).rows()
    assert final == [(0, 10, (2, 2)), (10, 20, (2, 1))]  # what has left is taken back
    assert query.counters()["input"].feedback["stopped at the output"] == 1
    feed(query, " LE RE | id |\n-- definite: * --", "b")


def test_overlapping_windows_give_what_they_have_and_correct_it_once_they_close() -> None:
    plan = stream(id="int").group_by("id").hopping(6, every=3).agg(n=cz.count())
    query, again = (plan.query(output="final") for _ in range(2))
    feed(query, " LE RE | id |\n 4 5 | 1 | +\n 4 5 | 2 | +")
    query.demand(Pattern(id=1))
    early = query.take("out")
    assert [(r[0], r[3]) for p in early if isinstance(p, Page) for r in p.rows()] == [
        (0, (1, 1)),
        (3, (1, 1)),
    ]
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    feed(again, " LE RE | id |\n 5 6 | 1 | +\n 6 7 | 1 | +\n-- definite: * --")
    final = History.of([*early, *again.take("out")], plan.schema).rows()
    assert sorted((le, p) for le, _, p in final) == [
        (0, (1, 2)), (0, (2, 1)), (3, (1, 3)), (3, (2, 1)), (6, (1, 1)),
    ]  # fmt: skip
    assert again.counters()["hopping"].state_rows == 0
