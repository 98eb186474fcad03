"""A deadline on the clock demands what there is, also while nothing comes, and ends with the others."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from feedback_streams import feed, rows, stream

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError
from caesura.events import Page
from caesura.io import Offsets, Reader
from caesura.io.ingress.shape import Shape
from caesura.io.sources.clock import RowlessClock
from caesura.io.sources.source import Source
from caesura.plan import NOTHING_NOW, Raw, SourceBatch
from caesura.runtime import Query

SECOND = 1_000_000
SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the clock reads, to be set."""
    now = [SECOND]
    monkeypatch.setattr(RowlessClock, "clock", lambda self: now[0])
    return now


class Rows(Reader):
    """Two rows, then nothing for a while, then the end."""

    key, schema, poll_seconds = "rows", SCHEMA, 0.0

    def __init__(self, idle: int) -> None:
        self.idle = idle

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        yield Raw(0, 0, pa.record_batch({"t": [1, 2], "v": [1, 1]}, schema=SCHEMA))
        for _ in range(self.idle):
            yield NOTHING_NOW

    def describe(self) -> str:
        return "rows"


def plan(idle: int = 10) -> Stream:
    source = Source(reader=Rows(idle), shape=Shape.of(time="t"), policy=cz.delay(0), name="rows")
    return Stream(source).tumbling(1000).agg(n=cz.count()).deadline("5s", clock="1s")


def counts(query: Query) -> list[int]:
    return [
        n
        for item in query.take("out")
        if isinstance(item, Page)
        for n in item.payload.column("n").to_pylist()
    ]


def test_what_there_is_comes_when_the_clock_has_gone_on_for_so_long(clock: list[int]) -> None:
    query = plan().query(speculate="watermark")

    def wait(readers: object) -> None:
        clock[0] += SECOND

    query.runner.waiter.wait = wait  # type: ignore[assignment, method-assign]
    seen: list[tuple[int, int]] = []
    while query.step():
        seen += [(clock[0] // SECOND, n) for n in counts(query)]
    assert seen[0] == (6, 2), "five seconds after the first reading, the window is still open"


def test_it_ends_with_the_other_sources_and_says_nothing_then(clock: list[int]) -> None:
    done = plan(idle=0).run()
    assert done.table().column("n").to_pylist() == [2]


def test_a_query_that_is_fed_comes_to_rest(clock: list[int]) -> None:
    made = stream(id="int").tumbling(100).agg(n=cz.count()).deadline("5s", clock="1s")
    query = made.query(speculate="watermark")
    feed(query, " LE RE | id |\n 1 2 | 1 | +")
    assert rows(query, made) == []
    clock[0] += 10 * SECOND
    query.run()
    assert rows(query, made) == [(0, 100, 1)]


def test_a_time_that_is_none_is_refused_at_the_step() -> None:
    with pytest.raises(CaesuraError, match="deadline"):
        stream(id="int").deadline("soon", clock="1s")


def test_explain_names_the_clock() -> None:
    assert "5s of the clock" in plan().explain() or "5 s of the clock" in plan().explain()
