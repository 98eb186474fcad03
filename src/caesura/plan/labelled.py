"""The names that steps have in a query: their own, with a number where others have it too."""

from __future__ import annotations

from collections.abc import Mapping

from caesura.plan.node import Node, walk


def labelled(outputs: Mapping[str, Node]) -> dict[str, Node]:
    """The steps of a plan by their names, with a number where others have the name too."""
    found: dict[str, Node] = {}
    for node in walk(*outputs.values()):
        label, number = node.step, 2
        while label in found:
            label, number = f"{node.step}-{number}", number + 1
        found[label] = node
    return found
