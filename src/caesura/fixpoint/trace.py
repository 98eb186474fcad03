"""What one trip around a loop does to a row: each column as an expression, and what is known to hold.

A row of a step depends on rows of the loop, for being there or for not being there. Columns of the first
of them are written ``rec0:name``, of the second ``rec1:name``; one of a stream from outside ``in3:name``;
one of which nothing is known ``any5:name``. A step may do one of several things (a union); each is a
`Trip`. Seen from one of its loop rows, that one's columns are ``rec:name``, the others' ``also1:name``.

>>> from caesura.expr import col
>>> linear(col("rec:n") + 1)
(Expr(`rec:n`), 1)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from caesura.expr import Apply, Column, Constant, Expr, attributes, conjuncts, lit, substitute
from caesura.expr.rewrite import strip
from caesura.fixpoint.node import Fixpoint, Recursive
from caesura.ops.aggregate import Aggregate, Totals, Tumbling
from caesura.ops.clip import Clip
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.union import Union
from caesura.ops.windows import Windows
from caesura.plan import Node
from caesura.plan.loops import on_loop

TRIPS_LIMIT = 64
REC, ALSO = "rec:", "also"
START = "\0start()"
"""Where rows of a loop begin, among their columns; no column of a user is called so."""
KEEP_STARTS = ("set_duration", "extend", "forever", "points_at_start")
PICKED = {"min": "least of", "max": "greatest of"}
NUMBERED = re.compile(r"rec(\d+):(.*)", re.DOTALL)
Columns = dict[str, Expr]


@dataclass(frozen=True)
class Trip:
    """One way around: the columns that come out, and the predicates that held."""

    columns: Columns
    facts: tuple[Expr, ...] = ()
    rows: int = 0
    """How many rows of the loop take part."""
    start: Expr | None = None
    end: Expr | None = None

    def inside(self, expr: Expr) -> Expr:
        """An expression over this row, over what its columns are made of."""
        return substitute(expr, self.columns, start=self.start, end=self.end)

    def with_start(self) -> Trip:
        """The same with its start among its columns."""
        return self if self.start is None else replace(self, columns={**self.columns, START: self.start})

    def seen(self) -> list[Trip]:
        """The trip as each of its loop rows sees it."""
        return [self._seen_by(row) for row in range(self.rows)]

    def _seen_by(self, row: int) -> Trip:
        def name(number: int, column: str) -> str:
            return f"{REC}{column}" if number == row else f"{ALSO}{number}:{column}"

        mine = self._renamed(name)
        equal: Columns = {}
        for fact in mine.facts:
            match fact:
                case Apply(name="equal", args=(Column() as a, Column() as b)):
                    own, other = (a, b) if is_rec(a) is not None else (b, a)
                    if is_rec(own) is not None and other.name.startswith(ALSO):
                        equal.setdefault(other.name, own)
        return mine._mapped(lambda expr: substitute(expr, equal)) if equal else mine

    def behind(self, rows: int) -> Trip:
        """The same with its loop rows numbered behind so many others."""
        if not rows or not self.rows:
            return self
        return self._renamed(lambda number, column: f"rec{number + rows}:{column}")

    def _renamed(self, name: Callable[[int, str], str]) -> Trip:
        def renamed(expr: Expr) -> Expr:
            found = {a: NUMBERED.fullmatch(a) for a in attributes(expr)}
            new = {a: Column(name(int(m[1]), m[2])) for a, m in found.items() if m is not None}
            return substitute(expr, new) if new else expr

        return self._mapped(renamed)

    def _mapped(self, change: Callable[[Expr], Expr]) -> Trip:
        columns = {n: change(e) for n, e in self.columns.items()}
        start = None if self.start is None else change(self.start)
        return Trip(columns, tuple(map(change, self.facts)), self.rows, start, self.end)


class Tracer:
    """Follows a loop's body from its placeholder to its result."""

    def __init__(self, loop: str, body: Node) -> None:
        self.loop = loop
        self._number = count()
        self._known: dict[str, list[Trip]] = {}
        self._circle = on_loop(body, loop)
        moving = [n for n in _every(body) if n.moves_time and n.fingerprint in self._circle]
        self._moving = bool(moving)
        """Whether starts and ends of the loop's rows are moved, or are those of rows from outside."""

    def trips(self, node: Node) -> list[Trip]:
        """The ways in which a row of this step comes about; few, or one of which nothing is known."""
        if node.fingerprint not in self._known:
            found = list(self._trips(node))
            self._known[node.fingerprint] = found if 0 < len(found) <= TRIPS_LIMIT else [self._any(node)]
        return self._known[node.fingerprint]

    def _any(self, node: Node) -> Trip:
        """Fresh names: from outside where the loop does not reach, else of unknown making."""
        reaches = self._reaches(node)
        here = f"{'any' if reaches else 'in'}{next(self._number)}:"
        return self._living({name: Column(here + name) for name in node.schema.names}, (), int(reaches))

    def _living(self, columns: Columns, facts: tuple[Expr, ...], rows: int) -> Trip:
        """A row with a lifetime of its own."""
        here = f"{'any' if rows and self._moving else 'in'}{next(self._number)}:"
        return Trip(columns, facts, rows, Column(here + "start"), Column(here + "end"))

    def _reaches(self, node: Node) -> bool:
        return node.fingerprint in self._circle or (isinstance(node, Recursive) and node.loop == self.loop)

    def _trips(self, node: Node) -> Iterator[Trip]:
        match node:
            case Recursive() if node.loop == self.loop:
                row = self._living({name: Column(f"rec0:{name}") for name in node.schema.names}, (), 1)
                yield replace(row, start=Column(f"rec0:{START}")) if self._moving else row
            case Union():
                for child in node.inputs:
                    yield from self.trips(child)
            case Lifetime():
                for trip in self.trips(node.inputs[0]):
                    yield self._moved(node, trip)
            case Layers():  # what a difference takes away has the columns of what is left
                for child in node.inputs:
                    for trip in self.trips(child):
                        if trip.rows or child is node.inputs[0]:
                            yield self._living(trip.columns, trip.facts, trip.rows)
            case Join():
                yield from self._joined(node)
            case Windows() | Tumbling() | Totals():
                yield from self._grouped(node)
            case Fixpoint() if self._reaches(node):
                yield from self._nested(node)
            case _ if (form := node.row_form()) is not None:
                for trip in self.trips(node.inputs[0]):
                    facts = tuple(trip.inside(c) for c in form.conditions)
                    made = {name: strip(trip.inside(expr)) for name, expr in form.columns}
                    yield Trip(made, (*trip.facts, *facts), trip.rows, trip.start, trip.end)
            case _:
                yield self._any(node)

    def _moved(self, node: Lifetime, trip: Trip) -> Trip:
        """A row whose lifetime is moved; of its end nothing is known any more."""
        there = self._living(trip.columns, trip.facts, trip.rows)
        if node.rule == "shift" and trip.start is not None:
            return replace(there, start=trip.start + node.amount)
        return replace(there, start=trip.start) if node.rule in KEEP_STARTS else there

    def _joined(self, node: Join) -> Iterator[Trip]:
        """Pairs; and rows that meet nothing, which depend on all that they could have met."""
        left, right = (self.trips(child) for child in node.inputs)
        alone = isinstance(node, Clip) or node.how in ("semi", "anti")
        for a in left:
            for b in right:
                both = self._pair(node, a, b)
                if not alone:
                    yield both
                if (alone or node.how in ("left", "full")) and (b.rows or node.how == "semi"):
                    yield self._living(_unmatched(node, a, 0), both.facts, both.rows)
                if node.how in ("right", "full") and a.rows:
                    yield self._living(_unmatched(node, b.behind(a.rows), 1), both.facts, both.rows)
        if isinstance(node, Clip) or node.how in ("left", "full", "anti"):
            for a in left:
                yield self._living(_unmatched(node, a, 0), a.facts, a.rows)
        if node.how in ("right", "full"):
            for b in right:
                yield self._living(_unmatched(node, b, 1), b.facts, b.rows)

    def _pair(self, node: Join, a: Trip, b: Trip) -> Trip:
        b = b.behind(a.rows)
        columns = {**a.columns, **{n: b.columns[n] for n in node.right_columns}}
        pairs = [a.columns[x] == b.columns[y] for x, y in node.on]
        trip = self._living(columns, (), a.rows + b.rows)
        more = conjuncts(node.residual) if node.residual is not None else ()
        facts = (*a.facts, *b.facts, *pairs, *(trip.inside(c) for c in more))
        start = trip.start
        if self._moving and a.start is not None and b.start is not None:
            start = Apply("greatest", (a.start, b.start))
        return Trip(columns, facts, trip.rows, start, trip.end)

    def _grouped(self, node: Windows | Tumbling | Totals) -> Iterator[Trip]:
        unknown = self._any(node).columns
        for trip in self.trips(node.inputs[0]):
            made = {**unknown, **{n: trip.columns[n] for n in node.group}, **_picked(node, trip)}
            yield self._living(made, trip.facts, trip.rows)

    def _nested(self, node: Fixpoint) -> Iterator[Trip]:
        """Columns that an inner loop leaves alone are its seed's; of the others nothing is known.

        Nor is anything known of the rows of the outer loop that the inner one meets on its way.
        """
        around = [t for trip in Tracer(node.loop, node.inputs[1]).trips(node.inputs[1]) for t in views(trip)]
        unchanged = [n for n in node.plain.names if all(is_rec(t.columns[n]) == n for t in around)]
        for trip in self.trips(node.inputs[0]):
            unknown = self._any(node).columns
            yield self._living({**unknown, **{n: trip.columns[n] for n in unchanged}}, trip.facts, trip.rows)
        if self._reaches(node.inputs[1]):
            yield self._any(node)


