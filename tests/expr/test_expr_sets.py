"""Sets in binary columns: of any size, and what Python's own sets say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col, lit
from caesura.errors import ExprError
from caesura.events.columns import byte_parts
from caesura.expr import evaluate
from caesura.expr.rules_sets import _members, find_member, put_member

NUMBERS = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
TEXTS = st.one_of(st.none(), st.text(max_size=3))


@pytest.mark.parametrize(("members", "kind"), [(NUMBERS, pa.int64()), (TEXTS, pa.string())])
def test_a_set_has_what_was_added_and_nothing_else(members: Any, kind: pa.DataType) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(members, min_size=9, max_size=9), max_size=6))
    def holds(rows: list[list[Any]]) -> None:
        *added, asked = ([row[n] for row in rows] for n in range(9))
        names = [f"c{n}" for n in range(8)]
        batch = pa.record_batch([pa.array(c, kind) for c in (*added, asked)], names=[*names, "asked"])
        made = cz.set_of(*names)
        unknown = [None in row[:8] or row[8] is None for row in rows]
        wanted = [None if u else row[8] in row[:8] for u, row in zip(unknown, rows, strict=True)]
        assert evaluate(made.set_has(col("asked")), batch).to_pylist() == wanted
        again = evaluate(cz.set_of(*reversed(names)), batch)
        assert again.equals(evaluate(made, batch))  # in whatever order they came

    holds()


def test_a_set_of_thousands_has_each_of_them() -> None:
    held = pa.record_batch(
        {"n": pa.array([1]), "s": evaluate(cz.set_of(lit(0)), pa.record_batch({"n": [1]}))}
    )
    for number in range(2000):
        grown = evaluate(col("s").set_add(lit(number * 7)), held)
        held = held.set_column(1, "s", grown)
    asked = [evaluate(col("s").set_has(lit(n)), held)[0].as_py() for n in (0, 7, 13_993, 13_994, -7)]
    assert asked == [True, True, True, False, False]
    assert len(held["s"][0].as_py()) == 2000 * 13


def test_bytes_that_are_no_set_are_refused() -> None:
    batch = pa.record_batch({"s": pa.array([b"", b"\x09\x00\x00\x00i"]), "n": pa.array([1, 2])})
    with pytest.raises(ExprError, match="is not a set"):
        evaluate(col("s").set_has(col("n")), batch)


def test_a_set_of_what_is_neither_a_whole_number_nor_text_is_refused() -> None:
    with pytest.raises(ExprError, match="wanted a set and a whole number or text"):
        evaluate(cz.set_of("x"), pa.record_batch({"x": pa.array([1.5])}))


@given(
    st.lists(st.tuples(st.lists(st.integers(-3, 3), max_size=4), st.integers(-3, 3)), min_size=1, max_size=4)
)
@settings(max_examples=30, deadline=None)
def test_the_twins_of_the_kernels_do_as_they_do(rows: list[tuple[list[int], int]]) -> None:
    sets = []
    for members, _ in rows:
        made = cz.set_of(*map(lit, members)) if members else lit(b"")
        sets.append(evaluate(made, pa.record_batch({"n": [1]}))[0].as_py())
    parts = (*byte_parts(pa.array(sets)), *byte_parts(_members(pa.array([one for _, one in rows]))))
    outs = []
    for find, put in ((find_member, put_member), (find_member.twin, put_member.twin)):
        found, place = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64)
        assert find(*parts, found, place) == -1
        sizes = np.diff(parts[0]) + np.where(found, 0, np.diff(parts[2]) + 4)
        to = np.concatenate([[0], np.cumsum(sizes)])
        out = np.empty(to[-1], np.uint8)
        put(*parts, found, place, to, out)
        outs.append((found.tolist(), place.tolist(), out.tobytes()))
    assert outs[0] == outs[1]
