"""A stretch of the input, looked into on a page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_console import HOSTILE, Client, served, small_query

import caesura as cz
from caesura.cli.console import _watched
from caesura.console.web.debugging import BUSY, DebugPage
from caesura.console.web.server import ConsoleServer
from caesura.runtime.query.recording import Recording

FLOW = """
import caesura as cz
rows = [{"ts": 3, "id": 7, "name": "<b>"}, {"ts": 4, "id": 8, "name": "b"}, {"ts": 14, "id": 9, "name": "b"}]
clicks = cz.from_rows(rows, time="ts", punctuate=cz.delay(1)).tumbling(10).agg(n=cz.count())
"""


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "flow.py").write_text(FLOW)
    with ConsoleServer(_watched(f"{tmp_path / 'flow.py'}:clicks")) as server:
        yield Client(server).follow_link()


def test_rows_of_a_step_are_traced_back_to_the_rows_they_need(visitor: Client) -> None:
    page = visitor.post("/debug", urlencode({"what": "back", "rows": "n = 2"})).body
    assert "needed: 2 of 3 rows of the input" in page and "row 0 of &#x27;read&#x27;" in page
    assert "&lt;b&gt;" in page and "<b>" not in page
    other = visitor.post("/debug", urlencode({"what": "back", "rows": "id = 9", "step": "read"})).body
    assert "needed: 1 of 3" in other


def test_a_step_is_shown_with_rows_and_without_them(visitor: Client) -> None:
    page = visitor.post("/debug", urlencode({"what": "compare", "rows": "id = 7"})).body
    assert "only with" in page and "only without" in page and "with and without 1 row" in page
    same = visitor.post("/debug", urlencode({"what": "compare", "rows": "id = 70"})).body
    assert "the same" in same and "only with" not in same


@pytest.mark.parametrize(("piece", "shown"), [("", "1 of"), ("2", "2 of"), ("9" * 7, "4 of"), ("x", "1 of")])
def test_pieces_are_gone_through_one_by_one(visitor: Client, piece: str, shown: str) -> None:
    page = visitor.post("/debug", urlencode({"what": "steps", "piece": piece})).body
    assert f"Piece {shown} 4: &#x27;read&#x27; promises" in page


def test_the_stretch_is_given_as_a_test(visitor: Client, tmp_path: Path) -> None:
    answer = visitor.post("/debug/test", urlencode({"stream": f"{tmp_path}/flow.py:clicks"}))
    assert answer.code == 200 and "attachment" in answer.headers["content-disposition"]
    assert "def test_clicks_says" in answer.body and "'id': 9" in answer.body
    compile(answer.body, "test_recorded_stretch.py", "exec")
    assert "names no stream" in visitor.post("/debug/test", urlencode({"stream": "x\n"})).body


@pytest.mark.parametrize("what", ["back", "compare", "nosuch"])
@pytest.mark.parametrize("rows", ["", "nosuch = 1", HOSTILE, "n = 1" * 500])
def test_what_cannot_be_looked_into_is_told(visitor: Client, what: str, rows: str) -> None:
    page = visitor.post("/debug", urlencode({"what": what, "rows": rows, "step": HOSTILE if rows else ""}))
    assert page.code == 200 and 'role="status"' in page.body and "<img" not in page.body


def test_only_pages_of_the_console_may_ask(visitor: Client) -> None:
    body = urlencode({"what": "steps"})
    for path in ("/debug", "/debug/test"):
        assert visitor.post(path, body, Origin="http://elsewhere.example").code == 403
    assert visitor.ask("/debug/test").code == 404


def test_a_console_that_only_shows_takes_no_stretch() -> None:
    with served(read_only=True) as client:
        visitor = client.follow_link()
        assert "This console only shows." in visitor.ask("/debug").body
        assert visitor.post("/debug/test", urlencode({"stream": "flow.py:a"})).code == 403


def test_what_a_query_recorded_is_looked_into() -> None:
    query = small_query()
    query.record()
    with query.console(open_page=False) as server:
        for item in cz.parse(" LE RE | id name |\n 1 2 | 7 a | +\n 2 3 | 8 a | +"):
            query.feed("clicks", item)
        query.run()
        page = Client(server).follow_link().post("/debug", urlencode({"what": "back", "rows": "n = 2"})).body
    assert "needed: 2 of 2 rows" in page


def test_one_stretch_is_looked_into_at_a_time() -> None:
    begun, end = threading.Event(), threading.Event()

    def slow() -> Recording:
        begun.set()
        end.wait(10)
        return cz.from_rows([{"ts": 1}], time="ts").replay()

    pages = DebugPage("clicks", slow, ["read"])
    asked = {"what": "steps"}
    first = threading.Thread(target=pages.page, args=([], asked), kwargs={"read_only": False})
    first.start()
    assert begun.wait(10)
    assert BUSY in pages.page([], asked, read_only=False)
    end.set()
    first.join(10)
    assert BUSY not in pages.page([], asked, read_only=False)
