"""What became of some rows, on a page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_console import HOSTILE, Client, served

import caesura as cz
from caesura.cli.console import _watched
from caesura.console.web.server import ConsoleServer
from caesura.console.web.tracing import BUSY, TracePage
from caesura.runtime.inspect.trace import Trace
from caesura.runtime.query.read_again import read_again

FLOW = """
import caesura as cz
rows = [{"ts": 3, "id": 7, "name": "<b>"}, {"ts": 4, "id": 8, "name": "b"}]
clicks = cz.from_rows(rows, time="ts").where(cz.col("id") > 7)
"""


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "flow.py").write_text(FLOW)
    with ConsoleServer(_watched(str(tmp_path / "flow.py"))) as server:
        yield Client(server).follow_link()


def test_rows_are_followed_step_by_step(visitor: Client) -> None:
    page = visitor.post("/trace", urlencode({"rows": "id = 8"})).body
    assert "1 row with id = 8" in page and page.count("emits 1 event because of them") == 2
    assert "row 1 of &#x27;read&#x27;" in page
    dropped = visitor.post("/trace", urlencode({"rows": "id = 7"})).body
    assert "drops them" in dropped and "&lt;b&gt;" in dropped and "<b>" not in dropped


@pytest.mark.parametrize(
    ("rows", "answer"), [("nosuch = 1", "no source has a column"), (HOSTILE, 'role="status"')]
)
def test_rows_that_cannot_be_chosen_are_told(visitor: Client, rows: str, answer: str) -> None:
    page = visitor.post("/trace", urlencode({"rows": rows}))
    assert page.code == 200 and answer in page.body and "<img" not in page.body


def test_one_trace_runs_at_a_time() -> None:
    begun, end = threading.Event(), threading.Event()

    def slow(rows: str, assumed: str) -> Trace:
        begun.set()
        end.wait(10)
        return Trace(rows, 0, [])

    pages = TracePage("clicks", slow)
    first = threading.Thread(target=pages.page, args=([], {"rows": "a"}), kwargs={"read_only": False})
    first.start()
    assert begun.wait(10)
    assert BUSY in pages.page([], {"rows": "b"}, read_only=False)
    end.set()
    first.join(10)
    assert BUSY not in pages.page([], {"rows": "b"}, read_only=False)


def test_rows_of_a_running_query_are_traced_over_what_it_has_read() -> None:
    rows = [{"ts": n, "id": n} for n in range(50)]
    query = cz.from_rows(rows, time="ts").where(cz.col("id") > 7).tumbling(10).agg(n=cz.count()).query()
    query.run()
    with query.console(open_page=False) as server:
        visitor = Client(server).follow_link()
        page = visitor.post("/trace", urlencode({"rows": "id = 12"})).body
        dropped = visitor.post("/trace", urlencode({"rows": "id = 3"})).body
    assert "1 row with id = 12" in page and "row 12 of &#x27;read&#x27;" in page and "10" in page
    assert "drops them" in dropped


def test_only_the_last_rows_before_where_a_query_is_are_read_again() -> None:
    stream = cz.from_rows([{"ts": n, "id": n} for n in range(50)], time="ts")
    mark = stream.node.fingerprint
    for end, rows in ((50, 10), (7, 10), (0, 10), (30, 1)):
        again = read_again(stream.node, {mark: {0: end}}, rows=rows)
        found = [n for raw in again.raws[mark] for n in raw.batch.column("id").to_pylist()]
        assert found == list(range(max(0, end - rows), end))


def test_what_was_fed_cannot_be_read_again_and_the_page_says_so() -> None:
    with served() as client:
        page = client.follow_link().post("/trace", urlencode({"rows": "id = 7"}))
    assert (
        page.code == 200 and "cannot be read again: it is fed" in page.body and "query.record()" in page.body
    )
