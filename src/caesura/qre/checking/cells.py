"""Columns cut into cells by the constants that predicates name; a set of cells is a bit mask.

>>> from caesura.punctuation import lt
>>> cells = Cells()
>>> v = cells.column("v", pa.field("v", pa.int64()))
>>> v.cut(lt(5)); cells.seal(); bin(v.bits(lt(5))), v.sample(v.bits(lt(5)))
('0b1', 4)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from typing import Any

import pyarrow as pa

from caesura.expr import Expr
from caesura.expr.types import kind
from caesura.punctuation import Values, value
from caesura.qre.checking.domains import Domain


class CellColumn:
    """One column's cells: bit 0 lies below the first cut, bit i behind cut i, the last bit is null."""

    def __init__(self, index: int, name: str | None, field: pa.Field | None) -> None:
        self.index = index
        self.name = name
        self.kind = kind(field.type) if field is not None else "boolean"
        self.domain = Domain(pa.bool_() if field is None else field.type)
        self.nullable = field is None or field.nullable
        self.cuts: list[Any] = []
        self._found: set[Any] = set()
        self.full = 0
        self.null = 0

    def cut(self, values: Values) -> None:
        """Takes a set whose borders are borders of cells."""
        self._found |= set(values.cuts)

    def seal(self) -> None:
        """No more cuts come."""
        self.cuts = sorted(self._found)
        count = 3 if self.name is None else len(self.cuts) + 2
        self.full = (1 << count) - 1
        self.null = 1 << (count - 1)
        if self.name is not None and self.kind != "boolean":
            self.full = self.null | sum(1 << i for i in range(count - 1) if self._inside(i))

    def bits(self, values: Values | None, negative: bool = False) -> int:
        """A set as cells. For a condition beyond the algebra: its true or its false cell."""
        if values is None:
            return 2 if negative else 1
        bits = self.null if values.null else 0
        own = list(values.cuts)
        for i in range(len(self.cuts) + 1):
            passed = bisect_right(own, self.cuts[i - 1]) if i else 0
            if values.low ^ bool(passed & 1):
                bits |= 1 << i
        return bits

    def at(self, item: Any) -> int:
        """The cell of one value; a value that no predicate names lies in some cell."""
        if item is None:
            return self.null
        one = value(item)
        if not self.cuts:
            return 1
        if self.kind == "boolean":
            return 2 if item else 1
        first = one.cuts[0] if one.cuts else None
        return 1 << (bisect_right(self.cuts, first) if first is not None else 0)

    def sample(self, bits: int) -> Any:
        """A plain value of the lowest cell that is not null."""
        return self.several(bits)[0]

    def several(self, bits: int) -> list[Any]:
        """Some values of the cells."""
        out: list[Any] = []
        for i in range(len(self.cuts) + 1):
            if bits >> i & 1:
                out += self._inside(i)
        return out or [None]

    def _inside(self, i: int) -> list[Any]:
        """Some values of one cell that the column's type has; none if it has none there."""
        low = self.cuts[i - 1] if i else None
        high = self.cuts[i] if i < len(self.cuts) else None
        if self.kind == "boolean":
            return [low is not None]
        return [v for v in self.domain.between(low, high) if _follows(v, low) and _precedes(v, high)]


def _precedes(v: Any, cut: Any) -> bool:
    return cut is None or v != v or bool(v < cut[0] or (v == cut[0] and cut[1] == 1))


def _follows(v: Any, cut: Any) -> bool:
    return cut is None or v != v or not _precedes(v, cut)


class Cells:
    """The columns that predicates name, and the conditions that are beyond the algebra."""

    def __init__(self) -> None:
        self.columns: list[CellColumn] = []
        self._known: dict[Hashable, CellColumn] = {}

    def column(self, name: str, field: pa.Field) -> CellColumn:
        """A column of the schema."""
        return self._made(("column", name), name, field)

    def opaque(self, expr: Expr) -> CellColumn:
        """A condition that only its truth is known of."""
        return self._made(("opaque", expr.key), None, None)

    def _made(self, key: Hashable, name: str | None, field: pa.Field | None) -> CellColumn:
        if key not in self._known:
            self._known[key] = CellColumn(len(self.columns), name, field)
            self.columns.append(self._known[key])
        return self._known[key]

    def seal(self) -> None:
        for column in self.columns:
            column.seal()
