"""A page that meets the rows of a join's other side, beside the pairs that a loop over all rows finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from caesura.events import Page
from caesura.events.identity import LOCAL
from caesura.events.page import PointPage, take_rows
from caesura.kernels.chains import Chains
from caesura.ops.join import side
from caesura.ops.join.side import Side
from caesura.ops.join.waiting import WaitingRows
from caesura.punctuation import INFINITY


def drawn(seed: int, rows: int, keys: int) -> tuple[Page, np.ndarray]:
    """Intervals, some without end, and the number of each row's key."""
    random = np.random.default_rng(seed)
    le = random.integers(0, 40, rows)
    re = np.where(random.random(rows) < 0.2, INFINITY, le + random.integers(1, 9, rows))
    key = random.integers(0, keys, rows)
    return Page(le, re, pa.record_batch({"k": key})), key


def stored(page: Page, key: np.ndarray) -> Side:
    one = Side(0, page.schema, ["k"], LOCAL, by_value=False, preserved=False)
    one.insert(page, np.arange(len(page)), key)
    return one


def pairs(mine: Page, key: np.ndarray, theirs: Page, other: np.ndarray) -> list[tuple[int, ...]]:
    """Row by row, and of those that are stored the latest first."""
    found = []
    for i in range(len(mine)):
        for j in reversed(range(len(theirs))):
            le, re = max(mine.le[i], theirs.le[j]), min(mine.re[i], theirs.re[j])
            if key[i] == other[j] and le < re:
                found.append((i, j, int(le), int(re)))
    return found


@pytest.mark.parametrize("keys", [1, 3, 200])
@pytest.mark.parametrize("stretch", [1, 7, 1 << 14])
def test_pairs_are_those_of_all_rows_in_order(
    keys: int, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side, "STRETCH", stretch)
    theirs, other = drawn(1, 70, keys)
    mine, key = drawn(2, 90, keys + 90)  # keys beyond all that are stored, too
    key[::5] = -1
    row, link, le, re, new = stored(theirs, other).probe(key, mine)
    assert new is None and re is not None
    assert list(zip(*(c.tolist() for c in (row, link, le, re)), strict=True)) == pairs(
        mine, key, theirs, other
    )


@pytest.mark.parametrize("stretch", [5, 1 << 14])
def test_points_without_ends_meet_what_they_meet_with_ends(
    stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side, "STRETCH", stretch)
    theirs, other = drawn(3, 120, 2)
    mine, key = drawn(4, 150, 2)
    points, ended = PointPage(mine.le, None, mine.payload), Page(mine.le, mine.le + 1, mine.payload)
    row, link, le, re, _ = stored(theirs, other).probe(key, points)
    assert re is None and points.lazy_ends
    wanted = pairs(ended, key, theirs, other)
    assert len(wanted) > 1024  # more than there is room for at once
    assert list(zip(row.tolist(), link.tolist(), le.tolist(), (le + 1).tolist(), strict=True)) == wanted


def test_points_that_meet_one_row_each_all_their_life_are_looked_up_without_ends() -> None:
    theirs = Page.of(pa.record_batch({"k": [0, 1]}), le=[0, 5], re=[9, 8])
    one = stored(theirs, np.array([0, 1]))
    inside = PointPage(np.array([0, 7, 8]), None, pa.record_batch({"k": [0, 1, 0]}))
    found = one.look_up(np.array([0, 1, 0]), inside)
    assert found is not None and found.tolist() == [0, 1, 0] and inside.lazy_ends
    outside = PointPage(np.array([8]), None, pa.record_batch({"k": [1]}))
    assert one.look_up(np.array([1]), outside) is None


def test_keys_beyond_all_heads_are_linked_behind_those_before_them() -> None:
    chains = Chains()
    chains.add(np.array([3, 1000, 3, 1000]))
    assert [part.tolist() for part in chains.gather(np.array([1000, 3, 70]))] == [[0, 0, 1, 1], [3, 1, 2, 0]]


def test_all_rows_as_they_lie_are_the_batch_itself() -> None:
    batch = pa.record_batch({"v": [7, 8, 9]})
    assert take_rows(batch, np.arange(3)) is batch
    for rows in ([0, 2, 1], [0, 0, 2], [0, 1], [0, 1, 1, 2]):
        assert take_rows(batch, np.array(rows))["v"].to_pylist() == [7 + row for row in rows]


@pytest.mark.parametrize("bound", [-1, 7, 20, 38, 39, 40])
def test_points_wait_as_long_without_ends_as_with_them(bound: int) -> None:
    mine, _ = drawn(5, 200, 2)
    left = []
    for page in (PointPage(mine.le, None, mine.payload), Page(mine.le, mine.le + 1, mine.payload)):
        rows = WaitingRows(lambda batch: batch["k"].to_numpy(), lambda batch: batch["k"].to_numpy())
        waits = rows.add(page, 4).waits.tolist()
        gone = [at for _, at in rows.drop(bound)]
        left.append((waits, gone, rows.count, [at for _, at in rows.all()], page.lazy_ends))
    np.testing.assert_equal(left[0][:4], left[1][:4])
    assert left[0][4]
