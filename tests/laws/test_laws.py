"""Every registered case obeys every law, under every kind of punctuation."""

from __future__ import annotations

import law_cases  # noqa: F401  (registers the cases)
import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura.testing.case import LawCase, cases
from caesura.testing.laws import check_laws, check_regressions
from caesura.testing.spec import PunctuationKind

EXAMPLES = examples(6, short=3)
TRIALS = [pytest.param(c, k, id=f"{c}-{'+'.join(k)}") for c in cases() for k in c.kinds()]


@pytest.mark.parametrize(("case", "kinds"), TRIALS)
def test_every_law_holds(case: LawCase, kinds: tuple[PunctuationKind, ...]) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_laws(case, data, kinds=kinds)

    holds()


@pytest.mark.parametrize("case", [c for c in cases() if c.regressions], ids=str)
def test_what_once_broke_a_law_does_not_again(case: LawCase) -> None:
    check_regressions(case)
