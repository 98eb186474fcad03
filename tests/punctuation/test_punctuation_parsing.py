"""Texts of patterns: what is printed is read again, and nothing but a pattern is read as one."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caesura.errors import CaesuraError
from caesura.punctuation import Intent, Pattern, Punctuation, cuts, parsing
from caesura.punctuation.parsing import parse_punctuation
from caesura.punctuation.values import between, ge, gt, le, lt, one_of, union_of

TYPES = {
    "n": (pa.int64(), st.integers(-(2**62), 2**62)),
    "x": (pa.float64(), st.floats()),
    "s": (pa.string(), st.text(max_size=6)),
    "a b": (pa.bool_(), st.booleans()),
    "raw": (pa.binary(), st.binary(max_size=4)),
    "price": (pa.decimal128(9, 2), st.decimals(-999, 999, places=2)),
    "day": (pa.date32(), st.dates(date(1900, 1, 1))),
    "at": (pa.timestamp("us"), st.datetimes(datetime(1900, 1, 1))),
    "when": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC))),
    "time": (pa.int64(), st.integers(0, 2**62)),
}
SCHEMA = pa.schema([(name, type_) for name, (type_, _) in TYPES.items() if name != "time"])


@st.composite
def sets(draw, constants):
    some = draw(st.lists(constants, min_size=1, max_size=5))
    parts = [one_of(some)]
    for make in draw(st.lists(st.sampled_from([lt, le, gt, ge]), max_size=2)):
        parts.append(make(draw(constants)))
    if draw(st.booleans()):
        closed = draw(st.sampled_from(["both", "left", "right", "neither"]))
        parts.append(between(draw(constants), draw(constants), closed=closed))
    made = union_of(parts) if draw(st.booleans()) else union_of(parts).complement()
    return made if len(made.intervals) < 16 else one_of(some)


@st.composite
def patterns(draw):
    names = draw(st.sets(st.sampled_from(sorted(TYPES)), max_size=3))
    return Pattern.of({name: draw(sets(TYPES[name][1])) for name in names}).check(SCHEMA)


@pytest.mark.slow
@given(patterns(), st.sampled_from(list(Intent)))
@settings(max_examples=300, deadline=None)
def test_what_a_pattern_prints_as_is_read_again(pattern, intent):
    read = parse_punctuation(str(Punctuation(pattern, intent)), SCHEMA)
    assert (read.pattern.check(SCHEMA), read.intent) == (pattern, intent)


PIECES = ["id", "time", " ", "=", "<", ">=", "!", "in", "is", "not", "null", "or", ",", "{", "}", "[", ")"]
PIECES += [
    "..",
    ":",
    "*",
    "4",
    "-7",
    "2.5",
    "inf",
    "'a'",
    '"',
    "\\",
    "definite",
    "assumed",
    "é",
    "2024-05-01",
]


@pytest.mark.slow
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
@example("")
@example("  ")
@example(",")
@example("definite:")
@settings(max_examples=500, deadline=None)
def test_a_text_is_a_pattern_that_prints_as_one_or_is_refused(text):
    try:
        read = parse_punctuation(text)
    except CaesuraError as error:
        assert error.remedy
        return
    assert parse_punctuation(str(read)) == read
    if not read.pattern.attributes:
        assert any(word in text for word in ("*", "inf", "∞", "not null")) or "or" in text


@pytest.mark.parametrize(
    "long",
    [
        lambda n: "id in {" + ", ".join(str(3 * i) for i in range(n)) + "}",
        lambda n: "id in " + " or ".join(f"[{3 * i}..{3 * i + 1}]" for i in range(n)),
        lambda n: ", ".join(f"c{i} = {i}" for i in range(n)),
        lambda n: "id = 1" + "," * n,
        lambda n: "id in " + "{" * n,
        lambda n: "id = '" + "[(,}" * n,
        lambda n: " " * n + "id = 1 or " * n,
    ],
)
def test_the_work_of_reading_grows_with_the_text_and_no_faster(long, monkeypatch):
    parse_quietly(long(8))
    small, large = (counted(parse_quietly, long(n), monkeypatch) for n in (400, 1600))
    assert large < 4 * 1.6 * small


def parse_quietly(text):
    try:
        parse_punctuation(text)
    except CaesuraError:
        return


def counted(call, text, monkeypatch):
    """How many lines and calls of Python it takes, and how many cuts of sets are walked or copied."""
    done, union = 0, cuts.union

    def walked(low, some, other_low, other):
        nonlocal done
        done += len(some) + len(other)
        return union(low, some, other_low, other)

    def trace(frame, event, arg):
        nonlocal done
        done += 1
        return trace

    before = sys.gettrace()
    with monkeypatch.context() as patched:
        patched.setattr(cuts, "union", walked)
        sys.settrace(trace)
        try:
            call(text)
        finally:
            sys.settrace(before)
    return done


def test_no_expression_that_splits_a_text_looks_at_a_letter_more_than_a_few_times():
    """No repetition inside another, none inside a look ahead."""
    found = [made for made in vars(parsing).values() if isinstance(made, re.Pattern)]
    assert found
    for made in found:
        parsed = re._parser.parse(made.pattern, made.flags)
        assert depth(parsed) <= 1, made.pattern


def depth(node):
    """How deep repetitions without end stand in each other; a look around counts as one."""
    if isinstance(node, (tuple, list)) and len(node) == 2 and str(node[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        _, high, inner = node[1]
        return depth(inner) + (high > 1)
    if isinstance(node, (tuple, list)) and len(node) == 2 and str(node[0]).startswith("ASSERT"):
        return 2 * depth(node[1])
    parts = list(node) if isinstance(node, (tuple, list, re._parser.SubPattern)) else []
    return max(map(depth, parts), default=0)


def test_numbers_for_a_column_of_decimals_are_read_exactly():
    read = parse_punctuation("price = 0.1", SCHEMA).pattern
    assert read == Pattern(price=Decimal("0.1"))
