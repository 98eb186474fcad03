"""User-defined modules obey law 6: feedback loses nothing uncovered and makes nothing up."""

from __future__ import annotations

from typing import Any

import pytest
from depth import drawn
from feedback_laws import by_group, check_feedback_laws, check_given_up, check_withdrawal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_udm_properties import READINGS, plain, twice
from udm_law_cases import CASES

from caesura import Pattern, Stream, col
from caesura.events import History, Page
from caesura.ops.input import Input
from caesura.plan import Node
from caesura.punctuation import Punctuation, ge
from caesura.runtime import Query
from caesura.testing import parse
from caesura.testing.case import LawCase
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec

EXAMPLES = drawn(1)


@pytest.mark.thin(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_feedback_through_modules_loses_nothing_uncovered(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)
        check_given_up(case, data)

    holds()


@pytest.mark.thin(4)
@pytest.mark.parametrize("case", [case for case in CASES if by_group(case.plan())], ids=str)
def test_modules_that_are_given_up_and_wanted_again_make_nothing_up(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_withdrawal(case, data)

    holds()


SPEC = InputSpec({"id": "key", "v": "int"}, key="id", lifetimes="finite", max_rows=6)


def doubled(rows: Rows, *, size: int, every: int) -> Rows:
    """From scratch: every row two times in each window that it overlaps."""
    starts = range(-10 * every, 60 * every, every)
    return [
        (s, s + size, {"id": p["id"], "v": p["v"]})
        for le, re, p in rows
        for s in starts
        if s < re and le < s + size and p["v"] is not None
        for _ in range(2)
    ]


def commuting(size: int, every: int) -> LawCase:
    def build(a: Node) -> Node:
        known = Stream(a).where(col("v").is_not_null())
        return known.group_by("id").hopping(size, every=every).apply(twice()).node

    return LawCase(
        f"twice {size}/{every}", build, lambda a, **_: doubled(a, size=size, every=every), inputs=(SPEC,)
    )


@pytest.mark.parametrize("case", [commuting(5, 5), commuting(6, 3)], ids=str)
def test_a_module_that_a_filter_commutes_with_gives_up_single_rows(case: LawCase) -> None:
    @settings(
        max_examples=6 * EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)

    holds()


def fed(query: Query, text: str) -> None:
    for item in parse(text, READINGS):
        query.feed("a", item)
    query.run()


@pytest.mark.parametrize(("module", "told"), [(twice, ["v >= 5"]), (plain, [])])
def test_what_a_module_declares_decides_what_its_input_is_told(module: Any, told: list[str]) -> None:
    plan = Stream(Input(label="a", payload=READINGS)).group_by("id").tumbling(10).apply(module())
    query = plan.query()
    fed(query, " LE RE | id v |\n 1 2 | 7 5 | +\n 1 2 | 7 2 | +")
    query.assume(Pattern(v=ge(5)))
    assert [str(m.pattern) for m in query.upstream_feedback("a")] == told
    fed(query, " LE RE | id v |\n 2 3 | 7 9 | +\n 3 4 | 7 1 | +\n-- definite: * --")
    values = sorted(row[2][1] for row in History.of(query.take("out"), plan.schema).rows())
    assert values == ([1, 1, 2, 2] if module is twice else [1, 2, 5])  # it had left before, and may stay
    counted = query.counters()
    assert counted["tumbling"].rows_in == (3 if module is twice else 4)
    assert all(c.feedback.get("guard state", 0) == 0 for c in counted.values())


def test_a_demand_for_other_groups_leaves_no_state_of_a_module_behind() -> None:
    case = next(one for one in CASES if one.name == "Keeping-snapshot-none-clipped")
    query = Query({"out": case.plan()}, speculate="watermark")
    page = parse(" LE RE | id v |\n 0 1 | 0 0 | +\n 0 1 | 0 0 | -", SPEC.schema)[0]
    assert isinstance(page, Page)
    query.feed("a", page.slice(0, 1))
    query.run()
    query.demand(Pattern(id=1))
    query.run()
    query.feed("a", page.slice(1, 1))
    query.feed("a", Punctuation(Pattern()))
    query.run()
    assert not {name: c.state_rows for name, c in query.counters().items() if c.state_rows}
