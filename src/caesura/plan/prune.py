"""Leaves out the columns that no step reads, and lets filters go first where they may.

Every step says which columns of an input it needs for some of its output; a source whose rows have
more is read without them, and row-wise steps drop what ends with them. The late table then shows the
columns that the plan uses. A filter goes below a step that commutes with it (`Node.behind`), unless
somebody else reads that step too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from caesura.plan.node import Node, rebuilt, walk


def prune(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The same plan without the columns that nobody reads."""
    outputs = push(outputs)
    nodes = list(walk(*outputs.values()))
    needed: dict[str, set[str]] = {n.fingerprint: set() for n in nodes}
    for node in outputs.values():
        needed[node.fingerprint] |= set(node.schema.names)
    for node in reversed(nodes):
        wanted = needed[node.fingerprint]
        for port, child in enumerate(node.inputs):
            needed[child.fingerprint] |= node.needs(port, wanted)
    made: dict[str, Node] = {}
    for node in nodes:
        made[node.fingerprint] = _rebuilt(node, made, needed[node.fingerprint])
    return {name: made[node.fingerprint] for name, node in outputs.items()}


def push(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The same plan with filters as low as they may go."""
    nodes = list(walk(*outputs.values()))
    readers = Counter([child.fingerprint for node in nodes for child in node.inputs])
    readers.update(node.fingerprint for node in outputs.values())
    made: dict[str, Node] = {}
    for node in nodes:
        inputs = tuple(made[child.fingerprint] for child in node.inputs)
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        new = rebuilt(node, inputs) if changed else node
        alone = all(readers[child.fingerprint] == 1 for child in node.inputs)
        made[node.fingerprint] = new.pushed() if alone else new
    return {name: made[node.fingerprint] for name, node in outputs.items()}


def _rebuilt(node: Node, made: dict[str, Node], wanted: set[str]) -> Node:
    inputs = tuple(made[child.fingerprint] for child in node.inputs)
    if node.narrows_first and wanted and wanted < set(node.schema.names):
        node = node.narrowed(wanted)
    if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
        node = rebuilt(node, inputs)
    return node.narrowed(wanted) if wanted and wanted < set(node.schema.names) else node
