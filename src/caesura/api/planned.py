"""What every family of steps stands on: a plan, and a way to put a step behind it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.plan import Duration, Node, here, ticks

if TYPE_CHECKING:
    from caesura.api.stream import Stream


class Planned:
    """A plan that grows by steps; every step makes a new one."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def schema(self) -> pa.Schema:
        """The payload columns."""
        return self.node.schema

    @property
    def columns(self) -> list[str]:
        """The names of the payload columns."""
        return list(self.node.schema.names)

    def named(self, name: str) -> Stream:
        """The same stream, its last step called so in plans, errors and status.

        >>> import caesura as cz
        >>> print(cz.from_rows([{"t": 1, "v": 2}], time="t").select("v").named("values").node.step)
        values
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
