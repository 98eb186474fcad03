"""Other orders for a tree of inner joins: the same result, perhaps with state that goes.

Where every pair of columns with one name is joined, inner joins may be grouped as one likes. The thesis'
chapter 8 proposes the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from caesura.contracts.analysis import source_names
from caesura.expr import col
from caesura.ops.select import Select
from caesura.plan import Node

MAX_LEAVES = 5


def orders(root: Node) -> Iterator[tuple[Node, str]]:
    """The plan with one of its trees of joins in every other order, each with a text for it."""
    for top in _topmost(root):
        leaves = _leaves(top)
        if not 2 < len(leaves) <= MAX_LEAVES:
            continue
        for other in _trees(top, frozenset(range(len(leaves))), leaves):
            if other.fingerprint != top.fingerprint:
                yield rebuilt(root, top, _as_before(other, top)), _text(other, leaves, source_names(leaves))


def _as_before(other: Node, top: Node) -> Node:
    """Joins in another order with the columns in the order that they had."""
    names = top.schema.names
    if other.schema.names == names:
        return other
    return Select(inputs=(other,), columns=tuple((name, col(name)) for name in names))


def natural(node: Node) -> bool:
    """Whether a step is an inner join on columns of equal names, without a further predicate."""
    pairs = getattr(node, "on", ())
    plain = getattr(node, "how", None) == "inner" and getattr(node, "residual", None) is None
    return node.kind == "join" and plain and all(a == b for a, b in pairs)


def _topmost(root: Node) -> Iterator[Node]:
    """The tops of trees of joins, the last in the plan first."""
    todo, seen = [root], set()
    while todo:
        node = todo.pop(0)
        if node.fingerprint in seen:
            continue
        seen.add(node.fingerprint)
        if natural(node):
            yield node
            todo.extend(_leaves(node))
        else:
            todo.extend(node.inputs)


def _leaves(node: Node) -> list[Node]:
    if not natural(node):
        return [node]
    return [leaf for child in node.inputs for leaf in _leaves(child)]


def _trees(pattern: Node, some: frozenset[int], leaves: list[Node]) -> Iterator[Node]:
    """Every binary tree over these leaves whose joins have a key."""
    if len(some) == 1:
        yield leaves[next(iter(some))]
        return
    first, *rest = sorted(some)
    for size in range(len(rest)):
        for others in combinations(rest, size):
            left = frozenset({first, *others})
            for a in _trees(pattern, left, leaves):
                for b in _trees(pattern, some - left, leaves):
                    keys = [name for name in a.schema.names if name in b.schema.names]
                    if keys:
                        yield replace(pattern, inputs=(a, b), on=tuple((k, k) for k in keys))  # type: ignore[call-arg]


def rebuilt(node: Node, old: Node, new: Node) -> Node:
    """The plan with one step put in place of another."""
    if node is old:
        return new
    inputs = tuple(rebuilt(child, old, new) for child in node.inputs)
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    return node if same else replace(node, inputs=inputs)


def _text(node: Node, leaves: list[Node], names: dict[str, str]) -> str:
    if any(node is leaf for leaf in leaves):
        return names[node.fingerprint]
    return f"({' ⋈ '.join(_text(child, leaves, names) for child in node.inputs)})"
