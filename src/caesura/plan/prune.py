"""Leaves out the columns that no step reads.

Every step says which columns of an input it needs for some of its output; a source whose rows have
more is read without them, and row-wise steps drop what ends with them. The late table then shows the
columns that the plan uses.
"""

from __future__ import annotations

from collections.abc import Mapping

from caesura.plan.cut import rebuilt
from caesura.plan.node import Node, walk


def prune(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The same plan without the columns that nobody reads."""
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


def _rebuilt(node: Node, made: dict[str, Node], wanted: set[str]) -> Node:
    inputs = tuple(made[child.fingerprint] for child in node.inputs)
    if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
        node = rebuilt(node, inputs)
    return node.narrowed(wanted) if wanted and wanted < set(node.schema.names) else node
