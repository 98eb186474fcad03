"""Functions of the places in a text: what stands where.

>>> substring("name", 1, 3), startswith("name", "a")
(Expr(substring(name, 1, 3)), Expr(startswith(name, 'a')))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column

__all__ = [
    "contains",
    "endswith",
    "instr",
    "left",
    "locate",
    "replace",
    "right",
    "split_part",
    "startswith",
    "substring",
    "translate",
]


def contains(x: object, part: str) -> Expr:
    """Whether a text stands anywhere in this one.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    part
        What is looked for: a text, or for the method another column's in each row.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.contains("s", "an"), s=["banana", "pear", None])
    [True, False, None]
    """
    return as_column(x).contains(part)


def endswith(x: object, suffix: str) -> Expr:
    """Whether the text ends so.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    suffix
        A plain text.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.endswith("s", "na"), s=["banana", "pear", None])
    [True, False, None]
    """
    return as_column(x).endswith(suffix)


def instr(x: object, substr: str) -> Expr:
    """Where a text stands first, counted from 1.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    substr
        What is looked for: a plain text.

    Returns
    -------
    Expr
        ``int``; 0 where it does not stand there, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.instr("s", "an"), s=["banana", "pear", None])
    [2, 0, None]
    """
    return as_column(x).instr(substr)


def left(x: object, len: int) -> Expr:
    """The first characters of the text.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    len
        How many; none for 0 and below.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.left("s", 2), s=["abc", "d", None])
    ['ab', 'd', None]
    """
    return as_column(x).left(len)


def locate(substr: str, x: object, pos: int = 1) -> Expr:
    """Where a text stands first at or behind a place, counted from 1.

    Parameters
    ----------
    substr
        What is looked for: a plain text; it comes first, as in Spark.
    x
        A column's name, or an expression: texts.
    pos
        Where the search begins, counted from 1.

    Returns
    -------
    Expr
        ``int``; 0 where it does not stand there, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.locate("an", "s", 3), s=["banana", None])
    [4, None]
    """
    return as_column(x).locate(substr, pos)


def replace(x: object, search: str, replacement: str = "") -> Expr:
    """The text with one part replaced by another wherever it stands.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    search
        What is replaced: a plain text. An empty one replaces nothing.
    replacement
        What stands there instead.

    Returns
    -------
    Expr
        ``string``; null for null.

    See Also
    --------
    functions.regexp_replace : by a regular expression.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.replace("s", "an", "-"), s=["banana", None])
    ['b--a', None]
    """
    return as_column(x).replace(search, replacement)


def right(x: object, len: int) -> Expr:
    """The last characters of the text.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    len
        How many; none for 0 and below.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.right("s", 2), s=["abc", "d", None])
    ['bc', 'd', None]
    """
    return as_column(x).right(len)


def split_part(x: object, delimiter: str, part: int) -> Expr:
    """One of the pieces between delimiters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    delimiter
        What stands between the pieces: a plain text.
    part
        Which piece, counted from 1, or from the end when negative.

    Returns
    -------
    Expr
        ``string``; ``''`` where there is no such piece, null for null.

    See Also
    --------
    functions.split : all pieces, by a regular expression.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.split_part("s", "-", 2), s=["a-b-c", "a", None])
    ['b', '', None]
    >>> values(F.split_part("s", "-", -1), s=["a-b-c"])
    ['c']
    """
    return as_column(x).split_part(delimiter, part)


def startswith(x: object, prefix: str) -> Expr:
    """Whether the text begins so.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    prefix
        A plain text.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.startswith("s", "ba"), s=["banana", "pear", None])
    [True, False, None]
    """
    return as_column(x).startswith(prefix)


def substring(x: object, pos: int, length: int | None = None) -> Expr:
    """Characters from a place on.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pos
        The first of them, counted from 1, or from the end when negative.
    length
        How many; all that follow where it is None.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.substring("s", 2, 3), s=["banana", None])
    ['ana', None]
    >>> values(F.substring("s", -2), s=["banana"])
    ['na']
    """
    return as_column(x).substring(pos, length)


def translate(x: object, matching: str, replace: str) -> Expr:
    """The text with single characters replaced by others.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    matching
        The characters that are replaced.
    replace
        What stands instead, each at its place in ``matching``; a character without one is left out.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.translate("s", "abc", "12"), s=["cabbage", None])
    ['1221ge', None]
    """
    return as_column(x).translate(matching, replace)
