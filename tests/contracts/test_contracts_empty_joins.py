"""What check says of joins that may find no pair is held against drawn plans and their rows, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples, seed_of
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col

SAID = "safe, but step '"
APART = 1000
"""Rows of one source are so far apart; those of the other start a little later, and no shift is as much."""


def source(name: str, first: int) -> Stream:
    rows = [{"ts": first + APART * t, "k": 1} for t in range(1, 5)]
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(2), name=name)


STEPS: dict[str, Any] = {
    "shift": lambda s: s.shift(10),
    "back": lambda s: s.shift(-10),
    "where": lambda s: s.where("k = 1"),
    "select": lambda s: s.select("k"),
    "never": lambda s: s.where("k = 1 and k = 2"),
    "longer": lambda s: s.set_duration(2 * APART),
    "long": lambda s: s.set_duration(50),
    "points": lambda s: s.set_duration(1).where("k = 1"),
    "ends": lambda s: s.points_at_end(),
    "extend": lambda s: s.extend(30),
    "shorter": lambda s: s.extend(-1),
    "forever": lambda s: s.forever(),
    "chop": lambda s: s.chop(40),
    "round": lambda s: s.start_at(APART).set_duration(1).where("k = 1"),
    "hops": lambda s: s.hopping_lifetimes(APART, every=APART).set_duration(1).where("k = 1"),
    "over": lambda s: s.over(rows=3).agg(n=cz.count()).select("k"),
    "both": lambda s: s.union(s.shift(20)),
    "clipped": lambda s: s.clip(s.shift(5), "k"),
}
UNKNOWN = {"over", "ends", "round", "hops", "chop"}
"""Of these steps check does not know by how much rows start later than those of their inputs."""
SIDE = st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from(sorted(STEPS)), max_size=3))


def side(of: str, steps: list[str]) -> Stream:
    stream = source(of, 1 if of == "a" else 5)
    for name in steps:
        stream = STEPS[name](stream)
    return stream


@seed(seed_of("empty joins"))
@settings(max_examples=examples(3000, short=60), deadline=None, suppress_health_check=list(HealthCheck))
@given(SIDE, SIDE, st.sampled_from(("inner", "semi", "left")))
def test_a_join_of_points_is_said_to_be_empty_where_it_is(left: Any, right: Any, how: Any) -> None:
    one, other = side(*left), side(*right)
    met = one.join(other.with_columns(m=1), on="k", how=how)
    if how == "left" and one.check().cautions:
        return  # said of the left side alone
    verdict = met.check()
    rows = len((met.where("m = 1") if how == "left" else met).run().history)
    said = bool(verdict.cautions)
    assert str(verdict).startswith(SAID) is (said and verdict.safe)
    if said:
        assert rows == 0, str(verdict)
    elif all(child.properties.points for child in met.node.inputs) and not UNKNOWN & {*left[1], *right[1]}:
        assert rows > 0, met.explain()


def test_what_reads_starts_alone_is_not_said_to_need_rows_that_live_at_once() -> None:
    a, b = source("a", 0), source("b", 7).with_columns(m=col("k"))
    for made in (a.join_asof(b, on="k"), a.clip(b, "k")):
        assert len(made.run().history) == 4 and not made.check().cautions


@pytest.mark.parametrize("made", ["html", "text"])
def test_a_reader_who_stops_at_the_first_line_has_read_that_no_pair_may_be(made: str) -> None:
    verdict = source("a", 0).join(source("b", 7).with_columns(m=1), on="k").check()
    text = verdict._repr_html_() if made == "html" else str(verdict)
    assert "no others can be alive at once. Give within=" in (
        text if made == "html" else text.splitlines()[0]
    )
