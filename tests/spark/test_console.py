"""What a query on Spark shows in the terminal."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import Page
from caesura.runtime.aligner import Epoch
from caesura.spark import ConsoleSink


def test_the_console_shows_times_as_people_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    stream = cz.from_arrow(pa.table({"ts": pa.array([0], pa.timestamp("us")), "id": [1]}), time="ts")
    sink = ConsoleSink()
    sink.open({"out": stream.node}, 1)
    page = Page.of(pa.record_batch({"id": [1]}), le=[1_714_565_400_000_000], re=[1_714_566_000_000_000])
    sink._show(Epoch(3, {"out": [page]}, {}, {}, []))
    assert "2024-05-01 12:10:00  2024-05-01 12:20:00 | 1" in capsys.readouterr().out
