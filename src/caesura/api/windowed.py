"""A stream cut into windows: aggregates of it, or a user-defined operator over it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, cast

from caesura.api.columns import Given, Output, outputs
from caesura.api.computed import reckoned
from caesura.api.empty_windows import with_empty
from caesura.api.tops import By, Descending, chosen
from caesura.errors import CaesuraError, PlanError
from caesura.misuse import checked_methods, strict
from caesura.ops.aggregate import Tumbling
from caesura.ops.aggregate.kinds import Aggregate
from caesura.ops.windows import Clip, Frame, Grid, Stamp, Windows
from caesura.plan import Node, here
from caesura.udm import Module, Use, find

if TYPE_CHECKING:
    from caesura.api.stream import Stream


@checked_methods
class Windowed:
    """Windows, waiting for what is to be computed over each of them; made by ``tumbling`` and its like."""

    def __init__(self, node: Node, keys: tuple[str, ...], frame: Frame, *, thrifty: bool = False) -> None:
        self._node = node
        self._keys = keys
        self._frame = frame
        self._thrifty = thrifty

    def agg(
        self,
        /,
        *columns: Given,
        clip: Clip | Output | None = None,
        stamp: Stamp | Output | None = None,
        empty: bool | Stream | Output = False,
        skewed: bool | Output = False,
        name: str | Output = "",
        **named: Output,
    ) -> Stream:
        """One row per group and window.

        Parameters
        ----------
        *columns
            Aggregates that have an ``alias``, or mappings from names to aggregates.
        clip
            How events are cut to the window for user-defined aggregates: ``"none"``, ``"left"``,
            ``"right"``, ``"full"``; by default as they declare it, or not at all.
        stamp
            When rows live: ``"aligned"`` with the window; as a module stamps them, ``"unchanged"`` or
            ``"clipped"`` to the window; ``"point_at_end"``, or ``"time_bound"`` for a module that declares
            it.
        empty
            With ``True`` windows of a grid without events give a row too, for every key that has come:
            counts are 0, all else is null. They come when progress has passed them, so a source that
            promises nothing before its end gives none. With a stream of keys they do for those, while they
            live.
        skewed
            Whether some keys have so many rows that they shall be spread over all buckets: each bucket
            computes its share of every key, and the shares are put together, which costs one exchange more.
            Of tumbling and hopping windows, and of aggregates that allow it.
        name
            What the step is called. An aggregate under one of these five names is a column all the same.
        **named
            Aggregates by the name of their column: ``n=cz.count()``, ``span=cz.max("v") - cz.min("v")``, or
            one of your own.

        Returns
        -------
        Stream
            The group's columns, then these; a row lives as long as its window.

        Notes
        -----
        Promises, Feedback, Spark: those of the windows. State: for built-in aggregates a partial result per
        group and open window, for user-defined ones that are not incremental the events; with ``skewed`` one
        such result per bucket too.

        See Also
        --------
        caesura.Stream.tumbling : windows laid end to end.
        caesura.uda : an aggregate of your own.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"ts": 3, "mph": 62}, {"ts": 8, "mph": 48}, {"ts": 22, "mph": 9}]
        >>> speeds = cz.from_rows(rows, time="ts", punctuate=cz.delay(0))
        >>> print(speeds.tumbling(10).agg(n=cz.count(), span=cz.max("mph") - cz.min("mph")).run())
         LE  RE | n span |
          0  10 | 2 14   | +
         20  30 | 1 0    | +
        >>> print(speeds.tumbling(10).agg(n=cz.count(), empty=True).run())
         LE  RE | n |
          0  10 | 2 | +
         10  20 | 0 | +
         20  30 | 1 | +
        """
        options = {"clip": clip, "stamp": stamp, "name": name, "empty": empty, "skewed": skewed}
        return self._agg(*outputs(columns, named, self._frame.kind, options))

    def _agg(self, outputs: dict[str, Output], options: dict[str, Any]) -> Stream:
        from caesura.api.stream import Stream

        name = options.get("name", "")
        plan = reckoned(outputs, self._keys, name or self._frame.kind)
        made = Stream(self._node_of(plan.aggregates, options))
        empty = options.get("empty", False)
        if empty is not False:
            keys = Stream(self._node) if empty is True else empty
            made = with_empty(made, keys, self._keys, self._frame, plan.aggregates, known=empty is True)
        return plan.finished(made)

    def _node_of(self, outputs: dict[str, Any], options: dict[str, Any]) -> Node:
        name = options.get("name", "")
        uses = [output for output in outputs.values() if isinstance(output, Use)]
        clip, stamp = self._policy(uses, options.get("clip"), options.get("stamp"), name)
        for label, output in outputs.items():
            if not isinstance(output, Aggregate | Use):
                error = PlanError(
                    f"'{label}' is {output!r}, which is no aggregate.",
                    remedy=f"Write {label}=cz.count(), or {label}=my_uda('column').",
                )
                raise error.at(name or self._frame.kind, here())
        plain = {n: o for n, o in outputs.items() if isinstance(o, Aggregate)}
        simple = isinstance(self._frame, Grid) and (clip, stamp) == ("none", "aligned")
        skewed = options.get("skewed", False)
        if isinstance(self._frame, Grid) and simple and len(plain) == len(outputs):
            return self._grid(self._frame, plain, name, skewed=skewed)
        self._refuse_thrifty(name)
        return Windows(
            inputs=(self._node,),
            group=self._keys,
            frame=self._frame,
            outputs=tuple(outputs.items()),
            clip=clip,
            stamp=stamp,
            skewed=skewed,
            name=name,
        )

    def _grid(self, grid: Grid, aggregates: dict[str, Aggregate], name: str, *, skewed: bool) -> Tumbling:
        return Tumbling(
            inputs=(self._node,),
            group=self._keys,
            size=grid.size,
            hop=grid.hop,
            offset=grid.offset,
            aggregates=tuple(aggregates.items()),
            thrifty=self._thrifty,
            skewed=skewed,
            name=name,
        )

    def apply(
        self,
        module: Use | Module | str,
        *,
        clip: Clip | None = None,
        stamp: Stamp | None = None,
        name: str = "",
    ) -> Stream:
        """The rows of a user-defined operator over each window.

        Parameters
        ----------
        module
            The operator with its columns, ``head_and_shoulders("t", "price")``, or its name.
        clip
            How events are cut to the window, unless it is to be as the module declares.
        stamp
            When rows live, unless it is to be as the module declares.
        name
            What the step is called in drawings, messages and metrics.

        Returns
        -------
        Stream
            The group's columns, then those of the operator.

        Notes
        -----
        Promises, Feedback, Spark: those of the windows. State: the events of open windows and what was sent
        of them; an incremental operator keeps its own state instead.

        See Also
        --------
        caesura.Stream.tumbling : windows laid end to end.
        caesura.udo : an operator of your own.

        Examples
        --------
        >>> import caesura as cz
        >>> @cz.udo
        ... def gaps(times: list[int]) -> list[int]:
        ...     return [b - a for a, b in zip(times, times[1:])]
        >>> clicks = cz.from_rows([{"ts": 1, "at": 1}, {"ts": 4, "at": 4}, {"ts": 9, "at": 9}], time="ts")
        >>> print(clicks.tumbling(10).apply(gaps("at")).run())
         LE  RE | value |
          0  10 | 3     | +
          0  10 | 5     | +
        """
        from caesura.api.stream import Stream

        self._refuse_thrifty(name)
        use = self._use(module, name)
        clip, stamp = self._policy([use], clip, stamp, name)
        return Stream(
            Windows(
                inputs=(self._node,),
                group=self._keys,
                frame=self._frame,
                apply=use,
                clip=clip,
                stamp=stamp,
                name=name,
            )
        )

    @strict
    def top(
        self,
        n: int,
        *,
        by: By = (),
        descending: Descending = True,
        row_number: str | None = None,
        rank: str | None = None,
        dense_rank: str | None = None,
    ) -> Stream:
        """The first n rows of each group and window, whole; they live as long as the window.

        Parameters
        ----------
        n
            How many rows.
        by
            The columns that order them; without any, the order of time.
        descending
            Whether the greatest stand first; one answer, or one for each column.
        row_number
            A column for the place of a row, from 1 on; none unless it is named.
        rank
            A column for the rank, where equals share one and leave a gap.
        dense_rank
            A column for the rank, where equals share one and leave no gap.

        Returns
        -------
        Stream
            The rows that stand first.

        Notes
        -----
        Promises, Feedback, Spark: those of the windows. State: the events of open windows, and what was
        sent of them.

        See Also
        --------
        caesura.Stream.tumbling : windows laid end to end.
        caesura.Stream.top : the first rows by a column.
        caesura.Stream.limit : the first rows in order of time.
        caesura.api.Grouped.rank : all rows with their ranks.
        caesura.api.Windowed.limit : the first rows of each window in order of time.

        Examples
        --------
        >>> import caesura as cz
        >>> rows = [{"t": t, "who": w, "bid": b} for t, w, b in ((1, "a", 3), (2, "b", 5), (7, "c", 4))]
        >>> print(cz.from_rows(rows, time="t").tumbling(5).top(1, by="bid", row_number="place").run())
         LE  RE | who bid place |
          0  5  | b   5   1     | +
          5  10 | c   4   1     | +
        """
        from caesura.api.stream import Stream

        self._refuse_thrifty("")
        names = {"row_number": row_number, "rank": rank, "dense_rank": dense_rank}
        first = chosen(n, by, descending, **names)
        made = Windows(inputs=(self._node,), group=self._keys, frame=self._frame, first=first)
        columns = [*self._node.schema.names, *(name for name, _ in first.ranks)]
        return Stream(made).select(*columns)

    @strict
    def limit(self, n: int) -> Stream:
        """The first n rows of each group and window in order of time.

        Parameters
        ----------
        n
            How many rows.

        Returns
        -------
        Stream
            These rows, whole; they live as long as the window.

        Notes
        -----
        Promises, State, Feedback, Spark: as `top`, which it calls.

        See Also
        --------
        caesura.api.Windowed.top : the first rows of each window.

        Examples
        --------
        >>> import caesura as cz
        >>> clicks = cz.from_rows([{"ts": 1, "id": 7}, {"ts": 4, "id": 9}, {"ts": 12, "id": 8}], time="ts")
        >>> print(clicks.tumbling(10).limit(1).run())
         LE  RE | id |
          0  10 | 7  | +
         10  20 | 8  | +
        """
        return self.top(n)

    def _policy(
        self, uses: list[Use], clip: Clip | None, stamp: Stamp | None, name: str
    ) -> tuple[Clip, Stamp]:
        """How members are cut and rows live: as it is said here, or else by the modules."""
        step = name or self._frame.kind
        declared: set[str] = {use.module.clip for use in uses if use.module.clip is not None}
        if clip is None and len(declared) > 1:
            raise PlanError(
                f"modules here want their members cut differently: {', '.join(sorted(declared))}.",
                remedy="Say clip=..., or compute them in two steps and join them.",
            ).at(step, here())
        own = next((use.module.stamp for use in uses if use.module.stamp is not None), None)
        stamped = next((use.module.name for use in uses if use.module.stamps), None)
        if stamp is None and own is None and stamped is not None:
            warnings.warn(
                f"step '{step}' ({here()}): '{stamped}' stamps its rows, which live as long as their window "
                "here: write stamp='clipped' or 'unchanged' to keep its stamps, stamp='aligned' not to.",
                stacklevel=3,
            )
        cut: str | None = clip or next(iter(declared), None)
        chosen = (cut or "none", stamp or own or "aligned")
        return cast(tuple[Clip, Stamp], chosen)  # `check` refuses words that are none

    def _refuse_thrifty(self, name: str) -> None:
        if self._thrifty:
            raise PlanError(
                "only windows of top_k and max know which values no longer count.",
                remedy="Leave thrifty out, or take such aggregates alone, without clip and stamp.",
            ).at(name or self._frame.kind, here())

    def _use(self, module: Use | Module | str, name: str) -> Use:
        try:
            known = find(module) if isinstance(module, str) else module
        except CaesuraError as error:
            raise error.at(name or self._frame.kind, here()) from None
        return known if isinstance(known, Use) else Use(known, ())
