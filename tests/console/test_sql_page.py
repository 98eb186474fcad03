"""A script of SQL, edited and previewed on a page."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_console import HOSTILE, Client

from caesura.cli import sql_preview
from caesura.cli.console import _watched
from caesura.console.web import server, speaking
from caesura.console.web.server import ConsoleServer
from caesura.console.web.sql_page import BUSY, EditedScript, SqlPage, SqlPreview


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "bids.csv").write_text("ts,item,price\n1,7,3\n12,7,5\n13,8,2\n")
    text = f"CREATE STREAM bids FROM csv '{tmp_path}/bids.csv' (TIME ts) LIFETIME POINT;\n"
    (tmp_path / "views.sql").write_text(text + "CREATE VIEW dear AS SELECT item FROM bids WHERE price > 2;\n")
    return tmp_path / "views.sql"


def in_this_process(file: str, name: str, text: str) -> SqlPreview:
    return SqlPreview(**sql_preview.answered(file, name, text))


@pytest.fixture(params=["speaks", "read only"])
def visitor(
    script: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setattr(sql_preview, "sql_preview", in_this_process)
    only = request.param == "read only"
    with ConsoleServer(_watched(f"{script}:dear"), read_only=only) as server:
        yield Client(server).follow_link()


def test_an_edited_query_is_previewed_and_nothing_is_written(visitor: Client, script: Path) -> None:
    before = script.read_text()
    assert "price &gt; 2" in visitor.ask("/sql").body
    page = visitor.post("/sql", urlencode({"text": before.replace("> 2", "< 3")})).body
    assert "1 rows" in page and "<td>8</td>" in page and "<td>7</td>" not in page
    assert script.read_text() == before and sorted(p.name for p in script.parent.iterdir()) == [
        "bids.csv",
        "views.sql",
    ]


def test_a_script_that_does_not_come_is_not_waited_for(
    visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaking, "PATIENCE", 0.2)
    port = visitor.server.port
    own = f"Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nCookie: {visitor.cookie}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        slow.sendall(f"POST /sql HTTP/1.1\r\n{own}Content-Length: 90000\r\n\r\ntext=".encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
    assert visitor.ask("/sql").code == 200
    assert Client(visitor.server).post("/sql", "text=x").code == 403


def test_of_many_who_send_a_script_only_some_are_heard(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CLIENTS", 4)
    with ConsoleServer(_watched(f"{script}:dear")) as served, ExitStack() as open_ones:
        visitor, port = Client(served).follow_link(), served.port
        own = f"Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nCookie: {visitor.cookie}\r\n"
        answers: list[int] = []
        while len(answers) < 20 and 503 not in answers:
            # one after another: of those that come at once, all may be sent away
            one = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            one.sendall(f"POST /sql HTTP/1.1\r\n{own}Content-Length: 90000\r\n\r\ntext=".encode())
            answers.append(visitor.ask("/sql").code)
        assert set(answers) == {200, 503}, answers


def said(script: Path, text: str) -> str:
    """What is wrong with a text, asked in this process."""
    return str(sql_preview.answered(str(script), "dear", text)["problem"])


def test_an_error_names_its_place(script: Path) -> None:
    assert "views.sql:2" in said(script, script.read_text().replace("price", "prize"))


@pytest.mark.parametrize(
    "other",
    [
        "CREATE STREAM secret FROM csv '/etc/passwd' (TIME ts) LIFETIME POINT;",
        "CREATE TABLE secret FROM csv '/etc/passwd';",
        "CREATE FUNCTION f AS 'os:system';",
        "CREATE SINK out TO parquet '/tmp/out';",
        "SET checkpoint = '/tmp/state';",
        "DROP VIEW dear;",
    ],
)
def test_a_text_declares_nothing_that_the_file_does_not(script: Path, other: str) -> None:
    found = sql_preview.answered(str(script), "dear", f"{other}\n{script.read_text()}")
    assert "problem" in found and "rows" not in found
    assert "only queries are edited here" in found["problem"] or "line 1" in found["problem"], found


def test_a_preview_runs_in_a_process_of_its_own(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_preview, "SECONDS", 240)
    made = sql_preview.sql_preview(str(script), "dear", script.read_text())
    assert made == SqlPreview(["LE", "RE", "item"], [["1", "2", "7"], ["12", "13", "7"]], 2)


def test_what_takes_too_long_is_ended(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_preview, "SECONDS", 0.01)
    assert "took longer" in sql_preview.sql_preview(str(script), "dear", script.read_text()).problem


def test_hostile_text_stays_text() -> None:
    page = SqlPage("views", EditedScript(lambda: HOSTILE, lambda text: SqlPreview(problem=text)))
    for shown in (page.page([], None), page.page([], {"text": HOSTILE + "</textarea><script>"})):
        assert "<img" not in shown and shown.count("<script") == 1
    rows = SqlPreview((HOSTILE,), [[HOSTILE]], 1)
    assert "<img" not in SqlPage("views", EditedScript(str, lambda text: rows)).page([], {"text": "x"})


def test_one_preview_runs_at_a_time() -> None:
    begun, end = threading.Event(), threading.Event()

    def slow(text: str) -> SqlPreview:
        begun.set()
        end.wait(10)
        return SqlPreview()

    pages = SqlPage("views", EditedScript(str, slow))
    first = threading.Thread(target=pages.page, args=([], {"text": "a"}))
    first.start()
    assert begun.wait(10)
    assert BUSY in pages.page([], {"text": "b"})
    end.set()
    first.join(10)
    assert BUSY not in pages.page([], {"text": "b"})


def test_a_script_that_is_too_long_is_told(visitor: Client) -> None:
    assert "at most 262144 bytes" in visitor.post("/sql", urlencode({"text": "x" * 300_000})).body
    assert visitor.post("/sql", "text=x", Origin="http://elsewhere.example").code == 403
