"""What one trip around a loop does to a row: each column as an expression, and what is known to hold.

A column of the recursive stream is written ``rec:name``, one of a stream from outside ``in3:name``, and
one of which nothing is known ``any5:name``. A step may do one of several things (a union); each is a
`Trip`.

>>> from caesura.expr import col
>>> linear(col("rec:n") + 1)
(Expr(`rec:n`), 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from caesura.expr import Apply, Column, Constant, Expr, attributes, conjuncts, substitute
from caesura.expr.rewrite import strip
from caesura.fixpoint.node import Fixpoint, Recursive
from caesura.ops.aggregate import Totals, Tumbling
from caesura.ops.clip import Clip
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.ops.windows import Windows
from caesura.plan import Node

MOST_TRIPS = 64
REC = "rec:"


@dataclass(frozen=True)
class Trip:
    """One way around: the columns that come out, and the predicates that held."""

    columns: dict[str, Expr]
    facts: tuple[Expr, ...] = ()

    def inside(self, expr: Expr) -> Expr:
        """An expression over this row's columns, over what they are made of."""
        return substitute(expr, self.columns)


class Tracer:
    """Follows a loop's body from its placeholder to its result."""

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self._number = count()
        self._known: dict[str, list[Trip]] = {}

    def trips(self, node: Node) -> list[Trip]:
        """The ways in which a row of this step comes about; few, or one of which nothing is known."""
        if node.fingerprint not in self._known:
            found = list(self._trips(node))
            self._known[node.fingerprint] = found if 0 < len(found) <= MOST_TRIPS else [self._any(node)]
        return self._known[node.fingerprint]

    def _any(self, node: Node) -> Trip:
        """Fresh names: from outside where the loop does not reach, else of unknown making."""
        mark = "any" if self._reaches(node) else "in"
        here = f"{mark}{next(self._number)}:"
        return Trip({name: Column(here + name) for name in node.schema.names})

    def _reaches(self, node: Node) -> bool:
        mine = isinstance(node, Recursive) and node.loop == self.loop
        return mine or any(self._reaches(child) for child in node.inputs)

    def _trips(self, node: Node) -> Iterator[Trip]:
        match node:
            case Recursive() if node.loop == self.loop:
                yield Trip({name: Column(REC + name) for name in node.schema.names})
            case Where():
                for trip in self.trips(node.inputs[0]):
                    facts = tuple(trip.inside(c) for c in conjuncts(node.predicate))
                    kept = {n: trip.columns[n] for n in node.schema.names}
                    yield Trip(kept, (*trip.facts, *facts))
            case Select():
                for trip in self.trips(node.inputs[0]):
                    made = {name: strip(trip.inside(expr)) for name, expr in node.columns}
                    yield Trip(made, trip.facts)
            case Union():
                for child in node.inputs:
                    yield from self.trips(child)
            case Layers() | Lifetime() | Clip():
                yield from self.trips(node.inputs[0])
            case Join():
                yield from self._joined(node)
            case Windows() | Tumbling() | Totals():
                yield from self._grouped(node)
            case Fixpoint() if self._reaches(node):
                yield from self._nested(node)
            case _:
                yield self._any(node)

    def _joined(self, node: Join) -> Iterator[Trip]:
        left, right = (self.trips(child) for child in node.inputs)
        if node.how in ("semi", "anti"):
            yield from left
            return
        if node.how != "inner":
            yield self._any(node)
            return
        for a in left:
            for b in right:
                pairs = [a.columns[x] == b.columns[y] for x, y in node.on]
                columns = {**a.columns, **{n: b.columns[n] for n in node.right_columns}}
                trip = Trip(columns, (*a.facts, *b.facts, *pairs))
                more = conjuncts(node.residual) if node.residual is not None else ()
                yield Trip(columns, (*trip.facts, *(trip.inside(c) for c in more)))

    def _grouped(self, node: Windows | Tumbling | Totals) -> Iterator[Trip]:
        unknown = self._any(node).columns
        for trip in self.trips(node.inputs[0]):
            yield Trip({**unknown, **{n: trip.columns[n] for n in node.group}}, trip.facts)

    def _nested(self, node: Fixpoint) -> Iterator[Trip]:
        """Columns that an inner loop leaves alone are its seed's; of the others nothing is known."""
        inner = Tracer(node.loop)
        around = inner.trips(node.inputs[1])
        kept = [n for n in node.plain.names if all(is_rec(t.columns[n]) == n for t in around)]
        unknown = self._any(node).columns
        for trip in self.trips(node.inputs[0]):
            yield Trip({**unknown, **{n: trip.columns[n] for n in kept}}, trip.facts)


def is_rec(expr: Expr) -> str | None:
    """The name of the loop's own column, when the expression is one unchanged."""
    if isinstance(expr, Column) and expr.name.startswith(REC):
        return expr.name.removeprefix(REC)
    return None


def from_outside(expr: Expr) -> bool:
    """Whether an expression's values are drawn from streams outside the loop alone."""
    return all(name.startswith("in") for name in attributes(expr))


def linear(expr: Expr) -> tuple[Expr | None, int]:
    """The expression as something plus a whole number; None plus the number for a constant."""
    match strip(expr):
        case Constant(value=bool()):
            return strip(expr), 0
        case Constant(value=int() as value):
            return None, value
        case Apply(name="add", args=(a, b)):
            (x, i), (y, j) = linear(a), linear(b)
            if x is None or y is None:
                return (y if x is None else x), i + j
        case Apply(name="subtract", args=(a, b)):
            (x, i), (y, j) = linear(a), linear(b)
            if y is None:
                return x, i - j
    return strip(expr), 0
