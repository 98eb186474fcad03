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
    """Windows, waiting for what is to be computed over each of them."""

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
        name: str | Output = "",
        **named: Output,
    ) -> Stream:
        """One row per group and window: ``agg(n=cz.count(), top=cz.max("speed"))``, or a mapping of such.

        Without a keyword an aggregate has the name of its ``alias``. Arithmetic on aggregates is computed
        behind them: ``agg(span=cz.max("v") - cz.min("v"))``.

        User-defined aggregates stand beside built-in ones; ``clip`` says how their events are cut to the
        window (by default as they declare it, or not at all), ``stamp`` when the rows live. An aggregate is a
        column whatever it is called.

        With ``empty=True`` windows of a grid without events give a row too, for every key that has come:
        counts are 0, all else is null. Give a stream of keys instead to have them for those while they live.
        """
        options = {"clip": clip, "stamp": stamp, "name": name, "empty": empty}
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
        if isinstance(self._frame, Grid) and simple and len(plain) == len(outputs):
            return self._grid(self._frame, plain, name)
        self._refuse_thrifty(name)
        return Windows(
            inputs=(self._node,),
            group=self._keys,
            frame=self._frame,
            outputs=tuple(outputs.items()),
            clip=clip,
            stamp=stamp,
            name=name,
        )

    def _grid(self, grid: Grid, aggregates: dict[str, Aggregate], name: str) -> Tumbling:
        return Tumbling(
            inputs=(self._node,),
            group=self._keys,
            size=grid.size,
            hop=grid.hop,
            offset=grid.offset,
            aggregates=tuple(aggregates.items()),
            thrifty=self._thrifty,
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
        """The rows of a user-defined operator: ``apply(head_and_shoulders("t", "price"))``, or its name.

        ``clip`` and ``stamp`` are as the module declares them, unless they are given.
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
        """The first n rows of each group and window by ``by``, whole; they live as long as the window.

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
        """The first n rows of each group and window in order of time."""
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
