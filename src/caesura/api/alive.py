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
    """The rows of each group that are alive; made by ``alive()``. A view changes whenever they do."""

    def __init__(self, node: Node, keys: tuple[str, ...]) -> None:
        self._node = node
        self._keys = keys

    def agg(self, /, *columns: Given, **named: Output) -> Stream:
        """One row per group, kept up to date; it holds for as long as nothing changes.

        Parameters
        ----------
        *columns
            Aggregates that have an ``alias``, or mappings from names to aggregates.
        **named
            Aggregates by the name of their column: ``n=cz.count()``, or one of your own.

        Returns
        -------
        Stream
            The group's columns, then these. A sink can hold it as a table by the group's columns.

        Notes
        -----
        Promises: on time and on the group's columns, what its input promises. State: the starts and ends
        that time has not passed, and one result per group; with user-defined aggregates the rows that are
        alive. Feedback: on the group's columns results are given up with their state, and the input is
        told. Spark: in buckets by the group's columns; without any, in one.

        See Also
        --------
        caesura.Stream.alive : a view of what is alive.

        Examples
        --------
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
        """The rows of a user-defined operator over what is alive, on each stretch where that is the same.

        Parameters
        ----------
        module
            The operator with its columns, or its name.

        Returns
        -------
        Stream
            The group's columns, then those of the operator.

        Notes
        -----
        Promises, State, Feedback, Spark: as ``snapshot().apply(module)``, which it is.

        See Also
        --------
        caesura.Stream.alive : a view of what is alive.
        caesura.udo : an operator of your own.

        Examples
        --------
        >>> import caesura as cz
        >>> @cz.udo
        ... def together(names: list[str]) -> list[str]:
        ...     return [" and ".join(sorted(names))]
        >>> rows = [{"ts": 1, "name": "Ada"}, {"ts": 4, "name": "Bob"}]
        >>> visits = cz.from_rows(rows, time="ts").set_duration(5)
        >>> print(visits.alive().apply(together("name")).run(output="final"))
         LE  RE | value         |
          1  4  | Ada           | +
          4  6  | 'Ada and Bob' | +
          6  9  | Bob           | +
        """
        return Windowed(self._node, self._keys, Snapshot()).apply(module)
