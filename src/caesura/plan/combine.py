"""Lets steps over all rows work in every bucket first, where that gives the same and rows are spread.

Not on a loop, and not where all rows of the input lie in one bucket already.
"""

from __future__ import annotations

from collections.abc import Mapping

from caesura.plan.loops import whole_loops
from caesura.plan.node import Node, rebuilt, walk


def combine(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The same plan with such steps in two parts."""
    nodes = list(walk(*outputs.values()))
    looped = {n.fingerprint for members in whole_loops(nodes).values() for n in members}
    made: dict[str, Node] = {}
    for node in nodes:
        inputs = tuple(made[child.fingerprint] for child in node.inputs)
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        new = rebuilt(node, inputs) if changed else node
        spread = node.fingerprint not in looped and bool(inputs) and not _gathered(inputs[0])
        made[node.fingerprint] = (new.combined() if spread else None) or new
    return {name: made[node.fingerprint] for name, node in outputs.items()}


def _gathered(node: Node) -> bool:
    """Whether all rows lie in one bucket already."""
    while node.row_wise and len(node.inputs) == 1:
        node = node.inputs[0]
    if node.partitioning == "one":
        return True
    return node.partitioning == "key" and not any(node.keys(port) for port in range(len(node.inputs)))
