"""Whoever waits sees how far a query is, and whoever traces sees what it did."""

from __future__ import annotations

import io
import re

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import caesura as cz
from caesura import waiting
from caesura.runtime.metrics.waiting_line import watched
from caesura.runtime.query.result import query_of
from caesura.waiting import shown_elsewhere


class Terminal(io.StringIO):
    """A terminal that keeps what is shown on it."""

    def isatty(self) -> bool:
        return True


def readings(rows: int = 1000) -> cz.Stream:
    table = pa.table({"t": range(rows), "k": [i % 3 for i in range(rows)]})
    return cz.from_arrow(table, time="t", batch_size=100).group_by("k").tumbling(50).agg(n=cz.count())


def test_a_query_that_takes_its_time_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST", 0.0)
    monkeypatch.setattr(waiting, "EVERY", 0.0)
    screen = Terminal()
    watched(query_of(readings().node, "changes", None, None), screen).run()
    seen = [
        int(n.replace(",", "")) for n in re.findall(r"running: ([\d,]+) of 1,000 rows", screen.getvalue())
    ]
    assert seen == sorted(seen)
    assert seen[-1] == 1000
    assert screen.getvalue().endswith("\r\x1b[K")  # and leaves nothing behind


def test_a_query_that_is_quick_or_runs_without_a_terminal_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "FIRST", 1e9)
    quick = Terminal()
    watched(query_of(readings().node, "changes", None, None), quick).run()
    monkeypatch.setattr(waiting, "FIRST", 0.0)
    no_terminal = io.StringIO()
    watched(query_of(readings().node, "changes", None, None), no_terminal).run()
    with shown_elsewhere():
        elsewhere = Terminal()
        watched(query_of(readings().node, "changes", None, None), elsewhere).run()
    assert [screen.getvalue() for screen in (quick, no_terminal, elsewhere)] == ["", "", ""]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def test_a_run_is_a_span_with_what_it_read_and_holds(spans: InMemorySpanExporter) -> None:
    query = readings().query()
    query.run()
    stage, made = spans.get_finished_spans()
    assert made.name == "caesura.run"
    assert made.attributes is not None and stage.attributes is not None
    assert made.attributes["caesura.rows"] == 1000
    assert stage.name == "caesura.stage" and stage.attributes["caesura.stage"] == 0
    assert stage.parent is not None and stage.parent.span_id == made.context.span_id
    assert stage.start_time == made.start_time
    assert stage.attributes["caesura.rows_in"] == 1000


def test_a_run_that_fails_is_a_span_with_the_error(spans: InMemorySpanExporter) -> None:
    broken = cz.from_rows([{"t": 1, "a": 2**62}], time="t").select(b=cz.col("a") * 4)
    with pytest.raises(cz.CaesuraError):
        broken.query().run()
    (made,) = spans.get_finished_spans()
    assert made.status.description is not None
    assert "no bigint" in made.status.description
