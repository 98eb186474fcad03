"""Patterns and punctuations against every point of a small space."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from punctuation_domains import POINTS, inside, patterns

from caesura.errors import PatternError
from caesura.punctuation import (
    INFINITY,
    MIN_TIME,
    Intent,
    Pattern,
    Punctuation,
    between,
    cti,
    definite,
    ge,
    gt,
    lt,
    one_of,
    value,
)

few = settings(max_examples=80, deadline=None)
PAYLOAD = pa.RecordBatch.from_pylist([{"id": p["id"], "name": p["name"]} for p in POINTS])
TICKS = np.array([p["time"] for p in POINTS], dtype=np.int64)


@few
@given(patterns, patterns)
def test_patterns_meet_and_cover_as_their_points_do(a: Pattern, b: Pattern) -> None:
    in_a, in_b = inside(a), inside(b)
    both = a.intersect(b)
    assert (both is not None) == a.intersects(b)
    assert (inside(both) if both is not None else frozenset()) == in_a & in_b
    if a.covers(b):
        assert in_a >= in_b
    assert a.covers(b) == (not b.minus(a))


@few
@given(patterns, patterns)
def test_a_difference_is_exact_and_its_pieces_are_disjoint(a: Pattern, b: Pattern) -> None:
    pieces = [inside(piece) for piece in a.minus(b)]
    assert frozenset().union(*pieces) == inside(a) - inside(b)
    assert sum(map(len, pieces)) == len(inside(a) - inside(b))
    assert not any(piece.is_empty for piece in a.minus(b))


@few
@given(patterns)
def test_a_batch_matches_as_its_rows_do(a: Pattern) -> None:
    rows = [a.matches_row(point) for point in POINTS]
    assert a.matches(PAYLOAD, TICKS).tolist() == rows
    assert a.matches({"id": PAYLOAD["id"], "name": PAYLOAD["name"]}, TICKS).tolist() == rows


@few
@given(patterns, st.sampled_from(list(Intent)))
def test_a_punctuation_survives_json_and_pickle(a: Pattern, intent: Intent) -> None:
    said = Punctuation(a, intent, (("token", 7), ("loop", ("a", 1))))
    assert Punctuation.from_json(json.loads(json.dumps(said.to_json()))) == said
    assert pickle.loads(pickle.dumps(said)) == said
    assert a in {a: 1}


def test_a_cti_covers_every_earlier_cti() -> None:
    assert Pattern.before(20).covers(Pattern.before(10))
    assert not Pattern.before(10).covers(Pattern.before(20))
    assert Pattern.before(10).covers(Pattern.before(MIN_TIME))


def test_the_end_of_the_stream_is_the_pattern_without_constraints() -> None:
    assert Pattern.before(INFINITY) == Pattern() == Pattern(time=between(MIN_TIME, INFINITY))
    assert Pattern.before(INFINITY).covers(Pattern(id=4))
    assert Pattern(time=ge(INFINITY)).is_empty


def test_only_a_prefix_of_time_has_a_bound() -> None:
    assert Pattern.before(20).time_bound == 20
    assert Pattern(id=4).time_bound == INFINITY
    assert Pattern.before(MIN_TIME).time_bound == MIN_TIME
    assert Pattern(time=between(3, 5)).time_bound is None
    assert Pattern(time=lt(20), id=4).without_time() == Pattern(id=4)


def test_a_pattern_reads_as_a_condition() -> None:
    assert str(Pattern(id=4, time=lt(20))) == "time < 20, id = 4"
    assert str(Pattern()) == "*"
    assert str(Pattern(id=[1, 3], name=None, speed=gt(2.5))) == "id in {1, 3}, name is null, speed > 2.5"
    assert str(cti(20)) == "definite: time < 20"
    assert str(definite(id=4)) == "definite: id = 4"


def test_feedback_flows_up_and_the_rest_down() -> None:
    up = {intent.value for intent in Intent if intent.direction == "up"}
    assert up == {"assumed", "desired", "demanded"}


SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("speed", pa.float64()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("at", pa.timestamp("us", tz="Europe/Berlin")),
        ("nested", pa.struct([("a", pa.int64())])),
    ]
)


def test_constants_become_those_of_the_column() -> None:
    assert Pattern(speed=lt(20)).check(SCHEMA) == Pattern(speed=lt(20.0))
    assert Pattern(speed=one_of([1, 2])).check(SCHEMA) == Pattern(speed=one_of([1.0, 2.0]))
    assert Pattern(id=lt(4.5)).check(SCHEMA) == Pattern(id=lt(5))
    assert Pattern(day="2024-05-01").check(SCHEMA) == Pattern(day=date(2024, 5, 1))
    assert Pattern(ts=lt("2024-05-01")).check(SCHEMA) == Pattern(ts=lt(datetime(2024, 5, 1)))
    berlin = Pattern(at=lt("2024-05-01T02:00:00")).check(SCHEMA)
    assert str(berlin) == "at < 2024-05-01T00:00:00+00:00"
    assert Pattern(LE=lt(4), nested=value(None)).check(SCHEMA, ticks=["LE"]).attributes == ("LE", "nested")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (Pattern(spede=4), "constrains 'spede', which is not there.\nDid you mean 'speed'?"),
        (Pattern(id="four"), "'id' is int32, but the pattern compares it with str constants: 'four'."),
        (Pattern(day=lt("soon")), "'soon' is no ISO date.\nWrite it like '2024-05-01'."),
        (Pattern(nested=4), "Constrain a column of numbers"),
        (Pattern(speed=lt(20).union(gt(50))), "Write its constants as float"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_with_a_remedy(pattern: Pattern, text: str) -> None:
    with pytest.raises(PatternError) as caught:
        pattern.check(SCHEMA)
    assert text in str(caught.value)


def test_time_is_counted_in_integers() -> None:
    with pytest.raises(PatternError, match="int64 ticks"):
        Pattern(time=lt(2.5))


def test_a_pattern_on_time_does_not_match_rows_without_times() -> None:
    with pytest.raises(PatternError, match="'time'"):
        Pattern.before(3).matches(PAYLOAD)
