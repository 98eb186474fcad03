"""The bank-transfer test: every claim is the query on its prefix, one prefix for all views."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from bank_oracle import Bank, bank
from depth import DEPTH

import caesura as cz
from caesura.audit import audit_states
from caesura.consistency import Mode, broken_order
from caesura.events import Page
from caesura.runtime import Shuffled

MANY = int(os.environ.get("CAESURA_BANK_ROWS", "60000" if DEPTH > 1 else "20000"))


@pytest.mark.slow
@pytest.mark.parametrize("views", [bank.views, bank.aligned_views], ids=["views", "aligned"])
@pytest.mark.parametrize(("count", "cancelled"), [(MANY // 10, 0.0), (MANY, 0.05)])
def test_every_claim_equals_the_query_from_scratch(
    count: int, cancelled: float, views: Callable[[cz.Stream], cz.Pipeline]
) -> None:
    table = bank.transactions(count, cancelled=cancelled)
    done = views(bank.read(table)).run(claims=cz.tokens(every=len(table) // 4))
    oracle = Bank(table)
    assert len(done.claims) >= 4
    for claim in done.claims:
        apart = oracle.differences(claim.prefix["read"].offsets.get(0, 0), done.at(claim))
        assert apart == dict.fromkeys(done.results, 0), str(claim)
    assert done.claims[-1].prefix["read"].offsets == {0: len(table)}
    assert broken_order(done.claims) is None


MODES = [cz.tokens(every=37), cz.tokens(), cz.synchronised(7), cz.heeding(), cz.tokens(every=50, saves=True)]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_all_views_share_one_prefix_in_every_mode(mode: Mode) -> None:
    table = bank.transactions(400, cancelled=0.1)
    pipe = bank.views(bank.read(table, batch_size=60))
    done = pipe.run(claims=mode, schedule=Shuffled(3))
    oracle = Bank(table)
    assert done.claims
    for claim in done.claims:
        wanted = oracle.views(claim.prefix["read"].offsets.get(0, 0))
        assert {view: state.bag for view, state in done.at(claim).items()} == wanted


def test_rows_too_late_are_refused_at_the_edge_so_that_all_views_agree() -> None:
    table = bank.transactions(600)
    done = bank.views(bank.read(table, delay=3)).run(claims=cz.tokens(every=100))
    oracle = Bank(table, delay=3)
    assert sum(len(t) for t in done["total"].late.values()) > 20
    for claim in done.claims:
        wanted = oracle.views(claim.prefix["read"].offsets.get(0, 0))
        assert {view: state.bag for view, state in done.at(claim).items()} == wanted


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [0.0, 0.1], ids=["inserts", "cancellations"])
def test_the_time_aligned_views_pass_the_audit(cancelled: float) -> None:
    pipe = bank.aligned_views(bank.read(bank.transactions(300, cancelled=cancelled), batch_size=50))
    for mode in (cz.tokens(every=40), cz.synchronised(9), cz.draining()):
        done = pipe.run(claims=mode)
        some = done.claims[:: max(1, len(done.claims) // 6)]
        findings = audit_states(pipe.nodes, [(claim, done.at(claim)) for claim in some])
        assert findings
        assert [str(f) for f in findings if not f.right] == []


def test_total_is_not_zero_on_correct_prefixes_and_no_null_is_ever_claimed() -> None:
    table = bank.transactions(60)
    done = bank.views(bank.read(table, batch_size=1)).run(claims=cz.tokens(every=1))
    totals = [[row[2][0] for row in done["total"].at(claim).rows()] for claim in done.claims]
    assert any(total not in ([0], []) for total in totals)
    for claim in done.claims:
        assert all(row[2][-1] is not None for row in done["outer_join"].at(claim).rows())


@pytest.mark.slow
def test_an_eager_reader_sees_wrong_states_and_one_of_claims_sees_none() -> None:
    pipe = bank.views(bank.read(bank.transactions(80), batch_size=1))
    seen = pipe.eager()
    assert seen.wrong > seen.states // 3
    assert f"of {seen.states} states {seen.wrong}" in str(seen)


def test_output_in_consistent_states_only_shows_nothing_before_a_claim() -> None:
    pipe = bank.views(bank.read(bank.transactions(100), batch_size=10))
    query = pipe.query(claims=cz.tokens(every=40, release="consistent"))
    seen = dict.fromkeys(pipe.views, 0)
    while query.step():
        for view in pipe.views:
            seen[view] += sum(len(i) for i in query.take(view) if isinstance(i, Page))
        assert seen == (dict(query.claims[-1].output) if query.claims else dict.fromkeys(seen, 0))
    assert seen["accepted"] == 100
