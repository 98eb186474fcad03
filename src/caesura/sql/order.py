"""Inner joins of several tables: which conditions hold of one table, and which tables meet first.

A table with conditions of its own that meets one other only goes to that one first, for it leaves rows out.
The rest meets in the order that it is written in, but for tables that no equality joins to those before:
they wait for one that does, so that a product of tables is made only where nothing else is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from caesura.sql.pairs import equal_sides, matched
from caesura.sql.relation import HeldColumn, Relation
from caesura.sql.rules import implied

if TYPE_CHECKING:
    from caesura.sql.query import Lowering


@dataclass
class InnerJoins:
    """Tables that are joined, by names that no two columns share, and the conditions over them."""

    query: Lowering
    node: exp.Expr
    tables: list[Relation]
    conditions: list[exp.Expr]
    limited: set[int] = field(default_factory=set)
    """The tables that have conditions of their own."""

    def joined(self) -> Relation:
        """All of them in one."""
        for at, one in enumerate(self.tables):
            own = [c for c in self.conditions if one.has(c)]
            more = [implied(c, one.has) for c in self.conditions if c not in own]
            conditions = [*own, *(c for c in more if c is not None)]
            if conditions:
                self.tables[at] = self.query.filtered(one, conditions)
                self.limited.add(at)
            self.conditions = [c for c in self.conditions if c not in own]
        return self._met(self._trees())

    def _linked(self, left: Relation, right: Relation) -> bool:
        return any(equal_sides(left, right, c) for c in self.conditions)

    def _trees(self) -> list[Relation]:
        """Tables, each with those that go to it first."""
        places, below = list(range(len(self.tables))), {at: [at] for at in range(len(self.tables))}
        branches: dict[int, list[int]] = {at: [] for at in places}
        while (found := self._leaf(places, below)) is not None:
            leaf, root = found
            places.remove(leaf)
            branches[root].append(leaf)
            below[root] += below[leaf]
            self.limited.add(root)

        def grown(at: int) -> Relation:
            made = self.tables[at]
            for one in sorted(branches[at]):
                made = self._pair(made, grown(one))
            return made

        return [grown(at) for at in places]

    def _leaf(self, places: list[int], below: dict[int, list[int]]) -> tuple[int, int] | None:
        for at in places:
            if at not in self.limited:
                continue
            mine = self._all(below[at])
            near = [other for other in places if other != at and self._linked(mine, self._all(below[other]))]
            if len(near) == 1:
                return at, near[0]
        return None

    def _all(self, places: list[int]) -> Relation:
        """The columns of several tables, to look names up in."""
        columns = tuple(c for at in places for c in self.tables[at].columns)
        return Relation(self.tables[places[0]].stream, columns)

    def _met(self, tables: list[Relation]) -> Relation:
        made: list[Relation] = []
        while tables:
            one = tables.pop(0)
            while (at := next((n for n, t in enumerate(tables) if self._linked(one, t)), None)) is not None:
                one = self._pair(one, tables.pop(at))
            made.append(one)
        whole = made[0]
        for one in made[1:]:
            whole = self._pair(whole, one)
        return whole

    def _pair(self, left: Relation, right: Relation) -> Relation:
        both = Relation(left.stream, (*left.columns, *right.columns))
        taken = [c for c in self.conditions if both.has(c)]
        self.conditions = [c for c in self.conditions if c not in taken]
        return matched(self.query, left, right, taken, self.node, "inner")


def plain(relation: Relation) -> Relation:
    """The relation by the names that its columns are held under."""
    return Relation(relation.stream, tuple(HeldColumn("", c.held, c.held) for c in relation.columns))
