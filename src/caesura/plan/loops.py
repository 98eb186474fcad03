"""Loops in a plan: the steps between the one that opens a loop and the one that closes it."""

from __future__ import annotations

from collections.abc import Iterable

from caesura.plan.node import Node, walk


def on_loop(root: Node, loop: str) -> dict[str, tuple[int, ...]]:
    """The steps behind a loop's body that the loop runs through, each with the ports it enters by."""
    found: dict[str, tuple[int, ...]] = {}
    leads: dict[str, bool] = {}

    def visit(node: Node) -> bool:
        if node.fingerprint in leads:
            return leads[node.fingerprint]
        if node.opens == loop:
            leads[node.fingerprint] = True
            return True
        ports = tuple(port for port, child in enumerate(node.inputs) if visit(child))
        leads[node.fingerprint] = bool(ports)
        if ports:
            found[node.fingerprint] = ports
        return bool(ports)

    visit(root)
    return found


def whole_loops(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Per step that closes an outermost loop, all steps of it and of the loops within, in order."""
    every = list(nodes)
    loops: dict[str, list[Node]] = {}
    for node in reversed(every):
        if not node.closes or any(node.fingerprint in _names(some) for some in loops.values()):
            continue
        mine = {node.fingerprint}
        for inner in walk(node):
            if inner.closes:
                mine |= {inner.fingerprint, *on_loop(inner, inner.closes)}
                mine |= {n.fingerprint for n in walk(inner) if n.opens == inner.closes}
        loops[node.fingerprint] = [n for n in every if n.fingerprint in mine and _inside(n, node, mine)]
    return loops


def _names(nodes: Iterable[Node]) -> set[str]:
    return {node.fingerprint for node in nodes}


def _inside(node: Node, head: Node, mine: set[str]) -> bool:
    """Whether a step is reached from the loop's end through steps of the loop alone."""
    todo, seen = [head], set()
    while todo:
        here = todo.pop()
        if here.fingerprint == node.fingerprint:
            return True
        for child in here.inputs:
            if child.fingerprint in mine and child.fingerprint not in seen:
                seen.add(child.fingerprint)
                todo.append(child)
    return False
