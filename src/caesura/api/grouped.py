"""Groups and windows, waiting for what is to be computed over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.errors import CaesuraError
from caesura.ops.aggregate import Totals, Tumbling
from caesura.ops.aggregate.functions import Aggregate
from caesura.plan import Duration, Node, here, ticks

if TYPE_CHECKING:
    from caesura.api.stream import Stream


class Grouped:
    """A stream whose next steps work per group."""

    def __init__(self, node: Node, keys: tuple[str, ...]) -> None:
        self._node = node
        self._keys = keys

    def tumbling(self, size: Duration, *, offset: Duration = 0) -> Windowed:
        """Windows of one size, laid end to end from ``offset``."""
        try:
            width = ticks(size, self._node.time, "window size")
            start = ticks(offset, self._node.time, "window offset")
        except CaesuraError as error:
            raise error.at("tumbling", here()) from None
        return Windowed(self._node, self._keys, width, start)

    def totals(self, *, name: str = "", **aggregates: Aggregate) -> Stream:
        """One row per group over all its rows, on the hull of their lifetimes."""
        from caesura.api.stream import Stream

        return Stream(
            Totals(inputs=(self._node,), group=self._keys, aggregates=tuple(aggregates.items()), name=name)
        )


class Windowed:
    """A stream cut into windows."""

    def __init__(self, node: Node, keys: tuple[str, ...], size: int, offset: int) -> None:
        self._node = node
        self._keys = keys
        self._size = size
        self._offset = offset

    def agg(self, *, name: str = "", **aggregates: Aggregate) -> Stream:
        """One row per group and window: ``agg(n=cz.count(), top=cz.max("speed"))``."""
        from caesura.api.stream import Stream

        return Stream(
            Tumbling(
                inputs=(self._node,),
                group=self._keys,
                size=self._size,
                offset=self._offset,
                aggregates=tuple(aggregates.items()),
                name=name,
            )
        )
