"""`OverFrame`: each row of a group, with what is computed over the rows before it in order of time.

     LE RE | id v |      group_by("id").over(rows=2).agg(s=sum("v"), before=lag("v"))
      1  2 | 7  5 | +         1  2 | 7 5 5 null | +
      3  4 | 7  6 | +   ->    3  4 | 7 6 11 5    | +
      8  9 | 7  2 | +         8  9 | 7 2 8 6     | +

Rows stand in order of their starts; those that start together by their values, column by column. ``rows=n``
are the row itself and the n - 1 before it (all for INFINITY); ``range=d`` are all rows that start from d
before it up to its own start.
A row keeps its lifetime, and ends play no part in what is computed.

Law: the rows are those of the input, each once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NoReturn

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Expr, as_column, is_column, reads_end, type_of
from caesura.ops.aggregate.kinds import Aggregate, result_type
from caesura.ops.aggregate.shape import of_groups
from caesura.ops.over.group_rows import GroupRows
from caesura.plan import Holding, Need, Operator, here, shown
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import INFINITY, TIME, Pattern

LARGEST = 100_000
"""The most rows that a frame may have, or that `lag` and `lead` may reach."""


@dataclass(frozen=True, eq=False)
class Neighbour:
    """The value of a row before, behind, or at the beginning of the frame."""

    kind: Literal["lag", "lead", "first_value"]
    value: Expr
    by: int = 0

    @property
    def key(self) -> object:
        return (self.kind, self.value.key, self.by)

    def over(self, *keys: object) -> NoReturn:
        """Refuses PySpark's spelling, with the one that there is."""
        names = ", ".join(repr(key) for key in keys) or "..."
        raise PlanError(
            f"{self}.over({names}) is no column of one row.",
            remedy=f"Write .group_by({names}).over().agg(name=cz.{self}): "
            "rows stay whole, with one more column.",
            place=here(),
        )

    def __str__(self) -> str:
        name = is_column(self.value)
        text = repr(name) if name else str(self.value)
        return f"{self.kind}({text})" if self.kind == "first_value" else f"{self.kind}({text}, {self.by})"


def lag(value: str | Expr, offset: int = 1) -> Neighbour:
    """The value of the row so many before, in order of time.

    Parameters
    ----------
    value
        A column's name, or an expression; nulls are values as others are.
    offset
        How many rows, at most 100,000.

    Returns
    -------
    Neighbour
        A column for ``over(...).agg``; null where there is no such row.

    Notes
    -----
    State: the rows that a row reads, a group, until no further row can come between them.

    See Also
    --------
    lead : of the row behind.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": 7}, {"t": 4, "v": 2}], time="t")
    >>> print(rows.over().agg(before=cz.lag("v")).run())
     LE  RE | v before |
      1  2  | 5 null   | +
      2  3  | 7 5      | +
      4  5  | 2 7      | +
    """
    return Neighbour("lag", as_column(value), offset)


def lead(value: str | Expr, offset: int = 1) -> Neighbour:
    """The value of the row so many behind, in order of time.

    Parameters
    ----------
    value
        A column's name, or an expression; nulls are values as others are.
    offset
        How many rows, at most 100,000.

    Returns
    -------
    Neighbour
        A column for ``over(...).agg``; null where there is no such row.

    Notes
    -----
    A row waits for those behind it. State: the rows that wait, a group, and those that they read.

    See Also
    --------
    lag : of the row before.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": 7}, {"t": 4, "v": 2}], time="t")
    >>> print(rows.over().agg(after=cz.lead("v")).run())
     LE  RE | v after |
      1  2  | 5 7     | +
      2  3  | 7 2     | +
      4  5  | 2 null  | +
    """
    return Neighbour("lead", as_column(value), offset)


def first_value(value: str | Expr) -> Neighbour:
    """The value of the first row of the frame.

    Parameters
    ----------
    value
        A column's name, or an expression; nulls are values as others are.

    Returns
    -------
    Neighbour
        A column for ``over(...).agg``; never missing, for a row stands in its own frame.

    Notes
    -----
    State: the rows of the frame, a group.

    See Also
    --------
    lag : so many rows before.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "v": 5}, {"t": 2, "v": 7}, {"t": 4, "v": 2}], time="t")
    >>> print(rows.over(rows=2).agg(first=cz.first_value("v")).run())
     LE  RE | v first |
      1  2  | 5 5     | +
      2  3  | 7 5     | +
      4  5  | 2 7     | +
    """
    return Neighbour("first_value", as_column(value))


