"""Which source is read next: a step that joins them keeps little, whatever they promise."""

from __future__ import annotations

from itertools import chain

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.punctuation import Pattern, cti

MARKS = {
    "key": lambda n: [Pattern(id=n)],
    "time": lambda n: [cti(n)],
    "both": lambda n: [cti(n), Pattern(id=n)],
}


def rows(count, kind, name):
    """Rows with rising times and keys, and punctuation of a kind between them."""
    made = ([{"t": n, "id": n, name: n}, *MARKS[kind](n)] for n in range(count))
    return list(chain.from_iterable(made))


def peak(plan, claims=None):
    """The most rows that the plan's last step keeps, where sources read a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("caesura.runtime.graph.source_reader.LIVE_BATCH", 8)
        query = plan.query(claims=claims)
    most = 0
    while query.step():
        most = max(most, query.cell("out").operator.measure().state_rows)
    return most


kinds = st.sampled_from(["key", "time", "both"])


@pytest.mark.slow
@given(kinds, kinds, st.sampled_from([None, None, cz.tokens(every=10)]))
@settings(max_examples=examples(12, short=6), deadline=None)
def test_a_join_keeps_as_little_of_long_sources_as_of_short_ones(left, right, claims):
    sizes = []
    for count in (60, 120):
        one = cz.from_rows(rows(count, left, "v"), time="t", name="one")
        two = cz.from_rows(rows(count, right, "w"), time="t", name="two")
        sizes.append(peak(one.join(two, on="id"), claims))
    assert sizes[1] <= sizes[0] + 10, sizes
