"""A constant of any type is feedback about a column of any type that `where` compares it with.

What is assumed away is what `where` lets pass; values lie around the constant, where types differ most.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from depth import DEPTH

import caesura as cz
from caesura.errors import CaesuraError
from caesura.events import History

DAY = dt.date(2020, 1, 1)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-1, 0, 1, 2, 127]),
    "int64": (pa.int64(), [-1, 0, 1, 2, 2**53, 2**53 + 1, 2**62]),
    "uint8": (pa.uint8(), [0, 1, 2, 255]),
    "uint64": (pa.uint64(), [0, 1, 2, 2**63]),
    "float": (pa.float32(), [-1.5, 1.0, 1.1, 1.5, math.nan, math.inf, float(2**53)]),
    "double": (pa.float64(), [-1.5, 1.0, 1.1, 1.5, 1.50000001, math.nan, -math.inf, 1e20, float(2**53)]),
    "decimal": (pa.decimal128(9, 2), [Decimal(t) for t in ("-1.50", "1.00", "1.10", "1.50", "1.51")]),
    "wide": (pa.decimal128(38, 20), [Decimal(t) for t in ("1", "1.1", "1.10000000000000000001", "1.5")]),
    "text": (pa.string(), ["", "1", "1.5", "x"]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [DAY - dt.timedelta(1), DAY, DAY + dt.timedelta(1)]),
    "time": (pa.timestamp("us"), [dt.datetime(2020, 1, 1, hour) for hour in (0, 1)]),
    "instant": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, h, tzinfo=dt.UTC) for h in (0, 1)]),
}
LITERALS: list[Any] = [
    *("1", "1.5", "1.50", "1.1", "1.100", "15e-1", "1.1e0", "-1", "300", "9007199254740993"),
    *("99999999999999999999", "cast(1.5 as double)", "cast(1.1 as float)", "cast(1.1 as decimal(3, 1))"),
    *("'1.5'", "true", "null", "date '2020-01-01'", "timestamp '2020-01-01 00:00:00'"),
]
SIGNS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
NOT_YET = {"wide": ("15e-1", "1.1e0", "cast(1.5 as double)", "cast(1.1 as float)")}
"""Doubles against decimals of so many digits that two of them may be one double: no set of values says it."""


def rows(type_: pa.DataType, values: list[Any]) -> cz.Stream:
    schema = pa.schema([("ts", pa.int64()), ("x", type_)])
    given = [{"ts": at, "x": v} for at, v in enumerate([*values, None])]
    return cz.from_rows(given, schema, time="ts")


def predicates(literal: str) -> list[str]:
    made = [f"x {sign} {literal}" for sign in SIGNS]
    return [*made, f"x in ({literal})", f"not (x >= {literal})", f"x between {literal} and {literal}"]


def kept(stream: cz.Stream, what: str) -> History | None:
    """The rows for which a predicate is not true; None where `where` does not take it."""
    try:
        return stream.where(f"({what}) is not true").run().history
    except CaesuraError:
        return None


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_assumed_away_is_what_the_same_filter_lets_pass(name: str) -> None:
    stream, count = rows(*COLUMNS[name]), 0
    for literal in LITERALS:
        chosen = predicates(literal)
        for what in chosen if DEPTH > 1 else chosen[len(literal) % 3 :: 3]:
            wanted = kept(stream, what)
            if wanted is None or literal in NOT_YET.get(name, ()):
                continue
            query = stream.query()
            query.assume(what)
            query.run()
            assert History.of(query.take("out"), stream.schema) == wanted, what
            count += 1
    assert count > 5


@pytest.mark.parametrize("intent", ["assume", "desire", "demand"])
def test_a_decimal_constant_is_feedback_about_doubles(intent: str) -> None:
    stream = rows(pa.float64(), [1.0, 1.5, 2.5])
    query = stream.query()
    getattr(query, intent)("x >= 1.5")
    query.run()
    got = History.of(query.take("out"), stream.schema)
    assert got == (stream.where("(x >= 1.5) is not true") if intent == "assume" else stream).run().history
