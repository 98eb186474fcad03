"""No result depends on the secret of a query, nor on the process that goes on with what it saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import law_cases  # noqa: F401  (registers the cases)
import pytest
from depth import drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura.events import draw
from caesura.events.identity import LOCAL, Secret
from caesura.plan import Node
from caesura.runtime import Query
from caesura.testing.case import LawCase, cases
from caesura.testing.host import OUT, Host, Pace, RunningPlan, schedule_of
from caesura.testing.laws import Trial, check_meaning, check_recovery, draw_trial, play

EXAMPLES = drawn(1)
SECRETS = (bytes(16), b"\xff" * 16, b"sixteen of these")
few = settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))


@contextmanager
def another_process(key: bytes) -> Iterator[None]:
    """A process with a secret of its own: what was computed under the old one is of no use."""
    before = LOCAL.copied()
    LOCAL.become(Secret(key))
    try:
        yield
    finally:
        LOCAL.become(before)


def under(key: bytes) -> Host:
    def start(node: Node, schedule: int, pace: Pace) -> RunningPlan:
        secret = Secret(key)
        return Query({OUT: node}, schedule=schedule_of(schedule), speculate=pace, secret=secret)

    return start


def shown(trial: Trial, key: bytes) -> list[str]:
    """What comes out after each item that is fed, row by row."""
    with another_process(key[::-1]):
        run = play(replace(trial, host=under(key)))
    check_meaning(trial, run.items)
    return [draw(out, schema=trial.plan.schema) for out in run.outs]


@pytest.mark.thin(12)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_every_secret_gives_the_same_rows_in_the_same_order(case: LawCase) -> None:
    @few
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        trial = draw_trial(case, data)
        first, *others = (shown(trial, key) for key in SECRETS)
        assert all(first == other for other in others)

    holds()


@pytest.mark.thin(6)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_another_process_goes_on_from_what_was_saved(case: LawCase) -> None:
    def moved(node: Node, schedule: int, pace: Pace) -> RunningPlan:
        LOCAL.become(Secret.drawn())  # the query before is over; its process has ended
        return Query({OUT: node}, schedule=schedule_of(schedule), speculate=pace)

    @few
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        with another_process(SECRETS[0]):
            check_recovery(draw_trial(case, data, host=moved))

    holds()
