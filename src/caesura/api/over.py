"""Rows with what is computed over those before them in time, waiting for the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.api.columns import Given, Output, outputs
from caesura.errors import PlanError
from caesura.misuse import checked_methods
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.over import Neighbour, OverFrame
from caesura.plan import Node, here

if TYPE_CHECKING:
    from caesura.api.stream import Stream


@checked_methods
class OverRows:
    """The rows of each group in order of time; every one is to be computed with those before it."""

    def __init__(self, node: Node, keys: tuple[str, ...], rows: int | None, span: int | None) -> None:
        self._node, self._keys, self._rows, self._span = node, keys, rows, span

    def agg(self, /, *columns: Given, **named: Output | Neighbour) -> Stream:
        """Every row with columns of its frame: ``agg(mean=cz.avg("v"), before=cz.lag("v", 1))``.

        Rows that start together stand in order of their values. A late row corrects those that it changes.

        >>> import caesura as cz
        >>> rows = [{"t": t, "v": v} for t, v in ((1, 5), (3, 6), (8, 2))]
        >>> last = cz.from_rows(rows, time="t").over(rows=2)
        >>> print(last.agg(total=cz.sum("v"), before=cz.lag("v")).run())
         LE  RE | v total before |
          1  2  | 5 5     null   | +
          3  4  | 6 11    5      | +
          8  9  | 2 8     6      | +
        """
        from caesura.api.stream import Stream

        plain = {name: one for name, one in named.items() if not isinstance(one, Neighbour)}
        made, _ = outputs(columns, plain, OverFrame.kind, {})
        for name, one in made.items():
            if not isinstance(one, Aggregate):
                raise PlanError(
                    f"'{name}' is no aggregate of its own: {one}.",
                    remedy="Compute aggregates first and go on with their columns: "
                    "over(rows=10).agg(hi=cz.max('v'), lo=cz.min('v'))"
                    ".with_columns(span=col('hi') - col('lo')).",
                ).at(OverFrame.kind, here())
        every = {**made, **named}
        own = {"group": self._keys, "rows": self._rows, "span": self._span, "columns": tuple(every.items())}
        return Stream(OverFrame(inputs=(self._node,), **own))  # type: ignore[arg-type]

    def with_columns(self, /, **named: Output | Neighbour) -> Stream:
        """The same as `agg`: rows stay whole."""
        return self.agg(**named)
