"""A stretch of the input is looked into: backwards, promise by promise, with and without rows, as a test."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.errors import CaesuraError
from caesura.events.page import Page
from caesura.runtime.inspect import trace_back
from caesura.runtime.inspect.literals import from_literals, to_literals

Rows = list[dict[str, Any]]
ROWS = st.lists(
    st.builds(lambda ts, k, v: {"ts": ts, "k": k, "v": v}, *(st.integers(0, n) for n in (30, 2, 5))),
    min_size=1,
    max_size=14,
)


def plan(rows: Rows) -> cz.Stream:
    read = cz.from_rows(rows, time="ts", punctuate=cz.delay(10))
    return read.where(cz.col("v") > 0).group_by("k").tumbling(10).agg(n=cz.count(), top=cz.max("v"))


def said(rows: Rows) -> Counter[Any]:
    """What comes out, computed with the public API alone."""
    return Counter(map(repr, plan(rows).run().table().to_pylist())) if rows else Counter()


@settings(max_examples=examples(40, short=15), deadline=None)
@given(ROWS, st.integers(1, 3))
def test_without_any_group_that_is_named_a_chosen_row_is_missing(rows: Rows, n: int) -> None:
    origin = plan(rows).trace_back(f"n = {n}")
    chosen = Counter(map(repr, [r for r in plan(rows).run().table().to_pylist() if r["n"] == n]))
    assert origin.rows == chosen.total() and bool(origin.needed) == bool(chosen) and origin.complete
    for group in origin.needed:
        gone = {needed.row.offset for needed in group}
        assert chosen - said([row for at, row in enumerate(rows) if at not in gone])
        assert [needed.values for needed in group] == [rows[needed.row.offset] for needed in group]
    kept = {needed.row.offset for group in origin.needed for needed in group}
    alone = not chosen - said([row for at, row in enumerate(rows) if at in kept])
    assert origin.alone == (bool(chosen) and alone)


def test_rows_of_which_any_would_do_are_named_together() -> None:
    rows = [{"ts": 1, "id": 7}, {"ts": 1, "id": 7}, {"ts": 1, "id": 8}]
    seen = cz.from_rows(rows, time="ts").distinct()
    (group,) = seen.trace_back("id = 7").needed
    assert [needed.row.offset for needed in group] == [0, 1]


def test_where_the_runs_do_not_suffice_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_back, "MAX_RUNS", 3)
    counted = cz.from_rows([{"ts": n} for n in range(8)], time="ts").tumbling(10).agg(n=cz.count())
    origin = counted.trace_back("n = 8")
    assert not origin.complete and "not told apart further" in str(origin)
    assert sorted(r.row.offset for group in origin.needed for r in group) == list(range(8))


def test_of_two_sources_of_one_name_each_is_named_by_itself() -> None:
    left, right = (cz.from_rows([{"ts": 1, "id": 1, name: 1}], time="ts") for name in ("a", "b"))
    origin = left.join(right, on="id").trace_back("id = 1")
    assert sorted(r.row.step for group in origin.needed for r in group) == ["read", "read-2"]


@settings(max_examples=examples(30, short=15), deadline=None)
@given(ROWS)
def test_pieces_from_promise_to_promise_have_everything_once(rows: Rows) -> None:
    pieces = plan(rows).replay().step_through()
    read = [row for piece in pieces for row in piece.rows]
    assert sorted(read) == sorted(f"row {at} of 'read'" for at in range(len(rows)))
    net: Counter[Any] = Counter()
    for piece in pieces:
        for event in piece.steps[-1].events:
            for weight, row in event.rows():
                net[row.content[1], row.content[2], row.content[4]] += weight
    wanted = Counter(
        (r["LE"], r["RE"], repr((r["k"], r["n"], r["top"]))) for r in plan(rows).run().table().to_pylist()
    )
    assert +net == wanted and not -net
    assert all(piece.promises for piece in pieces[:-1])


@settings(max_examples=examples(30, short=15), deadline=None)
@given(ROWS, st.integers(0, 2))
def test_a_comparison_is_the_output_of_two_runs(rows: Rows, k: int) -> None:
    compared = plan(rows).replay().compare(f"k = {k}")
    others = [row for row in rows if row["k"] != k]
    assert compared.rows == len(rows) - len(others)
    assert compared.present == plan(rows).run().history
    assert compared.absent.rows() == (plan(others).run().history.rows() if others else [])


def test_what_was_fed_is_compared_and_traced_back() -> None:
    clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    query = clicks.tumbling(10).agg(n=cz.count()).query()
    recording = query.record()
    for item in cz.parse(" LE RE | id |\n 1 2 | 7 | +\n 2 3 | 8 | +\n 12 13 | 9 | +"):
        query.feed("clicks", item)
    query.run()
    assert [str(r) for group in recording.trace_back("n = 2").needed for r in group] == [
        "row 0 of 'clicks': 7",
        "row 1 of 'clicks': 8",
    ]
    assert "only without" in str(recording.compare("id = 7"))
    assert dict(recording.rows) == {"clicks": 3}


FLOW = """
import caesura as cz
rows = [{{"ts": n, "name": "n" * n, "id": n}} for n in range(9)]
slow = cz.from_rows(rows, time="ts", punctuate=cz.delay(2)).where(cz.col("id") > {least})
slow = slow.group_by("name").tumbling(10).agg(n=cz.count())
"""


def pytest_says(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def runs_here(saved: Path) -> None:
    """Runs the one test of a file in this process."""
    [test] = [value for name, value in runpy.run_path(str(saved)).items() if name.startswith("test_")]
    test()


def test_a_saved_stretch_is_a_test_that_runs_and_fails_where_the_plan_changes(tmp_path: Path) -> None:
    from caesura.testing import load_stream

    (tmp_path / "flow.py").write_text(FLOW.format(least=3))
    stream = load_stream("flow.py:slow", tmp_path)
    saved = stream.replay().save_test(tmp_path / "tests" / "test_slow.py", stream=f"{tmp_path}/flow.py:slow")
    assert "load_stream('../flow.py:slow'" in saved.read_text()
    done = pytest_says(tmp_path / "tests")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    (tmp_path / "flow.py").write_text(FLOW.format(least=4))
    with pytest.raises(AssertionError, match="only wanted"):
        runs_here(saved)
    with pytest.raises(CaesuraError, match="already"):
        stream.replay().save_test(saved, stream=f"{tmp_path}/flow.py:slow")


HOSTILE = '"""\nimport os\nos.abort()\n"""\'\'\' {x} %s \\'


def test_hostile_rows_stay_data_in_a_saved_test(tmp_path: Path) -> None:
    clicks = cz.input_stream("clicks", pa.schema([("name", pa.string())]))
    query = clicks.query()
    recording = query.record()
    query.feed("clicks", Page.of(pa.record_batch({"name": [HOSTILE]}), le=[1], re=[2]))
    query.feed("clicks", cz.cti(5))
    text = "import caesura as cz\nimport pyarrow as pa\n"
    text += "clicks = cz.input_stream('clicks', pa.schema([('name', pa.string())]))\n"
    (tmp_path / "flow.py").write_text(text)
    runs_here(recording.save_test(tmp_path / "test_clicks.py", stream=f"{tmp_path}/flow.py:clicks"))


@pytest.mark.parametrize("stream", ["flow.py:a b", "x'; import os:y", "flow.py:a\n", "nothing"])
def test_a_stream_that_is_none_is_not_written_into_a_test(tmp_path: Path, stream: str) -> None:
    with pytest.raises(CaesuraError, match="names no stream"):
        cz.from_rows([{"ts": 1}], time="ts").replay().save_test(tmp_path / "test_x.py", stream=stream)
    assert not (tmp_path / "test_x.py").exists()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, -(2**63)]),
        pa.array([0.1, float("nan"), float("-inf"), -0.0, None]),
        pa.array([0.1, None], pa.float32()),
        pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        pa.array([datetime(2026, 3, 1, 2, 3, 4, 567, UTC), None], pa.timestamp("us", "Europe/Berlin")),
        pa.array([1, None], pa.timestamp("ns")),
        pa.array([date(1900, 1, 1)], pa.date32()),
        pa.array([b"\x00'", None]),
        pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array([True, None]),
        pa.array([None, None]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_values_in_a_python_file_are_read_as_they_were(column: pa.Array) -> None:
    import ast

    again = from_literals(ast.literal_eval(repr(to_literals(column))), column.type)
    assert again.type == column.type and repr(again.to_pylist()) == repr(column.to_pylist())
