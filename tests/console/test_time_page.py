"""The page of time: an output as bars, arrivals, late rows, epochs and claims."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from served_console import HOSTILE, Client, feed, served, small_query

import caesura as cz
from caesura.cli.console import _watched
from caesura.console.web.bars import bars, laid_out
from caesura.console.web.embedded_times import Disorder, LastItems
from caesura.console.web.server import ConsoleServer
from caesura.console.web.sink_folder import SinkFolder
from caesura.console.web.timeline import VisibleSpan, asked
from caesura.events.page import Page
from caesura.io.ingress import late as late_table
from caesura.io.ingress.refusals import behind_bound
from caesura.io.places import Place
from caesura.punctuation import MIN_TIME
from caesura.runtime import Query
from caesura.runtime.metrics.plan_shape import PlanShape
from caesura.runtime.metrics.saved_status import save_shape, save_status
from caesura.runtime.metrics.status import Board

DRAWN = """
 LE RE     | id |
 1  9      | 7  | +
 2  9      | 8  | +
 1  9->4   | 7  | -
 2  9->2   | 8  | -
 6  inf    | 9  | +
-- 5 --
"""


def late_query(rows: int = 120, *, timed: bool = False) -> Query:
    """A source of which all rows but the first are late, each with another reason."""
    first = 10**15 if timed else 100_000
    begin = first - 2 * 86_400_000_000 if timed else 0
    at = [first, *range(begin, begin + rows)]
    times = pa.array(at, pa.timestamp("us") if timed else pa.int64())
    table = pa.table({"ts": times, "name": [HOSTILE] * len(at)})
    stream = cz.from_arrow(table, time="ts", punctuate=cz.delay("1s" if timed else 10), name="cars")
    query = stream.tumbling("1s" if timed else 10).agg(n=cz.count()).query()
    query.run()
    return query


def test_what_became_of_each_row_is_folded_into_its_bar() -> None:
    found = bars(cz.parse(DRAWN), definite=5)
    assert [(bar.le, bar.re, bar.was, bar.state) for bar in found] == [
        (1, 4, 9, "final"),
        (2, 9, 9, "gone"),
        (6, cz.INFINITY, cz.INFINITY, "open"),
    ]


def test_a_row_whose_end_may_change_is_final_only_when_that_is_past() -> None:
    items = cz.parse(" LE RE | id |\n 1 9 | 7 | +")
    assert [bars(items, definite=5, fixed_ends=fixed)[0].state for fixed in (False, True)] == [
        "open",
        "final",
    ]


def test_a_retract_of_a_row_that_came_before_is_shown_as_what_it_takes_back() -> None:
    (bar,) = bars(cz.parse(" LE RE | id |\n 1 9->1 | 7 | -"), definite=0)
    assert (bar.le, bar.re, bar.state) == (1, 9, "gone")


@pytest.mark.parametrize("seed", range(20))
def test_bars_of_a_lane_never_cover_each_other(seed: int) -> None:
    draw = np.random.default_rng(seed)
    starts = draw.integers(0, 50, 60)
    page = Page.of(pa.record_batch({"id": range(60)}), le=starts, re=starts + draw.integers(1, 9, 60))
    placed, left = laid_out(bars([page], definite=0), lanes=5)
    assert len(placed) + left == 60 and left > 0
    for lane in range(5):
        mine = sorted((bar.le, bar.was) for bar in placed if bar.lane == lane)
        assert all(end <= start for (_, end), (start, _) in pairwise(mine))


def test_the_output_is_drawn_and_its_rows_are_listed() -> None:
    query = small_query()
    with served(query) as client:
        visitor = client.follow_link()
        feed(query, 10)
        feed(query, 20)
        page = visitor.ask("/time").body
        assert "2 rows from 0 to 20" in page and "2 final" in page and page.count('class="lived final"') == 2
        assert page.count("<td>a</td>") == 2
        near = visitor.ask("/time?" + urlencode({"from": 0, "to": 9})).body
        assert "1 rows from 0 to 9" in near and 'data-to="9"' in near


@pytest.mark.parametrize(
    ("first", "last"),
    [("5", "5"), ("9", "1"), ("x", "9"), ("1", ""), ("9" * 5000, "1"), ("1", str(2**63 - 1))],
)
def test_a_stretch_that_is_none_is_not_looked_at(first: str, last: str) -> None:
    assert asked(first, last) is None


def test_a_stretch_is_looked_at_closer_and_wider() -> None:
    assert VisibleSpan(0, 100).scaled(0.5) == VisibleSpan(25, 75)
    assert VisibleSpan(25, 75).scaled(2.0) == VisibleSpan(0, 100)
    assert VisibleSpan(0, 100).moved(-0.5) == VisibleSpan(-50, 50)
    assert VisibleSpan(4, 6).scaled(0.5).width >= 2


def test_late_rows_are_paged_with_their_reasons() -> None:
    query = late_query(10_000)
    with served(query) as client:
        visitor = client.follow_link()
        page = visitor.ask("/time?late=199").body
    assert "page 200 of 200" in page and "9951 to 10000" in page
    assert "time 9999 came after its lane had passed 99990" in page and "time 0 came" not in page
    assert "&lt;img" in page and "<img" not in page
    assert query.late()["cars"].num_rows == 10_000


@pytest.mark.parametrize("timed", [False, True])
def test_how_late_rows_were_is_counted(timed: bool) -> None:
    query = late_query(120, timed=timed)
    with served(query) as client:
        page = client.follow_link().ask("/time").body
    label = "over 1 d" if timed else "up to 100,000"
    row = page.partition(f"{label}</th>")[2].partition("</tr>")[0]
    assert row.count(">120<") == 1, page


@pytest.mark.parametrize("seed", range(10))
def test_late_rows_that_are_looked_at_go_on_waiting(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_table, "PAGE_BYTES", 2_000)
    draw = np.random.default_rng(seed)
    table = late_table.LateTable(pa.schema([("id", pa.int64())]), pa.int64())
    for start in range(0, 400, 20):
        page = Page.of(pa.record_batch({"id": range(start, start + 20)}), le=[1] * 20, re=[2] * 20)
        table.add(page, "too late", lane=0, offsets=np.arange(start, start + 20))
    assert table.pages.live > 0
    for _ in range(20):
        first, count = (int(n) for n in draw.integers(0, 420, 2))
        some = table.peek(first, count)
        seen = [] if some is None else some.column("id").to_pylist()
        assert seen == list(range(400))[first : first + count]
    whole = table.drain()
    assert whole is not None and whole.column("id").to_pylist() == list(range(400))
    assert table.peek(0, 10) is None


def test_how_far_a_late_row_lies_behind_is_read_from_its_reason() -> None:
    at = [5_000_000, 9_700_000, 2_100_000, 8_000_000]
    table = pa.table({"ts": pa.array(at, pa.timestamp("us"))})
    query = cz.from_arrow(table, time="ts", punctuate=cz.delay("500ms")).query()
    query.run()
    late = query.late()["read"]
    assert behind_bound(late, pa.timestamp("us")).tolist() == [7_100_000, 1_200_000]


def test_how_far_rows_come_behind_the_latest_is_counted() -> None:
    seen = Disorder(MIN_TIME)
    for times in ([5, 9, 3], [9, 8, 200]):
        seen.append(Page.of(pa.record_batch({"id": times}), le=times, re=[t + 1 for t in times]))
    assert seen.counts is not None and seen.counts.tolist()[:4] == [4, 1, 1, 0]


def test_only_the_last_changes_are_kept_and_none_when_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    tap = LastItems(rows=100)
    for start in range(0, 300, 60):
        tap.append(Page.of(pa.record_batch({"id": range(start, start + 60)}), le=[1] * 60, re=[2] * 60))
    kept = [row for page in tap.items if isinstance(page, Page) for *_, row in page.rows()]
    assert kept == [(n,) for n in range(200, 300)]
    monkeypatch.setattr("caesura.console.web.embedded_times.LOOKS_FOR", -1.0)
    tap.append(Page.of(pa.record_batch({"id": [1]}), le=[1], re=[2]))
    assert not tap.items


def test_taps_are_taken_down_when_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    query = small_query()
    with served(query) as client:
        before = [len(cell.taps) for cell in query.graph.cells]
        client.follow_link().ask("/time")
        query.run()
        assert [len(cell.taps) for cell in query.graph.cells] != before
        monkeypatch.setattr("caesura.console.web.embedded_times.LOOKS_FOR", -1.0)
        query.run()
        assert [len(cell.taps) for cell in query.graph.cells] == before


def test_each_claim_is_listed_with_its_prefix() -> None:
    query = cz.input_stream("clicks", pa.schema([("id", pa.int64())])).query(claims=cz.tokens(every=1))
    for item in cz.parse(" LE RE | id |\n 1 2 | 7 | +\n 2 3 | 8 | +\n-- 5 --"):
        query.feed("clicks", item)
    query.run()
    with served(query) as client:
        page = client.follow_link().ask("/time").body
    last = query.claims[-1]
    assert last.prefix["clicks"].rows == 2
    assert f"clicks: {last.prefix['clicks']}".replace("<", "&lt;") in page and str(last.level) in page


def _written(folder: Path, epoch: int, output: str, table: pa.Table) -> dict[str, object]:
    name = f"{'cars-' if output == '_late' else ''}epoch-{epoch:06d}-0.parquet"
    (folder / output).mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / output / name)
    return {"output": output, "file": name, "rows": table.num_rows, "size": 1, "sha256": ""}


def sink_folder(folder: Path, epochs: int = 3, late: int = 40) -> Path:
    """What a Parquet sink would have written: a row an epoch, the one before it taken back, and late rows."""
    (folder / "_commits").mkdir(parents=True)
    for epoch in range(epochs):
        rows = pa.table(
            {
                "kind": ["+", "-", "="],
                "LE": pa.array([epoch * 10, (epoch - 1) * 10, epoch * 10]),
                "RE": pa.array([epoch * 10 + 10, epoch * 10, epoch * 10 + 10]),
                "RE_new": pa.array([None, (epoch - 1) * 10, None], pa.int64()),
                "n": [f"<b>{epoch}", f"<b>{epoch - 1}", f"<b>{epoch}"],
            }
        )
        reasons = [f"time {n} came after its lane had passed {n + 5}" for n in range(late)]
        bad = pa.table(
            {"reason": reasons, "LE": list(range(late)), "name": [f"{epoch}/{n}" for n in range(late)]}
        )
        files = [_written(folder, epoch, "out", rows), _written(folder, epoch, "_late", bad)]
        commit = {"format": 1, "epoch": epoch, "before": epoch - 1 if epoch else None, "files": files}
        (folder / "_commits" / f"{epoch:06d}.json").write_text(json.dumps(commit))
    return folder


def spark_checkpoint(folder: Path, output: Path, epochs: int = 3) -> Path:
    """What a query on Spark would have left at its checkpoint."""
    cars = cz.from_rows([{"ts": 1, "name": "a"}], time="ts", name="cars").tumbling(10).agg(n=cz.count())
    place = Place.of(folder)
    save_shape(place, PlanShape.of({"out": cars.node}), name="cars", timed=False, folder=str(output))
    board = Board()
    for epoch in range(epochs):
        step = {"stage": 1, "rows_in": 5, "rows_out": 4, "state_rows": 0, "state_bytes": 0, "promised": 15}
        source = {"rows": 100 * (epoch + 1), "late": 40 * (epoch + 1), "latest": 30 + epoch, "promised": 15}
        board.take("1:0", {"steps": {"tumbling": step}, "sources": {"cars": source}})
        save_status(place, board, epoch, 0.5 + epoch)
    return folder


def test_the_times_of_a_query_of_another_process_come_from_its_checkpoint_and_its_sink(
    tmp_path: Path,
) -> None:
    checkpoint = spark_checkpoint(tmp_path / "checkpoint", sink_folder(tmp_path / "out"))
    with ConsoleServer(_watched(str(checkpoint))) as server:
        visitor = Client(server).follow_link()
        page = visitor.ask("/time").body
        late = visitor.ask("/time?late=2").body
    assert page.count('class="lived gone"') == 3 and "&lt;b&gt;2" in page and "<b>2" not in page
    assert page.count('class="lived final"') == 1
    assert "120 rows of cars were refused; 120 can be seen here" in page
    assert "promise 17 behind the latest row" in page and "up to 10</th>" in page
    assert "The last 3 epochs" in page and "2.50 s" in page and "out 3, late 40" in page
    assert "page 3 of 3" in late and "2/39" in late and "0/39" not in late


def test_an_earlier_start_is_not_forgotten(tmp_path: Path) -> None:
    spark_checkpoint(tmp_path, tmp_path / "none", epochs=2)
    again = Board()
    save_status(Place.of(tmp_path), again, 2, 0.1)
    assert [one["epoch"] for one in again.course] == [0, 1, 2]


def test_a_commit_that_names_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = sink_folder(tmp_path / "out", epochs=1)
    commit = folder / "_commits" / "000000.json"
    commit.write_text(commit.read_text().replace("epoch-000000-0", "../../../etc/passwd"))
    checkpoint = spark_checkpoint(tmp_path / "checkpoint", folder, epochs=1)
    with ConsoleServer(_watched(str(checkpoint))) as server:
        answer = Client(server).follow_link().ask("/time")
    assert answer.code == 500 and "names what no sink writes" in answer.body


def test_late_rows_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    folder = sink_folder(tmp_path, epochs=3)
    (folder / "_late" / "cars-epoch-000000-0.parquet").unlink()
    some = SinkFolder(str(folder))
    first = some.late("cars", 0, 1)
    assert some.late_kept("cars") == 80 and first is not None and first.column("name").to_pylist() == ["1/0"]


@pytest.mark.parametrize(
    "query", ["output=" + quote(HOSTILE), "source=..%2f..", "late=-1", "late=" + "9" * 99]
)
def test_what_an_address_names_that_is_not_there_is_not_looked_for(query: str) -> None:
    with served() as client:
        visitor = client.follow_link()
        answer = visitor.ask("/time?" + query)
        assert answer.code == 200 and "<img" not in answer.body
        assert client.ask("/time?" + query).code == client.ask("/stream/time").code == 403
        assert visitor.post("/time").code in (404, 405)
