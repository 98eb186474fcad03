"""What is found is said, of every kind of step and on every surface that renders it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from contract_streams import EVERYWHERE

import caesura as cz
from caesura.console.web.pages import check_page
from caesura.console.web.watched import Watched
from caesura.contracts import Verdict, check, require_safe
from caesura.errors import PlanError
from caesura.ops.aggregate import Aggregate, Totals
from caesura.ops.input import Input
from caesura.ops.instrument import Instrument
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.plan import Node, walk
from caesura.runtime.metrics.plan_shape import PlanShape
from caesura.testing.case import LawCase

LONG = bool(os.environ.get("CAESURA_CONTRACT_PLANS"))
LARGE = 12
"""Plans of so many steps take long to mend; only a long search looks at them."""
COUNT = (("counted", Aggregate("count")),)


class Silent(Layers):
    """A step of somebody's own, which does not say what it keeps."""

    def holds(self) -> None:
        return None


FOUND: dict[str, Callable[[Node], Node]] = {
    "as it is": lambda node: node,
    "groups over all time behind it": lambda node: Totals(inputs=(node,), aggregates=COUNT),
    "a guard that stays at it": lambda node: Instrument(
        inputs=(node,), every=2, columns=tuple(node.schema.names[:1])
    ),
    "a step behind it that says nothing": lambda node: Silent(inputs=(node,), count="distinct"),
}
"""Each kind of finding, at a step or behind it."""
ENDLESS: dict[str, Callable[[Node], Node]] = {
    "": lambda node: node,
    " of what never ends": lambda node: Lifetime(inputs=(node,), rule="forever"),
}


def of_each_kind() -> list[LawCase]:
    """A case for each kind of step, and for each way in which kinds stand together in a plan."""
    found: dict[frozenset[type[Node]], LawCase] = {}
    for case in EVERYWHERE:
        nodes = list(walk(case.plan()))
        if len(nodes) < LARGE:
            found.setdefault(frozenset(map(type, nodes)), case)
    return list(found.values())


def plans(case: LawCase) -> Iterator[tuple[str, Node, dict[str, str]]]:
    """A case's plan with every finding; each under a scheme and lifetimes, in turn, or under all of them."""
    ways = list(product(ENDLESS.items(), ("none", "{[[time:+]]}")))
    for turn, (what, more) in enumerate(FOUND.items()):
        for (ends, longer), scheme in ways if LONG else [ways[turn]]:
            inputs = [
                longer(Input(label=label, payload=spec.schema, known=spec.known, place="flow.py:1"))
                for label, spec in zip("abc", case.inputs, strict=False)
            ]
            try:
                plan = case.build(*inputs)
            except PlanError:  # a step that takes points alone
                plan = case.plan()
            labels = [node.label for node in walk(plan) if isinstance(node, Input)]
            yield what + ends, more(plan), dict.fromkeys(labels, scheme)


def shown(node: Node, schemes: dict[str, str]) -> Verdict:
    """The verdict, in all its forms."""
    verdict = check(node, schemes=schemes, fix=True)
    assert str(verdict).startswith("safe" if verdict.safe else "unsafe")
    assert verdict._repr_html_()
    for finding in verdict.findings:
        assert finding.step.title in str(finding)
    if not verdict.safe:
        with pytest.raises(PlanError, match="unsafe"):
            verdict.refuse()
        list(verdict.witness(4))
    return verdict


def shown_elsewhere(node: Node) -> None:
    """What asks for a verdict of its own: a notebook, the console, and a start on Spark."""
    assert cz.Stream(node)._repr_html_()
    watched = Watched("q", PlanShape.of({"out": node}, {}), figures=lambda: None, nodes={"out": node})
    assert "Check of output out" in check_page(watched, [])
    with contextlib.suppress(PlanError):
        require_safe(node)


CASES = EVERYWHERE if LONG else of_each_kind()


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_found_of_a_step_can_be_shown_everywhere(case: LawCase) -> None:
    for place, (what, node, schemes) in enumerate(plans(case)):
        try:
            shown(node, schemes)
            if LONG or place == 1:
                shown_elsewhere(node)
        except Exception as error:
            raise AssertionError(f"{case}, {what}: {error}") from error
