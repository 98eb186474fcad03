"""The audit recomputes every operator of the law suite, and agrees with the engine at every claim."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.audit import NotAuditedError
from caesura.audit.check import compare
from caesura.audit.evaluate import Evaluation
from caesura.audit.progress import Known, Progress
from caesura.consistency import Claim, Mode, synchronised, tokens
from caesura.events import History, Page
from caesura.ops.input import Input
from caesura.plan import Node, walk
from caesura.punctuation import Intent
from caesura.runtime import Query
from caesura.testing.case import LABELS, LawCase, cases
from caesura.testing.claims import first_items, states
from caesura.testing.host import schedule_of
from caesura.testing.laws import Trial, draw_trial
from caesura.testing.spec import InputSpec, plain_rows

for room in ("laws", "windows", "udm", "qre", "fixpoint"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))

import fixpoint_law_cases  # noqa: E402
import law_cases  # noqa: E402, F401  (registers the cases)
import qre_law_cases  # noqa: E402
import udm_law_cases  # noqa: E402
import window_law_cases  # noqa: E402

EXAMPLES = int(os.environ.get("CAESURA_CLAIM_EXAMPLES", "1"))
UP, DOWN = col("v") > 0, col("v") == 0
VALLEY = cz.automaton(
    [
        cz.arc("S", "fall", DOWN, m=col("m") + 1),
        cz.arc("fall", "fall", DOWN, m=col("m") + 1),
        cz.arc("fall", "rise", UP & (col("m") > 0), m=col("m") - col("v")),
    ],
    {"m": 0},
    6,
)
MATCHES = LawCase(
    "automaton",
    build=lambda a: Stream(a).match(VALLEY).node,
    oracle=lambda a, **_: a,
    inputs=(InputSpec({"v": "key"}, key="v", max_rows=6),),
)
LOOPS = fixpoint_law_cases.CASES
CASES = [
    *cases(),
    *window_law_cases.CASES,
    *udm_law_cases.CASES,
    *qre_law_cases.CASES,
    MATCHES,
    *(case for case in LOOPS if case.name.endswith("-hybrid")),
]
WHY_NOT = {"output final": "depends on when its end came"}
"""What the audit may say that it cannot recompute, by case."""


def claimed(trial: Trial, mode: Mode) -> list[tuple[Claim, History]]:
    """What was claimed in a run of a trial, and the states."""
    query = Query({"out": trial.plan}, schedule=schedule_of(trial.schedule), claims=mode)
    for position, (number, item) in enumerate(trial.fed):
        query.feed(LABELS[number], item)
        if position not in trial.waits:
            query.run()
    query.run()
    came = states(query.take("out"))
    return [(c, History.of(came[c.number], trial.plan.schema)) for c in query.claims]


def recomputed(trial: Trial, claim: Claim) -> Known:
    """What the audit makes of a claimed prefix."""

    def fed(node: Node) -> Known:
        assert isinstance(node, Input)
        number = LABELS.index(node.label)
        some = first_items(trial.given(number), claim.prefix[node.label])
        said = [i.pattern for i in some if not isinstance(i, Page) and i.intent is Intent.DEFINITE]
        return Known(plain_rows(some, node.schema.names), Progress(tuple(said)))

    return Evaluation(fed).of(trial.plan)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_audit_agrees_at_every_claim_or_says_why_it_cannot_tell(case: LawCase) -> None:
    told: Counter[bool] = Counter()

    @settings(
        max_examples=2 * EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        trial = draw_trial(case, data)
        every = data.draw(st.integers(1, 3))
        for claim, state in claimed(trial, synchronised(every) if case in LOOPS else tokens(every=every)):
            try:
                found = compare(claim, "out", trial.plan, recomputed(trial, claim).rows, state)
            except NotAuditedError as error:
                assert WHY_NOT.get(case.name, "nothing") in str(error)
                told[False] += 1
                continue
            assert found.right, f"{trial.drawn()}\n{claim}\n{found}"
            told[True] += 1

    holds()
    assert told[True] or case.name in WHY_NOT or not told


def test_every_kind_of_step_has_a_case() -> None:
    """No operator is left out: each node is in a case here, or is one that a claim says nothing about."""
    there = {type(node).__name__ for case in CASES for node in walk(case.plan())}
    assert there >= {
        "Where", "Select", "Union", "Lifetime", "Layers", "Join", "Clip", "Chop", "Totals", "Tumbling",
        "Windows", "Quantise", "Bucket", "Over", "OverEachKey", "Match", "Fixpoint", "Deliver",
    }  # fmt: skip
