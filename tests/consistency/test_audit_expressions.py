"""The audit reads expressions by itself, row by row, and agrees with the engine on every kind of value."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caesura import col, set_of, when
from caesura.audit import NotAuditedError
from caesura.audit.values import RowValues
from caesura.errors import CaesuraError
from caesura.events.history import comparable
from caesura.expr import Expr, evaluate, lit, type_of
from caesura.expr.careful import careful

NAN, INF = math.nan, math.inf
VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "i": (pa.int32(), (0, 1, -3, 7, 2**31 - 1, -(2**31))),
    "j": (pa.int64(), (0, 5, -7, 2**63 - 1, -(2**63), 2**60 + 1)),
    "k": (pa.int8(), (0, 1, 127, -128)),
    "x": (pa.float64(), (0.0, -0.0, 1.5, -2.5, NAN, INF, -INF, 1e308, 2.675)),
    "y": (pa.float64(), (0.5, 3.0, NAN, -1.0, 0.0, 2.25)),
    "f": (pa.float32(), (0.1, 1.0, -3.5)),
    "p": (pa.bool_(), (True, False)),
    "q": (pa.bool_(), (True, False)),
    "s": (pa.string(), ("", "a", "Ab c", " x ", "éa%", "a/b/c", "12", "yes")),
    "t": (pa.string(), ("a", "b", "")),
    "d": (pa.decimal128(9, 2), tuple(map(Decimal, ("1.25", "-3.05", "0.00", "9999999.99")))),
    "e": (pa.decimal128(7, 3), tuple(map(Decimal, ("0.125", "3.000", "-7.777")))),
    "m": (pa.timestamp("us"), (datetime(2024, 5, 1, 12, 30, 15, 123456), datetime(1969, 12, 31, 23, 59, 59))),
    "n": (pa.date32(), (date(2024, 2, 29), date(1970, 1, 1))),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
i, j, k, x, y, f, p, q, s, t, d, e, m, n = (col(name) for name in VALUES)
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
EXPRESSIONS: dict[str, list[Expr]] = {
    "arithmetic": [i + 1, i * i, k + k, j * 3 - i, x + j, f * f, f + 1, i / j, x / y, i % k, j % 7, x % y],
    "attempts": [i.try_add(i), j.try_multiply(3), k.try_subtract(j), j.try_cast("int"), s.try_cast("bigint")],
    "signs": [-k, -j, x.abs(), j.abs(), x.sign(), x.floor(), x.ceil(), d.floor(), i.ceil()],
    "decimals": [d + e, d * e, d / e, d - 1, d % e, d > e, d.round(1)],
    "comparisons": [x > y, x == y, x != y, x <= i, j < x, s < t, x.between(y, 2.0), i.isin([1, 7, None])],
    "logic": [p & q, p | q, ~p, i.is_null(), s.is_not_null(), x.isin([1.5, NAN]), p.coalesce(q)],
    "choices": [i.coalesce(j), i.nullif(1), x.nullif(y), x.greatest(y, i), x.least(y)],
    "functions": [y.round(1), y.round(2), i.round(-1), x.sqrt(), y.exp(), x.exp(), x.ln(), y.power(x)],
    "bits": [i.bit_and(j), i.bit_or(3), j.bit_xor(i), lit(1).shift_left(k)],
    "sets": [set_of(i, j), set_of(s, t), set_of(i, s).set_has(t), set_of(j, i).set_has(k)],
    "texts": [s.lower(), s.upper(), s.trim(), s.ltrim(), s.rtrim(), s.length(), s.concat(t), s.like("%b%")],
    "parts": [s.substring(2), s.substring(-2, 1), s.substring(1, 2), s.split_part("/", 2)],
    "searches": [s.contains("a"), s.startswith("a"), s.endswith("c"), s.replace("a", "zz"), s.contains(t)],
    "joined": [s.concat(t, i), s.concat_ws("-", t, i), s.concat_ws(""), i.concat_ws(", ", j, s)],
    "pads": [s.lpad(4, "<>"), s.rpad(3, ""), s.lpad(2), s.rpad(6, "é"), s.trim("a "), s.rtrim(" c")],
    "pieces": [s.instr("a"), s.locate("a", 2), s.initcap(), s.repeat(2), s.reverse(), s.right(2)],
    "codes": [s.translate("a b", "xy"), s.octet_length(), s.ascii(), s.md5(), s.sha2(0)],
    "formats": [
        *(m.date_format(p) for p in ("yyyy-MM-dd HH:mm:ss.SSS", "EEE d MMM yy h a", "QQQ DDD 'o''' k K")),
        *(n.date_format(p) for p in ("EEEE, MMMM", "yyyyMMdd")),
    ],
    "days": [n.date_add(i % 100), n.date_sub(3), n.date_diff(m), n.add_months(i % 30), n.last_day()],
    "weeks": [m.week_of_year(), n.weekday(), n.day_of_year(), m.unix_timestamp(), n.unix_timestamp()],
    "halves": [x.bround(), i.bround(-1), d.bround(1), x.isnan(), s.crc32(), m.quarter(), s.sha1()],
    "clocks": [m.year(), m.month(), m.day(), m.hour(), m.minute(), m.second(), m.day_of_week()],
    "times": [m.unix_micros(), n.unix_micros(), m.plus_time("90m"), n.plus_time("2d"), n.day_of_week()],
    "units": [m.date_trunc(unit) for unit in UNITS],
    "cases": [when(i > 0, i).when(p, x).otherwise(1), when(p, d).otherwise(e)],
    "casts": [
        c.cast(to)
        for c in (i, j, k, x, f, p, d, s)
        for to in ("int", "bigint", "boolean", "tinyint")
    ] + [i.cast("double"), x.cast("float"), i.cast("string"), j.cast("decimal(6,1)"), m.cast("date")],
}  # fmt: skip
UNKNOWN = [s.rlike("a+"), x.cast("string"), d * x, d.cast("double"), s.cast("date"), m.cast("string")]


def batch(seed: int) -> pa.RecordBatch:
    draw = random.Random(seed)
    rows = [{name: draw.choice((*some, None)) for name, (_, some) in VALUES.items()} for _ in range(80)]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_the_audit_agrees_with_the_engine_on_expressions(kind: str) -> None:
    given = batch(len(kind))
    reader = RowValues(SCHEMA, pa.int64())
    for expr in EXPRESSIONS[kind]:
        try:
            type_of(expr, SCHEMA)
        except CaesuraError:
            continue  # a cast that there is not
        made, reasons = careful(expr, given)
        for at, row in enumerate(given.to_pylist()):
            assert reader.has_values([expr], row, 0, 1) == (at not in reasons), (str(expr), row)
            if at not in reasons:
                assert comparable(reader.of(expr, row)) == comparable(made[at].as_py()), (str(expr), row)
        if not reasons:
            assert repr(evaluate(expr, given).to_pylist()) == repr(made.to_pylist())


@pytest.mark.parametrize("expr", UNKNOWN, ids=str)
def test_an_expression_that_libraries_read_differently_is_named(expr: Expr) -> None:
    row = {name: some[0] for name, (_, some) in VALUES.items()}
    with pytest.raises(NotAuditedError, match="the audit cannot compute"):
        RowValues(SCHEMA, pa.int64()).of(expr, {**row, "s": "2024-01-01"})


def test_ends_of_lifetimes_are_values_of_the_streams_time() -> None:
    from caesura import end, start
    from caesura.punctuation import INFINITY

    reader = RowValues(SCHEMA, pa.timestamp("us"))
    assert reader.of(start(), {}, 1_000_000, 5) == datetime(1970, 1, 1, 0, 0, 1)
    assert reader.of(end(), {}, 0, INFINITY) is None
    assert RowValues(SCHEMA, pa.int64()).of(end(), {}, 0, 9) == 9
