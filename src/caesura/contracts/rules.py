"""What a step does with punctuation, and what it keeps: the rules that contracts are derived from.

A step's own `carry` is asked with sample patterns, one per template, so that what is offered is what the
physical step does. Steps that need more say than `carry` and `holds` register a rule of their own.

>>> import pyarrow as pa
>>> from caesura.ops.input import Input
>>> from caesura.ops.layers import Layers
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> rule = rule_of(Layers(inputs=(clicks,), count="distinct"))
>>> rule.inputs, rule.share(0, Template.over(["time", "id"], time="+")).marked
((('time', 'id'),), {'time': '+'})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from caesura.contracts.feedback_flow import own_feedback_forms, takes
from caesura.contracts.samples import sample_value
from caesura.errors import PlanError
from caesura.plan import Holding, Node
from caesura.punctuation import NULL, TIME, Pattern, Values, lt, value
from caesura.punctuation.scheme import NONE, Scheme
from caesura.punctuation.template import Template, template_of

Names = tuple[str, ...]
InputShare = Callable[[int, Template], Template | None]


@dataclass(frozen=True)
class Rule:
    """An operator as contracts see it."""

    inputs: tuple[Names, ...]
    output: Names
    share: InputShare
    """One input's template, as its share of what leaves; None where it does not pass."""
    holds: tuple[Holding, ...]
    undeclared: bool = False
    """Whether the step does not say what it keeps."""
    also: InputShare | None = None
    """A second template that leaves because of the same one, such as a window number's; None for none."""
    alone: InputShare | None = None
    """What leaves because of one input's template alone, once the rows of that input are let go."""
    feedback_in: Scheme = NONE
    """The feedback that it takes from its consumer."""
    feedback_out: tuple[Scheme, ...] = ()
    """The feedback that it sends, per input."""
    steering: frozenset[int] = frozenset()
    """The inputs of which no row leaves, so that nothing that leaves waits for their promises."""


_rules: dict[type[Node], Callable[[Node], Rule]] = {}


def register(kind: type[Node], rule: Callable[[Node], Rule]) -> None:
    """Lets a kind of step say its own rule instead of ``carry`` and ``holds``.

    Parameters
    ----------
    kind
        The class of the step.
    rule
        What makes a rule of such a step.

    Raises
    ------
    PlanError
        Where the kind has a rule already.

    Examples
    --------
    >>> from caesura.contracts import Offering, register
    >>> class Sieve:
    ...     inputs = ()
    >>> register(Sieve, lambda node: Offering.of(node.inputs[0]).rule)
    """
    if kind in _rules:
        raise PlanError(f"'{kind.__name__}' has a contract rule already.", remedy="Register it once.")
    _rules[kind] = rule


def is_registered(node: Node) -> bool:
    """Whether a step's kind says its own rule."""
    return any(kind in _rules for kind in type(node).__mro__)


def rule_of(node: Node) -> Rule:
    """The rule of a step: its registered one, or the one that `carry` and `holds` give."""
    for kind in type(node).__mro__:
        if kind in _rules:
            return _rules[kind](node)
    holds = node.holds()
    return Rule(
        inputs=tuple(attributes(child.schema) for child in node.inputs),
        output=attributes(node.schema),
        share=lambda port, template: carried(node, port, template),
        holds=holds or (),
        also=_second(node),
        alone=_alone(node),
        undeclared=holds is None,
        feedback_in=takes(node),
        feedback_out=own_feedback_forms(node),
        steering=frozenset(port for port in range(len(node.inputs)) if node.steers(port)),
    )


def _second(node: Node) -> InputShare | None:
    """What a step sends besides, because of the same punctuation; None for most steps."""
    if type(node).closed is Node.closed:
        return None
    return lambda port, template: asked(node, node.closed, port, template)


def _alone(node: Node) -> InputShare | None:
    """What a step sends for one input without waiting for the others; None for most steps."""
    if type(node).alone is Node.alone:
        return None
    return lambda port, template: asked(node, lambda pattern: node.alone(port, pattern), port, template)


def attributes(schema: pa.Schema) -> Names:
    """The attributes of a stream: time, then its payload."""
    return (TIME, *schema.names)


def carried(node: Node, port: int, template: Template) -> Template | None:
    """What a step makes of one input's template, by its own rule.

    The sample allows null in every column: a step that stops null (a join that pads with it) would leave
    those rows without punctuation for ever.
    """
    limited = node.limited(port)
    left = {n: m for n, m in template.marked.items() if not _exhausted(limited.get(n), m)}
    template = Template.of(attributes(node.inputs[port].schema), left)
    if not template.marked:
        return Template.of(attributes(node.schema), {})
    return asked(node, lambda pattern: node.carry(port, pattern), port, template)


def _exhausted(limit: str | None, mark: str) -> bool:
    """Whether promises on values, or up to one, come to cover all that passes a filter."""
    return limit == "few" or (limit == "bounded" and mark == "+")


def asked(
    node: Node, rule: Callable[[Pattern], Pattern | None], port: int, template: Template
) -> Template | None:
    """The template of what a rule on patterns makes of one that a template stands for."""
    schema = node.inputs[port].schema
    if any(pa.types.is_nested(schema.field(name).type) for name in template.payload):
        return None  # no pattern speaks of structs
    out = rule(_pattern(schema, template))
    if out is None or out.is_empty:
        return None
    return template_of(Pattern.of({n: _plain(v) for n, v in out.items()}), attributes(node.schema))


def _pattern(schema: pa.Schema, template: Template) -> Pattern:
    constraints: dict[str, Values] = {}
    for name, mark in template.marked.items():
        if name == TIME:
            constraints[name] = lt(0)
            continue
        point = sample_value(schema.field(name).type, 1)
        values = lt(point) if mark == "+" else value(point)
        constraints[name] = values.union(NULL)
    return Pattern.of(constraints)


def _plain(values: Values) -> Values:
    return Values(values.low, values.cuts, False, values.kind) if values.cuts else values
