"""The end of several origins: the last time before it does not depend on who ends first."""

from __future__ import annotations

import json
from itertools import permutations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events import History, parse
from caesura.punctuation import INFINITY, NOT_NULL, NULL, Alignment, Pattern, lt
from caesura.runtime import Query

SAID = [("a", Pattern.before(20)), ("b", Pattern.before(10)), ("c", Pattern.before(15))]
ENDS = [(origin, Pattern()) for origin in "abc"]


def finite(patterns: list[Pattern]) -> list[int]:
    bounds = [p.time_bound for p in patterns]
    return [b for b in bounds if b is not None and b < INFINITY]


def test_whoever_ends_first_the_furthest_time_comes_before_everything() -> None:
    for order in permutations(SAID + ENDS):
        if any(order.index((o, p)) > order.index((o, Pattern())) for o, p in SAID):
            continue  # an origin says nothing after its end
        alignment, told = Alignment("abc"), list[Pattern]()
        for origin, pattern in order:
            told += alignment.add(origin, pattern)
            alignment = Alignment.from_json(json.loads(json.dumps(alignment.to_json())))
        assert told[-1] == Pattern()
        assert max(finite(told)) == finite(told)[-1] == 20


def test_a_time_that_held_already_is_not_said_again_at_the_end() -> None:
    alignment = Alignment(["a", "b"])
    for origin in "ab":
        told = alignment.add(origin, Pattern.before(20))
    assert told == (Pattern.before(20),)
    assert alignment.add("a", Pattern()) == ()
    assert alignment.add("b", Pattern()) == (Pattern(),)


def test_promises_on_a_key_that_add_up_to_all_end_an_origin_too() -> None:
    alignment = Alignment(["a", "b"])
    alignment.add("a", Pattern.before(20))
    alignment.add("b", Pattern.before(10))
    alignment.add("a", Pattern())
    assert alignment.add("b", Pattern.of({"id": NULL})) == (Pattern.of({"id": NULL}),)
    told = alignment.add("b", Pattern.of({"id": NOT_NULL}))
    assert finite(list(told)) == [20]
    assert alignment.held.cti == INFINITY


SCHEMA = pa.schema([("id", pa.int64())])
A = parse(" LE RE | id |\n 3 inf | 1 | +\n-- 22 --\n-- definite: * --", SCHEMA)
B = parse(" LE RE | id |\n 5 6 | 2 | +\n-- 7 --\n-- 8 --\n-- definite: * --", SCHEMA)


@settings(max_examples=30, deadline=None)
@given(st.permutations([0] * len(A) + [1] * len(B)))
def test_windows_over_events_without_end_do_not_depend_on_which_input_ends_first(turns: list[int]) -> None:
    a, b = cz.input_stream("a", SCHEMA), cz.input_stream("b", SCHEMA)
    query = Query({"out": a.union(b).tumbling(10).agg(n=cz.count()).node})
    left = [list(A), list(B)]
    for turn in turns:
        query.feed("ab"[turn], left[turn].pop(0))
        query.run()
    history = History.of(query.take("out"), query.outputs["out"].schema)
    assert history.rows() == [(0, 10, (2,)), (10, 20, (1,)), (20, 30, (1,))]


def test_what_one_origin_says_beyond_what_all_have_said_is_remembered_once() -> None:
    alignment = Alignment(["a", "b"])
    for n in range(50):
        for origin in "ab":
            alignment.add(origin, Pattern(id=n))
        alignment.add("a", Pattern(id=lt(n + 1), x=n))
    assert alignment.pending == 1
    assert alignment.held.size == 1
