"""The rows of a bucket: kernel and twin agree, every row is in one bucket, equal keys are in the same."""

from __future__ import annotations

import numpy as np
import pytest

from caesura.kernels.dividing import (
    OTHERS,
    UNKNOWN,
    RowsByBucket,
    divide_whole,
    divided,
    number_hashed,
    number_whole,
    pick_known,
)


@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize("nulls", [False, True])
def test_every_row_is_in_one_bucket_with_its_equals(buckets: int, nulls: bool) -> None:
    random = np.random.default_rng(buckets)
    keys = random.integers(-9, 9, 300)
    valid = random.random(300) < 0.8 if nulls else np.zeros(0, np.bool_)
    at, le = np.full(300, -1), np.arange(300)
    for number in range(buckets):
        given = keys, valid, le, le + 5, np.uint64(77), buckets, number
        out, other = ([np.empty(301, np.int64) for _ in range(4)] for _ in range(2))
        with np.errstate(over="ignore"):
            count = divide_whole.twin(*given, *other)
        assert divide_whole.compiled()(*given, *out) == count
        for mine, twins in zip(out, other, strict=True):
            assert mine[:count].tolist() == twins[:count].tolist()
        rows = out[0][:count]
        assert [some[:count].tolist() for some in out[1:]] == [a[rows].tolist() for a in (keys, le, le + 5)]
        assert (at[rows] == -1).all()
        at[rows] = number
    assert (at >= 0).all()
    same = [set(at[(keys == k) & (valid if nulls else True)]) for k in range(-9, 9)]
    assert all(len(buckets_of) <= 1 for buckets_of in same)
    assert len(set(at)) == buckets


@pytest.mark.parametrize("buckets", [1, 2, 5, 64])
@pytest.mark.parametrize("nulls", [False, True])
def test_a_page_divided_once_gives_each_bucket_the_rows_that_it_would_pick(buckets: int, nulls: bool) -> None:
    random = np.random.default_rng(buckets)
    keys, le = random.integers(-99, 99, 300), np.arange(300)
    valid = random.random(300) < 0.8 if nulls else np.zeros(0, np.bool_)
    once = RowsByBucket.of_keys(keys, valid, np.uint64(77), buckets)
    for number in range(buckets):
        picked = divided(keys, valid, le, le + 5, np.uint64(77), buckets, number)
        assert once[number].tolist() == picked.rows.tolist()
    for given in (keys, valid, np.uint64(77), buckets), (keys.view(np.uint64) * np.uint64(2**55), buckets):
        kernel = number_whole if len(given) == 4 else number_hashed
        found = [np.empty(300, np.int64) for _ in range(2)]
        kernel.compiled()(*given, found[0])
        with np.errstate(over="ignore"):
            kernel.twin(*given, found[1])
        assert found[0].tolist() == found[1].tolist()


def test_hashes_are_divided_into_all_buckets() -> None:
    hashes = np.random.default_rng(3).integers(0, 2**64 - 1, 300, np.uint64)
    parts = [RowsByBucket.of_hashes(hashes, 3)[number].tolist() for number in range(3)]
    assert all(part == sorted(part) and len(part) > 50 for part in parts)
    assert sorted(row for part in parts for row in part) == list(range(300))


def test_rows_of_others_are_passed_over_and_those_yet_unknown_are_not() -> None:
    who, known = np.array([3, 0, 1, 3, 2]), np.array([OTHERS, 7, UNKNOWN, 5])
    for pick in (pick_known.twin, pick_known.compiled()):
        rows, found = np.empty(5, np.int64), np.empty(5, np.int64)
        count = pick(who, known, rows, found)
        assert rows[:count].tolist() == [0, 2, 3, 4]
        assert found[:count].tolist() == [5, 7, 5, UNKNOWN]
        assert pick(who[:0], known, rows, found) == 0
