"""Steps where rows meet others: unions, joins, differences, and each payload once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from caesura.api.planned import Planned, column_name
from caesura.errors import PlanError
from caesura.expr import Column, Expr, as_predicate
from caesura.ops.clip import Clip
from caesura.ops.held import in_one_time
from caesura.ops.join import How, Join
from caesura.ops.layers import Layers
from caesura.ops.look_up import looked_up
from caesura.ops.union import Union
from caesura.plan import here

if TYPE_CHECKING:
    from caesura.api.stream import Stream

On = str | Sequence[str] | dict[str, str]


class MeetingSteps(Planned):
    """Steps where rows meet others: unions, joins, differences, and each payload once."""

    def union(self, *others: Stream, name: str = "") -> Stream:
        """All events of this stream and others with the same columns."""
        return self._then(Union(inputs=in_one_time(self.node, *(o.node for o in others)), name=name))

    def join(
        self,
        other: Stream,
        on: On,
        *,
        how: How = "inner",
        where: Expr | str | None = None,
        thrifty: bool = False,
        impatient: bool = False,
        name: str = "",
    ) -> Stream:
        """Pairs of events with equal keys that live at the same time; lifetimes intersect.

        ``on`` is a column name, several, or ``{"left": "right"}``; ``where`` is a further predicate
        over both sides' columns. ``how``: inner, left, right, full, semi, anti. A join with a `cz.table` on
        the right keeps nothing, unless it is a right or full one. A ``thrifty`` inner join says to one side
        where the other is settled and empty; an ``impatient`` one asks first for what would meet.
        """
        node = Join(
            inputs=in_one_time(self.node, other.node),
            on=_pairs(on, "join"),
            how=how,
            residual=None if where is None else as_predicate(where),
            thrifty=thrifty,
            impatient=impatient,
            name=name,
        )
        return self._then(looked_up(node))

    def difference(self, other: Stream, *, mode: Literal["bag", "set"] = "bag", name: str = "") -> Stream:
        """Events of this stream that the other has not: as bags (copies cancel) or as sets."""
        return self._then(Layers(inputs=in_one_time(self.node, other.node), count=mode, name=name))

    def distinct(self, *, name: str = "") -> Stream:
        """Each payload once wherever it is alive, on maximal intervals."""
        return self._then(Layers(inputs=(self.node,), count="distinct", name=name))

    def clip(self, by: Stream, on: On = (), *, name: str = "") -> Stream:
        """Ends each event where the next event of ``by`` with the same key begins."""
        inputs = in_one_time(self.node, by.node)
        return self._then(Clip(inputs=inputs, on=_pairs(on, "clip"), how="semi", name=name))


def _pairs(on: On, step: str) -> tuple[tuple[str, str], ...]:
    if isinstance(on, Expr) and not isinstance(on, Column):
        raise PlanError(
            f"on= names columns; got the expression '{on}'.",
            remedy="Write on='id', or on={'left': 'right'}; a further condition goes into where=.",
            step=step,
            place=here(),
        )
    if isinstance(on, str | Column):
        on = [column_name(on, "on=", step)]
    pairs = on.items() if isinstance(on, dict) else [(name, name) for name in on]
    return tuple((column_name(a, "on=", step), column_name(b, "on=", step)) for a, b in pairs)
