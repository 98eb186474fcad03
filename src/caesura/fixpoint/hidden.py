"""Carries a hidden column around a loop: the depth of each row's derivation.

The step that the user wrote does not know of it, so it is added to every step that the loop runs
through. Where two rows of the loop meet, the deeper one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from caesura.expr import col, lit
from caesura.fixpoint.node import RANK, Recursive
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.plan import TICKS, Node
from caesura.plan.loops import on_loop
from caesura.plan.node import rebuilt

OTHER = RANK + "2"
Visit = Callable[[Node], Node | None]


def carry_rank(body: Node, rec: Recursive) -> Node | None:
    """The loop's body with the hidden column as its last; None where a step cannot carry it."""
    with_rank = replace(rec, payload=rec.payload.append(pa.field(RANK, TICKS)))
    circle = on_loop(body, rec.loop)
    made: dict[str, Node | None] = {}

    def visit(node: Node) -> Node | None:
        if node is rec:
            return with_rank
        if node.fingerprint not in made:
            made[node.fingerprint] = _carried(node, circle.get(node.fingerprint, ()), visit)
        return made[node.fingerprint]

    found = visit(body)
    if found is None:
        return None
    names = [*body.schema.names, RANK]
    if found.schema.names == names:
        return found
    return Select(inputs=(found,), columns=tuple((n, col(n)) for n in names), place=body.place)


def _carried(node: Node, ports: tuple[int, ...], visit: Visit) -> Node | None:
    """One step over inputs that carry the column."""
    if not ports:
        return node
    inputs: list[Node] = []
    for port, child in enumerate(node.inputs):
        made = visit(child) if port in ports else child
        if made is None:
            return None
        inputs.append(made)
    match node:
        case Select():
            return replace(node, inputs=tuple(inputs), columns=(*node.columns, (RANK, col(RANK))))
        case Where():
            keep = (*node.keep, RANK) if node.keep else ()
            return replace(node, inputs=tuple(inputs), keep=keep)
        case Lifetime():
            return rebuilt(node, tuple(inputs))
        case Layers() if node.count == "distinct":
            return rebuilt(node, tuple(inputs))
        case Union():
            return rebuilt(node, tuple(_tailed(c, port in ports, node) for port, c in enumerate(inputs)))
        case Join() if node.kind == "join":
            return _joined(node, inputs, ports)
    return None


def _tailed(child: Node, looped: bool, union: Node) -> Node:
    """An input of a union with the column as its last; rows from outside have no depth."""
    plain = [(n, col(n)) for n in union.schema.names]
    depth = col(RANK) if looped else lit(-1, TICKS)
    return Select(inputs=(child,), columns=(*plain, (RANK, depth)), place=union.place)


def _joined(node: Join, inputs: list[Node], ports: tuple[int, ...]) -> Node | None:
    if node.how in ("semi", "anti", "left") and ports == (0,):
        return rebuilt(node, tuple(inputs))
    if node.how != "inner":
        return None
    if len(ports) == 1:
        return rebuilt(node, tuple(inputs))
    right = inputs[1]
    renamed = tuple((OTHER if n == RANK else n, col(n)) for n in right.schema.names)
    both = rebuilt(node, (inputs[0], Select(inputs=(right,), columns=renamed, place=node.place)))
    kept = [(n, col(n)) for n in both.schema.names if n not in (RANK, OTHER)]
    deeper = (RANK, col(RANK).greatest(col(OTHER)))
    return Select(inputs=(both,), columns=(*kept, deeper), place=node.place)
