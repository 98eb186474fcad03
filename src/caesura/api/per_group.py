"""`group_by(k).apply(f)`: group and apply, a plan of its own for every group.

     LE RE | k v |          group_by("k").apply(lambda g: g.tumbling(10).agg(n=cz.count()))
      1  2 | a 3 | +             0 10 | a 2 | +
      2  3 | b 4 | +      ->     0 10 | b 1 | +
      5  6 | a 5 | +

What ``f`` makes of a stream is made of each group alone: its steps are grouped by the keys too, joins of its
parts meet on them, and the keys stay in every row. So it runs wherever its steps do: in buckets by the keys,
on Spark, around loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from caesura.api.stream import Stream
from caesura.errors import CaesuraError, PlanError
from caesura.expr import col
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.plan import Node, here
from caesura.plan.node import rebuilt


def applied(base: Node, keys: tuple[str, ...], function: Callable[[Stream], Stream]) -> Stream:
    """What a function makes of every group of a stream, with the keys in front."""
    made = function(Stream(base))
    if not isinstance(made, Stream):
        raise PlanError(
            f"apply(f) got {type(made).__name__} from f, and wants a stream.",
            remedy="Let f return the stream.",
        ).at("apply", here())
    keyed = Keyed(base, keys).node(made.node)
    if keyed is None:
        raise PlanError(
            "what f returns is not made of the group that it was given.",
            remedy="Return a stream that is made of f's argument.",
        ).at("apply", here())
    rest = [name for name in keyed.schema.names if name not in keys]
    return Stream(keyed).select(*keys, *rest)


class Keyed:
    """Makes the steps behind a stream work for each group of it."""

    def __init__(self, base: Node, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._made: dict[Node, Node | None] = {base: base}

    def node(self, node: Node) -> Node | None:
        """The step for each group; None for one that has nothing of them."""
        if node not in self._made:
            inputs = [self.node(child) for child in node.inputs]
            self._made[node] = self._keyed(node, inputs) if any(i is not None for i in inputs) else None
        return self._made[node]

    def _keyed(self, node: Node, inputs: list[Node | None]) -> Node:
        whole = tuple(made or child for made, child in zip(inputs, node.inputs, strict=True))
        if isinstance(node, Select):
            return replace(node, inputs=whole, columns=self._columns(node))
        if isinstance(node, Join):
            both = all(made is not None for made in inputs)
            more = tuple((k, k) for k in self._keys if (k, k) not in node.on) if both else ()
            return replace(node, inputs=whole, on=(*more, *node.on))
        if any(field.name == "group" for field in fields(node)):
            own: Any = getattr(node, "group")  # noqa: B009 - of several kinds of step
            more_keys = tuple(k for k in self._keys if k not in own)
            return replace(node, inputs=whole, group=(*more_keys, *own))  # type: ignore[call-arg]
        by_value = type(node) in (Union, Layers)  # rows of other groups are other rows
        if by_value and any(made is None for made in inputs):
            raise self._refused(node, "one of its inputs has no groups")
        if node.row_wise or by_value:
            return rebuilt(node, whole)
        raise self._refused(node, "it works on all of them together")

    def _columns(self, node: Select) -> tuple[Any, ...]:
        """What is selected, with the keys; a column of that name must be the key."""
        own = dict(node.columns)
        for key in self._keys:
            if key in own and str(own[key]) != str(col(key)):
                raise self._refused(node, f"it makes another column '{key}'")
        return (*((k, col(k)) for k in self._keys if k not in own), *node.columns)

    def _refused(self, node: Node, why: str) -> CaesuraError:
        return PlanError(
            f"apply(f) cannot keep groups apart in '{node.step}': {why}.",
            remedy="Group in the step itself, as group_by(k) allows, or put it behind apply.",
        ).at(node.step, node.place)
