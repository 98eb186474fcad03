"""Every registered case obeys every law, under every kind of punctuation."""

from __future__ import annotations

import law_cases  # noqa: F401  (registers the cases)
import pytest
from depth import DEPTH, examples, seed_of
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from caesura.events import Page
from caesura.testing.case import LawCase, cases
from caesura.testing.laws import check_all, check_regressions, draw_trial
from caesura.testing.spec import PunctuationKind

EXAMPLES = examples(6, short=1)
TRIALS = [pytest.param(c, k, id=f"{c}-{'+'.join(k)}") for c in cases() for k in c.kinds()]


@pytest.mark.thin(12)
@pytest.mark.parametrize(("case", "kinds"), TRIALS)
def test_every_law_holds(case: LawCase, kinds: tuple[PunctuationKind, ...]) -> None:
    """Once for each case on no rows at all, which is what is drawn first; else on streams with rows."""
    first = kinds == case.kinds()[0]

    @seed(seed_of(str(case), *kinds))
    @settings(
        max_examples=EXAMPLES + first, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        trial = draw_trial(case, data, kinds=kinds)
        assume(first or any(isinstance(item, Page) for _, item in trial.fed))
        check_all(trial)

    holds()


@pytest.mark.parametrize("case", [c for c in cases() if c.regressions], ids=str)
def test_what_once_broke_a_law_does_not_again(case: LawCase) -> None:
    check_regressions(case, each_pace=DEPTH > 1)
