"""S1 to S3: every step that may stand on a loop speculates rightly, does not block, moves forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.api import Stream
from caesura.events import History, Item, Page
from caesura.ops.input import Input
from caesura.plan import Node, Operator
from caesura.plan.ring import Ring, bound
from caesura.punctuation import Intent, Pattern, Promises, Punctuation
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import interleaved, streams

EXAMPLES = examples(2)
ROWS = InputSpec({"id": "key", "n": "int"}, key="id", max_rows=4)
OTHERS = InputSpec({"id": "key", "s": "name"}, key="id", max_rows=4)
LOOP = "w"

Build = Callable[[Stream, Stream], Stream]
STEPS: dict[str, Build] = {
    "where": lambda a, b: a.where(col("n") > 0),
    "select": lambda a, b: a.select("id", m=col("n") + 1),
    "union": lambda a, b: a.union(a.where(col("n") > 0)),
    "distinct": lambda a, b: a.distinct(),
    "difference": lambda a, b: a.select("id").difference(b.select("id")),
    "clip": lambda a, b: a.clip(b, on="id"),
    "shift": lambda a, b: a.shift(3),
    "extend": lambda a, b: a.extend(2),
    "set_duration": lambda a, b: a.set_duration(4),
    "scale": lambda a, b: a.scale(2),
    "start_at": lambda a, b: a.start_at(3),
    "points_at_start": lambda a, b: a.points_at_start(),
    "points_at_end": lambda a, b: a.points_at_end(),
    "snapshot": lambda a, b: a.group_by("id").snapshot().agg(total=cz.sum("n")),
} | {
    f"join-{how}": (lambda a, b, how=how: a.join(b, on="id", how=how))  # type: ignore[misc]
    for how in ("inner", "left", "right", "full", "semi", "anti")
}


def placed(build: Build) -> tuple[Node, Operator, int]:
    """The last step of a plan, with the loop entering by its first port."""
    node = build(
        Stream(Input(label="a", payload=ROWS.schema)), Stream(Input(label="b", payload=OTHERS.schema))
    ).node
    operator, ports = node.operator(), len(node.inputs)
    operator.rings[LOOP] = Ring(LOOP, "step", (0,), tuple(range(1, ports)), node.carry)
    return node, operator, ports


def draw(data: st.DataObject, build: Build) -> tuple[Node, Operator, list[tuple[int, Item]]]:
    node, operator, ports = placed(build)
    specs = [ROWS, OTHERS][:ports]
    given_ = [data.draw(streams(_like(node.inputs[p], specs[p]), closed=False))[1] for p in range(ports)]
    order = interleaved([len(items) for items in given_], data.draw(st.integers(0, 9)))
    todo = [iter(items) for items in given_]
    return node, operator, [(port, next(todo[port])) for port in order]


def _like(node: Node, spec: InputSpec) -> InputSpec:
    """A spec with the columns that the step's own input has."""
    return InputSpec({n: spec.columns.get(n, "int") for n in node.schema.names}, key="id", max_rows=4)


def step(operator: Operator, port: int, item: Item) -> list[Item]:
    made: Iterable[Item]
    made = operator.page(port, item) if isinstance(item, Page) else operator.punctuation(port, item)
    return list(made)


def rows(items: Iterable[Item]) -> list[Page]:
    return [item for item in items if isinstance(item, Page) and len(item)]


def definite_of(promises: Promises, items: Iterable[Item]) -> None:
    for item in items:
        if not isinstance(item, Page) and item.intent is Intent.DEFINITE:
            promises.add(item.pattern)


every = pytest.mark.parametrize("build", STEPS.values(), ids=STEPS.keys())
quickly = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.thin(2)
@every
def test_s1_a_guess_that_holds_before_a_step_holds_behind_it(build: Build) -> None:
    @quickly
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        node, operator, fed = draw(data, build)
        at, t = data.draw(st.integers(0, len(fed))), data.draw(st.integers(-5, 40))
        out = Promises()
        for port, item in fed[:at]:
            definite_of(out, step(operator, port, item))
        later = [int(i.sync.min()) for p, i in fed[at:] if p == 0 and isinstance(i, Page) and len(i)]
        guessed = min([t, *later])  # true: nothing before it follows by the loop's port
        guess = Punctuation(Pattern.before(guessed), Intent.SPECULATIVE, (("loop", LOOP),))
        (passed,) = step(operator, 0, guess)
        assert isinstance(passed, Punctuation)
        assert passed.intent is Intent.SPECULATIVE and passed.noted("loop") == LOOP
        outside = [operator.promises[port].cti for port in operator.rings[LOOP].outside]
        assert min(guessed, out.cti, *outside) <= bound(passed) <= guessed
        for port, item in fed[at:]:
            for page in rows(step(operator, port, item)):
                assert int(page.sync.min()) >= bound(passed), (node.kind, page.rows())

    holds()


@every
def test_s1_a_guess_that_lodges_comes_out_whole_when_the_outside_has_come_so_far(build: Build) -> None:
    _, operator, ports = placed(build)
    guess = Punctuation(Pattern.before(9), Intent.SPECULATIVE, (("loop", LOOP), ("lodge", True)))
    passed = step(operator, 0, guess)
    for port in range(1, ports):
        assert passed == []
        assert not [i for i in step(operator, port, cz.cti(8)) if _speculates(i)]
        passed = [i for i in step(operator, port, cz.cti(9)) if _speculates(i)]
    assert [bound(i) for i in passed if isinstance(i, Punctuation)] == [9]


def _speculates(item: Item) -> bool:
    return isinstance(item, Punctuation) and item.intent is Intent.SPECULATIVE


@every
def test_external_progress_is_told_at_once_and_passed_on_as_it_is(build: Build) -> None:
    _, operator, ports = placed(build)
    item = Punctuation(Pattern.before(7), Intent.PROGRESS, (("loop", LOOP), ("at", "elsewhere:1")))
    assert step(operator, 0, item) == [item]
    for port in range(1, ports):
        told = [i for i in step(operator, port, cz.cti(5)) if not isinstance(i, Page)]
        assert [(i.noted("at"), bound(i)) for i in told if i.intent is Intent.PROGRESS] == [
            (f"step:{port}", 5)
        ]


@every
def test_s2_a_step_gives_the_same_events_with_and_without_punctuation(build: Build) -> None:
    @quickly
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        node, operator, fed = draw(data, build)
        plain = node.operator()
        with_ = [page for port, item in fed for page in rows(step(operator, port, item))]
        without = [
            page for port, item in fed if isinstance(item, Page) for page in rows(step(plain, port, item))
        ]
        assert History.of(with_, node.schema) == History.of(without, node.schema)

    holds()


@every
def test_s3_no_change_comes_out_earlier_than_it_went_in(build: Build) -> None:
    @quickly
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        _, operator, fed = draw(data, build)
        for port, item in fed:
            out = rows(step(operator, port, item))
            if isinstance(item, Page) and len(item) and out:
                assert min(int(p.sync.min()) for p in out) >= int(item.sync.min())
            assert isinstance(item, Page) or not out

    holds()
