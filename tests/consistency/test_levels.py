"""The levels, by the letter: for each a kept run that meets it and not the next stronger one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from levels import (
    CausedRow,
    prefix_consistent,
    prefix_update_complete,
    synchronised,
    update_complete,
)

from caesura.consistency import Level


def pairs(given: Mapping[str, Sequence[str]]) -> list[str]:
    """Figure 1: every event of the left with every one of the right."""
    return [a + b for a in given["left"] for b in given["right"]]


K, LETTER_L = ("right", 1), ("right", 2)
FIGURE_1 = [CausedRow("ak", K), CausedRow("bk", K), CausedRow("al", LETTER_L), CausedRow("bl", LETTER_L)]
INPUT_1 = {"left": ["a", "b"], "right": ["k", "l"]}


def test_figure_1_just_before_bl_meets_no_level() -> None:
    before, after = FIGURE_1[:3], FIGURE_1[3:]
    assert not update_complete(before, after)
    assert prefix_update_complete(before, after, {"left": 2, "right": 2}) is None
    assert prefix_consistent([d.row for d in before], INPUT_1, pairs) is None


def test_figure_1_is_whole_before_l_and_after_it() -> None:
    for end, prefix in ((2, {"left": 2, "right": 1}), (4, {"left": 2, "right": 2})):
        before, after = FIGURE_1[:end], FIGURE_1[end:]
        assert update_complete(before, after)
        assert prefix_consistent([d.row for d in before], INPUT_1, pairs) == prefix
        found = prefix_update_complete(before, after, {"left": 2, "right": 2})
        assert found is not None
        assert found["right"] == prefix["right"]


def test_the_variant_without_k_is_consistent_by_luck_and_not_by_its_own_schedule() -> None:
    run = [CausedRow("al", ("right", 1)), CausedRow("bl", ("right", 1))]
    assert not update_complete(run[:1], run[1:])
    assert prefix_consistent(["al"], {"left": ["a", "b"], "right": ["l"]}, pairs) == {"left": 1, "right": 1}


def test_the_variant_with_l_first_has_no_state_between() -> None:
    run = [CausedRow(r, ("right", n)) for r, n in (("al", 1), ("bl", 1), ("ak", 2), ("bk", 2))]
    given = {"left": ["a", "b"], "right": ["l", "k"]}
    whole = [n for n in range(5) if prefix_consistent([d.row for d in run[:n]], given, pairs)]
    complete = [n for n in range(5) if update_complete(run[:n], run[n:])]
    assert (whole, complete) == ([0, 1, 2, 4], [0, 2, 4])


def passed(given: Mapping[str, Sequence[int]]) -> list[int]:
    return list(given["a"])


def test_a_hole_in_the_input_is_update_complete_and_no_prefix() -> None:
    """The second event went a shorter way than the first."""
    before, after = [CausedRow(2, ("a", 2))], [CausedRow(1, ("a", 1))]
    assert update_complete(before, after)
    assert prefix_update_complete(before, after, {"a": 2}) is None
    assert prefix_consistent([2], {"a": [1, 2]}, passed) is None


def figure_4(given: Mapping[str, Sequence[str]]) -> list[str]:
    met = {"a1b1", "a2b2", "a1b2"}
    return [a + b for a in given["A"] for b in given["B"] if a + b in met]


def test_figure_4_is_complete_for_what_is_active_and_not_consistent() -> None:
    """a2b2 shows b2 passively while what b2 sets off, a1b2, is delayed."""
    before = [CausedRow("a1b1", ("B", 1)), CausedRow("a2b2", ("A", 2))]
    after = [CausedRow("a1b2", ("B", 2))]
    given = {"A": ["a1", "a2"], "B": ["b1", "b2"]}
    assert update_complete(before, after)
    assert prefix_update_complete(before, after, {"A": 2, "B": 2}) == {"A": 2, "B": 1}
    assert prefix_consistent([d.row for d in before], given, figure_4) is None
    assert prefix_consistent(["a1b1", "a2b2", "a1b2"], given, figure_4) == {"A": 2, "B": 2}


def test_prefixes_of_different_times_are_consistent_and_not_synchronised() -> None:
    given: dict[str, list[Any]] = {"left": [("a", 1), ("b", 2)], "right": [("k", 1), ("l", 9)]}

    def query(some: Mapping[str, Sequence[Any]]) -> list[str]:
        return [a[0] + b[0] for a in some["left"] for b in some["right"]]

    state = ["ak", "al"]  # left up to 1, right up to 9
    assert prefix_consistent(state, given, query) == {"left": 1, "right": 2}
    assert synchronised(state, given, query, lambda e: int(e[1])) is None
    assert synchronised(["ak", "bk"], given, query, lambda e: int(e[1])) == 9


def test_levels_are_words_that_users_can_read() -> None:
    assert [str(level) for level in Level] == [
        "update-complete",
        "input-prefix update-complete",
        "input-prefix consistent",
        "synchronised input-prefix consistent",
    ]
    assert all(level.meaning for level in Level)
