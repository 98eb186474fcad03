"""Feedback from a page, to a query of this process; what check says of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from served_console import HOSTILE, feed, served, small_query

from caesura.console.web import embedded, speaking
from caesura.runtime import Query


@contextmanager
def working(query: Query) -> Iterator[None]:
    """Feeds the query until it is left, on a thread of its own."""
    stop = threading.Event()

    def work() -> None:
        until = 0
        while not stop.wait(0.01):
            until += 10
            feed(query, until)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join(timeout=30)


def test_feedback_is_given_shown_with_its_effect_and_withdrawn() -> None:
    query = small_query()
    with served(query) as client, working(query):
        visitor = client.follow_link()
        body = urlencode({"intent": "assume", "rows": "name = 'a'", "output": "out"})
        page = visitor.post("/feedback", body).body
        assert "Said." in page
        for _ in range(50):
            if "What feedback did" in page and "#1 assumed" in page:
                break
            page = visitor.ask("/feedback").body
        assert "What feedback did" in page and 'value="1"' in page
        assert "#1 is withdrawn." in visitor.post("/feedback", "withdraw=1").body


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ({"intent": "assume", "rows": "nosuch = 1"}, "nosuch"),
        ({"intent": "assume", "rows": HOSTILE}, 'class="message"'),
        ({"intent": "shout", "rows": "name = 'a'"}, "Say which rows"),
        ({"withdraw": "77"}, "77"),
        ({}, "Say which rows"),
    ],
)
def test_what_is_not_understood_is_told_on_the_page(form: dict[str, str], answer: str) -> None:
    query = small_query()
    with served(query) as client, working(query):
        page = client.follow_link().post("/feedback", urlencode(form))
    assert page.code == 200 and answer in page.body and "<img" not in page.body


def test_a_query_at_rest_hears_it_when_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "HEARD_WITHIN", 0.05)
    query = small_query()
    with served(query) as client:
        page = client.follow_link().post("/feedback", urlencode({"intent": "desire", "rows": "name = 'a'"}))
        assert "it hears this when it is" in page.body
        feed(query)
        assert query.feedback()[0].startswith("#1 desired")


def test_a_form_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "MAX_FORM", 10)
    with served() as client:
        answer = client.follow_link().post("/feedback", "rows=" + "x" * 20)
    assert "at most 10 bytes" in answer.body


def test_a_console_that_only_shows_has_no_form_for_feedback() -> None:
    query = small_query()
    with served(query, read_only=True) as client:
        visitor = client.follow_link()
        assert "<form" not in visitor.ask("/feedback").body
        assert visitor.post("/feedback", "intent=assume&rows=n+%3D+1").code == 403
    assert query.feedback() == []


def test_check_and_explain_are_on_a_page() -> None:
    with served() as client:
        page = client.follow_link().ask("/check").body
    assert "r0 := input" in page and "unsafe" in page and "are never freed" in page and "id &gt; 3" in page
