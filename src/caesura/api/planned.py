"""What every family of steps stands on: a plan, and a way to put a step behind it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import CaesuraError, PlanError
from caesura.expr import Column, Expr
from caesura.misuse import checked, checked_methods
from caesura.plan import Duration, Node, here, ticks

if TYPE_CHECKING:
    from caesura.api.stream import Stream


def column_name(given: object, what: str, step: str) -> str:
    """The name of a column; refuses what is computed, with how to name it first."""
    if isinstance(given, Column):
        return given.name
    if isinstance(given, str):
        return given
    if isinstance(given, Expr):
        problem = f"{what} names columns; got the expression '{given}'."
        remedy = "Compute it first, then name it: with_columns(key=...), and 'key'."
    else:
        problem, remedy = (
            f"{what} names columns; got {given!r}.",
            "Write the names as texts, for example 'id'.",
        )
    raise PlanError(problem, remedy=remedy, step=step, place=here())


class Planned:
    """A plan that grows by steps; every step makes a new one."""

    def __init_subclass__(cls) -> None:
        checked_methods(cls)

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def schema(self) -> pa.Schema:
        """The payload columns and their types, without lifetimes; a ``pyarrow.Schema``."""
        return self.node.schema

    @property
    def columns(self) -> list[str]:
        """The names of the payload columns, a list in their order."""
        return list(self.node.schema.names)

    @checked
    def named(self, name: str) -> Stream:
        """The same stream, its last step called so in plans, errors, metrics and status.

        Parameters
        ----------
        name
            What the step is called.

        Returns
        -------
        Stream
            The same stream.

        Notes
        -----
        Promises, State, Feedback, Spark: those of the step, which stays as it is.

        See Also
        --------
        Stream.explain : the plan in words.

        Examples
        --------
        >>> import caesura as cz
        >>> speeds = cz.from_rows([{"ts": 4, "mph": 9}], time="ts")
        >>> slow = speeds.where("mph < 30").named("slow")
        >>> print(slow.explain().splitlines()[2].split("  (")[0])
        r1 := where r0: mph < 30  [slow]
        """
        return self._then(dataclasses.replace(self.node, name=name))

    def _ticks(self, given: Duration, what: str, step: str) -> int:
        """A length of time in the stream's own ticks."""
        try:
            return ticks(given, self.node.time, what)
        except CaesuraError as error:
            raise error.at(step, here()) from None

    def _then(self, node: Node) -> Stream:
        """The stream behind one more step."""
        from caesura.api.stream import Stream

        return Stream(node)
