"""Every operator's claims are true: under each mode, any schedule, down to pages of one row."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from claim_laws import check_claims
from depth import drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caesura.consistency import Mode, draining, heeding, synchronised, tokens
from caesura.events import Page
from caesura.plan import walk
from caesura.testing.case import LawCase, cases
from caesura.testing.laws import Trial, draw_trial

for room in ("laws", "windows"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))

import law_cases  # noqa: E402, F401  (registers the cases)
import window_law_cases  # noqa: E402

EXAMPLES = drawn(1)
WINDOWS = window_law_cases.CASES[::4]
CASES = [c for c in (*cases(), *WINDOWS) if "output" not in c.name]


def single_rows(trial: Trial) -> Trial:
    """The same trial in pages of one row."""
    fed = []
    for number, item in trial.fed:
        size = len(item) if isinstance(item, Page) else 1
        fed += [(number, item.slice(r, 1) if isinstance(item, Page) else item) for r in range(size)]
    return Trial(trial.case, fed, schedule=trial.schedule, waits=frozenset(range(0, len(fed), 3)))


@pytest.mark.thin(12)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_claimed_state_is_that_of_its_prefix(case: LawCase) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        trial = draw_trial(case, data)
        modes: list[Mode] = [tokens(every=data.draw(st.integers(1, 4))), heeding(), draining()]
        modes += [tokens(every=2, sync_group="none"), synchronised(data.draw(st.integers(1, 5)))]
        sends_feedback = any(node.sends_feedback for node in walk(trial.plan))
        for mode in modes:
            if sends_feedback and mode == heeding():
                continue  # it is refused
            some = trial if data.draw(st.booleans()) else single_rows(trial)
            check_claims(some, mode, capacity=data.draw(st.sampled_from((1, 8))))

    holds()
