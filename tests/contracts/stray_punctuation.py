"""Punctuation that may leave a plan besides what its contract promises: true, yet not for all rows.

A left join passes `s = 'a'` of its right side but not `s is null`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from caesura.contracts.analysis import Step
from caesura.contracts.derive import leaving
from caesura.contracts.rules import InputShare, _exhausted, asked, attributes, is_registered
from caesura.plan import Node
from caesura.punctuation import NULL, TIME, Pattern
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.template import Template


def may_come(steps: Sequence[Step]) -> Scheme:
    """The forms of punctuation that may leave a plan, promised or not."""
    forms: list[Scheme] = []
    for step in steps:
        if step.origin is not None or not step.inputs:
            forms.append(step.scheme)
            continue
        share = step.rule.share if is_registered(step.node) else _without_null(step.node)
        came = [Scheme.of(*forms[i].templates, *steps[i].scheme.templates) for i in step.inputs]
        forms.append(Scheme.of(*leaving(replace(step.rule, share=share), came)))
    return forms[-1]


def _without_null(node: Node) -> InputShare:
    """What a step makes of a template whose sample says nothing of null."""

    def share(port: int, template: Template) -> Template | None:
        limited = node.limited(port)
        marks = {n: m for n, m in template.marked.items() if not _exhausted(limited.get(n), m)}
        if not marks:
            return Template.of(attributes(node.schema), {})
        some = Template.of(attributes(node.inputs[port].schema), marks)
        return asked(node, lambda pattern: node.carry(port, _stripped(pattern)), port, some)

    return share


def _stripped(pattern: Pattern) -> Pattern:
    return Pattern.of({n: v if n == TIME else v.minus(NULL) for n, v in pattern.items()})
