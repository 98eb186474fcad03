"""The audit recomputes every operator of the law suite, and agrees with the engine at every claim."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from claim_laws import first_items, states
from depth import DEPTH, drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col, qre
from caesura.audit import NotAuditedError
from caesura.audit.check import compare
from caesura.audit.evaluate import Evaluation
from caesura.audit.progress import Known, Progress
from caesura.consistency import Claim, Mode, synchronised, tokens
from caesura.events import History, Page
from caesura.ops import pace
from caesura.ops.input import Input
from caesura.plan import Node, walk
from caesura.punctuation import Intent
from caesura.qre.step import maps, pipes
from caesura.runtime import Query
from caesura.testing.case import LABELS, LawCase, cases
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

EXAMPLES = drawn(2, short=1)
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
LEFT = InputSpec({"id": "key", "n": "int"}, key="id", max_rows=4)
RIGHT = InputSpec({"id": "key", "n": "int"}, key="id", max_rows=4)
MET: dict[str, Callable[..., Stream]] = {
    "where": lambda a, *_: a.where(col("n") > 0),
    "select": lambda a, *_: a.select(k=col("id")),
    "shift": lambda a, *_: a.shift(5),
    "extend": lambda a, *_: a.extend(-3),
    "start_at": lambda a, *_: a.start_at(4),
    "quantise": lambda a, *_: a.hopping_lifetimes(6, every=4),
    "chop": lambda a, *_: a.set_duration(9).chop(4),
    "tumbling": lambda a, *_: a.group_by("id").tumbling(5).agg(n=cz.count()),
    "hopping": lambda a, *_: a.hopping(6, every=2).agg(n=cz.count()),
    "distinct": lambda a, *_: a.select("id").distinct(),
    "difference": lambda a, b: a.difference(b),
    "union": lambda a, b: a.union(b.shift(2)),
    "join": lambda a, b: a.join(b.select("id", m=col("n")), on="id"),
    "left join": lambda a, b: a.join(b.select("id", m=col("n")), on="id", how="left"),
    "full join": lambda a, b: a.join(b.select("id", m=col("n")), on="id", how="full"),
    "anti join": lambda a, b: a.join(b, on="id", how="anti"),
    "two joins": lambda a, b: a.join(b.select("id", m=col("n")), on="id").join(
        a.select("id"), on="id", how="semi"
    ),
}
"""Steps in front of one that waits for progress: it tells how far they have come."""


def counted(name: str, *inputs: Node) -> Node:
    """How many rows there are, as far as progress lets them be counted."""
    before = MET[name](*map(Stream, inputs)).node
    return qre.over(before, qre.iter1(qre.atom(items=qre.items(before.schema)), qre.count()))


PROGRESS = [
    LawCase(
        f"progress behind {name}",
        build=partial(counted, name),
        oracle=lambda a, *_, **__: a,
        inputs=(LEFT,) if made.__code__.co_argcount == 1 else (LEFT, RIGHT),
    )
    for name, made in MET.items()
]
LOOPS = fixpoint_law_cases.CASES
SOME = 1 if DEPTH > 1 else 5
"""Of the many windows, and of the user's modules in them, a few by default; all in a longer search."""
CASES = [
    *cases(),
    *window_law_cases.CASES[::SOME],
    *[case for case in window_law_cases.CASES if case.name in ("hopping lifetimes", "bucket-5-2")],
    *udm_law_cases.CASES[::SOME],
    *qre_law_cases.CASES,
    MATCHES,
    *PROGRESS,
    *(case for case in LOOPS if case.name.endswith("-hybrid")),
]
WHY_NOT = {
    "output final": "depends on when its end came",
    "least on the loop-hybrid": "over events that never end",
    "counted ways-hybrid": "over events that never end",
}
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


@pytest.mark.thin(12)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_audit_agrees_at_every_claim_or_says_why_it_cannot_tell(case: LawCase) -> None:
    told: Counter[bool] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
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


NO_CASE = {
    "Input": "the leaves of every case",
    "Pushed": "fed by hand: its rows cannot be read again",
    "Recursive": "a part of every loop",
    "Source": "test_audit_sources",
    "Table": "test_audit_sources",
    "SourceNode": "what sources are made of",
    "GroupRows": "what frames and row patterns are made of",
    "PassThrough": "what the three steps that send feedback are made of",
    "Subscribed": "fed by another query, whose claims come with its rows",
    "Impute": "test_claims_in_flight",
    "Deadline": "test_claims_in_flight",
    "Instrument": "claims are refused: test_claims_in_flight",
    "FeedbackFrom": "claims are refused, or nothing is let go: test_claims_in_flight",
    "Pace": "claims are refused: test_claims_in_flight",
    **dict.fromkeys(
        (
            *("OverSynchronised", "PartsOfMaps", "PartsAtTicks", "OverParts", "TicksOf", "PartsOfTicked"),
            *("OverTicked", "HeadOfPipe", "RestByKey", "RestOfPipe"),
        ),
        "how a query is spread over buckets; no plan of a user holds it",
    ),
}
"""Steps without a law case here, and where they are looked at instead."""


def kinds(of: type[Node]) -> set[str]:
    """All steps that the package defines."""
    own = {of.__name__} if of.__module__.startswith("caesura.") and of is not Node else set()
    own = {name for name in own if not name.startswith("_")}  # what several steps share is none
    return own.union(*(kinds(sub) for sub in of.__subclasses__()))


def test_no_kind_of_step_is_left_out() -> None:
    assert maps and pipes and pace  # which define steps, and are not entered before they are used
    there = {type(node).__name__ for case in CASES for node in walk(case.plan())}
    assert kinds(Node) - there == {name for name in NO_CASE if name not in there}
    assert set(NO_CASE) <= kinds(Node)
