"""Every registered case obeys law 6 under random feedback."""

from __future__ import annotations

import law_cases  # noqa: F401  (registers the cases)
import pytest
from depth import drawn
from feedback_laws import by_group, check_feedback_laws, check_given_up, check_withdrawal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura.feedback import worth
from caesura.runtime.feedback import at_step
from caesura.testing.case import LawCase, cases

EXAMPLES = drawn(2, short=1)


@pytest.mark.thin(12)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_feedback_loses_nothing_uncovered_and_makes_nothing_up(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)

    holds()


@pytest.mark.thin(4)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_what_is_given_up_leaves_no_state(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_given_up(case, data)

    holds()


@pytest.mark.thin(4)
@pytest.mark.parametrize("case", [case for case in cases() if by_group(case.plan())], ids=str)
def test_what_is_given_up_and_wanted_again_makes_nothing_up(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_withdrawal(case, data)

    holds()


@pytest.mark.thin(7)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_feedback_holds_whichever_pages_guards_look_at(
    case: LawCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every guard that may be left out looks at one page in two."""
    monkeypatch.setattr(worth, "SELDOM", 2)
    monkeypatch.setattr(at_step, "SELDOM", 1)
    monkeypatch.setattr(worth.Worth, "pays", property(lambda self: False))

    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)

    holds()
