"""What is offered is what is delivered: every operator's contracts, driven with streams that obey them."""

from __future__ import annotations

from random import Random

import contract_streams as given_streams
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from caesura.contracts import Scheme, check
from caesura.testing.case import LABELS, LawCase
from caesura.testing.strategies import interleaved, streams


@pytest.mark.parametrize("case", given_streams.CASES[-16:], ids=str)
def test_an_offered_contract_keeps_its_three_guarantees(case: LawCase) -> None:
    tried = []

    @settings(
        max_examples=60,
        deadline=None,
        derandomize=False,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        pools = [given_streams.pool(spec) for spec in case.inputs]
        schemes = [
            Scheme.of(*data.draw(st.lists(st.sampled_from(p), min_size=1, max_size=2, unique=True)))
            for p in pools
        ]
        named = dict(zip(LABELS, schemes, strict=False))
        finite = {
            label: "finite" for label, s in zip(LABELS, case.inputs, strict=False) if s.lifetimes != "any"
        }
        node = case.plan()
        verdict = check(node, schemes=named, lifetimes=finite, advise=False)
        tried.append(verdict.safe)
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
    print("SAFE", case.name, sum(tried), len(tried))
