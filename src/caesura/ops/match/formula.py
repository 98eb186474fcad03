"""What DEFINE and MEASURES read of a match: values of single rows of it, and aggregates of many.

     LAST(B.price, 1)         Navigation(col("price"), ("B",), by=1)
     PREV(price)              Navigation(col("price"), (), move=-1)
     FINAL avg(A.price)       MatchFold(avg("price"), ("A",), final=True)

A formula is an expression over columns that hold these; so it is computed on whole columns, one row each for
every place of a match that it is asked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from caesura.expr import Column, Expr, attributes, conjuncts, type_of
from caesura.ops.aggregate.kinds import Aggregate, result_type

NUMBER = "match number"
"""The column that has the number of the match in its group."""


@dataclass(frozen=True, eq=False)
class Navigation:
    """The value of one row of a match, or of one near it; the name of its variable where there is none."""

    value: Expr | None
    of: tuple[str, ...] = ()
    """The variables whose rows count; all where there are none."""
    first: bool = False
    by: int = 0
    """How many rows of these variables behind the first, or before the last."""
    move: int = 0
    """How many rows of the group further."""
    final: bool = False
    """Whether rows count that are behind the place in the match that it is asked at."""

    @property
    def key(self) -> tuple[object, ...]:
        value = None if self.value is None else self.value.key
        return ("row", value, self.of, self.first, self.by, self.move, self.final)

    def own_row(self, variable: str) -> bool:
        """Whether it is of the row itself that is tried for a variable, or of one so many rows from it."""
        counts = not self.of or variable in self.of
        return self.value is not None and not self.first and self.by == 0 and counts and not self.final

    def __str__(self) -> str:
        rows = f"({' or '.join(self.of)})" if len(self.of) > 1 else "".join(self.of)
        text = "CLASSIFIER()" if self.value is None else str(self.value)
        text = f"{rows}.{text}" if rows else text
        if self.first or self.by or self.final:
            by = f", {self.by}" if self.by else ""
            text = f"{'FINAL ' if self.final else ''}{'FIRST' if self.first else 'LAST'}({text}{by})"
        if self.move == 0:
            return text
        by = f", {abs(self.move)}" if abs(self.move) > 1 else ""
        return f"{'PREV' if self.move < 0 else 'NEXT'}({text}{by})"


@dataclass(frozen=True, eq=False)
class MatchFold:
    """An aggregate of the rows of a match."""

    aggregate: Aggregate
    of: tuple[str, ...] = ()
    final: bool = False

    @property
    def key(self) -> object:
        return ("fold", self.aggregate.key, self.of, self.final)

    def __str__(self) -> str:
        rows = f" of {' or '.join(self.of)}" if self.of else ""
        return f"{'FINAL ' if self.final else ''}{self.aggregate}{rows}"


class MatchValue(Column):
    """The column that holds what is read of a match; only `match_rows` can compute it."""

    def __init__(self, read: Navigation | MatchFold | None) -> None:
        object.__setattr__(self, "name", NUMBER if read is None else str(read))
        object.__setattr__(self, "read", read)

    read: Navigation | MatchFold | None
    """None for the number of the match."""


@dataclass(frozen=True, eq=False)
class Formula:
    """An expression over what it reads of a match."""

    value: Expr
    reads: tuple[tuple[str, Navigation | MatchFold], ...] = ()

    @property
    def key(self) -> object:
        return (self.value.key, tuple((name, one.key) for name, one in self.reads))

    def schema(self, source: pa.Schema, time: pa.DataType) -> pa.Schema:
        """The columns that the expression is over."""
        fields = [pa.field(NUMBER, pa.int64())]
        for name, one in self.reads:
            if isinstance(one, MatchFold):
                fields.append(pa.field(name, result_type(one.aggregate, source, time)))
            else:
                t = pa.string() if one.value is None else type_of(one.value, source, time=time)
                fields.append(pa.field(name, t))
        return pa.schema(fields)

    def type(self, source: pa.Schema, time: pa.DataType) -> pa.DataType:
        """The type of its value."""
        return type_of(self.value, self.schema(source, time), time=time)

    @cached_property
    def navigations(self) -> tuple[Navigation, ...]:
        return tuple(one for _, one in self.reads if isinstance(one, Navigation))

    def over_rows(self, variable: str) -> bool:
        """Whether it can be told of rows alone, whatever else is matched."""
        alone = all(isinstance(one, Navigation) and one.own_row(variable) for _, one in self.reads)
        return alone and NUMBER not in attributes(self.value)

    def parts(self) -> list[Formula]:
        """The conditions that must all hold."""
        known = dict(self.reads)
        return [
            Formula(part, tuple((name, known[name]) for name in sorted(attributes(part) & set(known))))
            for part in conjuncts(self.value)
        ]

    def __str__(self) -> str:
        text = str(self.value)
        for name, one in sorted(self.reads, key=lambda read: -len(read[0])):
            text = text.replace(f"`{name}`", str(one))
        return text
