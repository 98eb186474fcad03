"""The plan as it runs, on its page and in its stream."""

from __future__ import annotations

import http.client
import json
import threading
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from served_console import HOSTILE, Client, feed, served, small_query

import caesura as cz
from caesura.console.web import updates
from caesura.console.web.embedded import MAX_ROWS, LastRows
from caesura.console.web.layout import HEIGHT, WIDTH, place
from caesura.console.web.lifetimes import lifetimes
from caesura.console.web.watched import SeenRows
from caesura.events.page import Page
from caesura.runtime import Query
from caesura.runtime.metrics.errands import Errands
from caesura.runtime.metrics.plan_shape import PlanShape, StepShape


def test_every_step_is_a_link_with_its_figures() -> None:
    query = small_query()
    feed(query)
    with served(query, name="clicks") as client:
        page = client.follow_link().ask("/").body
    assert page.count('class="step') == 3 and page.count('class="edge"') == 2
    assert "2 rows read" in page and "2 in, 1 out" in page and "id &gt; 3" in page


def test_a_chosen_step_says_its_columns_and_its_contract() -> None:
    with served() as client:
        page = client.follow_link().ask("/?look=step-2").body
    assert "keeps open windows" in page and "promises progress on &#x27;time&#x27;" in page
    assert "<dt>n</dt><dd>int64</dd>" in page


@pytest.mark.parametrize(
    "look", ["step-99", "edge-2-0", "edge-0", "step--1", "step-٣", "<b>", "step-" + "9" * 5000]
)
def test_what_is_not_there_is_not_chosen(look: str) -> None:
    from urllib.parse import quote

    with served() as client:
        answer = client.follow_link().ask(f"/?look={quote(look)}")
    assert answer.code == 200 and "Choose a step" in answer.body and "<b>" not in answer.body


def test_hostile_rows_and_names_are_escaped() -> None:
    schema = pa.schema([("name", pa.string())])
    page = Page.of(pa.record_batch({"name": [HOSTILE]}), le=[1], re=[2])
    drawn = lifetimes(SeenRows((page,), schema))
    assert "<img" not in drawn and "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&amp;" in drawn
    with served(name=HOSTILE) as client:
        assert "<img" not in client.follow_link().ask("/").body


def _messages(client: Client, look: str, wanted: Any, work: Any) -> dict[str, str]:
    """What a page knows once ``wanted`` holds of it; between messages ``work`` is done."""
    connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=10)
    connection.request("GET", f"/stream?look={look}", headers={"Cookie": client.cookie})
    answer = connection.getresponse()
    known: dict[str, str] = {}
    try:
        for _ in range(100):
            line = answer.fp.readline().decode()
            if line.startswith("data: "):
                known |= json.loads(line.removeprefix("data: "))
                if wanted(known):
                    return known
            work()
    finally:
        connection.close()
    raise AssertionError(known)


def test_rows_that_pass_an_edge_are_drawn_while_somebody_looks() -> None:
    query, until = small_query(), [0]

    def work() -> None:
        until[0] += 10
        feed(query, until[0])

    with served(query) as client:
        known = _messages(
            client.follow_link(), "edge-1-2", lambda k: "<td>a</td>" in k.get("panel", ""), work
        )
        assert '<rect class="bar"' in known["panel"]
        assert [len(cell.taps) for cell in query.graph.cells] == [0, 1, 1]


def test_a_stream_sends_what_has_changed_and_no_more() -> None:
    query = small_query()
    with served(query) as client:
        visitor = client.follow_link()
        first = _messages(visitor, "", lambda k: "s0-rows" in k, lambda: None)
        assert first["s0-rows"] == "0 rows read"
        feed(query)
        after = _messages(visitor, "", lambda k: k["s0-rows"] == "2 rows read", lambda: None)
    assert after["s1-rows"] == "2 in, 1 out"


def test_only_so_many_streams_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "MAX_STREAMS", 0)
    with served() as client:
        assert client.follow_link().ask("/stream").code == 503


def test_a_stream_ends_with_its_server() -> None:
    with served() as client:
        visitor = client.follow_link()
        connection = http.client.HTTPConnection("127.0.0.1", visitor.server.port, timeout=10)
        connection.request("GET", "/stream", headers={"Cookie": visitor.cookie})
        answer = connection.getresponse()
        assert answer.readline().startswith(b"data: ")
    answer.read()  # raises where the stream was cut off
    connection.close()


def test_while_nobody_looks_the_query_is_not_asked() -> None:
    asked: list[int] = []

    class Counted(Query):
        def status(self) -> Any:
            asked.append(1)
            return super().status()

    inner = small_query()
    query = Counted(inner.outputs)
    with served(query):
        before = len(asked)
        feed(query)
        assert len(asked) == before + 1  # when it came to rest
        while query.step():
            pass
        assert len(asked) == before + 1


def test_an_errand_that_fails_is_told_to_whoever_asked() -> None:
    errands = Errands()
    waiting = errands.leave(lambda: 1 // 0)
    errands.look()
    with pytest.raises(ZeroDivisionError):
        waiting.result(timeout=1)


def test_who_asks_a_query_at_rest_gets_an_answer_once_it_works() -> None:
    errands = Errands()
    assert errands.ask("n", lambda: 1) is None and errands.ask("n", lambda: 2) is None
    worker = threading.Thread(target=errands.update)
    worker.start()
    worker.join(5)
    assert errands.ask("n", lambda: 3) == 1 and errands.at_work


def test_the_last_rows_are_kept_and_no_more() -> None:
    tap = LastRows()
    for start in range(0, 150, 60):
        batch = pa.record_batch({"id": list(range(start, start + 60))})
        tap.append(Page.of(batch, le=[1] * 60, re=[2] * 60))
        tap.append(cz.cti(start))
    rows = [row for item in tap.items if isinstance(item, Page) for *_, row in item.rows()]
    assert rows == [(n,) for n in range(180 - MAX_ROWS, 180)]


def test_two_hundred_steps_lie_apart_and_below_their_inputs() -> None:
    steps = [
        StepShape(n, f"s{n}", "where", "", "", tuple(sorted({(n - 1) // 2, n // 3} - {n})) if n else ())
        for n in range(200)
    ]
    placed = place(PlanShape(tuple(steps)))
    boxes = placed.boxes
    assert len(boxes) == 200 and len(placed.lines) == sum(len(s.inputs) for s in steps)
    assert all(boxes[i].y < boxes[s.number].y for s in steps for i in s.inputs)
    rows: dict[float, list[float]] = {}
    for box in boxes:
        rows.setdefault(box.y, []).append(box.x)
        assert 0 <= box.x <= placed.width - WIDTH and 0 <= box.y <= placed.height - HEIGHT
    for row in rows.values():
        ordered = sorted(row)
        assert all(b - a >= WIDTH for a, b in pairwise(ordered))


def test_a_loop_leads_back() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    edges = cz.input_stream("edges", schema)

    def hop(paths: cz.Stream) -> cz.Stream:
        return paths.join(edges.select(b=cz.col("a"), c=cz.col("b")), on="b").select("a", b=cz.col("c"))

    shape = PlanShape.of({"out": cz.fixpoint(edges, hop, keep="distinct").node})
    (back,) = [line for line in place(shape).lines if line.back]
    assert shape.steps[back.source].kind == "fixpoint" and back.points[1][0] > back.points[0][0]
