"""Functions of texts, under the names Spark users know; text names a column.

>>> from caesura import lit
>>> lower("name"), concat("first", lit(" "), "last")
(Expr(lower(name)), Expr(concat(first, ' ', last)))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column, lit

__all__ = [
    "ascii",
    "concat",
    "concat_ws",
    "initcap",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "octet_length",
    "repeat",
    "reverse",
    "rpad",
    "rtrim",
    "trim",
    "upper",
]


def ascii(x: object) -> Expr:
    """The code of the first character.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``int``; 0 of an empty text, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.ascii("s"), s=["abc", "", None])
    [97, 0, None]
    """
    return as_column(x).ascii()


def concat(first: object, *others: object) -> Expr:
    """The texts one behind the other.

    Parameters
    ----------
    first, *others
        Columns' names, or expressions; a plain text is ``lit("...")``.

    Returns
    -------
    Expr
        ``string``; null where one of them is null.

    See Also
    --------
    functions.concat_ws : with a separator, without the nulls.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura import lit
    >>> from caesura.testing import values
    >>> values(F.concat("s", lit("-"), "z"), s=["a", None], z=["b", "c"])
    ['a-b', None]
    """
    return as_column(first).concat(*(as_column(other) for other in others))


def concat_ws(sep: str, *cols: object) -> Expr:
    """The texts that are not null, with a separator between them.

    Parameters
    ----------
    sep
        What stands between two texts.
    *cols
        Columns' names, or expressions of texts; without any the answer is ``''``.

    Returns
    -------
    Expr
        ``string``, never null: ``''`` where all are null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.concat_ws("-", "s", "z"), s=["a", None], z=["b", "c"])
    ['a-b', 'c']
    """
    first, *others = [as_column(c) for c in cols] or [lit("")]
    return first.concat_ws(sep, *others)


def initcap(x: object) -> Expr:
    """The words with a capital each and small letters behind it.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``string``; null for null. Blanks part words.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.initcap("s"), s=["new yORK", None])
    ['New York', None]
    """
    return as_column(x).initcap()


def length(x: object) -> Expr:
    """The number of characters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``int``; null for null.

    See Also
    --------
    functions.octet_length : the number of bytes.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.length("s"), s=["abc", "", None])
    [3, 0, None]
    """
    return as_column(x).length()


def lower(x: object) -> Expr:
    """The text in small letters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.lower("s"), s=["Ab", None])
    ['ab', None]
    """
    return as_column(x).lower()


def lpad(x: object, len: int, pad: str = " ") -> Expr:
    """The text filled on the left to so many characters; a longer one is cut.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    len
        How many characters it has then.
    pad
        What it is filled with.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.lpad("s", 4, "0"), s=["7", "12345", None])
    ['0007', '1234', None]
    """
    return as_column(x).lpad(len, pad)


def ltrim(x: object, characters: str | None = None) -> Expr:
    """The text without blanks at its start, or without other characters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    characters
        Which characters are taken off; blanks where it is None.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.ltrim("s"), s=["  a ", None])
    ['a ', None]
    """
    return as_column(x).ltrim(characters)


def octet_length(x: object) -> Expr:
    """The number of bytes of the text in UTF-8.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.octet_length("s"), s=["abc", "é", None])
    [3, 2, None]
    """
    return as_column(x).octet_length()


def repeat(x: object, n: int) -> Expr:
    """The text so many times.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    n
        How many times; none for 0 and below.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.repeat("s", 3), s=["ab", None])
    ['ababab', None]
    """
    return as_column(x).repeat(n)


def reverse(x: object) -> Expr:
    """The characters from the last to the first.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.reverse("s"), s=["abc", None])
    ['cba', None]
    """
    return as_column(x).reverse()


def rpad(x: object, len: int, pad: str = " ") -> Expr:
    """The text filled on the right to so many characters; a longer one is cut.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    len
        How many characters it has then.
    pad
        What it is filled with.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.rpad("s", 4, "."), s=["7", "12345", None])
    ['7...', '1234', None]
    """
    return as_column(x).rpad(len, pad)


def rtrim(x: object, characters: str | None = None) -> Expr:
    """The text without blanks at its end, or without other characters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    characters
        Which characters are taken off; blanks where it is None.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.rtrim("s"), s=["  a ", None])
    ['  a', None]
    """
    return as_column(x).rtrim(characters)


def trim(x: object, characters: str | None = None) -> Expr:
    """The text without blanks at its ends, or without other characters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    characters
        Which characters are taken off; blanks where it is None.

    Returns
    -------
    Expr
        ``string``; null for null.

    See Also
    --------
    functions.ltrim, functions.rtrim : at one end only.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.trim("s"), s=["  a ", None])
    ['a', None]
    >>> values(F.trim("s", "x"), s=["xax"])
    ['a']
    """
    return as_column(x).trim(characters)


def upper(x: object) -> Expr:
    """The text in capitals.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.

    Returns
    -------
    Expr
        ``string``; null for null. Each character is mapped for itself, so ``ß`` has a capital of its own,
        where Spark writes ``SS``.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.upper("s"), s=["Ab", None])
    ['AB', None]
    """
    return as_column(x).upper()
