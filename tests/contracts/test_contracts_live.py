"""Declared schemes held against running queries, and rules that steps register themselves."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura.contracts import ANY_SCHEME, Rule, Scheme, check, register
from caesura.contracts.live import watch_sources
from caesura.contracts.rules import rule_of
from caesura.errors import PlanError, StreamError
from caesura.ops.input import Input
from caesura.ops.layers import Layers
from caesura.plan import Holding, Need
from caesura.runtime import Query

ROWS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("punct", pa.string())])


def source(*rows: tuple[int, int | None, str | None]):
    """Rows with punctuation between them."""
    table = pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)
    return cz.from_arrow(table, time="ts", punctuate=cz.in_data("punct", closes=False)).node


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
