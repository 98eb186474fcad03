"""Windows obey law 6: feedback loses nothing uncovered and makes nothing up."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_law_cases import CASES

from caesura.testing.case import LawCase
from caesura.testing.feedback import check_feedback_laws

EXAMPLES = int(os.environ.get("CAESURA_WINDOW_EXAMPLES", "2"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_feedback_over_windows_loses_nothing_uncovered(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_feedback_laws(case, data)

    holds()
