"""Feedback that waits is in one place, and a query without feedback does not look into it."""

from __future__ import annotations

import pytest
from feedback_streams import feed, stream

from caesura import Pattern, col
from caesura.events import parse
from caesura.feedback.messages import assumed
from caesura.punctuation import lt
from caesura.runtime.feedback.mailbox import Mailbox

ROWS = " LE RE | id |\n 1 2 | 7 | +\n 3 4 | 8 | +\n-- 5 --"


def test_a_query_without_feedback_never_delivers_any(monkeypatch: pytest.MonkeyPatch) -> None:
    query = stream(id="int").where(col("id") > 7).query()
    monkeypatch.setattr(Mailbox, "deliver", lambda *_: pytest.fail("there is nothing to deliver"))
    for item in parse(ROWS, stream(id="int").schema):
        query.feed("a", item)
    query.run()
    assert sum(len(item) for item in query.take("out") if not hasattr(item, "intent")) == 1


def test_what_a_step_sends_waits_for_the_next_page_and_not_for_punctuation() -> None:
    query = stream(id="int").where(col("id") > 0).instrument(every=1, columns=("id",)).query()
    mailbox = query.graph.mailbox
    feed(query, " LE RE | id |\n 9 10 | 7 | +\n-- 5 --")
    assert mailbox.waiting and not mailbox.urgent
    feed(query, " LE RE | id |\n 9 10 | 8 | +")
    assert query.cell("out").inputs[0].source.responder is not None  # type: ignore[union-attr]


def test_feedback_for_whoever_feeds_the_query_keeps_no_step_waiting() -> None:
    query = stream(id="int").query()
    query.assume(Pattern(LE=lt(10)))
    assert not query.graph.mailbox.waiting
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["LE < 10"]
    assert query.upstream_feedback("a") == []


def test_a_closed_mailbox_takes_nothing() -> None:
    query = stream(id="int").where(col("id") > 0).query()
    mailbox = query.graph.mailbox
    mailbox.closed = True
    mailbox.post(query.cell("out").inputs[0], assumed(Pattern(id=7)))
    assert not mailbox.waiting and mailbox.take(query.cell("out").inputs[0]) == []


def test_the_old_name_of_upstream_feedback_warns() -> None:
    query = stream(id="int").query()
    query.assume(Pattern(id=7))
    with pytest.warns(DeprecationWarning, match="upstream_feedback"):
        assert len(query.heard("a")) == 1
