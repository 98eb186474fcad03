"""What a random input may look like: its columns, its lifetimes, its corrections.

>>> spec = InputSpec({"id": "key", "v": "float"}, key="id", lifetimes="finite")
>>> spec.schema.names, spec.known.insert_only
(['id', 'v'], False)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from caesura.events import Item, Page
from caesura.plan import Properties
from caesura.punctuation import NOT_NULL, NULL, Values, ge, lt, one_of, value
from caesura.testing.oracles.rows import Row, Rows, same

ColumnKind: TypeAlias = Literal[
    "key", "int", "float", "bool", "str", "name", "text", "decimal", "list", "map", "deep",
    "extreme", "short", "far", "byte", "unsigned", "long", "moment",
]  # fmt: skip
PunctuationKind: TypeAlias = Literal["time", "key", "both"]
Lifetimes: TypeAlias = Literal["any", "finite", "points", "endless"]

DOMAINS: Mapping[ColumnKind, tuple[Any, ...]] = {
    "key": (0, 1, 2, None),
    "int": (0, 1, 2, 7, -3, None),
    "float": (0.0, 1.0, 0.1, 0.2, -2.5, 1e16, math.nan, -0.0, math.inf, -math.inf, None),
    "extreme": (
        *(0.0, 1.0, 0.1, -0.0, 5e-324, -1e-323, 1e-308, 3e-200, -2e-200, 1e-160, 1e-20, 1e20, 1e150),
        *(1e153, 1.1e153, 1e160, -1.5e160, 1e300, 1e308, -1.7976931348623157e308, math.nan),
        *(math.inf, -math.inf, None),
    ),
    "short": (0.0, 1.5, 1e-45, -1e-38, 2.0**-126, 1e38, -3e38, -0.0, math.inf, math.nan, None),
    "far": (0, 1, 2**53 + 1, -(2**53) - 1, 2**59, -(2**59), 3**37, None),
    "byte": (0, 1, -128, 127, None),
    "unsigned": (0, 1, 2**53 + 1, 2**59, 2**60 - 1, None),
    "long": (*(Decimal(n) for n in ("0", "0.01", "-0.01", f"{10**34}", f"-{10**34}.01", f"{3**71}")), None),
    "moment": (-(2**60), -1, 0, 1, 2**60, None),
    "bool": (False, True, None),
    "str": ("a", "b", "", "b c", "éa", None),
    "name": ("a", "b", "c", None),
    "text": (
        "sensor-0001",
        "sensor-0001 b",
        "sensor-0001 a",
        "sensor-00",
        "sensor-0002",
        "a",
        "\0",
        "",
        None,
    ),
    "decimal": (*(Decimal(n) for n in ("0", "1.5", "-1.5", f"{10**17 + 1}", f"{10**17 + 2}")), None),
    "list": ([], [1.0], [1.0, 2.0], [1.0, None], [None], [0.0], [-0.0], [math.nan, math.inf], None),
    "map": ([], [("a", 1)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", None)], [("", 1)], None),
    "deep": (
        [],
        [{"n": 1, "m": []}],
        [{"n": 1, "m": [(2.5, ["a", None]), (0.0, [])]}],
        [{"n": 1, "m": [(-0.0, []), (2.5, ["a", None])]}],
        [{"n": None, "m": None}, None],
        [None],
        None,
    ),
}
"""Values per kind of column, the plainest first; 'key' and 'name' suit punctuation and joins.

'extreme', 'short', 'far', 'byte', 'unsigned', 'long' and 'moment' are numbers and times up to the ends of
their types. 'text' and 'decimal' have values that agree in their first 64 bits; 'map' and 'deep' values that
are equal and written differently.
"""

TYPES: Mapping[ColumnKind, pa.DataType] = {
    "key": pa.int64(),
    "int": pa.int64(),
    "float": pa.float64(),
    "extreme": pa.float64(),
    "short": pa.float32(),
    "far": pa.int64(),
    "byte": pa.int8(),
    "unsigned": pa.uint64(),
    "long": pa.decimal128(38, 2),
    "moment": pa.timestamp("ns"),
    "bool": pa.bool_(),
    "str": pa.string(),
    "name": pa.string(),
    "text": pa.string(),
    "decimal": pa.decimal128(38, 2),
    "list": pa.list_(pa.float64()),
    "map": pa.map_(pa.string(), pa.int64()),
    "deep": pa.list_(pa.struct([("n", pa.int64()), ("m", pa.map_(pa.float64(), pa.list_(pa.string())))])),
}


@dataclass(frozen=True, eq=False)
class InputSpec:
    """One input of a law case; strategies are built once for each."""

    columns: Mapping[str, ColumnKind]
    key: str | None = None
    """The column that key punctuation speaks of; None for none."""
    lifetimes: Lifetimes = "any"
    insert_only: bool = False
    max_rows: int = 5
    origin: int = 0
    """The time about which rows start; near the ends of time, sums of times would leave 64 bits."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The payload columns."""
        return pa.schema([(name, TYPES[kind]) for name, kind in self.columns.items()])

    @cached_property
    def known(self) -> Properties:
        """What a plan may know about the input."""
        points = self.lifetimes == "points"
        longest, endless = 1 if points else None, self.lifetimes == "endless"
        return Properties(self.insert_only, points, max_duration=longest, endless=endless)

    @cached_property
    def promisable(self) -> tuple[Values, ...]:
        """Sets of key values that punctuation may name: values, null, sets, ranges, strangers."""
        if self.key is None:
            return ()
        some = [v for v in DOMAINS[self.columns[self.key]] if v is not None and v == v]
        low, *others = sorted(some)
        points = [value(v) for v in some]
        ranges = [lt(others[-1]), ge(others[0]), NOT_NULL]
        return (*points, NULL, one_of([low, others[-1]]), one_of([low, None]), *ranges)

    def page(self, changes: Iterable[tuple[int, int, int, Mapping[str, Any]]]) -> Page:
        """A page of changes.

        Parameters
        ----------
        changes
            Each with its start, its end, its new end (``NO_NEW_END`` for a row that comes) and its values
            by name.

        Returns
        -------
        Page
            The page.

        Examples
        --------
        >>> import caesura as cz
        >>> from caesura.events.page import NO_NEW_END
        >>> from caesura.testing.spec import InputSpec
        >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
        >>> print(cz.draw([spec.page([(1, 5, NO_NEW_END, {"id": 1, "v": 2}), (1, 5, 3, {"id": 1, "v": 2})])]))
         LE  RE   | id v |
          1  5    | 1  2 | +
          1  5->3 | 1  2 | -
        """
        rows = list(changes)
        arrays = [pa.array([p[f.name] for *_, p in rows], f.type) for f in self.schema]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return Page.of(batch, le=[r[0] for r in rows], re=[r[1] for r in rows], re_new=[r[2] for r in rows])


def plain_rows(items: Iterable[Item], names: Iterable[str]) -> Rows:
    """The history of a physical stream, folded one row at a time."""
    columns = list(names)
    live: list[Row] = []
    for item in items:
        for le, re, new, values in item.rows() if isinstance(item, Page) else ():
            payload = dict(zip(columns, values, strict=True))
            if new is not None:
                place = next(i for i, row in enumerate(live) if _is(row, (le, re, payload)))
                del live[place]
            end = re if new is None else new
            if le < end:
                live.append((le, end, payload))
    return live


def _is(a: Row, b: Row) -> bool:
    return a[:2] == b[:2] and same(a[2]) == same(b[2])
