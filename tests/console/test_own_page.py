"""A page of the user's own, and the speed map of the demo on one."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from served_console import HOSTILE, Client, feed, served, small_query

from caesura.console.web import speaking
from caesura.console.web.looks import Look
from caesura.console.web.markup import Markup, tag
from caesura.console.web.own_page import OwnPage
from caesura.errors import PlanError, StreamError

TRAFFIC = Path(__file__).parents[2] / "examples" / "traffic"


@pytest.fixture
def map_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(TRAFFIC)
    import map_page

    yield map_page
    for name in ("map_page", "data"):
        sys.modules.pop(name, None)


def hello(asked: list[dict[str, str]], **options: Any) -> OwnPage:
    """A page with a part, a form and a style sheet."""

    def parts(look: Look) -> dict[str, Markup]:
        return {"told": tag("p", {}, f"{HOSTILE} {len(look.status.steps)} steps")}

    def answer(form: Any) -> str:
        asked.append(dict(form))
        if "wrong" in form:
            raise StreamError("there is no such thing.", remedy="Ask for another.")
        return "Done."

    return OwnPage("hello", "Hello", parts, answer, "p { margin: 0; }", **options)


def visit(client: Client) -> Client:
    """Follows the link, which leads to the own page."""
    answer = client.ask(client.server.url.partition(str(client.server.port))[2])
    assert answer.headers["location"] == "/hello"
    return Client(client.server, answer.headers["set-cookie"].partition(";")[0])


def test_a_page_of_ones_own_is_opened_first_and_kept_to_the_same_rules() -> None:
    asked: list[dict[str, str]] = []
    with served(pages=[hello(asked)]) as client:
        visitor = visit(client)
        page = visitor.ask("/hello").body
        assert "&lt;img" in page and "<img" not in page and "2 steps" in page
        assert visitor.ask("/static/hello.css").headers["content-type"].startswith("text/css")
        assert "Done." in visitor.post("/hello", "x=1").body
        assert "there is no such thing" in visitor.post("/hello", "wrong=1").body
        assert client.ask("/hello").code == client.ask("/stream/hello").code == 403
        assert visitor.post("/hello", "x=1", Origin="http://evil.example").code == 403
        assert len(asked) == 2


@pytest.mark.parametrize("kind", [KeyError, StopIteration, GeneratorExit, RecursionError])
def test_what_a_page_of_ones_own_raises_is_told_with_its_line(kind: type[BaseException]) -> None:
    def fails(look: Look) -> dict[str, Markup]:
        raise kind("odd")

    with served(pages=[OwnPage("hello", "Hello", fails)]) as client:
        visitor = visit(client)
        answer = visitor.ask("/hello")
        assert answer.code == 500
        assert f"{kind.__name__}" in answer.body and f"raised at {Path(__file__).name}" in answer.body
        assert visitor.ask("/").code == 200


def test_a_console_that_only_shows_takes_no_form_of_it() -> None:
    asked: list[dict[str, str]] = []
    with served(pages=[hello(asked)], read_only=True) as client:
        assert visit(client).post("/hello", "x=1").code == 403
    assert asked == []


def test_a_form_of_it_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "PATIENCE", 0.2)
    asked: list[dict[str, str]] = []
    with served(pages=[hello(asked)]) as client:
        visitor, port = visit(client), client.server.port
        own = f"Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nCookie: {visitor.cookie}\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
            slow.sendall(f"POST /hello HTTP/1.1\r\n{own}Content-Length: 900\r\n\r\na=".encode())
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")
    assert asked == []


@pytest.mark.parametrize("name", ["time", "Map", "../x", "", "a/b"])
def test_a_page_has_a_plain_name_of_its_own(name: str) -> None:
    with pytest.raises(PlanError, match="cannot be called"):
        OwnPage(name, "x", lambda look: {})


def changes(*rows: tuple[str, int, float]) -> pa.Table:
    """Estimates of one station: kind, time, miles an hour."""
    kinds, times, speeds = zip(*rows, strict=True)
    place = {"freeway": [2] * len(rows), "station": [7] * len(rows)}
    colour = ["red" if mph < 20 else "green" for mph in speeds]
    return pa.table({"kind": kinds, "LE": times, **place, "mph": speeds, "colour": colour})


def test_a_corrected_station_flashes_once_and_its_final_estimate_is_marked(map_page: Any) -> None:
    speeds = map_page.SpeedMap()
    speeds.take(0, changes(("+", 20, 55.0), ("+", 40, 52.0)))
    assert not speeds.now[2, 7].corrected and speeds.now[2, 7].mph == 52.0
    speeds.take(1, changes(("-", 40, 52.0), ("+", 40, 15.0), ("=", 20, 55.0)))
    assert speeds.now[2, 7].corrected and speeds.now[2, 7].colour == "red"
    assert speeds.final[2, 7].mph == 55.0 and speeds.corrections == 1
    speeds.take(2, changes(("+", 60, 14.0)))
    assert not speeds.now[2, 7].corrected


class Heard:
    """Takes feedback, and keeps what stands."""

    def __init__(self) -> None:
        self.said: dict[int, str] = {}

    def outputs(self) -> list[str]:
        return ["out"]

    def speak(self, intent: str, rows: str, output: str) -> str:
        self.said[len(self.said) + 10] = f"{intent} {rows}"
        return ""

    def withdraw(self, number: int) -> str:
        del self.said[number]
        return ""

    def standing(self) -> list[str]:
        return [f"#{number} {words}" for number, words in self.said.items()]


def test_choosing_a_freeway_is_feedback_and_choosing_all_withdraws_it(map_page: Any) -> None:
    heard = Heard()
    page = map_page.MapPage(map_page.SpeedMap(), heard)
    page.choose({"freeway": "2"})
    assert list(heard.said.values()) == ["assume freeway <> 2"]
    page.choose({"half": "east"})
    assert list(heard.said.values()) == ["assume freeway <> 2", "assume station < 5"]
    page.choose({"freeway": "0", "half": "all"})
    assert heard.said == {}
    assert page.choose({"freeway": "9; DROP"}) == "There is no such freeway." and heard.said == {}


def test_the_map_is_on_a_page_of_a_console(map_page: Any) -> None:
    query, speeds = small_query(), map_page.SpeedMap()
    speeds.take(3, changes(("+", 20, 55.0), ("=", 20, 55.0)))
    with served(query, pages=[map_page.MapPage(speeds, Heard()).own_page()]) as client:
        answer = client.ask(client.server.url.partition(str(client.server.port))[2])
        visitor = Client(client.server, answer.headers["set-cookie"].partition(";")[0])
        feed(query)
        page = visitor.post("/map", "freeway=2").body
    assert "The next epoch ignores freeway &lt;&gt; 2." in page and "#10 assume freeway &lt;&gt; 2" in page
    assert page.count('class="road"') == 1 and "55 mph, green" in page and "rows (0 B) were not read" in page
