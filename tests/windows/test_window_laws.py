"""Windows obey every law, whatever lies on them and however it comes."""

from __future__ import annotations

import pytest
from depth import DEPTH, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from window_law_cases import CASES

from caesura.testing.case import EACH_KIND, ENDS_OF_TIME, LawCase
from caesura.testing.laws import check_laws, check_regressions

EXAMPLES = examples(5, short=2)


@pytest.mark.thin(9)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_law_holds_over_windows(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from(case.kinds()))
    def holds(data: st.DataObject, kinds: tuple[str, ...]) -> None:
        check_laws(case, data, kinds=kinds)  # type: ignore[arg-type]

    holds()


@pytest.mark.parametrize("origin", ENDS_OF_TIME, ids=["end", "beginning"])
def test_every_law_holds_at_the_ends_of_time(origin: int) -> None:
    @settings(max_examples=3 * EXAMPLES, deadline=None, print_blob=True)
    @given(st.data(), st.sampled_from(CASES), st.sampled_from(EACH_KIND))
    def holds(data: st.DataObject, case: LawCase, kinds: tuple[str, ...]) -> None:
        check_laws(case.about(origin), data, kinds=kinds)  # type: ignore[arg-type]

    holds()


@pytest.mark.parametrize("case", [c for c in CASES if c.regressions], ids=str)
def test_what_once_broke_a_window_does_not_again(case: LawCase) -> None:
    check_regressions(case, each_pace=DEPTH > 1)
