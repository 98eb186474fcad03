"""What is alive, waiting for what is to be computed over it at every instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caesura.api.columns import Given, Output, outputs
from caesura.api.computed import reckoned
from caesura.api.windowed import Windowed
from caesura.misuse import checked_methods
from caesura.ops.aggregate import Alive
from caesura.ops.windows import Snapshot
from caesura.plan import Node
from caesura.udm import Module, Use

if TYPE_CHECKING:
    from caesura.api.stream import Stream


@checked_methods
class AliveRows:
    """The rows of each group that are alive; a view over them changes whenever they do."""

    def __init__(self, node: Node, keys: tuple[str, ...]) -> None:
        self._node = node
        self._keys = keys

    def agg(self, /, *columns: Given, **named: Output) -> Stream:
        """One row per group, kept up to date: ``agg(n=cz.count(), total=cz.sum("v"))``.

        It holds for as long as nothing changes. State is bounded by groups where rows only begin; with
        user-defined aggregates the rows that are alive are kept.

        >>> import caesura as cz
        >>> rows = [{"t": 1, "id": 7, "v": 5}, {"t": 4, "id": 7, "v": 6}]
        >>> views = cz.from_rows(rows, time="t").forever().group_by("id").alive()
        >>> print(views.agg(n=cz.count(), total=cz.sum("v")).run())
         LE  RE  | id n total |
          1  4   | 7  1 5     | +
          4  inf | 7  2 11    | +
        """
        from caesura.api.stream import Stream

        made, _ = outputs(columns, named, Alive.kind, {})
        if any(isinstance(one, Use) for one in made.values()):
            return Windowed(self._node, self._keys, Snapshot()).agg(made)
        plan = reckoned(made, self._keys, Alive.kind)
        aggregates: Any = tuple(plan.aggregates.items())
        return plan.finished(Stream(Alive(inputs=(self._node,), group=self._keys, aggregates=aggregates)))

    def apply(self, module: Use | Module | str) -> Stream:
        """The rows of a user-defined operator over what is alive, on each stretch where that is the same."""
        return Windowed(self._node, self._keys, Snapshot()).apply(module)
