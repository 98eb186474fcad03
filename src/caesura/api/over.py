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
    """The rows of each group in order of time; made by ``over()``. Each is computed with those before it."""

    def __init__(self, node: Node, keys: tuple[str, ...], rows: int | None, span: int | None) -> None:
        self._node, self._keys, self._rows, self._span = node, keys, rows, span

    def agg(self, /, *columns: Given, **named: Output | Neighbour) -> Stream:
        """Every row with columns of its frame.

        Rows that start together stand in order of their values. A late row corrects those that it changes.

        Parameters
        ----------
        *columns
            Aggregates that have an ``alias``, or mappings from names to aggregates.
        **named
            Columns by name: aggregates of the frame, or `cz.lag`, `cz.lead`, `cz.first_value`.

        Returns
        -------
        Stream
            All rows with their columns and lifetimes, then these columns.

        Notes
        -----
        Promises: on time and on the group's columns, what its input promises; rows that a later one may
        still change hold time back. State: the rows that may still change or be counted; with ``rows=`` the
        last of every group goes only with a promise on the group's columns. Feedback: on the group's
        columns rows are given up with their state, and the input is told. Spark: in buckets by the group's
        columns; without any, in one.

        See Also
        --------
        caesura.Stream.over : every row with those before it.

        Examples
        --------
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
        """The same as ``agg``: rows stay whole.

        Parameters
        ----------
        **named
            What ``agg`` takes.

        Returns
        -------
        Stream
            What ``agg`` gives.

        Notes
        -----
        Promises, State, Feedback, Spark: as ``agg``, which it calls.

        See Also
        --------
        caesura.Stream.over : every row with those before it.

        Examples
        --------
        >>> import caesura as cz
        >>> prices = cz.from_rows([{"t": 1, "v": 5}, {"t": 3, "v": 6}], time="t")
        >>> print(prices.over().with_columns(before=cz.lag("v")).run())
         LE  RE | v before |
          1  2  | 5 null   | +
          3  4  | 6 5      | +
        """
        return self.agg(**named)
