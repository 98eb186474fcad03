"""`MatchRows`: rows of each group in order of time that match a pattern (SQL's MATCH_RECOGNIZE).

     LE RE | id v |      pattern A B+, B as v > PREV(v), measures n = count(*), top = LAST(B.v)
      1  2 | 7  5 | +
      3  4 | 7  6 | +   ->    8  9 | 7 3 9 | +
      8  9 | 7  9 | +
      9 10 | 7  2 | +

Rows stand in order of their starts; those that start together by the columns of ``order``, then by their
values, column by column. A search begins at the first row, and behind a match where ``skip`` says; of the
matches that begin at a row the one counts that the standard prefers. A match is shown as one row, which has
the lifetime of its last row, or as all its rows, each with its own. An empty match has the row where it is.

Law: what is shown follows from the rows of each group alone, whatever the order in which they came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from caesura.errors import PlanError
from caesura.expr import Column, Expr, attributes, reads_time
from caesura.ops.aggregate.shape import of_groups
from caesura.ops.match.formula import NUMBER, Formula, Navigation
from caesura.ops.match.pattern import RowPattern, anchored, nullable, program, variables
from caesura.ops.over.group_rows import GroupRows
from caesura.plan import Holding, Need, Node, Operator, shown
from caesura.plan.roles import PunctuatedBy
from caesura.punctuation import TIME, Pattern

Shown = Literal["one", "all", "all without empty", "all with unmatched"]
SkipTo = Literal["past last row", "next row", "first", "last"]


@dataclass(frozen=True)
class Skip:
    """Where the search goes on behind a match: for 'first' and 'last', at such a row of these variables.

    Where that is the first row of the match, or there is none, at the next row.
    """

    to: SkipTo = "past last row"
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.to} {'|'.join(self.of)}".strip()


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchRows(GroupRows):
    """Matches of a pattern in the rows of each group."""

    order: tuple[str, ...] = ()
    """Columns by which rows go that start together."""
    pattern: RowPattern
    define: tuple[tuple[str, Formula], ...] = ()
    """The conditions of variables; one without matches any row."""
    measures: tuple[tuple[str, Formula], ...] = ()
    shown: Shown = "one"
    skip: Skip = Skip()
    within: int | None = None
    """The time from the first to the last row of a match is at most this."""

    kind = "match_recognize"
    loop_remedy = "Match what comes out of the loop."
    punctuated_by: PunctuatedBy = "rows"  # type: ignore[misc]

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the pattern."""
        return variables(self.pattern)

    @property
    def passed(self) -> tuple[str, ...]:
        """The columns of rows that are shown with a match."""
        return self.group if self.shown == "one" else tuple(self.inputs[0].schema.names)

    @property
    def navigations(self) -> list[Navigation]:
        """What conditions and measures read of single rows."""
        return [one for _, formula in (*self.define, *self.measures) for one in formula.navigations]

    @property
    def behind(self) -> int:
        """How many rows before a match are read."""
        return max([0, *(-one.move for one in self.navigations)])

    @property
    def ahead(self) -> int:
        """How many rows behind a row are read."""
        return max([0, *(one.move for one in self.navigations)])

    @property
    def numbered(self) -> bool:
        """Whether it is asked how many matches a group has had, or whether rows are its first."""
        formulas = [formula for _, formula in (*self.define, *self.measures)]
        return anchored(self.pattern, "^") or any(NUMBER in attributes(one.value) for one in formulas)

    @property
    def ends_in_time(self) -> bool:
        """Whether time alone says that a search has seen all rows that it could."""
        return self.within is not None and not self.ahead and not anchored(self.pattern, "$")

    def depends(self) -> tuple[str, ...]:
        """The variables whose conditions depend on what is matched before."""
        return tuple(
            name for name, one in self.define if not all(part.over_rows(name) for part in one.parts())
        )

    def of_shown_row(self, name: str) -> Expr | None:
        """What an output column is of the row whose lifetime its row has; None where it is of others too."""
        if self.shown != "one":
            return Column(name) if name in self.inputs[0].schema.names else None
        formula = dict(self.measures).get(name)
        if formula is None or not isinstance(formula.value, Column) or nullable(self.pattern):
            return None
        read = dict(formula.reads).get(formula.value.name)
        last = Navigation(None).key[2:]
        return read.value if isinstance(read, Navigation) and read.key[2:] == last else None

    def output_schema(self) -> pa.Schema:
        source = self.inputs[0]
        for name in (*self.group, *self.order):
            self.column(name)
        self._refuse_times()
        program(self.pattern, self.variables)
        fields = [source.schema.field(name) for name in self.passed]
        fields += [pa.field(name, one.type(source.schema, source.time)) for name, one in self.measures]
        return pa.schema(fields)

    def _refuse_times(self) -> None:
        """Refuses start() and end() of no row: rows of a match are read by their columns."""
        for name, formula in (*self.define, *self.measures):
            if reads_time(formula.value):
                raise PlanError(
                    f"'{name}' reads start() or end(), and rows of a match are read by their columns.",
                    remedy="Keep the time as a column in front, .with_columns(at=cz.start()), and read "
                    "col('at').",
                )

    def _above_as_time(self, name: str) -> str:
        return kept_in_front(self.inputs[0], name)

    def carry(self, port: int, pattern: Pattern) -> Pattern | None:
        """A pattern on whole groups passes, and time as far as no search waits for rows."""
        waits = TIME in pattern and len(pattern.attributes) > 1
        return pattern if of_groups(pattern, self.group) and not waits else None

    def holds(self) -> tuple[Holding, ...]:
        """Rows from the first search that is not settled, and what is read of those before."""
        need = (Need(0, self.group),)
        each = 2 if self.shown == "one" else 3
        why = "a match may take any number of rows and any time; within= (SQL: WITHIN INTERVAL) bounds it"
        if self.within is not None:
            why = "rows behind a match are read, and may come at any time" if not self.ends_in_time else ""
        held = Holding(
            "rows of open matches", 0, need, "forever", holds_back=True, each=each, one_per=None, why=why
        )
        if self.ends_in_time:
            until: Literal["start", "end"] = "start" if self.inputs[0].properties.fixed_ends else "end"
            size = self.within or 0
            held = Holding("rows of open matches", 0, need, until, holds_back=True, size=size, each=each)
        last = [Holding("the last rows", 0, need, "forever", one_per=self.group, each=self.behind)]
        number = [Holding("numbers of matches", 0, need, "forever", one_per=self.group)]
        return (held, *(last if self.behind else []), *(number if self.numbered else []))

    def operator(self) -> Operator:
        from caesura.ops.match.physical import MatchOperator

        return MatchOperator(self)

    def describe(self) -> str:
        by = f"by {', '.join(self.group)}; " if self.group else ""
        within = f" within {shown(self.within, self.time)}" if self.within is not None else ""
        define = "".join(f"; {name} as {one}" for name, one in self.define)
        measures = "".join(f"; {name}={one}" for name, one in self.measures)
        return (
            f"{by}{self.pattern}{within}{define}{measures}; {self.shown}, then {self.skip}; {self.method()}"
        )

    def method(self) -> str:
        """How matches are searched."""
        from caesura.ops.match.matcher import RowMatcher

        depends = ", ".join(self.depends())
        if not depends:
            return "conditions by columns, one pass"
        return (
            f"{depends} by registers" if RowMatcher(self).has_registers() else f"{depends} tried row by row"
        )


def kept_in_front(source: Node, name: str) -> str:
    """How to read a column in rows of a match that was taken for their time; empty where it was not."""
    told = source.as_time(name) if name else ""
    if not told:
        return ""
    side = "end" if told.endswith("cz.end().") else "start"
    return (
        f"'{name}' was read as the {side} of the rows' lifetimes: keep it as a column in front, "
        f".with_columns({name}=cz.{side}())."
    )