def _every(root: Node) -> Iterator[Node]:
    yield root
    for child in root.inputs:
        yield from _every(child)


def views(trip: Trip) -> list[Trip]:
    """A trip as its loop rows see it, or as it is where none takes part."""
    return trip.seen() or [trip]


def _unmatched(node: Join, trip: Trip, port: int) -> Columns:
    """The columns of a row that meets nothing on the other side."""
    columns: Columns = {f.name: lit(None, f.type) for f in node.schema}
    if port == 0:
        return columns | {n: e for n, e in trip.columns.items() if n in columns}
    keys = {y: x for x, y in node.on}
    return columns | {keys.get(n, n): e for n, e in trip.columns.items()}


def _picked(node: Windows | Tumbling | Totals, trip: Trip) -> Columns:
    """The extreme of a group as one of its rows has it, if that is all that is computed.

    With a second result, a row would also be there because of rows on the other side of the extreme.
    """
    match node:
        case Windows(outputs=((name, Aggregate(kind="min" | "max" as kind, value=Expr() as value)),)):
            return {name: Apply(PICKED[kind], (strip(trip.inside(value)),))}
    return {}


def picked(trip: Trip, name: str, direction: int) -> Trip:
    """The trip with a least value (greatest, if the direction is down) as one of its rows has it.

    That the least of a group is m rests on rows with m or less in it, for being there or for not being
    there; so what is shown of each such row holds for all that the result depends on.
    """
    match trip.columns[name]:
        case Apply(name=kind, args=(value,)) if kind == PICKED["min" if direction > 0 else "max"]:
            return replace(trip, columns={**trip.columns, name: value})
    return trip


def is_rec(expr: Expr) -> str | None:
    """The name of the loop's own column, when the expression is one unchanged."""
    if isinstance(expr, Column) and expr.name.startswith(REC):
        return expr.name.removeprefix(REC)
    return None


def from_loop(expr: Expr) -> bool:
    """Whether the expression is a column of some row of the loop unchanged; starts may be moved."""
    return isinstance(expr, Column) and expr.name.startswith((REC, ALSO)) and not expr.name.endswith(START)


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
