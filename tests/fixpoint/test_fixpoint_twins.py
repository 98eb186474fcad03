"""The kernels of loops do what the plain Python does that they were compiled from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caesura.events.columns import byte_parts
from caesura.expr.rules_bits import find_each
from caesura.fixpoint.kernels import furthest, lay_best


def drawn(seed: int) -> list[Any]:
    """Candidates and rows of a few keys; a key's rows do not overlap."""
    chance = np.random.default_rng(seed)
    groups = 4
    c_own = np.sort(chance.integers(0, groups, 12))
    c_le = chance.integers(0, 12, 12)
    came = [chance.integers(0, 3, 12), chance.integers(-1, 4, 12), c_le, c_le + chance.integers(1, 9, 12)]
    rows: list[tuple[int, int, int, int, int]] = []
    for g in range(groups):
        cuts = np.unique(chance.integers(0, 16, 4))
        pairs = zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
        rows += [(g, int(chance.integers(0, 3)), int(chance.integers(0, 4)), a, b) for a, b in pairs]
    held = np.array(rows, np.int64).reshape(-1, 5)
    every = np.arange(groups + 1)
    parts = [np.searchsorted(c_own, every), *came, np.searchsorted(held[:, 0], every)]
    parts += [np.ascontiguousarray(held[:, k]) for k in range(1, 5)]
    return [*parts, np.full(groups, int(chance.integers(0, 6)), np.int64), bool(seed % 2)]


@pytest.mark.parametrize("seed", range(30))
def test_what_a_loop_keeps_is_laid_alike(seed: int) -> None:
    results = []
    for run in (lay_best.twin, lay_best.compiled()):
        outs = [np.zeros(400, np.int64) for _ in range(5)]
        made, lost = run(*drawn(seed), *outs)
        results.append((made, bool(lost), [o[:made].tolist() for o in outs]))
    assert results[0] == results[1]


def test_furthest_ends_are_alike() -> None:
    row, ends = np.array([1, 1, 1, 2, 2]), np.array([5, 3, 9, 4, 2])
    for run in (furthest.twin, furthest.compiled()):
        mine = ends.copy()
        run(row, mine)
        assert mine.tolist() == [5, 5, 9, 4, 4]


def test_texts_are_found_alike() -> None:
    whole, part = pa.array(["a/b/c", "abc", "", "xyx"]), pa.array(["/b", "abcd", "", "yx"])
    for run in (find_each.twin, find_each.compiled()):
        found = np.zeros(4, np.bool_)
        run(*byte_parts(whole), *byte_parts(part), found)
        assert found.tolist() == [True, False, True, True]
