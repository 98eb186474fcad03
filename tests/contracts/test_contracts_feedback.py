"""Feedback in contracts: taken from the rules that answer it, matched along the plan, guards that go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura.contracts import ContractError, Link, Offering, accordance, bounds, check
from caesura.contracts import SourceRate as Rate
from caesura.events import Page
from caesura.expr import col
from caesura.ops.feedback_from import FeedbackFrom
from caesura.ops.impute import Impute
from caesura.ops.input import Input
from caesura.ops.instrument import Instrument
from caesura.ops.join import Join
from caesura.ops.pace import Pace
from caesura.ops.where import Where
from caesura.plan import FeedbackRule, Node, Properties
from caesura.punctuation import cti, value
from caesura.runtime import Query

SENSORS = pa.schema([("id", pa.int64()), ("speed", pa.float64())])
POINTS = Properties(insert_only=True, points=True, aligned=True, max_duration=1)
TIMELY = "{[[time:+, id:-, speed:-]]}"


def fill(batch: pa.RecordBatch) -> list[float]:
    return [50.0] * batch.num_rows


def sensors(label: str = "sensor") -> Input:
    return Input(label=label, payload=SENSORS, known=POINTS, place="flow.py:1")


def imputed(kind: type[Impute] = Impute, budget: int | None = 1) -> Impute:
    dirty = Where(inputs=(sensors(),), predicate=col("speed").is_null())
    missing = col("speed").is_null()
    return kind(
        inputs=(dirty,),
        value="speed",
        by=fill,
        missing=missing,
        budget=budget,
        place="flow.py:3",
        name="fill",
    )


def figure_5_8(kind: type[Impute] = Impute) -> Pace:
    """PACE over what is clean and what IMPUTE fills, one row for each item that comes."""
    clean = Where(inputs=(sensors(),), predicate=col("speed").is_not_null())
    return Pace(inputs=(clean, imputed(kind)), within=5, place="flow.py:4")


def waiting(node: Node, ticks: int) -> int:
    """How many rows wait to be filled, when three of four sensors are broken."""
    query = Query({"out": node})
    for tick in range(ticks):
        rows = pa.RecordBatch.from_pylist([{"id": i, "speed": None if i else 9.0} for i in range(4)], SENSORS)
        query.feed("sensor", Page.of(rows, le=[tick] * 4, re=[tick + 1] * 4))
        query.feed("sensor", cti(tick))
        query.run()
    return query.counters()["fill"].state_rows


def test_the_contracts_of_figure_5_9_follow_from_the_operators_own_rules():
    contracts = check(figure_5_8()).contracts
    passes = f"<In={TIMELY}, Out={TIMELY}, Feedback.In=any, Feedback.Out={TIMELY}>"
    assert [str(contracts[r]) for r in ("r1", "r2", "r3")] == [passes] * 3
    assert str(contracts["r4"]) == (
        f"<In1={TIMELY}, In2={TIMELY}, Out={TIMELY}, Feedback.In=any, "
        f"Feedback.Out1={TIMELY}, Feedback.Out2={TIMELY}>"
    )
    assert all(contract.well_formed for contract in contracts.values())


def test_the_plan_of_figure_5_8_is_a_consistent_accordance_with_all_its_feedback():
    verdict = check(figure_5_8())
    offered = {step.node.fingerprint: [step.derived.contract] for step in verdict.steps}
    links = [
        Link(child.fingerprint, step.node.fingerprint, port=port)
        for step in verdict.steps
        for port, child in enumerate(step.node.inputs)
    ]
    found = accordance(offered, links, feedback="required")
    assert verdict.safe and found is not None and found.stopped == ()


def test_what_pace_says_frees_the_rows_that_wait_and_without_it_they_pile_up():
    assert check(figure_5_8()).safe and waiting(figure_5_8(), 60) <= waiting(figure_5_8(), 30) + 2
    alone = check(imputed())
    assert "rows that wait to be filled are held for ever" in alone.growth
    assert "more of them may come with an item than its budget of 1 fills" in alone.growth
    assert waiting(imputed(), 60) >= waiting(imputed(), 30) + 25
    assert [str(r) for r in alone.remedies][-1:] == [
        "take no budget in 'fill' (flow.py:3), or a pace(...) behind it, which strikes what is too late"
    ]
    assert check(imputed(budget=None)).safe and waiting(imputed(budget=None), 30) == 0


def test_rows_that_feedback_frees_have_no_bound_from_rates_alone():
    with pytest.raises(ContractError, match="rates alone do not bound the rows that wait to be filled"):
        bounds(figure_5_8(), {"sensor": Rate(events=4, per=1, within=2)})


class Deaf(Impute):
    """An impute whose rule for feedback was deleted."""

    def feedback(self) -> Any:
        return None


class Careful(Impute):
    """An impute whose rule stops rows at the input, but strikes none from its list."""

    def feedback(self) -> tuple[FeedbackRule, ...]:
        (rule,) = super().feedback()
        return (FeedbackRule(rule.ports, "rows", "input"),)


@pytest.mark.parametrize("kind", [Deaf, Careful])
def test_deleting_a_rule_removes_the_purge_and_the_contract_together(kind):
    verdict = check(figure_5_8(kind))
    assert not verdict.safe and "rows that wait to be filled" in verdict.growth
    assert waiting(figure_5_8(kind), 60) >= waiting(figure_5_8(kind), 30) + 25


def test_feedback_that_a_step_does_not_take_stops_there_and_says_so():
    verdict = check(figure_5_8(Deaf))
    assert str(verdict.contracts["r3"].feedback_in[0]) == "none"
    assert str(verdict.contracts["r2"].feedback_out[0]) == "none"
    assert "Feedback from step 'pace' (flow.py:4) stops at step 'fill' (flow.py:3): it takes none." in str(
        verdict
    )


def test_a_thrifty_join_offers_the_gaps_it_tells_of_and_a_plain_one_nothing():
    other = pa.schema([("id", pa.int64()), ("w", pa.int64())])
    sides = (sensors("a"), Input(label="b", payload=other, known=POINTS))
    thrifty = Offering.of(Join(inputs=sides, on=(("id", "id"),), thrifty=True)).rule
    assert [str(s) for s in thrifty.feedback_out] == [TIMELY, "{[[time:+, id:-, w:-]]}"]
    plain = Offering.of(Join(inputs=sides, on=(("id", "id"),))).rule
    assert [str(s) for s in plain.feedback_out] == ["none", "none"] and str(plain.feedback_in) == "any"


def test_a_join_translates_what_it_hears_for_the_side_that_knows_it():
    other = pa.schema([("id", pa.int64()), ("w", pa.int64())])
    joined = Join(inputs=(sensors("a"), Input(label="b", payload=other, known=POINTS)), on=(("id", "id"),))
    verdict = check(Instrument(inputs=(joined,), every=2, columns=("speed",)))
    assert [str(s) for s in verdict.contracts["r2"].feedback_out] == ["{[[time:+, id:-, speed:#]]}", "none"]
    verdict = check(Instrument(inputs=(joined,), every=2, columns=("id",)))
    assert [str(s) for s in verdict.contracts["r2"].feedback_out] == [
        "{[[time:+, id:#, speed:-]]}",
        "{[[time:+, id:#, w:-]]}",
    ]


TEXTS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("v", pa.int64()), ("punct", pa.string())])


def instrumented(rows: int, gives: str | None = None) -> Instrument:
    """After each row its id is said to be of no more interest; the data promises on `v` alone."""
    told = [{"ts": n, "id": n, "v": n, "punct": None} for n in range(rows)]
    told = [row for n, event in enumerate(told) for row in (event, {"punct": f"v = {n}"})]
    table = pa.Table.from_pylist(told, TEXTS)
    policy = cz.in_data("punct", gives=gives, closes=False)
    source = cz.from_arrow(table, time="ts", punctuate=policy).where(col("v") >= 0)
    return Instrument(inputs=(source.node,), every=1, pattern=None, columns=("id",), place="flow.py:5")


def guards(node: Node) -> int:
    query = Query({"out": node})
    query.run()
    return sum(cell.responder.state for cell in query.graph.cells if cell.responder is not None)


def test_a_guard_that_never_goes_is_named_with_what_it_lacks_and_shows_when_it_runs():
    verdict = check(instrumented(4), schemes={"read": "{[[v:#]]}"})
    kinds = [finding.kind for finding in verdict.findings]
    assert not verdict.safe and set(kinds) == {"guard"}
    assert "guards on 'time' and 'id' at its output never go" in verdict.growth
    assert guards(instrumented(40)) >= guards(instrumented(20)) + 20


def test_a_remedy_for_a_guard_that_never_goes_is_punctuation_that_covers_it():
    verdict = check(instrumented(4), schemes={"read": "{[[v:#]]}"})
    assert any("gives='id'" in str(remedy) for remedy in verdict.remedies)
    assert check(instrumented(4), schemes={"read": "v; id"}).safe


def test_where_a_source_declares_its_forms_a_guard_that_could_never_go_is_not_put_up():
    node = instrumented(20, gives="{[[v:#]]}")
    verdict = check(node)
    assert verdict.safe and "no punctuation would remove its guards" in str(verdict)
    assert guards(node) == 0


def test_feedback_from_another_stream_stands_until_it_is_taken_back_and_that_is_noted():
    control = Input(label="control", payload=pa.schema([("id", pa.int64())]))
    node = FeedbackFrom(inputs=(sensors(), control), intent="assumed", on=("id",), place="flow.py:6")
    verdict = check(node)
    assert verdict.safe
    assert "'feedback_from' (flow.py:6) asks to leave out stays so until it is taken back" in str(verdict)


def test_feedback_of_a_fixed_pattern_has_the_form_of_what_could_ever_cover_it():
    said = Instrument(inputs=(sensors(),), every=1, columns=("id",)).feedback_sent()
    assert [s.pattern for s in said] == [s.pattern.replace("LE", value(0)) for s in said]
