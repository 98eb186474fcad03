"""Rows of one stream as feedback on another: they speak of what starts in their lifetime, as it stands."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from feedback_streams import ANY, feed, rows, stream
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.contracts import check
from caesura.events import Page
from caesura.runtime import Query
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import interleaved, streams

EXAMPLES = examples(15)
CONTROL = InputSpec({"id": "key"}, key="id", max_rows=5)
DATA = InputSpec({"id": "key"}, key="id", lifetimes="points", insert_only=True, max_rows=8)


def spoken(alive: list[tuple[int, int, Any]], row: tuple[int, Any]) -> bool:
    return any(le <= row[0] < re and row[1] == id_ for le, re, id_ in alive)


def turn(alive: list[tuple[int, int, Any]], page: Page) -> None:
    """The control rows as they stand after a page."""
    for le, re, new, (id_,) in page.rows():
        if new is not None:
            alive.remove((le, re, id_))
        alive.append((le, re if new is None else new, id_))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_a_control_row_speaks_of_what_starts_in_its_lifetime_as_it_stands(data: st.DataObject) -> None:
    plan = stream(id="int").where(col("id") != 99).feedback_from(stream("b", ANY, id="int"), on="id")
    query, alive, wanted = plan.query(), list[tuple[int, int, Any]](), list[tuple[int, Any]]()
    feeds = [data.draw(streams(spec))[1] for spec in (DATA, CONTROL)]
    todo = [iter(f) for f in feeds]
    for number in interleaved([len(f) for f in feeds], data.draw(st.integers(0, 9))):
        item = next(todo[number])
        if isinstance(item, Page) and number == 1:
            turn(alive, item)
        elif isinstance(item, Page):
            known = [(le, p[0]) for le, _, _, p in item.rows() if p[0] is not None]
            wanted += [row for row in known if not spoken(alive, row)]
        query.feed("ab"[number], item)
        query.run()
    got = [(row[0], row[2]) for row in rows(query, plan)]
    assert sorted(got) == sorted(wanted)


@pytest.mark.parametrize("change", ["1 9->5", "1 inf->5"])
def test_a_control_row_that_is_shortened_speaks_of_less(change: str) -> None:
    plan = stream(id="int").where(col("id") >= 0).feedback_from(stream("b", ANY, id="int"), on="id")
    query = plan.query()
    feed(query, f" LE RE | id |\n {change.split('->')[0]} | 7 | +", "b")
    feed(query, f" LE RE | id |\n {change} | 7 | -", "b")
    feed(query, " LE RE | id |\n 0 1 | 7 | +\n 4 5 | 7 | +\n 6 7 | 7 | +")
    assert [row[0] for row in rows(query, plan)] == [0, 6]


def test_what_has_left_a_list_and_enters_it_again_is_no_longer_assumed_away() -> None:
    plan = stream(id="int").where(col("id") >= 0)
    plan = plan.feedback_from(stream("b", ANY, id="int"), "desired", on="id", leaving="assumed")
    query, again = plan.query(), plan.query()
    feed(query, " LE RE | id |\n 0 3 | 7 | +", "b")
    again.restore({name: data for name, data in query.snapshot().items() if data is not None})
    feed(again, " LE RE | id |\n 6 inf | 7 | +", "b")
    feed(again, " LE RE | id |\n 2 3 | 7 | +\n 4 5 | 7 | +\n 6 7 | 7 | +\n 9 10 | 7 | +")
    assert [row[0] for row in rows(again, plan)] == [2, 6, 9]


@pytest.mark.slow
def test_control_rows_that_time_has_passed_leave_nothing_behind() -> None:
    plan = stream(id="int").where(col("id") >= 0).feedback_from(stream("b", id="int"), on="id")
    query = plan.query()
    for t in range(5_000):
        query.feed("b", Page.of(pa.record_batch({"id": [t % 7]}), le=[t], re=[t + 1]))
        query.feed("a", cz.punctuation.cti(t + 1))
        query.run()
    assert query.counters()["where"].feedback.get("too many", 0) == 0
    assert len(query.cell("out").node.inputs) == 2 and held(query) <= 2


def held(query: Query) -> int:
    """Patterns that some step listens to."""
    found = [cell.responder for cell in query.graph.cells if cell.responder is not None]
    firm = sum(p.size for responder in found for p in responder.agreement.firm.values())
    standing = sum(len(some) for responder in found for some in responder.agreement.standing.values())
    return firm + standing + sum(len(responder.sent.standing[0]) for responder in found)


@pytest.mark.parametrize("step", ["feedback_from", "deadline"])
def test_steps_that_are_steered_pass_the_punctuation_of_their_rows(step: str) -> None:
    counts = stream(id="int").group_by("id").tumbling(5).agg(n=cz.count())
    control = stream("b", ANY, id="int")
    plan = counts.feedback_from(control, on="id") if step == "feedback_from" else counts.deadline(9)
    behind = plan.group_by("n").tumbling(10).agg(m=cz.count())
    assert check(behind.node).safe
    assert "punctuation on time" in str(behind.explain())


def test_what_is_demanded_is_what_lives_while_the_control_row_does() -> None:
    counts = stream(id="int").group_by("id").tumbling(10).agg(n=cz.count())
    plan = counts.feedback_from(stream("b", id="int"), "demanded", on="id")
    query = plan.query(speculate="watermark")
    feed(query, " LE RE | id |\n 1 2 | 1 | +\n 12 13 | 1 | +")
    feed(query, " LE RE | id |\n 15 16 | 1 | +", "b")
    assert [row[0] for row in rows(query, plan)] == [10]
