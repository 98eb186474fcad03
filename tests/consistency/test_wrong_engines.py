"""The audit catches each kind of wrong engine, at the views that it gets wrong."""

from __future__ import annotations

import pytest
import wrong_engines as wrong
from bank_oracle import bank

import caesura as cz
from caesura.audit import audit_states


def found(pipe: cz.Pipeline, states: wrong.States) -> set[str]:
    return {f.view for f in audit_states(pipe.nodes, states) if not f.right}


@pytest.mark.slow
def test_an_eager_engine_is_caught() -> None:
    assert {"balance", "total"} <= found(*wrong.eager_output(25))


def test_a_join_of_unequal_prefixes_is_caught_at_the_join() -> None:
    assert found(*wrong.unsynchronised_join(60, 15)) == {"balance"}


def test_two_queries_side_by_side_are_caught_where_they_meet() -> None:
    assert found(*wrong.two_unaligned_queries(100)) == {"debits"}


def test_lateness_inside_an_operator_is_caught_at_the_operator() -> None:
    assert found(*wrong.late_inside_an_operator(150)) == {"credits"}


@pytest.mark.parametrize("every", [10, 33])
def test_a_right_engine_is_not(every: int) -> None:
    pipe = bank.views(bank.read(bank.transactions(100), batch_size=7))
    done = pipe.run(claims=cz.tokens(every=every))
    assert found(pipe, [(claim, done.at(claim)) for claim in done.claims]) == set()
