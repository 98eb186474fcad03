"""`caesura console`: from a file, and from the checkpoint of a query of another process."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from served_console import Client
from typer.testing import CliRunner

import caesura as cz
from caesura.cli import app
from caesura.cli.console import _watched
from caesura.cli.load import load
from caesura.console.web.server import ConsoleServer
from caesura.console.web.watched import Watched
from caesura.io.places import Place
from caesura.runtime.metrics.plan_shape import PlanShape
from caesura.runtime.metrics.saved_status import STATUS, SavedFigures, save_shape, save_status
from caesura.runtime.metrics.status import Board
from caesura.spark.loop_log.log import LoopLog
from caesura.spark.loop_log.records import FeedbackTarget, FeedbackTargets

FLOW = """
import caesura as cz
clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts").where(cz.col("id") > 7)
"""


def _shown(target: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The first page, while the command waits."""
    pages: list[str] = []

    def wait(server: ConsoleServer) -> None:
        pages.append(Client(server).follow_link().ask("/").body)

    monkeypatch.setattr(ConsoleServer, "wait", wait)
    done = CliRunner().invoke(app, ["console", str(target), "--no-open"])
    assert done.exit_code == 0, done.output
    assert "?token=" in done.output
    return pages[0]


def _board() -> Board:
    step = {"stage": 1, "rows_in": 5, "rows_out": 4, "state_rows": 0, "state_bytes": 0, "promised": 9}
    source = {"rows": 5, "late": 2, "latest": 12, "promised": 9}
    board = Board()
    board.take("1:0", {"steps": {"where": step}, "sources": {"read": source}})
    return board


def test_a_file_is_shown_as_a_plan_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    page = _shown(tmp_path / "flow.py", monkeypatch)
    assert "the plan, not running" in page and "id &gt; 7" in page


def test_a_checkpoint_is_shown_as_of_its_last_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clicks = cz.from_rows([{"ts": 1, "id": 7}], time="ts").where(cz.col("id") > 7)
    save_shape(Place.of(tmp_path), PlanShape.of({"out": clicks.node}), name="clicks", timed=False)
    save_status(Place.of(tmp_path), _board(), 3, 0.5)
    page = _shown(tmp_path, monkeypatch)
    assert (
        "ended · epoch 3" in page
        and "· 0 rows/s" in page
        and "5 in, 4 out" in page
        and "2 late or malformed" in page
    )


def test_a_query_of_another_process_is_spoken_to_by_its_checkpoint(tmp_path: Path) -> None:
    target = FeedbackTarget(1, "where", pa.schema([("id", pa.int64())]), pa.int64())
    log = LoopLog(str(tmp_path / "loop"))
    log.save(FeedbackTargets.name, FeedbackTargets(2, "", {"out": target}))
    save_shape(Place.of(tmp_path), PlanShape(()), name="clicks", timed=False)
    with ConsoleServer(_watched(str(tmp_path))) as server:
        visitor = Client(server).follow_link()
        page = visitor.post("/feedback", "intent=assume&rows=id+%3D+7&output=out").body
        assert "the next epoch hears it" in page and "#1 assumed" in page
        assert "No feedback stands" in visitor.post("/feedback", "withdraw=1").body


def test_a_status_that_was_cut_off_is_named(tmp_path: Path) -> None:
    save_shape(Place.of(tmp_path), PlanShape(()), name="", timed=False)
    saved = SavedFigures(Place.of(tmp_path))
    assert saved.read().status.epoch == -1
    (tmp_path / STATUS).write_text(json.dumps({})[:1])
    with pytest.raises(cz.errors.CaesuraError, match=r"status\.json"):
        saved.read()
    with ConsoleServer(Watched("clicks", saved.shape, saved.read)) as server:
        answer = Client(server).follow_link().ask("/")
    assert answer.code == 500 and "status.json" in answer.body