@dataclass(frozen=True, eq=False, kw_only=True)
class OverFrame(GroupRows):
    """Rows beside what is computed over those before them."""

    rows: int | None = None
    """How many rows a frame has, the row itself among them."""
    span: int | None = None
    """How many ticks back a frame reaches."""
    columns: tuple[tuple[str, Aggregate | Neighbour], ...]

    kind = "over"
    loop_remedy = "Take it over what comes out of the loop."

    @property
    def punctuated_by(self) -> PunctuatedBy:  # type: ignore[override]
        return "rows" if self.ahead else "rule"

    @property
    def behind(self) -> int:
        """How many rows before a row are read."""
        lags = [one.by for _, one in self.columns if isinstance(one, Neighbour) and one.kind == "lag"]
        return max([*lags, 0 if self.rows == INFINITY else (self.rows or 1) - 1])

    @property
    def reach(self) -> int:
        """How many ticks back rows are read."""
        return INFINITY if self.rows == INFINITY and not self.runs else self.span or 0

    @cached_property
    def runs(self) -> bool:
        """Whether a frame of all rows before needs no more of them than what they come to."""
        from caesura.ops.over.running import running

        return running(self)

    @property
    def ahead(self) -> int:
        """How many rows behind a row are read."""
        leads = [one.by for _, one in self.columns if isinstance(one, Neighbour) and one.kind == "lead"]
        return max(leads, default=0)

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0]
        for name in self.group:
            self.column(name)
        self._check_frame()
        fields = []
        for name, one in self.columns:
            if name in source.schema.names:
                raise PlanError(
                    f"there is a column '{name}' already.", remedy=f"Give it another name, like last_{name}=."
                )
            fields.append(pa.field(name, self._type(one)))
        return pa.schema([*source.schema, *fields])

    def _check_frame(self) -> None:
        if self.rows is not None and self.span is not None:
            raise PlanError(
                "a frame counts rows or time, not both.", remedy='Take over(rows=10) or over(range="10m").'
            )
        if self.rows not in (None, INFINITY) and not 1 <= (self.rows or 0) <= LARGEST:
            raise PlanError(
                f"a frame of {self.rows} rows says nothing.",
                remedy=f"Give how many rows, with the row itself, from 1 to {LARGEST:,}; "
                "cz.INFINITY for all before it.",
            )
        if self.span is not None and self.span < 0:
            raise PlanError(
                "a frame of less than no time says nothing.",
                remedy='Give how far it reaches back, like range="10m"; lead(...) looks ahead.',
            )
        if not self.columns:
            raise PlanError(
                "nothing is computed.", remedy="Name at least one column, for example n=cz.count()."
            )

    def _type(self, one: Aggregate | Neighbour) -> pa.DataType:
        source = self.inputs[0]
        if one.value is not None and reads_end(one.value):
            raise PlanError(
                f"'{one}' reads an end, which may change long after a row has begun.",
                remedy="Read columns, or cz.start().",
            )
        if isinstance(one, Aggregate) or one.kind == "first_value":
            if self.rows is None and self.span is None:
                raise PlanError(
                    f"'{one}' needs to know how far back to look.",
                    remedy='Say so: over(rows=10) or over(range="10m"); '
                    ".alive().agg(...) looks at all that is alive.",
                )
        elif not 1 <= one.by <= LARGEST:
            raise PlanError(
                f"'{one}' looks {one.by} rows away.", remedy=f"Give a whole number from 1 to {LARGEST:,}."
            )
        if isinstance(one, Aggregate):
            return result_type(one, source.schema, source.time)
        return type_of(one.value, source.schema, time=source.time)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A pattern on whole groups passes; where rows wait for others behind them, no part of their time."""
        waits = self.ahead and TIME in pattern and len(pattern.attributes) > 1
        return pattern if of_groups(pattern, self.group) and not waits else None

    def holds(self) -> tuple[Holding, ...]:
        """Rows until they are settled; the last ones of each group for as long as frames reach back."""
        need = (Need(0, self.group),)
        until: Literal["start", "end"] = "start" if self.inputs[0].properties.fixed_ends else "end"
        if self.rows == INFINITY and not self.runs:
            return (Holding("rows of open groups", 0, need, "forever", each=2),)
        held = Holding("rows", 0, need, until, size=self.reach, each=2)
        if self.ahead:
            why = "the next row of a group may come at any time"
            held = Holding("rows", 0, need, "forever", holds_back=True, each=2, one_per=self.group, why=why)
        last = Holding("the last rows", 0, need, "forever", one_per=self.group, each=self.behind)
        sums = Holding("running totals", 0, need, "forever", one_per=self.group)
        kept = [Holding(f"values of {one}", 0, need, "forever") for one in self._with_values]
        return held, *([last] if self.behind else []), *([sums] if self.runs else []), *kept

    @cached_property
    def _with_values(self) -> tuple[str, ...]:
        from caesura.ops.over.running import totals_of

        return totals_of(self).with_values if self.runs else ()

    def operator(self) -> Operator:
        from caesura.ops.over.physical import OverOperator

        return OverOperator(self)

    def describe(self) -> str:
        by = f"by {', '.join(self.group)}; " if self.group else ""
        count = "all rows before" if self.rows == INFINITY else f"{self.rows} rows"
        frame = f"{count}; " if self.rows is not None else ""
        frame = f"{shown(self.span, self.time)} back; " if self.span is not None else frame
        return by + frame + ", ".join(f"{name}={one}" for name, one in self.columns)
