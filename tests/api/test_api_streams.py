"""The fluent API: thin, immutable, and honest about what it builds."""

from __future__ import annotations

import pandas as pd
import pytest

import caesura as cz
from caesura import col
from caesura.errors import PlanError
from caesura.testing import assert_history

ROWS = [{"ts": t, "seg": t % 2, "mph": float(t)} for t in range(1, 7)]


def readings() -> cz.Stream:
    return cz.from_rows(ROWS, time="ts", name="readings")


def test_a_stream_is_never_changed_by_a_method() -> None:
    stream = readings()
    before = stream.explain()
    stream.where(col("mph") > 2).select("seg").distinct()
    assert stream.explain() == before
    assert stream.columns == ["seg", "mph"]


def test_columns_are_kept_renamed_computed_and_dropped() -> None:
    stream = readings()
    assert stream.select("seg", kmh=col("mph") * 2).columns == ["seg", "kmh"]
    assert stream.with_columns(mph=col("mph") + 1, fast=col("mph") > 3).columns == ["seg", "mph", "fast"]
    assert stream.rename(segment="seg").columns == ["segment", "mph"]
    assert stream.drop("mph").columns == ["seg"]


def test_a_shared_stream_is_explained_once() -> None:
    fast = readings().where(col("mph") > 2)
    text = fast.select("seg").union(fast.select("seg").shift(1)).explain()
    assert text.count(":= read") == text.count(":= where") == text.count(":= select") == 1
    assert "union r2 r3" in text


def test_explain_shows_columns_properties_and_promises_of_every_edge() -> None:
    stream = cz.from_rows(ROWS, time="ts", punctuate=cz.delay(2)).group_by("seg").tumbling(5)
    text = stream.agg(n=cz.count()).explain()
    assert "seg int64, mph double | insert-only, points | punctuation on time" in text
    assert "seg int64, n int64 | fixed ends, lives <= 5 | punctuation on time" in text
    assert "test_api_streams.py:" in text


def test_a_preview_stops_early() -> None:
    assert len(readings().preview(2).history) == 2


def test_results_come_as_tables_frames_and_drawings() -> None:
    result = readings().where(col("seg") == 0).run()
    assert result.table().column("LE").to_pylist() == [2, 4, 6]
    assert isinstance(result.to_pandas(), pd.DataFrame)
    assert result.changes().column("kind").to_pylist() == ["+", "+", "+"]
    assert str(result).splitlines()[0] == " LE  RE | seg mph |"


@pytest.mark.parametrize("output", ["changes", "final", "marked"])
def test_every_kind_of_output_has_the_same_history(output: str) -> None:
    result = readings().group_by("seg").tumbling(3).agg(n=cz.count()).run(output=output)
    assert_history(
        result.history,
        " LE RE | seg n |\n 0 3 | 0 1 | +\n 0 3 | 1 1 | +\n 3 6 | 0 1 | +\n 3 6 | 1 2 | +\n 6 9 | 0 1 | +",
    )


def test_a_name_given_to_a_step_appears_in_its_errors() -> None:
    named = readings().where(col("mph") > 2, name="fast ones")
    assert "[fast ones]" in named.explain()
    with pytest.raises(PlanError, match=r"step 'drop' \(test_api_streams.py:"):
        named.drop("speed")
