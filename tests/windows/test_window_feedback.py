"""Windows obey law 6: feedback loses nothing uncovered and makes nothing up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from depth import drawn
from feedback_laws import (
    Act,
    FeedbackTrial,
    by_group,
    check_feedback,
    check_feedback_laws,
    check_given_up,
    check_withdrawal,
    patterns,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_law_cases import CASES

import caesura as cz
from caesura import Stream
from caesura.punctuation import Pattern
from caesura.testing.case import LawCase
from caesura.testing.laws import draw_trial
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec

EXAMPLES = drawn(1)


@pytest.mark.thin(10)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_feedback_over_windows_loses_nothing_uncovered(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)
        check_given_up(case, data)

    holds()


@pytest.mark.thin(3)
@pytest.mark.parametrize("case", [case for case in CASES if by_group(case.plan())], ids=str)
def test_windows_that_are_given_up_and_wanted_again_make_nothing_up(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_withdrawal(case, data)

    holds()


POINTS = InputSpec({"id": "key", "v": "int"}, key="id", lifetimes="points", insert_only=True)


def in_panes(rows: Rows, **_: Any) -> Rows:
    """From scratch: how many points of each id lie in each window, and the greatest value."""
    found: dict[tuple[int, Any], list[Any]] = {}
    for le, _, p in rows:
        for start in range(-60, 90, 2):
            if start <= le < start + 6:
                found.setdefault((start, p["id"]), []).append(p["v"])
    return [
        (s, s + 6, {"id": i, "n": len(vs), "top": max((v for v in vs if v is not None), default=None)})
        for (s, i), vs in found.items()
    ]


PANED = LawCase(
    "panes",
    lambda a: Stream(a).group_by("id").hopping(6, every=2).agg(n=cz.count(), top=cz.max("v")).node,
    in_panes,
    (POINTS,),
)


@pytest.mark.thin(5)
@pytest.mark.parametrize("case", [PANED, *(c for c in CASES if "watermark" in c.paces)], ids=str)
def test_what_windows_show_on_demand_is_corrected(case: LawCase) -> None:
    """Whatever is demanded, and whenever: the history is the same, and no promise is broken."""

    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        trial = draw_trial(replace(case, paces=("watermark",)), data)
        wishes = st.lists(st.just(Pattern()) | patterns(trial.plan.schema), max_size=1)
        acts: dict[int, list[Act]] = {
            at: [("demand", p) for p in data.draw(wishes)] for at in range(len(trial.fed))
        }
        check_feedback(FeedbackTrial(trial, acts, None))

    holds()
