"""A translated time constraint takes a row only if all that the row makes is covered; most take them all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caesura.plan.lifetimes import Inside, Lifetimes, Moved, OverlappedWindows, Stepped, Unchanged
from caesura.punctuation import ANY, Values, between, ge, lt, one_of, value

Spans = list[tuple[int, int]]
ROWS = [(le, re) for le in range(-9, 14) for re in range(le + 1, 16)]
sets = st.one_of(
    st.just(ANY),
    st.integers(-9, 14).map(lt),
    st.integers(-9, 14).map(ge),
    st.integers(-9, 14).map(value),
    st.lists(st.integers(-9, 14), min_size=1, max_size=3).map(one_of),
    st.tuples(st.integers(-9, 9), st.integers(0, 8)).map(lambda p: between(p[0], p[0] + p[1])),
)


def windows(size: int, every: int, offset: int) -> Callable[[int, int], Spans]:
    starts = range(-20 * every + offset, 20 * every + offset, every)
    return lambda le, re: [(s, s + size) for s in starts if s < re and le < s + size]


def inner(le: int, re: int) -> Spans:
    return [(a, b) for a in range(le, re) for b in range(a + 1, re + 1)]


def rounded(le: int, re: int) -> Spans:
    start = -(-le // 4) * 4
    return [(start, re)] if start < re else []


RULES: dict[str, tuple[Lifetimes, Callable[[int, int], Spans], bool]] = {
    "kept": (Unchanged(), lambda le, re: [(le, re)], True),
    "shift": (Moved(("LE", 5), ("RE", 5)), lambda le, re: [(le + 5, re + 5)], True),
    "set_duration": (Moved(("LE", 0), ("LE", 3)), lambda le, re: [(le, le + 3)], True),
    "extend": (Moved(("LE", 0), ("RE", 4)), lambda le, re: [(le, re + 4)], True),
    "points_at_end": (Moved(("RE", 0), ("RE", 1)), lambda le, re: [(re, re + 1)], True),
    "start_at": (Stepped(4), rounded, False),
    "quantise": (
        Stepped(3, 1, past=True, size=6),
        lambda le, re: [(((le - 1) // 3 + 1) * 3 + 1, ((le - 1) // 3 + 1) * 3 + 7)],
        True,
    ),
    "inside": (Inside(), inner, False),
    "tumbling": (OverlappedWindows(5, 5, 1), windows(5, 5, 1), False),
    "hopping": (OverlappedWindows(6, 2, 0), windows(6, 2, 0), False),
    "gaps": (OverlappedWindows(2, 5, 0), windows(2, 5, 0), False),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_a_row_is_taken_only_if_all_that_it_makes_is_covered(name: str, points: bool) -> None:
    rule, makes, exact = RULES[name]

    @given(sets, sets)
    def holds(starts: Values, ends: Values) -> None:
        told = rule.back(starts, ends, points=points)
        if told is None:
            return
        for le, re in ROWS:
            if points and re != le + 1:
                continue
            taken = told.get("LE", ANY).contains(le) and told.get("RE", ANY).contains(re)
            made = makes(le, re)
            covered = all(starts.contains(a) and ends.contains(b) for a, b in made)
            assert covered or not taken, (le, re, told)
            if exact and made:
                assert taken == covered, (le, re, told)

    holds()
