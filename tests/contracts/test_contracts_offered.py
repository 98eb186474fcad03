"""What is offered is what is delivered: every operator's contracts, driven with streams that obey them."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import contract_streams as given_streams
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from caesura.contracts import Scheme, Verdict, check
from caesura.testing.case import LABELS, LawCase
from caesura.testing.strategies import interleaved, streams

EXAMPLES = int(os.environ.get("CAESURA_CONTRACT_EXAMPLES", "4"))
OVER_ALL_TIME = {"totals-all"}
"""One group for all time: only the end of the input closes it."""


def verdict_on(case: LawCase, schemes: list[Scheme]) -> Verdict:
    finite = {a: "finite" for a, s in zip(LABELS, case.inputs, strict=False) if s.lifetimes != "any"}
    named = dict(zip(LABELS, schemes, strict=False))
    return check(case.plan(), schemes=named, lifetimes=finite, advise=False)  # type: ignore[arg-type]


def most(case: LawCase) -> list[Scheme]:
    """All the punctuation that the inputs can be given."""
    return [Scheme.of(*given_streams.pool(spec)) for spec in case.inputs]


def that_can_be_safe(case: LawCase) -> LawCase:
    """The case with events that end, where those that never do would stay whatever is promised."""
    if verdict_on(case, most(case)).safe:
        return case
    return replace(case, inputs=tuple(replace(spec, lifetimes="finite") for spec in case.inputs))


@pytest.mark.parametrize("case", given_streams.CASES, ids=str)
def test_an_offered_contract_keeps_its_three_guarantees(case: LawCase) -> None:
    case = that_can_be_safe(case)
    driven = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        pools = [given_streams.pool(spec) for spec in case.inputs]
        some = st.tuples(*(st.lists(st.sampled_from(p), min_size=1, max_size=2, unique=True) for p in pools))
        everything = data.draw(st.sampled_from((True, False, False)))
        schemes = most(case) if everything else [Scheme.of(*templates) for templates in data.draw(some)]
        verdict = verdict_on(case, schemes)
        driven.append(verdict.safe)
        if not verdict.safe:
            return
        random = Random(data.draw(st.integers(0, 999)))
        items = [data.draw(streams(spec, kinds=(), closed=False))[1] for spec in case.inputs]
        kept = zip(items, case.inputs, schemes, strict=True)
        full = [given_streams.obeying(some, spec, scheme, random) for some, spec, scheme in kept]
        todo = [iter(some) for some in full]
        order = interleaved([len(some) for some in full], random.randint(0, 9))
        fed = [(n, next(todo[n])) for n in order]
        given_streams.guarantees(case, verdict, fed, random.choice(case.paces))

    holds()
    assert any(driven) != (case.name in OVER_ALL_TIME or case.name.endswith("-high_water"))
