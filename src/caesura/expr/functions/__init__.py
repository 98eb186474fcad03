"""The built-in functions under the names Spark users know; text names a column.

>>> from caesura import functions as F
>>> F.lower("name"), F.coalesce("a", "b", 0)
(Expr(lower(name)), Expr(coalesce(a, b, 0)))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caesura.errors import NoSuchNameError
from caesura.expr.functions import (
    attempts,
    conditions,
    lists,
    nested,
    numbers,
    parts,
    patterns,
    places,
    texts,
    times,
)
from caesura.expr.functions.attempts import *  # noqa: F403
from caesura.expr.functions.conditions import *  # noqa: F403
from caesura.expr.functions.lists import *  # noqa: F403
from caesura.expr.functions.nested import *  # noqa: F403
from caesura.expr.functions.numbers import *  # noqa: F403
from caesura.expr.functions.parts import *  # noqa: F403
from caesura.expr.functions.patterns import *  # noqa: F403
from caesura.expr.functions.places import *  # noqa: F403
from caesura.expr.functions.texts import *  # noqa: F403
from caesura.expr.functions.times import *  # noqa: F403
from caesura.expr.idioms import closest_function
from caesura.expr.nodes import Expr, as_column, col, end, lit, start, when
from caesura.misuse import checked

ceiling = numbers.ceil
char_length = texts.length
character_length = texts.length
dateadd = times.date_add
datediff = times.date_diff
day_of_month = parts.day
dayofmonth = parts.day
dayofweek = parts.day_of_week
dayofyear = parts.day_of_year
ifnull = conditions.if_null
isnotnull = conditions.is_not_null
isnull = conditions.is_null
lcase = texts.lower
nvl = conditions.if_null
pow = numbers.power
regexp = patterns.rlike
sha = patterns.sha1
signum = numbers.sign
substr = places.substring
ucase = texts.upper
weekofyear = parts.week_of_year

__all__ = [
    "ceiling",
    "char_length",
    "character_length",
    "col",
    "dateadd",
    "datediff",
    "day_of_month",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "end",
    "expr",
    "ifnull",
    "isnotnull",
    "isnull",
    "lcase",
    "lit",
    "nvl",
    "pow",
    "regexp",
    "set_of",
    "sha",
    "signum",
    "start",
    "substr",
    "ucase",
    "weekofyear",
    "when",
]
__all__ += attempts.__all__
__all__ += conditions.__all__
__all__ += lists.__all__
__all__ += nested.__all__
__all__ += numbers.__all__
__all__ += parts.__all__
__all__ += patterns.__all__
__all__ += places.__all__
__all__ += texts.__all__
__all__ += times.__all__


def expr(text: str) -> Expr:
    """An expression written as SQL, in Spark's dialect.

    Parameters
    ----------
    text
        What SQL has for expressions: operators, ``CASE``, ``CAST``, ``LIKE``, ``IN``, ``AS``, and the
        functions of `caesura.functions` by their names; ``start()`` and ``end()`` are the row's lifetime.

    Returns
    -------
    Expr
        The same tree as the one that is written in Python, so nulls, types and refusals are the same.

    Notes
    -----
    What SQL has beyond that (queries, windows, lambdas, ``INTERVAL '1' MONTH``) is refused, with its line and
    column.

    See Also
    --------
    Stream.where : takes such a text itself.

    Examples
    --------
    >>> import caesura as cz
    >>> cz.expr("a + 1 > length(name)")
    Expr(a + 1 > length(name))
    >>> from caesura.testing import values
    >>> values(cz.expr("upper(name)"), name=["ann", None])
    ['ANN', None]
    """
    from caesura.expr.sql_text import from_text

    return from_text(text)


def set_of(*members: object) -> Expr:
    """A set of whole numbers or texts, of any size.

    Ask it with ``.set_has``, go on with ``.set_add``.

    Parameters
    ----------
    *members
        Whole numbers, columns' names or expressions; a plain text is ``lit("...")``.

    Returns
    -------
    Expr
        ``binary``, the set's bytes; null where a member is null.

    See Also
    --------
    Expr.set_has : whether it has a member.
    Expr.set_add : the set with one member more.

    Examples
    --------
    >>> import caesura as cz
    >>> from caesura import col
    >>> from caesura.testing import values
    >>> values(cz.set_of(1, 5).set_has(col("a")), a=[1, 2, None])
    [True, False, None]
    """
    made: Expr = lit(b"")
    for member in members:
        made = made.set_add(as_column(member))
    return made


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NoSuchNameError(f"there is no function '{name}'.", remedy=closest_function(name, __all__))


for _name in __all__:
    globals()[_name] = checked(globals()[_name])
