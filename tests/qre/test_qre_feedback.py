"""Queries obey law 6; a partition gives keys up whole, and tells of them."""

from __future__ import annotations

import pytest
from depth import examples
from feedback_laws import by_group, check_feedback_laws, check_withdrawal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qre_law_cases import CASES, KEYED, PER_KEY

from caesura import Pattern, qre
from caesura.events import History, parse
from caesura.ops.input import Input
from caesura.plan import OUTPUT_ONLY, Properties
from caesura.runtime import Query
from caesura.testing.case import LawCase

EXAMPLES = examples(2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_feedback_through_queries_loses_nothing_uncovered(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)

    holds()


@pytest.mark.parametrize("case", [case for case in CASES if by_group(case.plan())], ids=str)
def test_queries_that_are_given_up_and_wanted_again_make_nothing_up(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_withdrawal(case, data)

    holds()


def drawn(query: Query, text: str) -> None:
    for item in parse(text, KEYED.schema):
        query.feed("a", item)
    query.run()


def test_a_partition_forgets_keys_that_are_ignored_and_tells_of_them() -> None:
    points = Input(label="a", payload=KEYED.schema, known=Properties(insert_only=True))
    plan = qre.over(points, PER_KEY)
    query = Query({"out": plan})
    drawn(query, " LE RE | id n |\n 0 1 | 1 5 | +\n 0 1 | 2 5 | +\n-- 3 --\n 4 5 | 1 6 | +")
    query.assume(Pattern(who=1))
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == ["id = 1"]
    assert query.counters()["qre"].feedback["purged rows"] == 2  # a key, and an item that waited
    drawn(query, " LE RE | id n |\n 5 6 | 2 7 | +\n 6 7 | 1 7 | +\n-- definite: * --")
    assert [row[2] for row in History.of(query.take("out"), plan.schema).rows()] == [(2, 12)]
    assert query.counters()["qre"].feedback["guard state"] == 0


def test_answers_that_others_end_tell_nobody() -> None:
    points = Input(label="a", payload=KEYED.schema, known=Properties(insert_only=True))
    assert qre.over(points, PER_KEY, lives="until_next").feedback() == OUTPUT_ONLY
