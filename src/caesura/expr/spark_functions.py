"""More of the functions that Spark users know, most of them put together from others.

>>> nvl2("a", 1, 2), trunc("d", "month")
(Expr(CASE WHEN a IS NOT NULL THEN 1 ELSE 2 END), Expr(CAST(date_trunc('MONTH', d) AS DATE)))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column, lit, when

__all__ = [
    "add_months",
    "ascii",
    "bround",
    "concat_ws",
    "crc32",
    "date_add",
    "date_diff",
    "date_format",
    "date_sub",
    "day_of_year",
    "equal_null",
    "from_unixtime",
    "get_json_object",
    "ilike",
    "initcap",
    "instr",
    "isnan",
    "last_day",
    "left",
    "locate",
    "log2",
    "log10",
    "lpad",
    "md5",
    "nanvl",
    "nvl2",
    "octet_length",
    "pmod",
    "quarter",
    "regexp_count",
    "regexp_extract",
    "regexp_like",
    "regexp_replace",
    "repeat",
    "reverse",
    "right",
    "rpad",
    "sha1",
    "sha2",
    "shiftleft",
    "split",
    "to_date",
    "to_timestamp",
    "translate",
    "trunc",
    "try_to_timestamp",
    "unix_timestamp",
    "week_of_year",
    "weekday",
]

SECONDS = "yyyy-MM-dd HH:mm:ss"


def ilike(x: object, pattern: str) -> Expr:
    return as_column(x).ilike(pattern)


def regexp_extract(x: object, pattern: str, idx: int = 1) -> Expr:
    return as_column(x).regexp_extract(pattern, idx)


def regexp_replace(x: object, pattern: str, replacement: str) -> Expr:
    return as_column(x).regexp_replace(pattern, replacement)


def regexp_count(x: object, pattern: str) -> Expr:
    return as_column(x).regexp_count(pattern)


def regexp_like(x: object, pattern: str) -> Expr:
    return as_column(x).rlike(pattern)


def split(x: object, pattern: str, limit: int = -1) -> Expr:
    return as_column(x).split(pattern, limit)


def lpad(x: object, len: int, pad: str = " ") -> Expr:
    return as_column(x).lpad(len, pad)


def rpad(x: object, len: int, pad: str = " ") -> Expr:
    return as_column(x).rpad(len, pad)


def concat_ws(sep: str, *cols: object) -> Expr:
    """The texts that are not null, with a separator between them."""
    first, *others = [as_column(c) for c in cols] or [lit("")]
    return first.concat_ws(sep, *others)


def instr(x: object, substr: str) -> Expr:
    return as_column(x).instr(substr)


def locate(substr: str, x: object, pos: int = 1) -> Expr:
    """The text that is looked for comes first, as in Spark."""
    return as_column(x).locate(substr, pos)


def initcap(x: object) -> Expr:
    return as_column(x).initcap()


def repeat(x: object, n: int) -> Expr:
    return as_column(x).repeat(n)


def reverse(x: object) -> Expr:
    return as_column(x).reverse()


def translate(x: object, matching: str, replace: str) -> Expr:
    return as_column(x).translate(matching, replace)


def left(x: object, len: int) -> Expr:
    return as_column(x).left(len)


def right(x: object, len: int) -> Expr:
    return as_column(x).right(len)


def octet_length(x: object) -> Expr:
    return as_column(x).octet_length()


def ascii(x: object) -> Expr:
    return as_column(x).ascii()


def md5(x: object) -> Expr:
    return as_column(x).md5()


def sha1(x: object) -> Expr:
    return as_column(x).sha1()


def sha2(x: object, bits: int = 256) -> Expr:
    return as_column(x).sha2(bits)


def crc32(x: object) -> Expr:
    return as_column(x).crc32()


def get_json_object(x: object, path: str) -> Expr:
    return as_column(x).json(path)


def date_format(x: object, format: str) -> Expr:
    return as_column(x).date_format(format)


def to_timestamp(x: object, format: str | None = None) -> Expr:
    return as_column(x).to_timestamp(format)


def try_to_timestamp(x: object, format: str | None = None) -> Expr:
    return as_column(x).try_to_timestamp(format)


def to_date(x: object, format: str | None = None) -> Expr:
    return as_column(x).to_date(format)


def unix_timestamp(x: object, format: str | None = None) -> Expr:
    """Seconds since 1970, of a time, or of a text with a pattern."""
    return as_column(x).unix_timestamp(format)


def from_unixtime(x: object, format: str = SECONDS) -> Expr:
    """Seconds since 1970 as a text."""
    return as_column(x).cast("timestamp").date_format(format)


def trunc(x: object, unit: str) -> Expr:
    """The first day of the year, quarter, month or week."""
    return as_column(x).date_trunc(unit).cast("date")


def date_add(x: object, days: object) -> Expr:
    return as_column(x).date_add(as_column(days))


def date_sub(x: object, days: object) -> Expr:
    return as_column(x).date_sub(as_column(days))


def date_diff(end: object, start: object) -> Expr:
    return as_column(end).date_diff(as_column(start))


def add_months(x: object, months: object) -> Expr:
    return as_column(x).add_months(as_column(months))


def last_day(x: object) -> Expr:
    return as_column(x).last_day()


def quarter(x: object) -> Expr:
    return as_column(x).quarter()


def day_of_year(x: object) -> Expr:
    return as_column(x).day_of_year()


def week_of_year(x: object) -> Expr:
    return as_column(x).week_of_year()


def weekday(x: object) -> Expr:
    return as_column(x).weekday()


def bround(x: object, digits: int = 0) -> Expr:
    return as_column(x).bround(digits)


def log10(x: object) -> Expr:
    return as_column(x).log10()


def log2(x: object) -> Expr:
    return as_column(x).log2()


def isnan(x: object) -> Expr:
    return as_column(x).isnan()


def nanvl(x: object, y: object) -> Expr:
    """The other where it is NaN."""
    return when(as_column(x).isnan(), as_column(y)).otherwise(as_column(x))


def nvl2(x: object, y: object, z: object) -> Expr:
    """The second where the first is not null, else the third."""
    return when(as_column(x).is_not_null(), as_column(y)).otherwise(as_column(z))


def pmod(x: object, y: object) -> Expr:
    """The remainder that is not below zero, for a divisor above it."""
    by = as_column(y)
    rest = as_column(x) % by
    return when(rest < 0, (rest + by) % by).otherwise(rest)


def shiftleft(x: object, by: object) -> Expr:
    return as_column(x).shift_left(as_column(by))


def equal_null(x: object, y: object) -> Expr:
    return as_column(x).eq_null_safe(as_column(y))
