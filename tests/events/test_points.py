"""Points whose ends are made late are the points that they are with their ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import caesura as cz
from caesura import col
from caesura.events import Page, concat
from caesura.events.page import PointPage, pick_lifetimes
from caesura.kernels.grid import whole_windows
from caesura.kernels.hashing import frozen

NONE = np.zeros(0, np.int64)


def drawn(seed: int, rows: int = 3000) -> tuple[Page, Page]:
    """The same points, with ends that are made late, and with ends."""
    random = np.random.default_rng(seed)
    le = random.integers(-50, 50, rows)
    batch = pa.record_batch({"v": random.integers(0, 9, rows), "name": [f"n{n % 7}" for n in range(rows)]})
    return PointPage(le, None, batch), Page(le, le + 1, batch)


MASK = np.random.default_rng(3).random(3000)
DONE: dict[str, Callable[[Page], Page]] = {
    "taken": lambda page: page.take(np.array([5, 1, 1, 2999])),
    "many taken": lambda page: page.take(np.arange(2990, 0, -1)),
    "all filtered": lambda page: page.filter(MASK < 2),
    "half filtered": lambda page: page.filter(MASK < 0.5),
    "few filtered": lambda page: page.filter(MASK < 0.01),
    "none filtered": lambda page: page.filter(MASK > 2),
    "cut": lambda page: page.slice(10, 40),
    "cut to nothing": lambda page: page.slice(10, 0),
    "other columns": lambda page: page.with_payload(page.payload.select(["v"])),
    "as inserts": lambda page: page.as_inserts(),
    "marked": lambda page: replace(page, settled=True).take(np.arange(9)),
    "other ends": lambda page: replace(page, re=page.le + 7).slice(3, 9),
    "some inserts": lambda page: page.inserts(np.array([4, 2]), page.le[[4, 2]], page.le[[4, 2]] + 3),
}


@pytest.mark.parametrize("what", DONE)
@pytest.mark.parametrize("asked", [False, True])
def test_whatever_is_done_with_points_gives_the_same_with_their_ends(what: str, asked: bool) -> None:
    late, whole = drawn(1)
    assert late.lazy_ends and not whole.lazy_ends
    if asked:
        assert late.re.tolist() == whole.re.tolist() and not late.lazy_ends
    found, wanted = DONE[what](late), DONE[what](whole)
    assert found.rows() == wanted.rows()
    assert (found.settled, found.partial) == (wanted.settled, wanted.partial)


@pytest.mark.parametrize("last", [0, 1])
def test_pages_of_points_are_one_page_of_points(last: int) -> None:
    pairs = [drawn(seed) for seed in range(3)]
    pages = [late for late, _ in pairs[:2]] + [pairs[2][last]]
    whole = concat(pages, pages[0].schema)
    assert whole.lazy_ends == (last == 0)
    assert whole.rows() == concat([page for _, page in pairs], pages[0].schema).rows()


@pytest.mark.parametrize("run", [pick_lifetimes.compiled(), pick_lifetimes.twin])
def test_points_are_picked_without_their_ends(run: Callable[..., tuple[int, int]]) -> None:
    late, _ = drawn(2)
    rows, le = np.empty(3000, np.int64), np.empty(3000, np.int64)
    count, retracts = run(MASK < 0.3, frozen(late.le), frozen(NONE), frozen(NONE), rows, le, NONE, NONE)
    assert retracts == 0 and rows[:count].tolist() == np.flatnonzero(MASK < 0.3).tolist()
    assert le[:count].tolist() == late.le[MASK < 0.3].tolist()


@pytest.mark.parametrize("run", [whole_windows.compiled(), whole_windows.twin])
def test_points_lie_in_one_window_each(run: Callable[..., bool]) -> None:
    late, whole = drawn(4)
    found = []
    for ends in (NONE, whole.re):
        window, weight = np.empty(3000, np.int64), np.empty(3000, np.int64)
        assert run(late.le, ends, NONE, 3, 7, window, weight)
        found.append((window.tolist(), weight.tolist()))
    assert found[0] == found[1] and set(found[0][1]) == {1}


def test_steps_that_read_ends_get_them() -> None:
    rows = cz.from_rows([{"ts": t, "v": t % 3} for t in range(20)], time="ts")
    kept = rows.where(cz.end() > 5).select("v", until=cz.end(), since=cz.start())
    sums = kept.group_by("v").tumbling(10).agg(last=cz.max("until"), ends=cz.sum(cz.end() - cz.start()))
    assert kept.where(col("until") != col("since") + 1).run().table().num_rows == 0
    assert sums.run().table().to_pylist()[0] == {"LE": 0, "RE": 10, "v": 2, "last": 9, "ends": 2}
