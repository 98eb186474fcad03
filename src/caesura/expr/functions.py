"""The built-in functions under the names Spark users know; text names a column.

>>> lower("name"), coalesce("a", "b", 0)
(Expr(lower(name)), Expr(coalesce(a, b, 0)))
"""

from __future__ import annotations

import pyarrow as pa

from caesura.expr import spark_functions
from caesura.expr.durations import Duration
from caesura.expr.nodes import Expr, as_column, col, end, lit, start, when
from caesura.expr.spark_functions import *  # noqa: F403
from caesura.misuse import checked

__all__ = [
    "abs",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "coalesce",
    "col",
    "concat",
    "contains",
    "date_trunc",
    "dateadd",
    "datediff",
    "day",
    "day_of_month",
    "day_of_week",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "end",
    "endswith",
    "exp",
    "expr",
    "floor",
    "greatest",
    "hour",
    "if_null",
    "ifnull",
    "is_not_null",
    "is_null",
    "isnotnull",
    "isnull",
    "lcase",
    "least",
    "length",
    "like",
    "lit",
    "ln",
    "lower",
    "ltrim",
    "minus_time",
    "minute",
    "month",
    "nullif",
    "nvl",
    "plus_time",
    "pow",
    "power",
    "regexp",
    "replace",
    "rlike",
    "round",
    "rtrim",
    "second",
    "set_of",
    "sha",
    "sign",
    "signum",
    "split_part",
    "sqrt",
    "start",
    "startswith",
    "substr",
    "substring",
    "timestamp_micros",
    "trim",
    "try_add",
    "try_cast",
    "try_divide",
    "try_mod",
    "try_multiply",
    "try_subtract",
    "ucase",
    "unix_micros",
    "upper",
    "weekofyear",
    "when",
    "year",
]
__all__ += spark_functions.__all__


def expr(text: str) -> Expr:
    """An expression written as SQL, in Spark's dialect.

    >>> expr("a + 1 > length(name)")
    Expr(a + 1 > length(name))
    """
    from caesura.expr.sql_text import from_text

    return from_text(text)


def set_of(*members: object) -> Expr:
    """A set of whole numbers or texts, of any size; ask it with ``.set_has``, go on with ``.set_add``."""
    made: Expr = lit(b"")
    for member in members:
        made = made.set_add(as_column(member))
    return made


def lower(x: object) -> Expr:
    return as_column(x).lower()


def upper(x: object) -> Expr:
    return as_column(x).upper()


def length(x: object) -> Expr:
    return as_column(x).length()


def trim(x: object, characters: str | None = None) -> Expr:
    return as_column(x).trim(characters)


def ltrim(x: object, characters: str | None = None) -> Expr:
    return as_column(x).ltrim(characters)


def rtrim(x: object, characters: str | None = None) -> Expr:
    return as_column(x).rtrim(characters)


def abs(x: object) -> Expr:
    return as_column(x).abs()


def floor(x: object) -> Expr:
    return as_column(x).floor()


def ceil(x: object) -> Expr:
    return as_column(x).ceil()


def sqrt(x: object) -> Expr:
    return as_column(x).sqrt()


def exp(x: object) -> Expr:
    return as_column(x).exp()


def ln(x: object) -> Expr:
    return as_column(x).ln()


def sign(x: object) -> Expr:
    return as_column(x).sign()


def year(x: object) -> Expr:
    return as_column(x).year()


def month(x: object) -> Expr:
    return as_column(x).month()


def day(x: object) -> Expr:
    return as_column(x).day()


def hour(x: object) -> Expr:
    return as_column(x).hour()


def minute(x: object) -> Expr:
    return as_column(x).minute()


def second(x: object) -> Expr:
    return as_column(x).second()


def day_of_week(x: object) -> Expr:
    return as_column(x).day_of_week()


def unix_micros(x: object) -> Expr:
    return as_column(x).unix_micros()


def timestamp_micros(x: object) -> Expr:
    return as_column(x).timestamp_micros()


def is_null(x: object) -> Expr:
    return as_column(x).is_null()


def is_not_null(x: object) -> Expr:
    return as_column(x).is_not_null()


def coalesce(first: object, *others: object) -> Expr:
    return as_column(first).coalesce(*(as_column(o) for o in others))


def greatest(first: object, *others: object) -> Expr:
    return as_column(first).greatest(*(as_column(o) for o in others))


def least(first: object, *others: object) -> Expr:
    return as_column(first).least(*(as_column(o) for o in others))


def concat(first: object, *others: object) -> Expr:
    return as_column(first).concat(*(as_column(o) for o in others))


def nullif(x: object, y: object) -> Expr:
    return as_column(x).nullif(as_column(y))


def if_null(x: object, y: object) -> Expr:
    return as_column(x).if_null(as_column(y))


def power(x: object, exponent: object) -> Expr:
    return as_column(x).power(as_column(exponent))


def round(x: object, digits: int = 0) -> Expr:
    return as_column(x).round(digits)


def substring(x: object, pos: int, length: int | None = None) -> Expr:
    return as_column(x).substring(pos, length)


def contains(x: object, part: str) -> Expr:
    return as_column(x).contains(part)


def startswith(x: object, prefix: str) -> Expr:
    return as_column(x).startswith(prefix)


def endswith(x: object, suffix: str) -> Expr:
    return as_column(x).endswith(suffix)


def like(x: object, pattern: str) -> Expr:
    return as_column(x).like(pattern)


def rlike(x: object, pattern: str) -> Expr:
    return as_column(x).rlike(pattern)


def replace(x: object, search: str, replacement: str = "") -> Expr:
    return as_column(x).replace(search, replacement)


def split_part(x: object, delimiter: str, part: int) -> Expr:
    return as_column(x).split_part(delimiter, part)


def date_trunc(unit: str, x: object) -> Expr:
    """The unit comes first, as in Spark."""
    return as_column(x).date_trunc(unit)


def plus_time(x: object, duration: Duration) -> Expr:
    return as_column(x).plus_time(duration)


def minus_time(x: object, duration: Duration) -> Expr:
    return as_column(x).minus_time(duration)


def try_add(x: object, y: object) -> Expr:
    return as_column(x).try_add(as_column(y))


def try_subtract(x: object, y: object) -> Expr:
    return as_column(x).try_subtract(as_column(y))


def try_multiply(x: object, y: object) -> Expr:
    return as_column(x).try_multiply(as_column(y))


def try_divide(x: object, y: object) -> Expr:
    return as_column(x).try_divide(as_column(y))


def try_mod(x: object, y: object) -> Expr:
    return as_column(x).try_mod(as_column(y))


def try_cast(x: object, type: pa.DataType | str) -> Expr:
    return as_column(x).try_cast(type)


ceiling = ceil
char_length = length
character_length = length
day_of_month = day
dayofmonth = day
dayofweek = day_of_week
ifnull = if_null
isnotnull = is_not_null
isnull = is_null
lcase = lower
nvl = if_null
pow = power
regexp = rlike
signum = sign
substr = substring
ucase = upper
dateadd = spark_functions.date_add
datediff = spark_functions.date_diff
dayofyear = spark_functions.day_of_year
sha = spark_functions.sha1
weekofyear = spark_functions.week_of_year

for _name in __all__:
    globals()[_name] = checked(globals()[_name])
