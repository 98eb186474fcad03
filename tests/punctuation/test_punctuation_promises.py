"""Promises and their alignment against every point of a small space."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from punctuation_domains import IDS, NAMES, POINTS, inside, patterns, prefix_patterns

from caesura.errors import PatternError
from caesura.punctuation import (
    INFINITY,
    MIN_TIME,
    TIME,
    Alignment,
    Pattern,
    Promises,
    between,
    ge,
    lt,
    one_of,
    value,
)

few = settings(max_examples=80, deadline=None)
PAYLOAD = pa.RecordBatch.from_pylist([{"id": p["id"], "name": p["name"]} for p in POINTS])
TICKS = np.array([p["time"] for p in POINTS], dtype=np.int64)
lists = st.lists(patterns, max_size=6)


def everything(given_: list[Pattern]) -> frozenset[int]:
    return frozenset().union(*map(inside, given_))


def first_free(given_: list[Pattern], payload: dict[str, Any]) -> int:
    """The least tick at which the payload may still come, looked for one by one; 0 stands for all below."""
    about = [p for p in given_ if p.without_time().matches_row(payload)]
    if not any(p["time"].contains(-1) for p in about):
        return MIN_TIME
    ticks = (t for t in range(0, 8) if not any(p["time"].contains(t) for p in about))
    return next(ticks, INFINITY)


@few
@given(lists, patterns, st.booleans())
def test_promises_cover_what_they_forbid_together(given_: list[Pattern], asked: Pattern, tidy: bool) -> None:
    promised = Promises(given_, tidy=tidy)
    if promised.covers(asked):
        assert everything(given_) >= inside(asked)
    rest = [asked]
    for p in given_:
        rest = [piece for part in rest for piece in part.minus(p)]
    assert promised.covers(asked) == (not rest or asked.is_empty)


@few
@given(lists, st.booleans())
def test_what_is_kept_means_what_was_given(given_: list[Pattern], tidy: bool) -> None:
    promised = Promises(tidy=tidy)
    for at, p in enumerate(given_):
        known = promised.covers(p)
        assert promised.add(p) == (not known)
        assert everything(list(promised.patterns())) == everything(given_[: at + 1])
    kept = promised.others()
    assert not any(a.covers(b) for a in kept for b in kept if a != b)
    again = Promises.from_json(json.loads(json.dumps(promised.to_json())))
    assert again.patterns() == promised.copy().patterns() == promised.patterns()


@few
@given(st.one_of(lists, st.lists(prefix_patterns, max_size=6)), st.booleans())
def test_the_effective_cti_is_the_first_tick_still_free(given_: list[Pattern], tidy: bool) -> None:
    promised = Promises(given_, tidy=tidy)
    got = np.broadcast_to(promised.effective_cti(PAYLOAD), len(POINTS)).tolist()
    assert got == [first_free(given_, {"id": p["id"], "name": p["name"]}) for p in POINTS]
    unconditional = [p for p in given_ if not p.without_time().attributes]
    assert promised.cti >= first_free(unconditional, {})
    assert promised.cti <= min(got)


@few
@given(lists)
def test_forbidden_rows_are_those_a_promise_matches(given_: list[Pattern]) -> None:
    forbidden = everything(given_)
    assert Promises(given_).forbids(PAYLOAD, TICKS).tolist() == [at in forbidden for at in range(len(POINTS))]


def test_one_value_after_another_costs_one_pattern() -> None:
    promised = Promises()
    for n in range(2_000):
        assert promised.add(Pattern(id=n, site="a"))
    assert promised.size == 1
    assert promised.others() == (Pattern(id=between(0, 1_999), site="a"),)


def test_what_two_origins_say_of_different_attributes_makes_no_stairs() -> None:
    aligned = Alignment("ab")
    for k in range(40):
        for origin, pattern in (("a", Pattern(x=k)), ("b", Pattern(id=lt(k + 1))), ("a", Pattern(id=k))):
            aligned.add(origin, pattern)
    assert aligned.held.size == 2 and aligned.held.covers(Pattern(x=[0, 39], id=lt(40)))


def test_values_closed_up_to_a_time_are_forgotten_once_they_are_closed_for_good() -> None:
    promised = Promises(tidy=True)
    for k in range(40):
        promised.add(Pattern(id=between(k - 3, k)).replace(TIME, lt(k)))
        promised.add(Pattern(id=k))
    assert promised.size <= 4 and promised.covers(Pattern(id=between(0, 39)))


def test_many_promises_on_single_values_are_looked_up() -> None:
    promised = Promises(Pattern(id=n, time=lt(10 * n)) for n in range(1, 3_000))
    assert promised.size == 2_999
    assert promised.effective_cti(columns={"id": pa.array([5, None, 99_999])}).tolist() == [
        50,
        MIN_TIME,
        MIN_TIME,
    ]
    assert promised.effective_cti(columns={"id": np.array([7])}).tolist() == [70]
    assert promised.add(Pattern(id=5, time=lt(51)))
    assert not promised.covers(Pattern(time=lt(9), id=ge(0)))
    assert promised.covers(Pattern(time=lt(9), id=between(1, 2_999)))
    promised.add(Pattern.before(15_000))
    assert promised.size == 1_499


def test_a_cti_swallows_the_promises_below_it() -> None:
    promised = Promises([Pattern(id=1, time=lt(20)), Pattern(id=2)])
    assert promised.add(Pattern.before(30))
    assert promised.patterns() == (Pattern.before(30), Pattern(id=2))
    assert promised.add(Pattern())
    assert (promised.cti, promised.size) == (INFINITY, 0)


def test_times_that_close_a_gap_move_the_cti() -> None:
    promised = Promises([Pattern(time=between(10, 19)), Pattern.before(10)])
    assert (promised.cti, promised.size) == (20, 0)


def test_promises_on_absent_columns_do_not_count() -> None:
    promised = Promises([Pattern(id=1), Pattern.before(5)])
    assert promised.effective_cti(columns={"name": pa.array(["a"])}) == 5
    assert Promises([Pattern.before(5)]).effective_cti(PAYLOAD) == 5


events = st.lists(
    st.tuples(st.sampled_from(["add", "add", "add", "add", "leave"]), st.sampled_from("abc"), patterns),
    max_size=10,
)


@few
@given(events)
def test_a_point_is_held_when_every_live_origin_has_promised_it(
    script: list[tuple[str, str, Pattern]],
) -> None:
    alignment = Alignment("abc")
    promised: dict[str, frozenset[int]] = dict.fromkeys("abc", frozenset())
    expected: frozenset[int] = frozenset()
    returned: frozenset[int] = frozenset()
    for verb, origin, pattern in script:
        if origin not in promised:
            continue
        if verb == "add":
            promised[origin] |= inside(pattern)
            fresh = alignment.add(origin, pattern)
        else:
            del promised[origin]
            fresh = alignment.leave(origin)
        if promised:
            expected |= frozenset.intersection(*promised.values())
        assert all(inside(p) <= expected for p in fresh)
        returned |= everything(list(fresh))
        assert returned == expected == everything(list(alignment.held.patterns()))
        alignment = Alignment.from_json(json.loads(json.dumps(alignment.to_json())))


def test_for_time_the_slowest_origin_decides() -> None:
    alignment = Alignment(["a", "b", "c"])
    assert alignment.add("a", Pattern.before(20)) == ()
    assert alignment.add("b", Pattern.before(30)) == ()
    assert alignment.pending == 2
    assert alignment.add("c", Pattern.before(25)) == (Pattern.before(20),)
    assert alignment.leave("a") == (Pattern.before(25),)
    assert alignment.held.cti == 25


def test_a_new_origin_holds_back_only_what_does_not_hold_yet() -> None:
    alignment = Alignment(["a"])
    assert alignment.add("a", Pattern.before(10)) == (Pattern.before(10),)
    alignment.join("b")
    assert alignment.add("a", Pattern.before(20)) == ()
    assert alignment.held.cti == 10
    assert alignment.add("b", Pattern.before(15)) == (Pattern.before(15),)


def test_a_promise_on_a_key_waits_for_the_other_origins_as_counted_state() -> None:
    alignment = Alignment(["a", "b"])
    assert alignment.add("a", Pattern(id=[1, 2, 3])) == ()
    assert alignment.pending == 1
    assert alignment.add("b", Pattern(id=2)) == (Pattern(id=2),)
    assert alignment.add("b", Pattern(id=one_of([1, 3]))) == (Pattern(id=one_of([1, 3])),)
    assert alignment.pending == 0
    assert alignment.add("a", Pattern(id=2)) == ()


def test_nothing_new_holds_when_the_last_origin_has_left() -> None:
    alignment = Alignment(["a"])
    assert alignment.leave("a") == ()
    assert alignment.held.cti == MIN_TIME


def test_an_origin_that_is_not_live_cannot_promise() -> None:
    with pytest.raises(PatternError, match="no origin 'c' is live"):
        Alignment(["a"]).add("c", Pattern.before(3))


def test_the_space_has_nulls_in_it() -> None:
    assert None in IDS
    assert None in NAMES
    assert Promises([Pattern(id=value(None))]).forbids(PAYLOAD, TICKS).sum() == 18
