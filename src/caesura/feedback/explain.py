"""What each step of a plan would do about a feedback pattern, and how far up it gets.

>>> import pyarrow as pa
>>> from caesura.expr import col
>>> from caesura.ops.input import Input
>>> from caesura.ops.where import Where
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]), place="")
>>> print(explain_feedback(Where(inputs=(clicks,), predicate=col("id") > 0, place=""), [Pattern(id=4)]))
feedback: id = 4 will be ignored
r1 := where: stops id = 4 at its input; sends id = 4 to r0
r0 := input: keeps back id = 4 at its output
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from caesura.feedback.agreement import ConsumerAgreement
from caesura.plan import Node, walk
from caesura.plan.feedback import FeedbackAction, actions
from caesura.punctuation import Pattern


@dataclass(frozen=True)
class Response:
    """What one step would do about a pattern; ``sends`` names what goes to which input."""

    ref: str
    step: str
    place: str
    pattern: str
    does: tuple[str, ...]
    sends: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = [*self.does, *(f"sends {pattern} to {ref}" for ref, pattern in self.sends)]
        return f"{self.ref} := {self.step}: {'; '.join(words or ['does nothing about it'])}"

    def to_json(self) -> dict[str, Any]:
        own = {"ref": self.ref, "step": self.step, "place": self.place, "pattern": self.pattern}
        return {**own, "does": list(self.does), "sends": dict(self.sends)}


def explain_feedback(root: Node, patterns: Iterable[Pattern]) -> str:
    """The answers, consumer first, under the references of `explain`."""
    some = list(patterns)
    heads = [f"feedback: {pattern} will be ignored" for pattern in some]
    return "\n".join([*heads, *map(str, responses(root, some))])


def responses(root: Node, patterns: Iterable[Pattern]) -> list[Response]:
    """What each step that some patterns come to does, consumer first."""
    nodes = list(walk(root))
    ref = {node.fingerprint: f"r{i}" for i, node in enumerate(nodes)}
    agreements = {node.fingerprint: ConsumerAgreement(_consumers(node, nodes, root)) for node in nodes}
    agreed: dict[str, list[Pattern]] = {node.fingerprint: [] for node in nodes}
    found: list[Response] = []
    for pattern in patterns:
        agreed[root.fingerprint] += agreements[root.fingerprint].add("consumer", pattern, True)
    for node in reversed(nodes):
        mine, own = agreements[node.fingerprint], (ref[node.fingerprint], node.step, node.place)
        if any(mine.standing.values()) and not agreed[node.fingerprint]:
            waits = f"waits until all {len(mine.consumers)} of its consumers have said so"
            found.append(Response(*own, "", (waits,)))
        for pattern in agreed[node.fingerprint]:
            sent, words = answer(node, pattern)
            sends = tuple((ref[node.inputs[port].fingerprint], str(g)) for port, g in sent)
            found.append(Response(*own, str(pattern), tuple(words), sends))
            for port, g in sent:
                child = node.inputs[port].fingerprint
                agreed[child] += agreements[child].add(f"{node.fingerprint}:{port}", g, True)
    return found


def _consumers(node: Node, nodes: list[Node], root: Node) -> list[str]:
    found = ["consumer"] if node is root else []
    for user in nodes:
        found += [
            f"{user.fingerprint}:{p}"
            for p, child in enumerate(user.inputs)
            if child.fingerprint == node.fingerprint
        ]
    return found


def answer(node: Node, pattern: Pattern) -> tuple[list[tuple[int, Pattern]], list[str]]:
    """What a step sends to which input, and what it does itself, in words."""
    rules = node.feedback()
    if rules is None:
        return [], ["takes no feedback: it stops here"]
    action = next(actions(rules, pattern))
    words = _words(action) if node.switches.exploit else ["does not act on it"]
    if action.rule is None and any(rule.for_good(pattern) is not None for rule in rules if rule.bounds):
        words.append("gives up results that match for good, and sends their groups on")
    elif action.rule is None and node.inputs:
        words.append("sends nothing on, since it has no exact form over an input")
    return (list(action.upstream) if node.switches.propagate else []), words


def _words(action: FeedbackAction) -> list[str]:
    rule, pattern = action.rule, action.pattern
    if action.gives_up:
        return [f"gives up results with {pattern}, with their state", "keeps them back at its output"]
    if rule is None or not action.at_inputs:
        return [f"keeps back {pattern} at its output"]
    if rule.means == "rows":
        where = "its input" if len(rule.ports) == 1 else "its inputs"
        return list(dict.fromkeys(f"stops {g} at {where}" for _, g in action.upstream))
    words = [f"stops {g} at its {('left', 'right')[port]} input" for port, g in action.upstream]
    return [*words, "lets go of such rows" if action.purges else "corrects what it has sent of such rows"]
