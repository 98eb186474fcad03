"""Carries a hidden column around a loop: the depth of each row's derivation.

The step that the user wrote does not know of it, so it is added to every step that the loop runs
through. Where two rows of the loop meet, the deeper one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import attributes, col, lit
from caesura.fixpoint.node import RANK, Fixpoint, Recursive
from caesura.ops.clip import Clip
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
Visit = Callable[[Node], Node]


def carry_rank(body: Node, rec: Recursive, *, once: bool) -> Node:
    """The loop's body with the hidden column as its last; ``once`` says that rows count once."""
    with_rank = replace(rec, payload=rec.payload.append(pa.field(RANK, TICKS)))
    circle = on_loop(body, rec.loop)
    made: dict[str, Node] = {}

    def visit(node: Node) -> Node:
        if node is rec:
            return with_rank
        if node.fingerprint not in made:
            made[node.fingerprint] = _carried(node, circle.get(node.fingerprint, ()), visit, once)
        return made[node.fingerprint]

    found = visit(body)
    names = [*body.schema.names, RANK]
    if found.schema.names == names:
        return found
    return Select(inputs=(found,), columns=tuple((n, col(n)) for n in names), place=body.place)


def _carried(node: Node, ports: tuple[int, ...], visit: Visit, once: bool) -> Node:
    """One step over inputs that carry the column; refuses one that cannot."""
    if not ports:
        return node
    _refuse(node, ports, once)
    inputs = [visit(child) if port in ports else child for port, child in enumerate(node.inputs)]
    match node:
        case Select():
            return replace(node, inputs=tuple(inputs), columns=(*node.columns, (RANK, col(RANK))))
        case Where():
            keep = (*node.keep, RANK) if node.keep else ()
            return replace(node, inputs=tuple(inputs), keep=keep)
        case Union():
            return rebuilt(node, tuple(_tailed(c, port in ports, node) for port, c in enumerate(inputs)))
        case Join() if node.how == "semi" and 1 in ports:
            return _met(node, inputs, ports)
        case Join() if len(ports) == 2:
            return _joined(node, inputs)
    return rebuilt(node, tuple(inputs))


WHOLE = "what it gives stands for several rows, found in different rounds"
ALONE: dict[str, tuple[int, ...]] = {"left": (0,), "right": (1,), "anti": (0,)}
"""Joins that give rows which meet nothing: where the loop may enter them."""


def _refuse(node: Node, ports: tuple[int, ...], once: bool) -> None:
    """Refuses a step that does not say how deep its rows' derivations are."""
    reason = ""
    match node:
        case Select() | Where() | Union() | Lifetime():
            return
        case Layers(count="distinct") if once:
            return
        case Fixpoint():
            reason = "a loop within it derives rows in rounds of its own"
        case Clip() | Layers():
            reason = WHOLE
        case Join(how="full"):
            reason = "a row from outside that meets nothing has no round"
        case Join(how="semi"):
            reason = "" if once or ports == (0,) else WHOLE
        case Join(how="left" | "right" | "anti"):
            reason = "" if ports == ALONE[node.how] else "a row that meets nothing has no round"
        case Join():
            return
        case _:
            reason = WHOLE
    if reason:
        what = "keeps rows once" if once else "counts rounds"
        raise PlanError(
            f"'{node.step}' ({node.place}) stands on a loop that {what}, and {reason}.",
            remedy=_remedy(node, once),
        )


def _remedy(node: Node, once: bool) -> str:
    bounded = "bound the loop by a counter or a visited set in its own columns"
    if isinstance(node, Fixpoint):
        return f"Make one loop of both, with a dict of seeds; or let the outer one keep all, and {bounded}."
    aside = "Put it before the loop or behind it"
    return f"{aside}." if once else f"{aside}; or leave max_rounds out, and {bounded}."


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
    kept = [(n, col(n)) for n in both.schema.names if n not in (RANK, OTHER)]
    deeper = (RANK, col(RANK).greatest(col(OTHER)))
    return Select(inputs=(both,), columns=(*kept, deeper), place=node.place)


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
