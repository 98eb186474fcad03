"""Loops obey every law: at every settled instant they hold the fixed point computed from scratch."""

from __future__ import annotations

import pytest
from depth import DEPTH, examples
from fixpoint_law_cases import CASES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura.testing.case import LawCase
from caesura.testing.laws import check_laws, check_regressions

EXAMPLES = examples(3, short=2)


@pytest.mark.thin(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_law_holds_on_a_loop(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from(case.kinds()))
    def holds(data: st.DataObject, kinds: tuple[str, ...]) -> None:
        check_laws(case, data, kinds=kinds)  # type: ignore[arg-type]

    holds()


@pytest.mark.parametrize("case", [c for c in CASES if c.regressions], ids=str)
def test_what_once_broke_a_loop_does_not_again(case: LawCase) -> None:
    check_regressions(case, each_pace=DEPTH > 1)