def test_a_folder_that_a_query_has_written_is_shown_without_its_plan(tmp_path: Path) -> None:
    query = _counted().query(checkpoint=tmp_path / "checkpoint", sink=tmp_path / "out")
    query.run()
    with ConsoleServer(_watched(str(tmp_path / "out"))) as server:
        visitor = Client(server).follow_link()
        assert visitor.ask("/").headers["location"] == "/time"
        page = visitor.ask("/time").body
    assert "2 rows from 0 to 20" in page and "Plan</a>" not in page and "1 can be seen here" in page


def test_the_checkpoint_of_a_query_in_a_process_is_shown_from_another(tmp_path: Path) -> None:
    query = _counted().query(checkpoint=tmp_path / "checkpoint", sink=tmp_path / "out")
    query.run()
    with ConsoleServer(_watched(str(tmp_path / "checkpoint"))) as server:
        visitor = Client(server).follow_link()
        plan, times = visitor.ask("/").body, visitor.ask("/time").body
    assert "in a process, from" in plan and "ended" in plan and "3 in, 2 out" in plan
    assert "2 rows from 0 to 20" in times and "1 rows of cars were refused" in times and "writing" in times


READING = """
import caesura as cz
cars = cz.read.parquet({folder!r}, time="ts", punctuate=cz.delay(5), name="cars")
counted = cars.tumbling(10).agg(n=cz.count())
slow = cars.where(cz.col("id") > 7)
"""


@pytest.fixture(params=[None, "1h"])
def ran(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A query that ran from a file, and a checkpoint, in a folder; its rows are recorded, or are not."""
    (tmp_path / "in").mkdir()
    rows = [{"ts": 1, "id": 7}, {"ts": 12, "id": 8}, {"ts": 2, "id": 9}, {"ts": 13, "id": 9}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / "0.parquet")
    (tmp_path / "flow.py").write_text(READING.format(folder=str(tmp_path / "in")))
    stream = load(f"{tmp_path}/flow.py:counted")
    query = stream.query(checkpoint=tmp_path / "checkpoint", sink=tmp_path / "out", record=request.param)
    query.run()
    query.close()
    return tmp_path


def test_a_checkpoint_alone_says_what_it_takes_to_see_more(ran: Path) -> None:
    with ConsoleServer(_watched(str(ran / "checkpoint"))) as server:
        visitor = Client(server).follow_link()
        page = visitor.ask("/").body
        assert visitor.ask("/debug").code == 404
    assert "caesura console CHECKPOINT flow.py:NAME" in page and "Debug</a>" not in page


def test_a_checkpoint_and_its_file_have_the_debugger(ran: Path) -> None:
    with ConsoleServer(_watched(str(ran / "checkpoint"), f"{ran}/flow.py:counted")) as server:
        visitor = Client(server).follow_link()
        page = visitor.ask("/?look=step-1").body
        back = visitor.post("/debug", "what=back&rows=n+%3D+2&step=tumbling").body
        traced = visitor.post("/trace", "rows=ts+%3D+12").body
        check = visitor.ask("/check").body
    assert "3 in, 2 out" in page and "read again" in page and "caesura console CHECKPOINT" not in page
    assert "ts = 12" in back and "ts = 13" in back
    assert "tumbling" in traced and "n=count()" in check


def test_the_file_of_another_plan_is_refused(ran: Path) -> None:
    with pytest.raises(cz.errors.CaesuraError, match="has no step 'tumbling"):
        _watched(str(ran / "checkpoint"), f"{ran}/flow.py:slow")
    done = CliRunner().invoke(app, ["console", f"{ran}/flow.py:slow", f"{ran}/flow.py:slow", "--no-open"])
    assert done.exit_code == 2


def _counted() -> cz.Stream:
    rows = [{"ts": 1, "id": 7}, {"ts": 12, "id": 8}, {"ts": 2, "id": 9}, {"ts": 13, "id": 9}]
    cars = cz.from_rows(rows, time="ts", punctuate=cz.delay(5), name="cars")
    return cars.tumbling(10).agg(n=cz.count())
