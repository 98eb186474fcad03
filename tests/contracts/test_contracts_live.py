"""Declared schemes held against running queries, and rules that steps register themselves."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import col
from caesura.contracts import ANY_SCHEME, Rule, Scheme, check, register
from caesura.contracts.live import watch_sources
from caesura.contracts.rules import rule_of
from caesura.errors import PlanError, StreamError
from caesura.events import History, Page
from caesura.ops.input import Input
from caesura.ops.layers import Layers
from caesura.plan import Holding, Need
from caesura.runtime import Query

ROWS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("punct", pa.string())])


def source(*rows: tuple[int, int | None, str | None]):
    """Rows with punctuation between them."""
    table = pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)
    return cz.from_arrow(table, time="ts", punctuate=cz.in_data("punct", closes=False)).node


def declaring(gives: str, *rows: tuple[int, int | None, str | None]) -> cz.Stream:
    """The same, with the forms of the punctuation declared."""
    table = pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)
    return cz.from_arrow(table, time="ts", punctuate=cz.in_data("punct", gives=gives, closes=False))


BROKEN = ((1, 7, None), (0, None, "id = 7"), (0, None, "time < 2"), (3, 8, None))


def test_punctuation_that_a_source_did_not_declare_is_told_in_the_late_table_and_not_taken():
    got = declaring("{[[id:#]]}", *BROKEN).run()
    assert [str(item.pattern) for item in got.items if not isinstance(item, Page)] == ["id = 7"]
    (told,) = got.late["read"].to_pylist()
    assert told["reason"] == "punctuation 'time < 2': the source declares {[[time:-, id:#]]} only"
    assert told["offset"] == 2


@pytest.mark.parametrize("buckets", [1, 3])
def test_what_packets_carry_is_held_to_the_same_declaration(buckets):
    cluster = Cluster({"out": declaring("{[[id:#]]}", *BROKEN).node}, buckets=buckets)
    cluster.run()
    reasons = [row["reason"] for some in cluster.late.values() for batch in some for row in batch.to_pylist()]
    assert reasons == ["punctuation 'time < 2': the source declares {[[time:-, id:#]]} only"]


FEW = [(1, 7, None), (0, None, "id = 7"), (2, 8, None), (3, 9, None), (0, None, "id = 8"), (4, 9, None)]


@pytest.mark.parametrize("buckets", [0, 1, 3])
def test_the_few_values_that_pass_a_filter_are_over_when_each_of_them_is(buckets):
    few = declaring("{[[id:#]]}", *FEW).where(col("id").isin([7, 8])).select(k=col("id"))
    plan = few.totals(n=cz.count())
    assert plan.check().safe
    cluster = Cluster({"out": plan.node}, buckets=max(1, buckets))
    cluster.run()
    items = cluster.items["out"] if buckets else plan.run().items
    assert [str(i.pattern) for i in items if not isinstance(i, Page)][-1] == "*"
    assert [row[2] for row in History.of(items, plan.schema).rows()] == [(2,)]


def test_a_plan_over_declared_punctuation_is_checked_without_being_told_more():
    stream = declaring("{[[id:#]]}", *BROKEN).group_by("id").totals(n=cz.count())
    verdict = stream.check()
    assert verdict.safe and str(verdict.output) == "{[[time:-, id:#, n:-]]}"
    both = cz.delay(5) & cz.in_data("punct", gives="{[[id:#]]}")
    table = pa.Table.from_pylist([], ROWS)
    steps = cz.from_arrow(table, time="ts", punctuate=both).check().steps
    assert str(steps[0].scheme) == "{[[time:+, id:-]], [[time:-, id:#]]}"


def watched(node, scheme: str):
    query = Query({"out": node})
    watches = watch_sources(query.graph.cells, check(node, schemes={"read": scheme}))
    query.run()
    return watches["read"]


def test_a_source_that_keeps_its_word_is_left_alone():
    node = source((1, 7, None), (2, 8, None), (0, None, "id = 7"), (0, None, "id = 8"))
    watch = watched(node, "{[[id:#]]}")
    watch.close("read")
    assert watch.obeyed


def test_a_source_whose_data_holds_undeclared_punctuation_is_stopped_and_named():
    node = source((1, 7, None), (0, None, "time < 2"))
    with pytest.raises(StreamError, match=r"the source 'read' declares .*, but gave 'time < 2'"):
        watched(node, "{[[id:#]]}")


def test_a_source_that_leaves_an_event_uncovered_is_named_when_it_ends():
    node = source((1, 7, None), (2, 8, None), (0, None, "id = 8"))
    watch = watched(node, "{[[id:#]]}")
    with pytest.raises(StreamError, match="1 event is not covered"):
        watch.close("read")


def test_a_step_can_register_a_rule_with_feedback_of_its_own():
    class Paced(Layers):
        """Stands for a step that sends feedback on time to its input."""

    def rule(node) -> Rule:
        names = ("time", *node.schema.names)
        timely = Scheme.parse("{[[time:+]]}", names)
        kept = Holding("rows", 0, (Need(0, tuple(node.schema.names)),), until="start")
        return Rule((names,), names, lambda _, t: t, (kept,), feedback_in=ANY_SCHEME, feedback_out=(timely,))

    register(Paced, rule)
    with pytest.raises(PlanError, match="has a contract rule already"):
        register(Paced, rule)
    node = Paced(inputs=(Input(label="a", payload=pa.schema([("id", pa.int64())])),), count="distinct")
    contract = check(node).contracts["r1"]
    assert rule_of(node).feedback_in == ANY_SCHEME and contract.well_formed
    assert str(contract.feedback_out[0]) == "{[[time:+, id:-]]}"
