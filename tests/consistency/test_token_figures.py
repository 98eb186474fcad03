"""Tokens by goal, by group, and their figures; rows in the running output are marked complete or not."""

from __future__ import annotations

import pytest

import caesura as cz
from caesura import Stream
from caesura.audit import audit_states
from caesura.consistency import Mode
from caesura.errors import CaesuraError, PlanError
from caesura.runtime.claims.figures import TokenWatch
from caesura.runtime.claims.token_places import AtLatency
from caesura.runtime.claims.tokens import TokenClaims
from caesura.runtime.query.query import Query


def read(name: str, rows: int = 40, batch: int = 5) -> Stream:
    some = [{"t": t, "k": t % 3} for t in range(rows)]
    return cz.from_rows(some, time="t", batch_size=batch, name=name)


def met() -> Stream:
    return read("east").union(read("west", 20)).join(read("rates", 10), on="k")


def claimed(stream: Stream, mode: Mode) -> Query:
    query = stream.query(claims=mode)
    query.run()
    return query


@pytest.mark.parametrize(
    "mode",
    [
        cz.tokens(every=4, sync_group={"orders": ["east", "west"]}),
        cz.tokens(every=4, sync_group={"all": ["east", "west", "rates"]}),
        cz.tokens(latency="5ms", first=3),
        cz.tokens(cost=0.5, first=16),
    ],
    ids=str,
)
def test_every_claimed_state_is_that_of_its_prefix(mode: Mode) -> None:
    done = met().run(claims=mode, schedule="round robin")
    findings = audit_states({"out": met().node}, [(c, {"out": done.at(c)}) for c in done.claims])
    assert len(findings) > 1 and all(f.right for f in findings)


def test_sources_of_a_group_put_in_tokens_together_and_others_by_themselves() -> None:
    query = met().query(claims=cz.tokens(every=4, sync_group={"orders": ["east", "west"]}))
    assert isinstance(query.claiming, TokenClaims)
    emitters, apart = query.claiming.emitters, 0
    while query.step():
        assert emitters["east"].tokens == emitters["west"].tokens
        apart += emitters["east"].tokens != emitters["rates"].tokens
    assert apart


def test_a_group_of_unknown_sources_is_refused() -> None:
    with pytest.raises(CaesuraError, match="no source 'north' to be in the group 'orders'"):
        met().query(claims=cz.tokens(sync_group={"orders": ["east", "north"]}))


@pytest.mark.parametrize(
    "given", [{"cost": 0.1, "latency": "1s"}, {"cost": 2.0}, {"first": 0}, {"every": 5, "cost": 0.1}]
)
def test_goals_that_make_no_sense_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(PlanError):
        cz.tokens(**given)  # type: ignore[arg-type]


def test_figures_tell_the_period_and_what_an_event_waits_at_most() -> None:
    figures = claimed(met(), cz.tokens(every=8)).token_figures()
    assert figures.period == 8
    assert figures.cumulative_latency == figures.token_latency + figures.distance  # type: ignore[operator]
    assert claimed(met(), cz.tokens(first=64)).token_figures().period == 64
    with pytest.raises(CaesuraError, match="no claims by tokens"):
        claimed(met(), cz.heeding()).token_figures()


def test_a_latency_goal_leaves_what_a_token_does_not_take_itself() -> None:
    query = read("read").query(claims=cz.tokens(latency="10s", first=7))
    assert isinstance(query.claiming, TokenClaims)
    places, times = query.claiming.places, iter([0.0, 1.0, 4.0, 6.0])
    assert isinstance(places, AtLatency) and (places.every, places.period) == (7, 10_000_000)
    query.claiming.watch = TokenWatch(lambda: next(times))
    for number, rows in ((1, 100), (2, 600)):
        query.claiming.watch.put(number)
        query.claiming.watch.out(number, rows)
    assert places.period == 8_000_000  # the slower token took two of the ten seconds
    assert places.every == 800  # a hundred events a second


def test_rows_of_the_running_output_are_marked_until_a_claim_covers_them() -> None:
    query = read("read", 8, 4).query(claims=cz.tokens(every=6))
    seen: dict[int, int | None] = {}
    incomplete = 0
    while query.step():
        rows = query.marked()
        seen.update(zip(rows["row"].to_pylist(), rows["claim"].to_pylist(), strict=True))
        incomplete += rows["claim"].null_count
    assert list(seen) == list(range(1, 9)) and incomplete
    ends = [0, *(claim.output["out"] for claim in query.claims)]
    assert all(c is None or ends[c - 1] < n <= ends[c] for n, c in seen.items())
    assert any(seen.values()) and ends[-1] == 8
