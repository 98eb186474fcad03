"""Groups and windows, waiting for what is to be computed over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from caesura.api.columns import outputs
from caesura.api.windowed import Windowed
from caesura.errors import CaesuraError
from caesura.misuse import checked_methods, strict
from caesura.ops.aggregate import Totals
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.windows import Count, Grid, Session, Snapshot
from caesura.plan import Duration, Node, here, ticks

if TYPE_CHECKING:
    from caesura.api.stream import Stream

__all__ = ["Grouped", "Windowed"]


@checked_methods
class Grouped:
    """A stream whose next steps work per group."""

    def __init__(self, node: Node, keys: tuple[str, ...]) -> None:
        self._node = node
        self._keys = keys

    def tumbling(self, size: Duration, *, offset: Duration = 0, thrifty: bool = False) -> Windowed:
        """Windows of one size, laid end to end from ``offset``.

        ``thrifty`` windows of `top_k` and `max` tell the steps above which values no longer count.
        """
        width = self._ticks("tumbling", size, "window size")
        start = self._ticks("tumbling", offset, "window offset")
        return Windowed(self._node, self._keys, Grid(width, width, start), thrifty=thrifty)

    def hopping(self, size: Duration, *, every: Duration, offset: Duration = 0) -> Windowed:
        """Windows of one size, one starting ``every`` so often; they may overlap or leave gaps."""
        width = self._ticks("hopping", size, "window size")
        hop = self._ticks("hopping", every, "hop")
        start = self._ticks("hopping", offset, "window offset")
        return Windowed(self._node, self._keys, Grid(width, hop, start))

    def snapshot(self) -> Windowed:
        """The longest stretches on which no event of the group starts or ends."""
        return Windowed(self._node, self._keys, Snapshot())

    @strict
    def count_by_start(self, n: int) -> Windowed:
        """From every distinct start over n of them; events belong by their starts."""
        return Windowed(self._node, self._keys, Count(n, "start"))

    @strict
    def count_by_end(self, n: int) -> Windowed:
        """From every distinct end over n of them; events belong by their ends."""
        return Windowed(self._node, self._keys, Count(n, "end"))

    def session(self, gap: Duration, *, longest: Duration | None = None) -> Windowed:
        """Events with less than ``gap`` of silence between them, cut ``longest`` from their start."""
        most = None if longest is None else self._ticks("session", longest, "longest session")
        return Windowed(self._node, self._keys, Session(self._ticks("session", gap, "session gap"), most))

    def _ticks(self, step: str, duration: Duration, what: str) -> int:
        try:
            return ticks(duration, self._node.time, what)
        except CaesuraError as error:
            raise error.at(step, here()) from None

    def totals(
        self,
        columns: Mapping[str, Aggregate] | None = None,
        /,
        *,
        name: str | Aggregate = "",
        **named: Aggregate,
    ) -> Stream:
        """One row per group over all its rows, on the hull of their lifetimes; columns as in `agg`."""
        from caesura.api.stream import Stream

        made, rest = outputs(columns, named, "totals", {"name": name})
        aggregates: Any = tuple(made.items())
        own = {"group": self._keys, "aggregates": aggregates, "name": rest.get("name", "")}
        return Stream(Totals(inputs=(self._node,), **own))
