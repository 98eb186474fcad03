"""What steps do with large pages obeys the laws too, and the loops that only those reach have twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import law_cases  # noqa: F401  (registers the cases)
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import deferred, grouping, page
from caesura.expr import delimited
from caesura.kernels import Kernel, memo
from caesura.ops import deliver
from caesura.ops.aggregate import slots, tumbling_operator
from caesura.ops.join import physical, side, waiting
from caesura.testing.case import LawCase, cases
from caesura.testing.laws import check_laws

STEPS = ("join-inner", "join-inner-inserts", "join of a window", "totals-ints", "totals-of-texts-inserts")
STEPS += ("tumbling-ints", "tumbling-finite")
STEPS += ("alive ints", "alive rows that only come", "alive rows by text", "output final", "top 2 of all")
CASES = [case for case in cases() if str(case).startswith(STEPS)]


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a row count as large."""
    monkeypatch.setattr(physical, "PAGE_ROWS", 1)
    monkeypatch.setattr(side, "STRETCH", 2)
    monkeypatch.setattr(waiting, "SHARE", 0)
    monkeypatch.setattr(slots, "LARGE_PAGE", 1)
    monkeypatch.setattr(tumbling_operator, "LARGE_PAGE", 1)
    monkeypatch.setattr(memo, "MAX_BITS", memo.MIN_BITS)
    monkeypatch.setattr(deliver, "FRESH_ROWS", 1)
    monkeypatch.setattr(page, "SHORT", 0)
    monkeypatch.setattr(grouping, "repeats", lambda texts: True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_law_holds_of_large_pages(case: LawCase, small_is_large: None) -> None:
    @settings(max_examples=3, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_laws(case, data, kinds=case.kinds()[0])

    holds()


def assert_twins(kernel: Kernel[..., Any], *args: Any) -> None:
    """The machine code leaves in its arguments what the twin leaves."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(over="ignore"):
        assert kernel.twin(*copies) == kernel.compiled()(*args)
    for mine, other in zip(args, copies, strict=True):
        np.testing.assert_array_equal(mine, other)


def made(random: np.random.Generator) -> list[tuple[Any, ...]]:
    """Calls of the loops that large pages reach."""
    words, down = random.integers(-9, 9, 40), 64 - 8
    marked = random.random(256) < 0.5
    offsets = np.sort(random.integers(0, 60, 21)).astype(np.int32)
    marks = np.sort(random.choice(60, 15, replace=False))
    first = np.searchsorted(marks, offsets)
    starts, ends = np.zeros(20, np.int64), np.zeros(21, np.int32)
    rows = np.zeros(40, np.int64)
    return [
        (waiting.mark_words, words, down, np.zeros(256, np.bool_)),
        (waiting.pick_marked, words, down, marked, random.random(40) < 0.7, rows),
        (grouping.number_codes, words, -9, np.full(18, -1, np.int32), rows.copy(), np.zeros(18, np.int64)),
        (grouping.follows, words // 3, words + 9, np.arange(18)),
        (delimited.count_marks, marks, offsets, np.zeros(21, np.int64)),
        (delimited.piece_spans, marks, offsets, first, -1, starts, ends, np.zeros(20, np.bool_)),
        (delimited.copy_spans, offsets[:-1].astype(np.int64), offsets - offsets[0],
         random.integers(0, 255, 60).astype(np.uint8), np.zeros(60, np.uint8)),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_the_loops_of_large_pages_do_what_their_twins_do(number: int) -> None:
    for seed in range(5):
        kernel, *args = made(np.random.default_rng(seed))[number]
        assert_twins(kernel, *args)


@pytest.mark.parametrize("longest", [1, 4])
def test_rows_that_are_only_counted_are_spread_over_windows_by_key_and_pane(
    longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(longest)
    start = random.integers(-40, 40, 300)
    rows = pa.table({"t": start, "end": start + random.integers(1, longest + 1, 300), "k": start % 3})
    stream = cz.from_arrow(rows, time="t", end="end", punctuate=cz.delay(90))
    counts = stream.group_by("k").hopping(10, every=2).agg(n=cz.count())
    found = []
    for large in (1, 1 << 40):
        monkeypatch.setattr(tumbling_operator, "LARGE_PAGE", large)
        found.append(counts.run().history)
    assert found[0] == found[1] and len(found[0].page) > 100


@pytest.mark.parametrize("cut", [lambda p: p, lambda p: p.take(np.arange(2, 9))], ids=["whole", "part"])
def test_pages_of_both_kinds_are_joined_without_their_columns(
    cut: Callable[[page.Page], page.Page], small_is_large: None
) -> None:
    batch = pa.record_batch({"n": range(10), "t": [str(i) for i in range(10)]})
    plain = page.Page(np.arange(10), np.arange(1, 11), batch)
    some = plain.inserts(np.array([1, 4, 7]), np.array([1, 4, 7]), np.array([2, 5, 8]))
    whole = page.concat([cut(plain), some], plain.schema)
    assert isinstance(whole, deferred.DeferredPage) and whole.is_deferred
    assert whole.rows() == [*cut(plain).rows(), *some.rows()]


def test_pages_that_lie_behind_each_other_are_one_without_a_copy() -> None:
    texts = pa.array([None if i % 3 == 0 else str(i) for i in range(300)])
    batch = pa.record_batch({"n": np.arange(300), "t": texts}).slice(3)
    plain = page.Page(np.arange(297), np.arange(1, 298), batch)
    whole = page.concat([plain.slice(0, 100), plain.slice(100, 100), plain.slice(200, 97)], plain.schema)
    assert whole.rows() == plain.rows()
    assert whole.payload["t"].buffers()[2].address == texts.buffers()[2].address
    few = page.concat([plain.slice(0, 5), plain.slice(5, 5)], plain.schema)
    assert few.rows() == plain.slice(0, 10).rows(), "which are copied"
    assert page.concat([plain.slice(5, 5), plain.slice(0, 5)], plain.schema).le.tolist() == [
        *range(5, 10),
        *range(5),
    ]


def test_a_join_gives_every_pair_where_a_key_has_many_rows() -> None:
    sides = [pa.table({"t": np.arange(120), "k": np.arange(120) % 2, name: np.arange(120)}) for name in "lr"]
    left, right = (cz.from_arrow(side, time="t").extend(20) for side in sides)
    found = left.join(right, on="k").run(output="final").table()
    wanted = {(i, j) for i in range(120) for j in range(i % 2, 120, 2) if abs(i - j) < 21}
    pairs = list(zip(found["l"].to_pylist(), found["r"].to_pylist(), strict=True))
    assert len(pairs) == len(wanted) > 2048 and set(pairs) == wanted
