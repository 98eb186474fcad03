"""What a join's `on=` means: which columns or expressions must be equal, and what else must hold.

A predicate is taken apart: an equality with the left side's columns on one side and the right's on the other
is a key, computed in front of the join where it is no column; the rest is looked at for pairs of equal keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from caesura.errors import PlanError, closest
from caesura.expr import (
    Apply,
    Column,
    Expr,
    as_predicate,
    children,
    col,
    conjuncts,
    describe,
    type_of,
    with_children,
)
from caesura.expr.nodes import SideColumn, as_expr, of_pyspark
from caesura.expr.types import common_type
from caesura.ops.held import in_one_time
from caesura.ops.select import Select
from caesura.plan import Node, here

Key = str | Expr
On = Key | Sequence[Key] | Mapping[Any, Any]
Side = Literal["left", "right"]
Names = Mapping[Side, Mapping[str, str]]


@dataclass
class Pairing:
    """Two inputs of a join, their keys, and what must hold beside them."""

    left: Node
    right: Node
    step: str = "join"
    on: list[tuple[str, str]] = field(default_factory=list)
    residuals: list[Expr] = field(default_factory=list)
    computed: dict[Side, dict[str, Expr]] = field(default_factory=lambda: {"left": {}, "right": {}})
    """The columns that are computed for keys; those of the left are left out again."""

    def inputs(self, names: Names) -> tuple[Node, Node]:
        """Both sides with the keys that are computed, under these names."""
        left, right = in_one_time(self.input("left", names["left"]), self.input("right", names["right"]))
        return left, right

    def keys(self, names: Names) -> tuple[tuple[str, str], ...]:
        """The columns that must be equal, under these names."""
        return tuple((names["left"].get(a, a), names["right"].get(b, b)) for a, b in self.on)

    def side(self, side: Side) -> Node:
        return self.left if side == "left" else self.right

    def add(self, on: On) -> None:
        """One more thing that must be equal, or hold."""
        if of_pyspark(on):
            on = as_expr(on)
        if isinstance(on, str):
            self._key(col(on), col(on))
        elif isinstance(on, Column) and not isinstance(on, SideColumn):
            self._key(on, on)
        elif isinstance(on, Expr):
            for part in conjuncts(on):
                self._predicate(part)
        elif isinstance(on, Mapping):
            for a, b in on.items():
                self._key(self._column(a), self._column(b))
        elif isinstance(on, Iterable):
            for one in on:
                self.add(one)
        else:
            self._column(on)

    def _column(self, given: object) -> Expr:
        if isinstance(given, Expr):
            return given
        if isinstance(given, str):
            return col(given)
        raise self.refused(
            f"on= names columns; got {given!r}.", "Write the names as texts, for example 'id'."
        )

    def _predicate(self, part: Expr) -> None:
        if isinstance(part, Apply) and part.name == "equal":
            sides = [self.sides(arg) for arg in part.args]
            if sides == [{"left"}, {"right"}]:
                self._key(*self._of_one_type(*part.args))
                return
            if sides == [{"right"}, {"left"}]:
                self._key(*self._of_one_type(*reversed(part.args)))
                return
        self.sides(part)
        self.residuals.append(part)

    def _key(self, left: Expr, right: Expr) -> None:
        computed = not isinstance(left, Column)  # then the right column is not the same as a left one
        self.on.append((self._named("left", left), self._named("right", right, computed=computed)))

    def _of_one_type(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Two sides of an equality, converted to one type where they have two."""
        types = [
            type_of(without_sides(expr), node.schema, time=node.time)
            for expr, node in ((left, self.left), (right, self.right))
        ]
        shared = common_type(*types)
        if shared is None:
            raise self.refused(
                f"'{left}' is {describe(types[0])} and '{right}' is {describe(types[1])}.",
                f"Cast one side, for example the right one with .cast('{describe(types[0])}').",
            )
        one, other = (e if t == shared else e.cast(shared) for e, t in zip((left, right), types, strict=True))
        return one, other

    def _named(self, side: Side, expr: Expr, *, computed: bool = False) -> str:
        """The column that holds a key; one is computed for what is none."""
        if isinstance(expr, Column) and not computed:
            return expr.name
        name = f"__{side}_key{len(self.on)}"
        self.computed[side][name] = without_sides(expr)
        return name

    def sides(self, expr: Expr) -> set[Side]:
        """Whose columns an expression reads."""
        return {self._side(leaf) for leaf in columns_of(expr)}

    def _side(self, column: Column) -> Side:
        found: list[Side] = [s for s in ("left", "right") if column.name in self.side(s).schema.names]
        if isinstance(column, SideColumn):
            owner = self._owner(column)
            if owner in found:
                return owner
            raise self.refused(
                f"the {owner} stream has no column '{column.name}'.",
                closest(column.name, self.side(owner).schema.names),
            )
        if len(found) == 1:
            return found[0]
        if found:
            raise self.refused(
                f"both sides have a column '{column.name}'.",
                f"Write cz.left('{column.name}') or cz.right('{column.name}'); if both are equal, "
                f"on='{column.name}'.",
            )
        names = [*self.left.schema.names, *self.right.schema.names]
        raise self.refused(f"neither side has a column '{column.name}'.", closest(column.name, set(names)))

    def _owner(self, column: SideColumn) -> Side:
        if column.side in ("left", "right"):
            return column.side
        found: list[Side] = [s for s in ("left", "right") if _is_above(column.side, self.side(s))]
        if len(found) == 1:
            return found[0]
        raise self.refused(
            f"'{column.name}' is of a stream that {'both sides are' if found else 'no side is'} made of.",
            f"Write cz.left('{column.name}') or cz.right('{column.name}').",
        )

    def refused(self, problem: str, remedy: str) -> PlanError:
        return PlanError(problem, remedy=remedy, step=self.step, place=here())

    def refuse_keyless(self) -> None:
        """Refuses a predicate that only a comparison of every pair could answer."""
        if self.on or not self.residuals:
            return
        told = " AND ".join(str(part) for part in self.residuals)
        raise self.refused(
            f"no equality of the two sides in '{told}', so that no key tells which rows can meet.",
            "Add an equality. Or write on=[], where=the predicate: then every pair that is alive at the same "
            "time is compared, all in one bucket.",
        )

    def renamed(self, suffixes: tuple[str, str] | None, prefix: str) -> dict[Side, dict[str, str]]:
        """Other names for columns that both sides have and that are no keys of the right."""
        if suffixes is not None and (prefix or len(suffixes) != 2 or suffixes[0] == suffixes[1]):
            raise self.refused(
                f"suffixes={suffixes!r} tell no two columns apart.",
                "Write suffixes=('', '_right'), or prefix='right_', not both.",
            )
        keys = {b for _, b in self.on}
        twice = [n for n in self.right.schema.names if n in self.left.schema.names and n not in keys]
        one, other = suffixes or ("", "")
        return {
            "left": {n: n + one for n in twice if one},
            "right": {n: prefix + n + other for n in twice if prefix or other},
        }

    def input(self, side: Side, names: Mapping[str, str]) -> Node:
        """A side with its keys computed and its columns renamed."""
        node, more = self.side(side), self.computed[side]
        if not names and not more:
            return node
        pairs = [*((names.get(n, n), col(n)) for n in node.schema.names), *more.items()]
        return Select(inputs=(node,), columns=tuple(pairs))

    def residual(self, where: Expr | str | None, names: Mapping[Side, Mapping[str, str]]) -> Expr | None:
        """What must hold beside equal keys, over the columns of a pair."""
        keys = {b: names["left"].get(a, a) for a, b in self.on}

        def called(leaf: Column) -> Expr:
            side = self._side(leaf)
            name = names[side].get(leaf.name, leaf.name)
            return col(keys.get(leaf.name, name) if side == "right" else name)

        parts = [replaced(part, called) for part in self.residuals]
        if where is not None:
            given = as_predicate(where)
            sided = lambda leaf: called(leaf) if isinstance(leaf, SideColumn) else leaf  # noqa: E731
            parts.append(replaced(given, sided))
        whole = parts[0] if parts else None
        for part in parts[1:]:
            whole = Apply("and", (whole, part))  # type: ignore[arg-type]
        return whole


def columns_of(expr: Expr) -> list[Column]:
    """The columns an expression reads, with whose they are."""
    if isinstance(expr, Column):
        return [expr]
    return [leaf for part in children(expr) for leaf in columns_of(part)]


def replaced(expr: Expr, by: Callable[[Column], Expr]) -> Expr:
    """The expression with its columns replaced."""
    if isinstance(expr, Column):
        return by(expr)
    parts = children(expr)
    return with_children(expr, [replaced(part, by) for part in parts]) if parts else expr


def without_sides(expr: Expr) -> Expr:
    """The expression over plain columns."""
    return replaced(expr, lambda leaf: col(leaf.name))


def _is_above(owner: object, node: Node) -> bool:
    return owner is node or any(_is_above(owner, above) for above in node.inputs)
