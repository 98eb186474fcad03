"""The letters of a query: the satisfiable truth assignments of its predicates.

Each column's domain is cut into cells by the constants that the predicates name; a predicate is a
union of boxes of cells, a box one bit mask per column. A condition that compares columns or calls a
function is beyond that algebra: it becomes a letter of unknown satisfiability unless a sample row
settles it, or z3, where it is installed.

>>> from caesura.expr import col
>>> from caesura.qre.language.items import items
>>> a = alphabet(items(pa.schema([("v", pa.int64())])), [col("v") > 3, col("v") > 7])
>>> [(bin(m.truth), m.row) for m in a.minterms]
[('0b0', {'v': 3}), ('0b1', {'v': 4}), ('0b11', {'v': 8})]
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError, PlanError
from caesura.expr import Alias, Apply, Constant, Expr, evaluate, pattern_of, predicate_mask
from caesura.qre.checking.cells import CellColumn, Cells
from caesura.qre.checking.domains import Domain
from caesura.qre.checking.solver import satisfying_row
from caesura.qre.language.items import TICK, Items

MAX_REGIONS = 4096
Box = tuple[int, ...]
Boxes = list[Box]


@dataclass(frozen=True)
class Minterm:
    """One letter: which predicates are true (bit i for predicate i), and a row that shows it."""

    truth: int
    row: dict[str, Any]
    certain: bool


class Alphabet:
    """The satisfiable minterms of some predicates, over the declared cases or over any items at all."""

    def __init__(self, of: Items, predicates: Sequence[Expr], declared: bool = True) -> None:
        self.items = of
        self.declared = declared or not of.cases
        self.predicates: dict[Hashable, int] = {}
        self.exprs: list[Expr] = []
        for predicate in predicates:
            if predicate.key not in self.predicates:
                of.check(predicate)
                self.predicates[predicate.key] = len(self.exprs)
                self.exprs.append(predicate)
        self.cells = Cells()
        self.minterms = self._minterms()
        self._masks: dict[Hashable, int] = {}

    def mask(self, predicate: Expr) -> int:
        """The letters for which a predicate is true, as bits."""
        key = predicate.key
        if key not in self._masks:
            bit = 1 << self.predicates[key]
            self._masks[key] = sum(1 << i for i, m in enumerate(self.minterms) if m.truth & bit)
        return self._masks[key]

    @property
    def certain(self) -> int:
        """The letters that surely exist, as bits."""
        return sum(1 << i for i, m in enumerate(self.minterms) if m.certain)

    def _minterms(self) -> list[Minterm]:
        formulas = [self._formula(e) for e in self.exprs]
        self.cells.seal()
        regions: list[tuple[int, Boxes]] = [(0, self._universe())]
        for number, formula in enumerate(formulas):
            yes = self._sets(formula)[0]
            no = self._complement(yes)
            grown: list[tuple[int, Boxes]] = []
            for truth, boxes in regions:
                inside = _meet(boxes, yes)
                outside = _meet(boxes, no) if inside else boxes
                if outside:
                    grown.append((truth, outside))
                if inside:
                    grown.append((truth | 1 << number, inside))
            regions = grown
            if len(regions) > MAX_REGIONS:
                raise PlanError(
                    f"the predicates distinguish more than {MAX_REGIONS} kinds of items.",
                    remedy="Use fewer predicates, or name an item's kind in one column and test that.",
                )
        return self._witnessed(regions)

    # Formulas: nested tuples ("leaf", column, true set, false set), ("and", ...), ("or", ...), ("not", f).

    def _formula(self, expr: Expr) -> tuple[Any, ...]:
        match expr:
            case Alias(arg=arg):
                return self._formula(arg)
            case Constant(value=value):
                return ("constant", value)
            case Apply(name="and" | "or" as name, args=args):
                return (name, *(self._formula(a) for a in args))
            case Apply(name="not", args=(arg,)):
                return ("not", self._formula(arg))
            case Apply(name="coalesce", args=(arg, Constant(value=False))):
                return ("surely", self._formula(arg))
        yes, no = pattern_of(expr, self.items.schema), pattern_of(~expr, self.items.schema)
        named = {*yes.attributes, *no.attributes} if yes is not None and no is not None else set()
        if yes is None or no is None or len(named) > 1:
            return ("leaf", self.cells.opaque(expr), None, None)
        if not named:
            return ("constant", True)
        (only,) = named
        column = self.cells.column(only, self.items.schema.field(only))
        column.cut(yes[only])
        column.cut(no[only])
        return ("leaf", column, yes[only], no[only])

    def _sets(self, formula: tuple[Any, ...]) -> tuple[Boxes, Boxes]:
        """The boxes where a formula is true, and where it is false; null is neither."""
        match formula:
            case ("constant", value):
                full = [self._full()]
                return (full if value is True else []), (full if value is False else [])
            case ("not", inner):
                yes, no = self._sets(inner)
                return no, yes
            case ("surely", inner):
                yes, _ = self._sets(inner)
                return yes, self._complement(yes)
            case ("leaf", column, yes, no):
                return self._leaf(column, yes), self._leaf(column, no, negative=True)
            case (name, *parts):
                sets = [self._sets(p) for p in parts]
                yes, no = sets[0]
                for y, n in sets[1:]:
                    yes, no = (_meet(yes, y), no + n) if name == "and" else (yes + y, _meet(no, n))
                return yes, no
        raise AssertionError(formula)

    def _leaf(self, column: CellColumn, values: Any, negative: bool = False) -> Boxes:
        bits = column.bits(values, negative) & column.full
        full = list(self._full())
        full[column.index] = bits
        return [tuple(full)] if bits else []

    def _full(self) -> Box:
        return tuple(c.full for c in self.cells.columns)

    def _complement(self, boxes: Boxes) -> Boxes:
        out: Boxes = [self._full()]
        for box in boxes:
            out = [piece for one in out for piece in _subtract(one, box)]
        return out

    def _universe(self) -> Boxes:
        """What items there are: per case its own columns; ticks have none."""
        of = self.items
        named = of.cases if self.declared else ()
        cases: list[tuple[Any, tuple[str, ...] | None]] = [*named] if named else [(None, None)]
        boxes = [self._case(tag, own) for tag, own in cases]
        if of.ticks:
            boxes.append(tuple(self._tick_bits(c) for c in self.cells.columns))
        return [box for box in boxes if all(box)]

    def _case(self, tag: Any, own: tuple[str, ...] | None) -> Box:
        bits = []
        for c in self.cells.columns:
            if c.name is None:
                bits.append(c.full)
            elif c.name == TICK:
                bits.append(c.at(False))
            elif c.name == self.items.tag and own is not None:
                bits.append(c.at(tag))
            elif own is not None and c.name not in own:
                bits.append(c.null)
            else:
                bits.append(c.full if c.nullable else c.full & ~c.null)
        return tuple(bits)

    def _tick_bits(self, c: CellColumn) -> int:
        return c.full if c.name is None else c.at(True) if c.name == TICK else c.null

    # Witnesses.

    def _witnessed(self, regions: list[tuple[int, Boxes]]) -> list[Minterm]:
        opaque = any(c.name is None for c in self.cells.columns)
        rows = [self._row(boxes[0]) for _, boxes in regions]
        if not opaque:
            return [Minterm(t, row, True) for (t, _), row in zip(regions, rows, strict=True)]
        tries = [row for _, boxes in regions for box in boxes for row in self._samples(box)]
        shown = self._truths(tries)
        found: list[Minterm] = []
        for truth, boxes in regions:
            row = shown.get(truth)
            if row is None:
                literals = [e if truth >> i & 1 else ~e for i, e in enumerate(self.exprs)]
                verdict = satisfying_row(literals, self.items.schema)
                if verdict is False:
                    continue
                row = verdict if isinstance(verdict, dict) else None
            found.append(Minterm(truth, self._row(boxes[0]) if row is None else row, row is not None))
        return found

    def _row(self, box: Box) -> dict[str, Any]:
        row: dict[str, Any] = {f.name: _plainest(f) for f in self.items.schema}
        known = {c.name: c for c in self.cells.columns if c.name is not None}
        tag = next((c for c in self.cells.columns if c.name == self.items.tag), None)
        if self.items.cases and tag is not None:
            own = dict(self.items.cases).get(tag.sample(box[tag.index]), ())
            row = {n: v if n in own or n == TICK else None for n, v in row.items()}
        for name, column in known.items():
            row[name] = column.sample(box[column.index])
        if row.get(TICK):
            row = {n: v if n == TICK else None for n, v in row.items()}
        return row

    def _samples(self, box: Box) -> list[dict[str, Any]]:
        """Some rows of a box: values of its cells, and plain ones for columns that it does not name."""
        base = self._row(box)
        rows = [base]
        rng = np.random.default_rng(7)
        free = [n for n in base if base[n] is not None and n != TICK and n != self.items.tag]
        known = {c.name: c for c in self.cells.columns}
        for _ in range(48):
            row = dict(base)
            for name in free:
                column = known.get(name)
                pool = _range(self.items.schema.field(name), base[name])
                if column is not None:
                    pool = column.several(box[column.index])
                row[name] = pool[int(rng.integers(len(pool)))]
            rows.append(row)
        return rows

    def _truths(self, rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        schema = pa.schema([pa.field(f.name, f.type) for f in self.items.schema])
        batch = pa.RecordBatch.from_pylist(rows, schema)
        zero = np.zeros(len(rows), np.int64)
        truth = [0] * len(rows)
        for number, expr in enumerate(self.exprs):
            try:
                hits = predicate_mask(evaluate(expr, batch, zero, zero, time=self.items.time))
            except CaesuraError:
                continue
            for i in np.flatnonzero(hits).tolist():
                truth[i] |= 1 << number
        return dict(zip(reversed(truth), reversed(rows), strict=True))


def alphabet(of: Items, predicates: Sequence[Expr], declared: bool = True) -> Alphabet:
    """The letters of some predicates, worked out once per set of predicates."""
    key = (declared or not of.cases, frozenset(p.key for p in predicates))
    if key not in of.alphabets:
        of.alphabets[key] = Alphabet(of, predicates, declared)
    return of.alphabets[key]


def _meet(a: Boxes, b: Boxes) -> Boxes:
    out = []
    for x in a:
        for y in b:
            box = tuple(p & q for p, q in zip(x, y, strict=True))
            if all(box):
                out.append(box)
    return out


def _subtract(one: Box, box: Box) -> Boxes:
    out = []
    narrowed = list(one)
    for i, bits in enumerate(box):
        rest = one[i] & ~bits
        if rest:
            out.append((*narrowed[:i], rest, *one[i + 1 :]))
        narrowed[i] = one[i] & bits
        if not narrowed[i]:
            break
    return out


def _plainest(field: pa.Field) -> Any:
    return Domain(field.type).some()[0]


def _range(field: pa.Field, value: Any) -> list[Any]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return [value]
    if isinstance(value, float):
        return [float(v) for v in _NUMBERS]
    return [v for v in _NUMBERS if Domain(field.type).between((v, 0), None)[:1] == [v]]


_NUMBERS = (0, 1, -1, 2, 3, 5, -4, 10, 100, 1000)
