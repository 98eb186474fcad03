"""Conditions and measures as users write them in Python, as formulas over what they read of a match.

col("price")                    the value of the last row
col("UP.price")                 that of the last row that is matched to UP
cz.matched.first("UP.price")    that of the first one
cz.avg("UP.price")              the mean of all of them
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.expr import Column, Expr, children, with_children
from caesura.expr.nodes import AggregateValue, Field
from caesura.ops.match.formula import NUMBER, Formula, MatchFold, MatchValue, Navigation


@dataclass(frozen=True)
class WrittenNames:
    """What names in a condition may mean: columns, and variables of the pattern or unions of some."""

    schema: pa.Schema
    variables: Mapping[str, tuple[str, ...]]

    def formula(self, value: Expr) -> Formula:
        """An expression of a user's, over what it reads."""
        reads: dict[object, tuple[str, Navigation | MatchFold]] = {}

        def bound(part: Expr) -> Expr:
            read = self._read(part)
            if read is not None:
                return Column(reads.setdefault(read.key, (f"read {len(reads)}", read))[0])
            if isinstance(part, Column):
                return Column(NUMBER)
            inner = children(part)
            return with_children(part, [bound(one) for one in inner]) if inner else part

        made = bound(value)
        return Formula(made, tuple(reads.values()))

    def _read(self, part: Expr) -> Navigation | MatchFold | None:
        """What a part of an expression reads of a match."""
        read = part.read if isinstance(part, MatchValue) else None
        if isinstance(part, AggregateValue):
            read = MatchFold(part.aggregate)
        if isinstance(read, MatchFold):
            given = read.aggregate.value
            value, of = (None, read.of) if given is None else self.stripped(given)
            return replace(
                read, aggregate=replace(read.aggregate, value=value, shown=self._shown(read)), of=of
            )
        if isinstance(read, Navigation):
            if read.value is None:
                return replace(read, of=tuple(name for one in read.of for name in self._named(one)))
            value, of = self.stripped(read.value)
            return replace(read, value=value, of=of)
        plain = isinstance(part, Column) and not isinstance(part, MatchValue)
        if plain or (isinstance(part, Field) and self._variable(part) is not None):
            return Navigation(*self.stripped(part))
        return None

    def _shown(self, read: MatchFold) -> str:
        """How an aggregate is printed, without the variable that it is of."""
        names = "|".join(self.variables)
        text = re.sub(rf"`(?:{names})\.\*`", "", read.aggregate.shown, flags=re.IGNORECASE)
        return re.sub(rf"`(?:{names})\.(\w+)`", r"\1", text, flags=re.IGNORECASE)

    def stripped(self, value: Expr) -> tuple[Expr | None, tuple[str, ...]]:
        """A value of rows without the variable that its columns are of, and that; no value for ``A.*``."""
        found: dict[str, None] = {}

        def strip(part: Expr) -> Expr:
            variable = self._variable(part)
            if variable is not None:
                found[variable[0]] = None
                return Column(variable[1])
            if isinstance(part, Column):
                found[""] = None
            inner = children(part)
            return with_children(part, [strip(one) for one in inner]) if inner else part

        made = strip(value)
        if len(found) > 1:
            raise PlanError(
                f"'{value}' reads rows of several variables at once.",
                remedy="Name one variable, or a union of them: subsets={'U': ('A', 'B')}.",
            )
        only = next(iter(found), "")
        every = isinstance(made, Column) and made.name == "*"
        return None if every else made, self.variables[only] if only else ()

    def _variable(self, part: Expr) -> tuple[str, str] | None:
        """The variable and the column of ``A.price``."""
        if isinstance(part, Field) and isinstance(part.arg, Column):
            name, column = part.arg.name, part.name
        elif isinstance(part, Column):
            name, _, column = part.name.partition(".")
        else:
            return None
        known = column and name not in self.schema.names and part_name(part) not in self.schema.names
        return (name.upper(), column) if known and name.upper() in self.variables else None

    def _named(self, name: str) -> tuple[str, ...]:
        if name.upper() not in self.variables:
            raise unknown_variable(name, self.variables)
        return self.variables[name.upper()]


def part_name(part: Expr) -> str:
    return part.name if isinstance(part, Column) else ""


def unknown_variable(name: str, known: Mapping[str, object]) -> PlanError:
    """What is wrong with a name that the pattern does not have."""
    return PlanError(f"the pattern has no variable '{name}'.", remedy=closest(name.upper(), known))
