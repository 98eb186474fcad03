"""The console in a real browser: a query of this process, one on Spark from its checkpoint, 200 steps."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import violations
from playwright.sync_api import expect
from served_console import HOSTILE

import caesura as cz
from caesura.cli.console import _watched
from caesura.console.web.server import ConsoleServer
from caesura.console.web.watched import Watched
from caesura.events.page import Page
from caesura.io.places import Place
from caesura.runtime import Query
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.plan_shape import PlanShape, StepShape
from caesura.runtime.metrics.saved_status import SavedFigures
from caesura.runtime.metrics.status import Status


def roads() -> cz.Stream:
    cars = cz.input_stream("cars", pa.schema([("road", pa.string()), ("speed", pa.float64())]))
    fast = cars.where(cz.col("speed") > 45).group_by("road").tumbling(20).agg(fast=cz.count())
    slow = cars.where(cz.col("speed") <= 45).group_by("road").tumbling(40).agg(slow=cz.count())
    return fast.join(slow, on="road")


@contextmanager
def driving(query: Query) -> Iterator[None]:
    """Feeds cars until it is left, on a thread of its own."""
    stop = threading.Event()

    def work() -> None:
        now = 0
        while not stop.wait(0.05):
            names = [HOSTILE, "A 9", "B 27"]
            batch = pa.record_batch(
                {"road": [names[n % 3] for n in range(30)], "speed": [30.0 + n * 13 % 60 for n in range(30)]}
            )
            query.feed(
                "cars",
                Page.of(
                    batch, le=[now + n // 3 for n in range(30)], re=[now + n // 3 + 1 for n in range(30)]
                ),
            )
            now += 10
            query.feed("cars", cz.cti(now))
            query.run()
            query.take("out")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join(timeout=60)


def test_a_running_query_is_watched_step_by_step(page: Any, shot: Any) -> None:
    query = roads().query()
    with query.console(open_page=False, name="roads") as server, driving(query):
        page.goto(server.url)
        assert "token" not in page.url
        expect(page.locator("#heading")).to_contain_text(re.compile(r"[1-9]\d+ rows read"), timeout=60_000)
        before = page.locator("#s0-rows").text_content()
        expect(page.locator("#s0-rows")).not_to_have_text(before)
        shot("plan")
        page.locator("#s2-level").click()
        expect(page.locator("#panel h2")).to_contain_text("tumbling")
        expect(page.locator("#panel")).to_contain_text("keeps open windows")
        expect(page.locator("#panel .lifetimes tbody tr").first).to_be_visible()
        shot("step")
        assert violations(page) == []
        page.locator('[data-look="edge-0-1"]').focus()
        page.keyboard.press("Enter")
        expect(page.locator("#panel h2")).to_contain_text("cars →")
        expect(page.locator("#panel .lifetimes")).to_contain_text("<img src=x onerror=alert(1)>")
        shot("edge")
        assert page.locator("#panel img").count() == 0
        assert violations(page) == []
        page.get_by_role("link", name="Feedback").click()
        page.get_by_label("Rows, as in SQL").fill("road = 'A 9'")
        page.get_by_role("button", name="Say it").click()
        expect(page.get_by_role("status")).to_be_visible()
        for _ in range(40):
            page.goto(f"http://127.0.0.1:{server.port}/feedback")
            if page.get_by_role("button", name="Withdraw #1").count():
                break
        expect(page.get_by_role("button", name="Withdraw #1")).to_be_visible()
        shot("feedback")
        assert violations(page) == []
        page.get_by_role("link", name="Check").click()
        expect(page.locator("pre").nth(1)).to_contain_text("r0 := input")
        shot("check")
        assert violations(page) == []


def _inputs(number: int) -> tuple[int, ...]:
    """Eight chains of 24 steps each, and behind them all a chain that joins their ends one by one."""
    if number >= 192:
        return (number - 1, (number - 192) * 24 + 23) if number > 192 else (23, 47)
    return (number - 1,) if number % 24 else ()


def test_two_hundred_steps_fit_the_window(page: Any, shot: Any) -> None:
    steps = [StepShape(n, f"step {n}", "where", f"speed > {n}", "flow.py:7", _inputs(n)) for n in range(200)]
    watched = Watched("large", PlanShape(tuple(steps)), lambda: Figures("large", Status()))
    with ConsoleServer(watched) as server:
        page.goto(server.url)
        page.get_by_role("button", name="Fit to the window").click()
        shot("large")
        assert page.locator("svg .step").count() == 200
        page.locator("summary").click()
        assert page.locator("table tbody tr").count() == 200
        assert violations(page) == []


def test_rows_are_traced_through_a_file(page: Any, shot: Any, tmp_path: Path) -> None:
    rows = [{"ts": n, "road": ["A 9", "B 27"][n % 2], "speed": 30.0 + n * 13 % 60} for n in range(40)]
    text = f"import caesura as cz\ncars = cz.from_rows({rows!r}, time='ts', punctuate=cz.delay(5))\n"
    text += "fast = cars.where(cz.col('speed') > 45).group_by('road').tumbling(20).agg(n=cz.count())\n"
    (tmp_path / "flow.py").write_text(text)
    with ConsoleServer(_watched(f"{tmp_path / 'flow.py'}:fast")) as server:
        page.goto(server.url)
        page.get_by_role("link", name="Trace").click()
        page.get_by_label("Rows of the sources").fill("ts = 6")
        page.get_by_role("button", name="Trace").click()
        expect(page.get_by_role("status")).to_have_text("1 row with ts = 6")
        expect(page.locator("section").last).to_contain_text("emits 2 events because of them")
        shot("trace")
        assert violations(page) == []
        page.get_by_role("link", name="Debug").click()
        page.get_by_label("Rows").fill("n = 6")
        page.get_by_role("button", name="Look into it").click()
        expect(page.get_by_role("status")).to_contain_text("rows of the input; they alone give it")
        shot("debug-back")
        assert violations(page) == []
        page.get_by_label("Show").select_option("steps")
        page.get_by_role("button", name="Look into it").click()
        page.get_by_role("button", name="On").click()
        expect(page.get_by_role("status")).to_contain_text("Piece 2 of")
        shot("debug-steps")
        assert violations(page) == []
        with page.expect_download() as kept:
            page.get_by_role("button", name="Save the stretch as a test").click()
        assert "def test_fast_says" in Path(kept.value.path()).read_text()


def test_a_script_is_edited_and_previewed(page: Any, shot: Any, tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("ts,item,price\n1,7,3\n12,7,5\n13,8,2\n")
    text = f"CREATE STREAM bids FROM csv '{tmp_path}/bids.csv' (TIME ts) LIFETIME POINT;\n"
    (tmp_path / "views.sql").write_text(text + "CREATE VIEW dear AS SELECT item FROM bids WHERE price > 2;\n")
    page.set_default_timeout(60_000)
    with ConsoleServer(_watched(f"{tmp_path / 'views.sql'}:dear")) as server:
        page.goto(server.url)
        page.get_by_role("link", name="SQL").click()
        shown = page.get_by_label("The script").input_value()
        page.get_by_label("The script").fill(shown.replace("price > 2", "prize > 2"))
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("status")).to_contain_text("views.sql:2", timeout=60_000)
        page.get_by_label("The script").fill(shown.replace("> 2", "< 3"))
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("table tbody")).to_contain_text("8", timeout=60_000)
        shot("sql")
        assert violations(page) == []


def test_a_query_on_spark_is_watched_from_its_checkpoint(page: Any, shot: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="not run: pyspark is not installed")
    rows = pa.table(
        {
            "ts": list(range(400)),
            "road": ["A 9", "B 27"] * 200,
            "speed": [30.0 + n * 13 % 60 for n in range(400)],
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(rows, tmp_path / "in" / "cars.parquet")
    cars = cz.read.parquet(tmp_path / "in", time="ts", punctuate=cz.delay(5), name="cars")
    plan = cars.where(cz.col("speed") > 45).group_by("road").tumbling(20).agg(n=cz.count())
    spark = cz.session(buckets=2)
    query = plan.start(spark, sink=tmp_path / "out", checkpoint=tmp_path / "checkpoint", name="roads")
    try:
        query.drain()
        saved = SavedFigures(Place.of(tmp_path / "checkpoint"))
        with ConsoleServer(Watched(saved.name, saved.shape, saved.read, "on Spark")) as server:
            page.goto(server.url)
            expect(page.locator("#heading")).to_contain_text("400 rows read")
            expect(page.locator("#heading")).to_contain_text("running")
            page.locator(".step", has_text="tumbling").click()
            page.get_by_text("2 buckets of stage 1").click()
            shot("spark")
            assert violations(page) == []
            page.goto("about:blank")  # or it asks a server that is gone
        with query.console(open_page=False) as server:
            page.goto(server.url)
            page.get_by_role("link", name="Time").click()
            expect(page.locator("#times .lived").first).to_be_visible()
            expect(page.locator("#epochs")).to_contain_text("addBatch")
            expect(page.locator("#arrival")).to_contain_text("promise 5 behind the latest row")
            shot("spark-time")
            assert violations(page) == []
            page.goto("about:blank")
    finally:
        query.stop()
    with ConsoleServer(_watched(str(tmp_path / "checkpoint"))) as server:
        page.goto(server.url)
        expect(page.locator("#heading")).to_contain_text("ended")
        page.get_by_role("link", name="Time").click()
        expect(page.locator("#times .lived.final").first).to_be_visible()
        expect(page.locator("#epochs")).to_contain_text("writing")
        page.goto("about:blank")


def readings() -> cz.Stream:
    """Cars of which some are late, and windows that are corrected when more come."""
    at = [10**15 + (n * 400_000 if n % 25 or n < 100 else n * 400_000 - 90_000_000) for n in range(2_000)]
    rows = {
        "ts": pa.array(at, pa.timestamp("us")),
        "road": [["A 9", HOSTILE][n % 2] for n in range(2_000)],
        "speed": [30.0 + n * 13 % 60 for n in range(2_000)],
    }
    cars = cz.from_arrow(pa.table(rows), time="ts", punctuate=cz.delay("30s"), name="cars")
    return cars.group_by("road").tumbling("1m").agg(n=cz.count(), speed=cz.avg("speed"))


def test_the_times_of_a_query_are_looked_at(page: Any, shot: Any) -> None:
    query = readings().query()
    query.run()
    with query.console(open_page=False, name="roads") as server:
        page.goto(server.url)
        page.get_by_role("link", name="Time").click()
        expect(page.locator("#times .lived.final").first).to_be_visible()
        expect(page.locator("#late")).to_contain_text("came after its lane had passed")
        shot("time")
        before = page.locator("#times").get_attribute("data-to")
        page.get_by_role("link", name="Closer").click()
        expect(page.locator("#times")).not_to_have_attribute("data-to", before)
        assert "from=" in page.url
        near = page.locator("#times").get_attribute("data-to")
        box = page.locator("#times").bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + 400, box["y"] + 10)
        page.mouse.up()
        expect(page.locator("#times")).not_to_have_attribute("data-to", near)
        shot("time-near")
        page.get_by_text("These rows as a table").click()
        assert violations(page) == []
        page.get_by_role("link", name="Next").click()
        expect(page.locator("#late")).to_contain_text("page 2 of")
        page.locator("#late").scroll_into_view_if_needed()
        shot("late")
        assert page.locator("main img").count() == 0
        assert violations(page) == []
