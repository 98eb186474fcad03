"""Loops in a plan: the steps between the one that opens a loop and the one that closes it."""

from __future__ import annotations

from collections.abc import Iterable

from caesura.plan.node import Node, walk
from caesura.plan.samples import sample


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


def same_columns(node: Node, port: int) -> dict[str, str]:
    """An input's columns that a step gives on unchanged, under the names they have behind it."""
    same: dict[str, str] = {}
    for name in node.inputs[port].schema.names:
        asked = sample(node.inputs[port].schema, (name, "time"))
        carried = node.carry(port, asked)
        if carried is None or len(carried.without_time().attributes) != 1:
            continue
        (now,) = carried.without_time().attributes
        if carried[now] == asked[name]:  # a column that is moved by a constant is another one
            same[name] = now
    return same


def image(node: Node, port: int, name: str) -> str | None:
    """What an input's column is called behind a step; None where the step does not give it on unchanged.

    A column that is moved by a constant is another one: its rows lie elsewhere than its values say.
    """
    asked = sample(node.inputs[port].schema, (name,))
    carried = node.carry(port, asked)
    if carried is None or len(carried.attributes) != 1:
        return None
    (now,) = carried.attributes
    return now if carried[now] == asked[name] else None


def carried_by(head: Node, members: list[Node]) -> str | None:
    """A column that goes around a loop unchanged, and by which the loop can lie inside buckets.

    Each bucket then has its own rows of the loop, and a copy of all other inputs. That is right where
    every step works on rows of the loop one by one, or beside inputs from outside that bring forth no
    rows of their own.
    """
    circle = on_loop(head.inputs[1], head.closes)
    names = _named(head, members, circle)
    if names is None:
        return None
    for node in members:
        ports = circle.get(node.fingerprint, ())
        if node is head or not ports or len(node.inputs) == 1:
            continue
        keeps = getattr(node, "preserved", None)
        alone = len(ports) == 1 and keeps is not None and not keeps[1 - ports[0]]
        every = len(ports) == len(node.inputs) and node.partitioning == "any"
        if not alone and not every:
            return None
    own = set(head.keys(1) or head.inputs[0].schema.names)
    back = names.get(head.inputs[1].fingerprint, {})
    return next((c for c in head.inputs[0].schema.names if back.get(c) == c and c in own), None)


def kept_around(head: Node) -> tuple[str, ...]:
    """The columns that every row of a loop has from the seed it is derived from; none for loops within it."""
    circle = on_loop(head.inputs[1], head.closes)
    inside = [n for n in walk(head.inputs[1]) if n.opens == head.closes or n.fingerprint in circle]
    names = _named(head, inside, circle) or {}
    back = names.get(head.inputs[1].fingerprint, {})
    return tuple(c for c in head.inputs[0].schema.names if back.get(c) == c)


def _named(
    head: Node, members: list[Node], circle: dict[str, tuple[int, ...]]
) -> dict[str, dict[str, str]] | None:
    """What each column of a loop's rows is called behind each of its steps; None for loops within it."""
    if any(n.closes and n is not head for n in members):
        return None
    names: dict[str, dict[str, str]] = {}
    for node in members:
        if node.opens == head.closes:
            names[node.fingerprint] = {c: c for c in head.inputs[0].schema.names}
        if node is head or node.fingerprint not in circle:
            continue
        ports = circle[node.fingerprint]
        before = [names[node.inputs[p].fingerprint] for p in ports]
        images = [same_columns(node, p) for p in ports]
        kept = [{c: i[now] for c, now in b.items() if now in i} for b, i in zip(before, images, strict=True)]
        names[node.fingerprint] = {c: now for c, now in kept[0].items() if all(k.get(c) == now for k in kept)}
    return names


def spread_of(head: Node, members: list[Node], static: set[str]) -> tuple[str, ...] | None:
    """Columns of a loop's rows by which all its steps can lie in buckets; None where there are none.

    Every step that brings equal keys together must have them among its keys, unchanged since the rows
    went around.
    """
    circle = on_loop(head.inputs[1], head.closes)
    names = _named(head, members, circle)
    if names is None:
        return None
    columns = list(head.inputs[0].schema.names)
    wanted = set(head.keys(1) or columns)
    met = False
    for node in members:
        if node is head or node.fingerprint not in circle:
            continue
        ports = circle[node.fingerprint]
        keyed = node.partitioning == "key" and not any(c.fingerprint in static for c in node.inputs)
        if (keyed and len(ports) != 1) or node.partitioning == "one":
            return None
        met = met or node.partitioning == "key"
        if keyed:
            before = names[node.inputs[ports[0]].fingerprint]
            wanted &= {c for c, now in before.items() if now in node.keys(ports[0])}
    chosen = tuple(c for c in columns if c in wanted)
    return chosen if chosen and met else None
