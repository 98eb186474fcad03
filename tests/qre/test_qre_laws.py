"""Queries obey every law, under every kind of punctuation."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qre_law_cases import CASES

from caesura.testing.case import LawCase
from caesura.testing.laws import check_laws
from caesura.testing.spec import PunctuationKind

EXAMPLES = examples(5)
TRIALS = [pytest.param(c, k, id=f"{c}-{'+'.join(k)}") for c in CASES for k in c.kinds()]


@pytest.mark.thin(4)
@pytest.mark.parametrize(("case", "kinds"), TRIALS)
def test_every_law_holds_for_queries(case: LawCase, kinds: tuple[PunctuationKind, ...]) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_laws(case, data, kinds=kinds)

    holds()
