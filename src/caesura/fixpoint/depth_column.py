"""Carries a hidden column around a loop: the depth of each row's derivation.

The step that the user wrote does not know of it, so it is added to every step that the loop runs
through. Where two rows of the loop meet, the deeper one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from caesura.expr import attributes, col, lit
from caesura.fixpoint.node import RANK, Recursive
from caesura.ops.join import Join
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.plan import TICKS, Node
from caesura.plan.loops import on_loop
from caesura.plan.node import rebuilt

OTHER = RANK + "2"
Visit = Callable[[Node], Node]


def carry_rank(body: Node, rec: Recursive) -> Node:
    """The loop's body with the hidden column as its last; its steps can carry it."""
    with_rank = replace(rec, payload=rec.payload.append(pa.field(RANK, TICKS)))
    circle = on_loop(body, rec.loop)
    made: dict[str, Node] = {}

    def visit(node: Node) -> Node:
        if node is rec:
            return with_rank
        if node.fingerprint not in made:
            made[node.fingerprint] = _carried(node, circle.get(node.fingerprint, ()), visit)
        return made[node.fingerprint]

    found = visit(body)
    names = [*body.schema.names, RANK]
    if found.schema.names == names:
        return found
    return Select(inputs=(found,), columns=tuple((n, col(n)) for n in names), place=body.place)


def _carried(node: Node, ports: tuple[int, ...], visit: Visit) -> Node:
    """One step over inputs that carry the column."""
    if not ports:
        return node
    inputs = [visit(child) if port in ports else child for port, child in enumerate(node.inputs)]
    match node:
        case Union():
            return rebuilt(node, tuple(_tailed(c, port in ports, node) for port, c in enumerate(inputs)))
        case Join() if node.how == "semi" and 1 in ports:
            return _met(node, inputs, ports)
        case Join() if len(ports) == 2:
            return _joined(node, inputs)
    return node.widened(tuple(inputs), (RANK,))


def _tailed(child: Node, looped: bool, union: Node) -> Node:
    """An input of a union with the column as its last; rows from outside have no depth."""
    plain = [(n, col(n)) for n in union.schema.names]
    depth = col(RANK) if looped else lit(-1, TICKS)
    return Select(inputs=(child,), columns=(*plain, (RANK, depth)), place=union.place)


def _joined(node: Join, inputs: list[Node]) -> Node:
    """Two rows of the loop that meet: the deeper one counts."""
    right = inputs[1]
    renamed = tuple((OTHER if n == RANK else n, col(n)) for n in right.schema.names)
    both = rebuilt(node, (inputs[0], Select(inputs=(right,), columns=renamed, place=node.place)))
    columns = [(n, col(n)) for n in both.schema.names if n not in (RANK, OTHER)]
    deeper = (RANK, col(RANK).greatest(col(OTHER)))
    return Select(inputs=(both,), columns=(*columns, deeper), place=node.place)


def _met(node: Join, inputs: list[Node], ports: tuple[int, ...]) -> Node:
    """Rows that a row of the loop meets: one for each that they meet, which count once all the same."""
    left, right = inputs
    read = attributes(node.residual) if node.residual is not None else frozenset()
    keys = [y for _, y in node.on]
    needed = [n for n in right.schema.names if n in keys or (n in read and n not in left.schema.names)]
    columns = (*((n, col(n)) for n in needed), (OTHER, col(RANK)))
    both = replace(
        node, how="inner", inputs=(left, Select(inputs=(right,), columns=columns, place=node.place))
    )
    depth = col(RANK).greatest(col(OTHER)) if 0 in ports else col(OTHER)
    kept = [(n, col(n)) for n in node.schema.names]
    return Select(inputs=(both,), columns=(*kept, (RANK, depth)), place=node.place)
