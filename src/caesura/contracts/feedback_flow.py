"""Feedback in a plan before it runs: who says what to whom, which guards go up, and where it stops.

Read from the rules that answer feedback at run time (`Node.feedback`, `Node.feedback_sent`), consumers
first. The form of a pattern keeps what punctuation could ever cover: `time` up to a bound, values, or up to
a value.

>>> from caesura.punctuation import ge, lt
>>> print(form_of(Pattern(LE=lt(9), id=4, speed=ge(50)), ["time", "id", "speed"]))
[[time:+, id:#, speed:-]]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from caesura.plan import FeedbackRule, Node, OwnFeedback
from caesura.plan.explain import PunctuationKinds, carried
from caesura.plan.feedback import actions, as_definite, could_go
from caesura.punctuation import TIME, Pattern, Values
from caesura.punctuation.scheme import ANY_SCHEME, NONE, Scheme
from caesura.punctuation.template import Template

OUTPUT = -1
"""The port of guards at a step's output."""


@dataclass(frozen=True)
class Guarded:
    """A guard that a step puts up when feedback of some form comes."""

    port: int
    pattern: Pattern
    standing: bool
    mounted: bool
    """Whether it goes up at all: one that no punctuation of the plan can remove does not."""


@dataclass
class Answers:
    """The feedback that one step gets, what it does, and what it sends."""

    received: list[OwnFeedback] = field(default_factory=list)
    guards: list[Guarded] = field(default_factory=list)
    struck: dict[int, list[Pattern]] = field(default_factory=dict)
    """Per input, the rows that are let go at once."""
    sent: dict[int, list[OwnFeedback]] = field(default_factory=dict)
    stops: bool = False
    """Whether what came had no effect here, nor went on."""


def feedback_flow(nodes: Sequence[Node]) -> list[Answers]:
    """Every step's answers, if each sends all that it may; the last step's consumer sends nothing."""
    place = {node.fingerprint: i for i, node in enumerate(nodes)}
    kinds: list[PunctuationKinds] = []
    for node in nodes:
        kinds.append(carried(node, [kinds[place[child.fingerprint]] for child in node.inputs]))
    consumers: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        for port, child in enumerate(node.inputs):
            consumers[place[child.fingerprint]].append((i, port))
    answers = [Answers() for _ in nodes]
    for i in reversed(range(len(nodes))):
        from_consumers = [answers[consumer].sent.get(port, []) for consumer, port in consumers[i]]
        own = [*(kinds[place[child.fingerprint]] for child in nodes[i].inputs), kinds[i]]
        answers[i] = _answers(nodes[i], _agreed(from_consumers) if i < len(nodes) - 1 else [], own)
    return answers


def _agreed(from_consumers: Sequence[Sequence[OwnFeedback]]) -> list[OwnFeedback]:
    """What all consumers assume together."""
    found = []
    for some in product(*from_consumers) if from_consumers else ():
        pattern: Pattern | None = some[0].pattern
        for other in some[1:]:
            pattern = None if pattern is None else pattern.intersect(other.pattern)
        if pattern is not None and not pattern.is_empty:
            found.append(OwnFeedback(0, pattern, any(feedback.standing for feedback in some)))
    return found


def _answers(node: Node, received: list[OwnFeedback], kinds: Sequence[PunctuationKinds]) -> Answers:
    answers = Answers(received)
    for feedback in node.feedback_sent():
        answers.sent.setdefault(feedback.port, []).append(feedback)
    rules = node.feedback()
    for feedback in received if rules is not None else ():
        _answer(answers, node, rules or (), feedback, kinds)
    acted = any(guard.mounted for guard in answers.guards) or any(answers.struck.values())
    passed = len(node.feedback_sent()) < sum(map(len, answers.sent.values()))
    answers.stops = bool(received) and not acted and not passed
    return answers


def _answer(
    answers: Answers,
    node: Node,
    rules: Iterable[FeedbackRule],
    feedback: OwnFeedback,
    kinds: Sequence[PunctuationKinds],
) -> None:
    """What the first rule that fits does, as at run time."""

    def guard(port: int, pattern: Pattern) -> None:
        if node.switches.exploit and not pattern.is_empty:
            mounted = feedback.standing or could_go(pattern, kinds[port])
            answers.guards.append(Guarded(port, pattern, feedback.standing, mounted))

    action = next(actions(rules, feedback.pattern))
    if action.at_output:
        guard(OUTPUT, feedback.pattern)
    for port, pattern in action.upstream:
        if action.at_inputs:
            guard(port, pattern)
        if action.purges and node.switches.exploit:
            answers.struck.setdefault(port, []).append(pattern)
        if node.switches.propagate:
            answers.sent.setdefault(port, []).append(OwnFeedback(port, pattern, feedback.standing))


def form_of(pattern: Pattern, names: Iterable[str]) -> Template:
    """The form of what a feedback pattern matches, or more."""
    known = tuple(names)
    marks = {name: _mark(name, values) for name, values in as_definite(pattern).items()}
    return Template.of(known, {name: mark for name, mark in marks.items() if name in known})


def _mark(name: str, values: Values) -> str:
    parts = values.intervals
    bounded = not parts or parts[-1].hi is not None
    if name != TIME and all(part.is_point for part in parts):
        return "#"
    return "+" if bounded else "-"


def takes(node: Node) -> Scheme:
    """The feedback that a step takes: any, of which it acts on what is covered; or none."""
    return NONE if node.feedback() is None else ANY_SCHEME


def feedback_forms(node: Node, sent: Mapping[int, Sequence[OwnFeedback]]) -> tuple[Scheme, ...]:
    """The forms of feedback sent to each input."""
    found = []
    for port, child in enumerate(node.inputs):
        names = (TIME, *child.schema.names)
        found.append(Scheme.of(*{form_of(feedback.pattern, names) for feedback in sent.get(port, ())}))
    return tuple(found)


def own_feedback_forms(node: Node) -> tuple[Scheme, ...]:
    """The forms of feedback that a step sends to each input by itself."""
    sent: dict[int, list[OwnFeedback]] = {}
    for feedback in node.feedback_sent():
        sent.setdefault(feedback.port, []).append(feedback)
    return feedback_forms(node, sent)
