"""The oracles give what a person would draw."""

from __future__ import annotations

import math

import pytest
from oracle_tables import assert_same, rows

from caesura.punctuation import INFINITY, Pattern, cti, lt
from caesura.testing import oracles
from caesura.testing.oracles.aggregates import aggregate

LEFT = """
 LE  RE  | k    a |
  0  10  | 1    x | +
  2  6   | null y | +
  3  inf | 2    z | +
"""
RIGHT = """
 LE  RE | k    b |
  4  6  | 1    p | +
  5  8  | 1    q | +
  0  9  | null r | +
 20  30 | 3    s | +
"""
ON = [("k", "k")]


def test_an_inner_join_lives_while_both_sides_live_and_null_matches_nothing() -> None:
    got = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="inner")
    assert_same(got, " LE RE | k a b |\n 4 6 | 1 x p | +\n 5 8 | 1 x q | +")


def test_a_semi_join_gives_the_maximal_intervals_with_a_match() -> None:
    got = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="semi")
    assert_same(got, " LE RE | k a |\n 4 8 | 1 x | +")


def test_an_anti_join_gives_the_maximal_intervals_without_one() -> None:
    got = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="anti")
    drawn = " LE RE | k a |\n 0 4 | 1 x | +\n 8 10 | 1 x | +\n 2 6 | null y | +\n 3 inf | 2 z | +"
    assert_same(got, drawn)


def test_a_full_join_pads_both_sides_and_keeps_the_key_of_the_one_that_is_there() -> None:
    got = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="full")
    inner = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="inner")
    left = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="left")
    right = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="right")
    assert len(got) == len(left) + len(right) - len(inner)
    assert (20, 30, {"k": 3, "a": None, "b": "s"}) in right
    assert (3, INFINITY, {"k": 2, "a": "z", "b": None}) in left


def test_a_residual_that_is_null_is_no_match() -> None:
    got = oracles.join(rows(LEFT), rows(RIGHT), on=ON, how="inner", residual=lambda a, b: None)
    assert got == []


def test_a_bag_difference_takes_one_copy_for_one() -> None:
    left = rows(" LE RE | v |\n 0 10 | 1 | +\n 0 10 | 1 | +\n 0 5 | 2 | +")
    right = rows(" LE RE | v |\n 3 6 | 1 | +\n 2 4 | 2 | +")
    drawn = " LE RE | v |\n 0 10 | 1 | +\n 0 3 | 1 | +\n 6 10 | 1 | +\n 0 2 | 2 | +\n 4 5 | 2 | +"
    assert_same(oracles.difference(left, right, mode="bag"), drawn)


def test_a_set_difference_takes_all_copies_and_leaves_one() -> None:
    left = rows(" LE RE | v |\n 0 10 | 1 | +\n 0 10 | 1 | +")
    right = rows(" LE RE | v |\n 3 6 | 1 | +")
    assert_same(oracles.difference(left, right, mode="set"), " LE RE | v |\n 0 3 | 1 | +\n 6 10 | 1 | +")


def test_distinct_merges_what_touches_and_takes_nan_for_nan() -> None:
    got = oracles.distinct(rows(" LE RE | v:float |\n 0 3 | nan | +\n 3 5 | nan | +\n 7 8 | nan | +"))
    assert_same(got, " LE RE | v:float |\n 0 5 | nan | +\n 7 8 | nan | +")


def test_totals_live_on_the_hull_and_null_keys_form_a_group() -> None:
    got = oracles.totals(rows(LEFT + "  1  2  | null w | +"), ["k"], {"n": ("count", None)})
    assert_same(got, " LE RE | k n |\n 0 10 | 1 1 | +\n 1 6 | null 2 | +\n 3 inf | 2 1 | +")


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (oracles.shift([(3, 8, {}), (3, INFINITY, {})], -5), [(-2, 3), (-2, INFINITY)]),
        (oracles.set_duration([(3, 8, {})], 2), [(3, 5)]),
        (oracles.extend([(3, 8, {}), (3, 4, {})], -1), [(3, 7)]),
        (oracles.scale([(3, 8, {}), (3, 4, {})], 1, 2), [(3, 6), (3, 4)]),
        (oracles.start_at([(3, 9, {}), (5, 8, {}), (-3, 1, {})], 4), [(4, 9), (0, 1)]),
        (
            oracles.chop([(-3, 5, {}), (3, INFINITY, {})], 4, 9),
            [(-3, 0), (0, 4), (4, 5), (3, 4), (4, 8), (8, 12)],
        ),
        (oracles.points_at_start([(3, 8, {})]), [(3, 4)]),
        (oracles.points_at_end([(3, 8, {}), (3, INFINITY, {})]), [(8, 9)]),
    ],
)
def test_lifetimes_move_as_their_rule_says(got: oracles.Rows, want: list[tuple[int, int]]) -> None:
    assert [(le, re) for le, re, _ in got] == want


def test_clip_ends_a_row_at_the_next_start_of_its_key_never_at_its_own() -> None:
    right = rows(" LE RE | k |\n 0 1 | 1 | +\n 7 8 | 1 | +\n 9 10 | 1 | +\n 5 6 | null | +")
    drawn = " LE RE | k a |\n 0 7 | 1 x | +\n 2 6 | null y | +\n 3 inf | 2 z | +"
    assert_same(oracles.clip(rows(LEFT), right, on=ON), drawn)


def test_a_row_counts_in_every_window_it_overlaps() -> None:
    some = rows(" LE RE | k v |\n 1 12 | 1 5 | +\n 3 4 | 1 null | +\n 9 10 | 2 1 | +")
    aggs = {"n": ("count", None), "m": ("count", "v"), "s": ("sum", "v")}
    drawn = " LE RE | k n m s |\n -3 7 | 1 2 1 5 | +\n 7 17 | 1 1 1 5 | +\n 7 17 | 2 1 1 1 | +"
    assert_same(oracles.tumbling(some, ["k"], 10, -3, aggs), drawn)


def test_windows_of_a_row_that_never_ends_stop_at_its_groups_horizon() -> None:
    some = rows(" LE RE | k |\n 1 inf | 1 | +\n 1 inf | 2 | +")
    patterns = [cti(11).pattern, Pattern(k=2, time=lt(25)), Pattern()]
    got = oracles.tumbling(some, ["k"], 10, 0, {"n": ("count", None)}, oracles.horizon(patterns))
    assert sorted((p["k"], le) for le, _, p in got) == [(1, 0), (1, 10), (2, 0), (2, 10), (2, 20)]


@pytest.mark.parametrize(
    ("kind", "values", "want"),
    [
        ("sum", [1e16, 1.0, -1e16], 1.0),
        ("sum", [math.inf, 1.0], math.inf),
        ("sum", [math.inf, -math.inf], math.nan),
        ("sum", [2**62, 2**62], 2**63),
        ("sum", [None], None),
        ("min", [math.nan, 3.0], 3.0),
        ("max", [math.nan, math.inf], math.nan),
        ("max", ["b", "a", None], "b"),
        ("avg", [1, 2], 1.5),
        ("count", [None, 3], 1),
    ],
)
def test_aggregates_are_exact(kind: str, values: list[object], want: object) -> None:
    got = aggregate(kind, values)
    assert got == want or (got != got and want != want)
