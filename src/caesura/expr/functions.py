"""The built-in functions under the names Spark users know; text names a column.

>>> lower("name"), coalesce("a", "b", 0)
(Expr(lower(name)), Expr(coalesce(a, b, 0)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from caesura.errors import NoSuchNameError
from caesura.expr import functions_nested, spark_functions
from caesura.expr.durations import Duration
from caesura.expr.idioms import closest_function
from caesura.expr.nodes import Expr, as_column, col, end, lit, start, when
from caesura.expr.spark_functions import *  # noqa: F403
from caesura.misuse import checked

F = TypeVar("F", bound=Callable[..., Any])

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


def _named(call: F, method: Callable[..., Expr]) -> F:
    """A function under the name of a method, and with what that says of itself."""
    call.__name__ = call.__qualname__ = method.__name__
    call.__doc__ = method.__doc__
    return call


def _of_one(method: Callable[[Expr], Expr]) -> Callable[[object], Expr]:
    def call(x: object) -> Expr:
        return method(as_column(x))

    return _named(call, method)


def _of_two(method: Callable[[Expr, object], Expr]) -> Callable[[object, object], Expr]:
    def call(x: object, y: object) -> Expr:
        return method(as_column(x), as_column(y))

    return _named(call, method)


def _of_all(method: Callable[..., Expr]) -> Callable[..., Expr]:
    def call(first: object, *others: object) -> Expr:
        return method(as_column(first), *(as_column(other) for other in others))

    return _named(call, method)


lower = _of_one(Expr.lower)
upper = _of_one(Expr.upper)
length = _of_one(Expr.length)
abs = _of_one(Expr.abs)
floor = _of_one(Expr.floor)
ceil = _of_one(Expr.ceil)
sqrt = _of_one(Expr.sqrt)
exp = _of_one(Expr.exp)
ln = _of_one(Expr.ln)
sign = _of_one(Expr.sign)
year = _of_one(Expr.year)
month = _of_one(Expr.month)
day = _of_one(Expr.day)
hour = _of_one(Expr.hour)
minute = _of_one(Expr.minute)
second = _of_one(Expr.second)
day_of_week = _of_one(Expr.day_of_week)
unix_micros = _of_one(Expr.unix_micros)
timestamp_micros = _of_one(Expr.timestamp_micros)
is_null = _of_one(Expr.is_null)
is_not_null = _of_one(Expr.is_not_null)
nullif = _of_two(Expr.nullif)
if_null = _of_two(Expr.if_null)
try_add = _of_two(Expr.try_add)
try_subtract = _of_two(Expr.try_subtract)
try_multiply = _of_two(Expr.try_multiply)
try_divide = _of_two(Expr.try_divide)
try_mod = _of_two(Expr.try_mod)
coalesce = _of_all(Expr.coalesce)
greatest = _of_all(Expr.greatest)
least = _of_all(Expr.least)
concat = _of_all(Expr.concat)


def trim(x: object, characters: str | None = None) -> Expr:
    return as_column(x).trim(characters)


def ltrim(x: object, characters: str | None = None) -> Expr:
    return as_column(x).ltrim(characters)


def rtrim(x: object, characters: str | None = None) -> Expr:
    return as_column(x).rtrim(characters)


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

__all__ += functions_nested.__all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NoSuchNameError(f"there is no function '{name}'.", remedy=closest_function(name, __all__))


for _name in __all__:
    globals()[_name] = checked(vars(functions_nested).get(_name) or globals()[_name])
