"""What a module declares is used by the planner, shown by explain, and tried by the checker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura import col, uda, udo
from caesura.events import History
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.plan.explain import explain
from caesura.plan.prune import push
from caesura.runtime import Query
from caesura.testing import assert_history, parse, run
from caesura.udm import check_module

READINGS = pa.schema([("id", pa.int64()), ("v", pa.int64())])
DRAWN = " LE RE | id v |\n 0 4 | 7 1 | +\n 2 6 | 7 2 | +\n 3 9 | 8 5 | +"


@dataclass
class Reading:
    v: int


@udo(filter_commutes=True, empty_preserving=True)
def twice(rows: list[Reading]) -> list[Reading]:
    """Every value two times."""
    return [row for row in rows for _ in range(2)]


@udo
def plain(rows: list[Reading]) -> list[Reading]:
    return list(rows)


@udo(filter_commutes=True, empty_preserving=True)
def made_up(rows: list[Reading]) -> list[Reading]:
    return [*rows, Reading(99)]


def stream() -> cz.Stream:
    return cz.Stream(Input(label="a", payload=READINGS))


def steps(plan: cz.Stream) -> list[str]:
    """The kinds of steps from the output down, filters where they end up."""
    node, found = push({"out": plan.node})["out"], []
    while node.inputs:
        found.append(node.kind)
        node = node.inputs[0]
    return found


@pytest.mark.parametrize(
    ("plan", "wanted"),
    [
        (lambda s: s.tumbling(5).apply(twice()).where(col("v") > 1), ["tumbling", "where"]),
        (lambda s: s.tumbling(5).apply(plain()).where(col("v") > 1), ["where", "tumbling"]),
        (lambda s: s.snapshot().apply(twice()).where(col("v") > 1), ["where", "snapshot"]),
        (lambda s: s.group_by("id").snapshot().apply(plain()).where(col("id") == 7), ["snapshot", "where"]),
        (
            lambda s: s.group_by("id").tumbling(5).agg(n=cz.count()).where(col("id") == 7),
            ["tumbling", "where"],
        ),
        (
            lambda s: s.group_by("id").tumbling(5).agg(n=cz.count()).where(col("n") == 7),
            ["where", "tumbling"],
        ),
        (lambda s: s.group_by("id").totals(n=cz.count()).where(col("id") == 7), ["totals", "where"]),
    ],
)
def test_a_filter_goes_below_windows_where_it_commutes_with_them(plan: Any, wanted: list[str]) -> None:
    assert steps(plan(stream())) == wanted


def test_a_filter_stays_above_windows_that_somebody_else_reads_too() -> None:
    windows = stream().group_by("id").tumbling(5).agg(n=cz.count())
    made = push({"all": windows.node, "some": windows.where(col("id") == 7).node})
    assert made["some"].kind == "where"
    assert made["some"].inputs[0].fingerprint == made["all"].fingerprint


def test_a_filter_that_went_below_gives_what_it_gave_above() -> None:
    out = run(stream().tumbling(5).apply(twice()).where(col("v") > 1), {"a": DRAWN})
    rows = "".join(f" {le} {le + 5} | {v} | +\n" * 2 for le, v in ((0, 2), (5, 2), (0, 5), (5, 5)))
    assert_history(out, " LE RE | v |\n" + rows)


def test_the_filter_is_put_in_terms_of_what_is_mapped() -> None:
    mapped = stream().tumbling(5).apply(twice(col("v") + 1)).where(col("v") > 2)
    below: Any = push({"out": mapped.node})["out"].inputs[0]
    assert str(below.predicate) == "v + 1 > 2"


@uda(mergeable=True, monotone=True)
class Most:
    """The greatest value, kept as a list."""

    def init(self) -> list[int]:
        return []

    def add(self, state: list[int], value: int) -> None:
        state.append(value)

    def remove(self, state: list[int], value: int) -> None:
        state.remove(value)

    def merge(self, state: list[int], other: list[int]) -> None:
        state.extend(other)

    def compute(self, state: list[int]) -> int:
        return max(state, default=0)


def test_explain_says_what_is_declared_and_how_states_are_kept() -> None:
    ticks = cz.from_rows([{"t": 1, "v": 2}], time="t")
    text = ticks.hopping(10, every=5).agg(x=Most("v")).explain()
    assert "Most is deterministic, mergeable, monotone; final: states of panes merge" in text
    assert "a state per window" in stream().tumbling(10).agg(x=Most("v")).explain()
    lasting = cz.from_rows([{"t": 1, "to": 5, "v": 2}], time="t", end="to")
    assert "a state slides per group" in lasting.hopping(10, every=5).agg(x=Most("v")).explain()


def test_the_checker_tries_what_filters_rely_on() -> None:
    assert check_module(twice)
    text = str(check_module(made_up))
    assert "it is declared empty-preserving, but makes rows out of none" in text
    assert "a filter is declared to commute with it, but does not" in text


def test_windows_of_a_monotone_module_are_let_alone_once_a_filter_behind_has_done_with_them() -> None:
    ticks = Input(label="a", payload=READINGS, known=Properties(insert_only=True))
    plan = cz.Stream(ticks).tumbling(100).agg(x=Most("v")).where(col("x") <= 5)
    drawn = " LE RE | id v |\n" + "".join(f" {t} {t + 1} | 1 {t} | +\n" for t in range(20))
    (page,) = parse(drawn, READINGS)
    counts = {}
    for name, nodes in (("plain", {"out": plan.node}), ("pushed", push({"out": plan.node}))):
        query = Query(nodes)
        for row in range(20):
            query.feed("a", page.slice(row, 1))  # type: ignore[union-attr]
            query.run()
        counts[name] = [c.extra["adds"] for c in query.counters().values() if "adds" in c.extra]
        assert len(History.of(query.take("out"), plan.schema)) == 0
    assert counts == {"plain": [20], "pushed": [7]}
    assert "windows past 5 are let alone" in explain(push({"out": plan.node})["out"])
