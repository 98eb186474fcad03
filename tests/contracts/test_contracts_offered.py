"""What is offered is what is delivered: every operator's contracts, driven with streams that obey them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import contract_streams as given_streams
import pyarrow as pa
import pytest
from depth import DEPTH, drawn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from caesura.contracts import Scheme, Verdict, Watch, check
from caesura.events import Page
from caesura.ops.instrument import Instrument
from caesura.ops.pace import Pace
from caesura.punctuation import Punctuation
from caesura.testing.case import LABELS, LawCase
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import interleaved, streams

EXAMPLES = drawn(3, short=1)
OVER_ALL_TIME = {
    "totals-all",
    "match a V",
    "match all rows of runs",
    "match what was matched",
    "match rows behind and at the ends",
}
"""One group for all time, or matches in it that no time bounds: only the end of the input closes it."""


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


THAT_MOVE_ON = [case for case in given_streams.CASES if str(2**70) not in str(case)]
"""Without the steps that move all rows to the last tick, which nothing passes but the end of a stream."""
ALWAYS_SPOKEN_TO = {"where", "points_at_start", "difference-bag", "tumbling-ints", "impute"}
"""Steps of which rows come out in any case."""


def spoken_to(case: LawCase, column: str) -> LawCase:
    """The case with a step behind it that says, after each row, that such rows are of no more interest."""
    return replace(
        case, build=lambda *inputs: Instrument(inputs=(case.build(*inputs),), every=1, columns=(column,))
    )


def plain_columns(case: LawCase) -> list[str]:
    return [f.name for f in case.plan().schema if not pa.types.is_nested(f.type)]


@pytest.mark.thin(9)
@pytest.mark.parametrize("case", THAT_MOVE_ON[:: 1 if DEPTH > 1 else 4], ids=str)
def test_guards_that_feedback_puts_up_are_gone_when_the_inputs_have_promised(case: LawCase) -> None:
    case = that_can_be_safe(case)
    put_up: list[str] = []

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
        told = spoken_to(case, data.draw(st.sampled_from(plain_columns(case))))
        schemes = most(case)
        verdict = verdict_on(told, schemes)
        if not verdict.safe:
            return
        random = Random(data.draw(st.integers(0, 999)))
        items = [data.draw(streams(spec, kinds=(), closed=False))[1] for spec in case.inputs]
        kept = zip(items, case.inputs, schemes, strict=True)
        full = [given_streams.obeying(some, spec, scheme, random) for some, spec, scheme in kept]
        fed = [(LABELS[n], item) for n, some in enumerate(full) for item in some]
        for n, (spec, scheme) in enumerate(zip(case.inputs, schemes, strict=True)):
            far = [p for t in scheme for p in given_streams.closing(t, spec, 4 * given_streams.END)]
            fed += [(LABELS[n], Punctuation(pattern)) for pattern in far]
        _, held = given_streams.drive(verdict.steps[-1].node, fed, "arrival")
        put_up.extend(name for name in held if name.startswith("guards"))
        assert sum(held.values()) <= given_streams.always_held(case.plan(), [item for _, item in fed]), held

    holds()
    assert put_up or DEPTH == 1 or case.name not in ALWAYS_SPOKEN_TO  # three draws may say nothing


@pytest.mark.thin(9)
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


SPEC = InputSpec({"id": "key"}, key="id", lifetimes="points", insert_only=True)
PACED = LawCase("pace", lambda a, b: Pace(inputs=(a, b), within=3), lambda a, b, **_: a + b, (SPEC, SPEC))


def scattered(random: Random) -> list[Page]:
    """Points of any time, one to a page."""
    starts = [random.randrange(20) for _ in range(8)]
    rows = [pa.RecordBatch.from_pylist([{"id": random.choice((0, 1, None))}], SPEC.schema) for _ in starts]
    return [Page.of(row, le=[t], re=[t + 1]) for row, t in zip(rows, starts, strict=True)]


@pytest.mark.parametrize("seed", range(8))
def test_pace_keeps_its_contract_on_what_it_does_not_leave_out(seed: int) -> None:
    random = Random(seed)
    timely, *others = given_streams.pool(SPEC)
    schemes = [Scheme.of(timely, random.choice(others)) for _ in range(2)]
    verdict = verdict_on(PACED, schemes)
    full = [given_streams.obeying(scattered(random), SPEC, scheme, random) for scheme in schemes]
    todo = [iter(some) for some in full]
    order = interleaved([len(some) for some in full], seed)
    out, held = given_streams.drive(
        verdict.steps[-1].node, [(LABELS[n], next(todo[n])) for n in order], "arrival"
    )
    watch = Watch(verdict.output, tolerates=most(PACED)[0])
    watch.see(out)
    assert verdict.safe and not any(held.values()) and watch.obeyed, watch.report()
    rows = sum(len(item) for item in out if isinstance(item, Page))
    assert 0 < rows < 16, "some rows are left out, and the others come"
