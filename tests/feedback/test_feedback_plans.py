"""Law 6 on drawn plans: chains and graphs of steps, with one consumer or with two of different opinions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from depth import examples
from feedback_laws import check_feedback_laws, check_withdrawal, covers, patterns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Item, violations
from caesura.events.history import Row
from caesura.feedback import worth
from caesura.ops.input import Input
from caesura.plan import Node, walk
from caesura.runtime import Query
from caesura.runtime.feedback import at_step
from caesura.testing.case import LABELS, LawCase
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import interleaved, streams

EXAMPLES = examples(8)
SPEC = InputSpec({"id": "key", "v": "int"}, key="id", lifetimes="finite", max_rows=5)
OPEN = settings(
    max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
)
Step = Callable[[Stream, Stream], Stream]

STEPS: dict[str, Step] = {
    "where": lambda s, t: s.where(col("v") > 0),
    "select": lambda s, t: s.select("id", v=col("v") + 1),
    "swap": lambda s, t: s.select(id=col("v"), v=col("id")),
    "shift": lambda s, t: s.shift(2),
    "duration": lambda s, t: s.set_duration(4),
    "union": lambda s, t: s.union(t),
    "join": lambda s, t: s.join(t.select("id", w=col("v")), "id").select("id", v=col("w")),
    "left": lambda s, t: s.join(t.select("id", w=col("v")), "id", how="left").select("id", v=col("w")),
    "anti": lambda s, t: s.join(t.select("id"), "id", how="anti"),
    "semi": lambda s, t: s.join(t.select("id"), "id", how="semi"),
    "distinct": lambda s, t: s.distinct(),
    "difference": lambda s, t: s.difference(t),
    "tumbling": lambda s, t: s.group_by("id").tumbling(4).agg(v=cz.count()),
    "hopping": lambda s, t: s.group_by("id").hopping(6, every=3).agg(v=cz.max("v")),
    "snapshot": lambda s, t: s.group_by("id").snapshot().agg(v=cz.count()),
    "totals": lambda s, t: s.group_by("id").totals(v=cz.min("v")),
    "wanted": lambda s, t: s.feedback_from(t.select("id"), "desired", on="id"),
    "asked": lambda s, t: s.feedback_from(t.select("id"), "demanded", on="id"),
    "deadline": lambda s, t: s.deadline(3),
    "points": lambda s, t: s.set_duration(1).group_by("id").hopping(6, every=2).agg(v=cz.count()),
}


TWO = ("union", "join", "left", "anti", "semi", "difference", "wanted", "asked")
"""Steps that read both."""


def drawn(seed: int, a: Node, b: Node) -> tuple[list[Stream], list[str]]:
    """The steps of a plan, each on some before it; and what they are."""
    random, pool, names = Random(seed), [Stream(a), Stream(b)], ["a", "b"]
    for _ in range(random.randint(2, 4)):
        name = random.choice(list(STEPS))
        left, right = random.choice(pool[-2:]), random.choice(pool)
        pool.append(STEPS[name](left, right))
        names.append(f"{name}({names[pool.index(left)]}, {names[pool.index(right)]})")
    unread = [n for n, node in enumerate((a, b)) if node not in list(walk(pool[-1].node))]
    for number in unread:
        name = random.choice(TWO)
        names.append(f"{name}({names[-1]}, {'ab'[number]})")
        pool.append(STEPS[name](pool[-1], pool[number]))
    return pool, names


def undisturbed(build: Callable[..., Node], spec: InputSpec = SPEC) -> Callable[..., Rows]:
    """What the plan gives when nobody says anything: what is wanted, for this law."""

    def oracle(*histories: Rows, **_: Any) -> Rows:
        inputs = [Input(label=label, payload=spec.schema, known=spec.known) for label in LABELS[:2]]
        node = build(*inputs)
        query = Query({"out": node})
        for label, rows in zip(LABELS, histories, strict=False):
            typed = [(le, re, tuple(p.values())) for le, re, p in rows]
            if typed:
                query.feed(label, History.from_rows(typed, SPEC.schema).page)
        query.run()
        found = History.of(query.take("out"), node.schema).rows()
        return [(le, re, dict(zip(node.schema.names, p, strict=True))) for le, re, p in found]

    return oracle


@OPEN
@given(st.integers(0, 1 << 30), st.data())
def test_law_6_holds_on_drawn_plans(seed: int, data: st.DataObject) -> None:
    def build(a: Node, b: Node) -> Node:
        return drawn(seed, a, b)[0][-1].node

    case = LawCase(f"plan {seed}", build=build, oracle=undisturbed(build), inputs=(SPEC, SPEC))
    check_feedback_laws(case, data)


SPECS = pytest.mark.parametrize("spec", [SPEC, replace(SPEC, insert_only=True)], ids=("corrected", "inserts"))


@SPECS
def test_what_drawn_plans_give_up_and_is_wanted_again_makes_nothing_up(spec: InputSpec) -> None:
    check_withdrawals(spec, lambda seed, a, b: drawn(seed, a, b)[0][-1].node)


@pytest.mark.thin(3)
@SPECS
@pytest.mark.parametrize("name", ("union", "join", "left", "semi", "difference", "snapshot", "points"))
def test_what_windows_lack_of_the_rows_of_a_step_before_they_do_not_make_up(
    name: str, spec: InputSpec
) -> None:
    def build(_seed: int, a: Node, b: Node) -> Node:
        rows = STEPS[name](Stream(a), Stream(b))
        both = rows if name in TWO else rows.union(Stream(b))
        return both.group_by("id").hopping(4, every=4).agg(v=cz.count()).node

    check_withdrawals(spec, build)


def check_withdrawals(spec: InputSpec, plan: Callable[[int, Node, Node], Node]) -> None:
    """The law on what is given up and wanted again, on plans that are drawn by a number."""

    @OPEN
    @given(st.integers(0, 1 << 30), st.data())
    def holds(seed: int, data: st.DataObject) -> None:
        def build(a: Node, b: Node) -> Node:
            return plan(seed, a, b)

        case = LawCase(f"plan {seed}", build=build, oracle=undisturbed(build, spec), inputs=(spec, spec))
        check_withdrawal(case, data)

    holds()


@OPEN
@given(st.integers(0, 1 << 30), st.data())
def test_law_6_holds_where_guards_rest_and_wake(seed: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worth, "TRIAL", 1)
        patch.setattr(worth, "LOOK_PAGE", 10**9)  # no guard ever pays
        for room in (worth, at_step):
            patch.setattr(room, "SELDOM", 2)
        test_law_6_holds_on_drawn_plans.hypothesis.inner_test(seed, data)  # type: ignore[attr-defined]


@OPEN
@given(st.integers(0, 1 << 30), st.data())
def test_law_6_holds_for_each_of_two_consumers(seed: int, data: st.DataObject) -> None:
    inputs = [Input(label=label, payload=SPEC.schema, known=SPEC.known) for label in LABELS[:2]]
    pool, names = drawn(seed, *inputs)
    first, second = pool[-1], data.draw(st.sampled_from(pool[2:]))
    plans = {"x": first.node, "y": second.node}
    feeds = [data.draw(streams(SPEC))[1] for _ in range(2)]
    order = interleaved([len(f) for f in feeds], data.draw(st.integers(0, 9)))
    said = {
        name: data.draw(st.dictionaries(st.integers(0, max(0, len(order) - 1)), patterns(node.schema)))
        for name, node in plans.items()
    }
    whole, _ = play(plans, feeds, order, {})
    got, _ = play(plans, feeds, order, said)
    for name, node in plans.items():
        assert violations(got[name]) == [], names
        want, have = (History.of(run[name], node.schema) for run in (whole, got))
        assert not have.bag - want.bag, (name, names, said)
        lost: list[Row] = list((want.bag - have.bag).elements())
        assert all(covers(list(said[name].values()), node.schema, lost)), (name, names, said)


def play(
    plans: dict[str, Node], feeds: list[list[Item]], order: list[int], said: dict[str, dict[int, Any]]
) -> tuple[dict[str, list[Item]], Query]:
    """Feeds the inputs, with things said by each consumer before some items."""
    query = Query(plans, unused=LABELS[:2])
    todo = [iter(feed) for feed in feeds]
    for position, number in enumerate(order):
        for name, moments in said.items():
            if position in moments:
                query.assume(moments[position], output=name)
        query.feed(LABELS[number], next(todo[number]))
        query.run()
    return {name: query.take(name) for name in plans}, query


def test_plans_are_of_many_kinds() -> None:
    """The drawing reaches every step, and steps that several read."""
    a, b = (Input(label=label, payload=SPEC.schema, known=SPEC.known) for label in LABELS[:2])
    texts = [drawn(seed, a, b)[1][-1] for seed in range(200)]
    assert all(any(f"{name}(" in text for text in texts) for name in STEPS)
    assert any(text.count("tumbling(a") > 1 or text.count("where(a") > 1 for text in texts)
