"""Functions that look into texts: patterns, JSON, hashes.

>>> like("name", "a%"), get_json_object("j", "$.id")
(Expr(name LIKE 'a%'), Expr(get_json_object(j, '$.id')))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, as_column

__all__ = [
    "crc32",
    "get_json_object",
    "ilike",
    "like",
    "md5",
    "regexp_count",
    "regexp_extract",
    "regexp_like",
    "regexp_replace",
    "rlike",
    "sha1",
    "sha2",
    "split",
]


def crc32(x: object) -> Expr:
    """The cyclic redundancy check.

    Parameters
    ----------
    x
        A column's name, or an expression: texts or binary.

    Returns
    -------
    Expr
        ``bigint``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.crc32("s"), s=["abc", None])
    [891568578, None]
    """
    return as_column(x).crc32()


def get_json_object(x: object, path: str) -> Expr:
    """What stands at a path in a JSON text.

    Parameters
    ----------
    x
        A column's name, or an expression: JSON texts.
    path
        ``"$.a.b[0]"``: names and indices, no wildcards.

    Returns
    -------
    Expr
        ``string``: a text bare, anything else as JSON; null for null, for a text that is no JSON, and
        where nothing stands there.

    Notes
    -----
    Each distinct text of a page is parsed once, also for several paths. It reads standard JSON: no single
    quotes, which Spark takes.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.get_json_object("j", "$.a[0]"), j=['{"a": [7, 8]}', "{}", None])
    ['7', None, None]
    """
    return as_column(x).json(path)


def ilike(x: object, pattern: str) -> Expr:
    """Whether the text is like a pattern, whatever the case of the letters.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        ``%`` stands for any text, ``_`` for one character, a backslash before either for itself.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    See Also
    --------
    functions.like : with the case of the letters.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.ilike("s", "b%a"), s=["BANANA", "pear", None])
    [True, False, None]
    """
    return as_column(x).ilike(pattern)


def like(x: object, pattern: str) -> Expr:
    """Whether the text is like a pattern: SQL's LIKE.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        ``%`` stands for any text, ``_`` for one character, a backslash before either for itself.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    See Also
    --------
    functions.ilike : whatever the case of the letters.
    functions.rlike : regular expressions.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.like("s", "b%a"), s=["banana", "pear", None])
    [True, False, None]
    """
    return as_column(x).like(pattern)


def md5(x: object) -> Expr:
    """The MD5 hash in hexadecimal digits.

    Parameters
    ----------
    x
        A column's name, or an expression: texts or binary.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.md5("s"), s=["abc", None])
    ['900150983cd24fb0d6963f7d28e17f72', None]
    """
    return as_column(x).md5()


def regexp_count(x: object, pattern: str) -> Expr:
    """How often a regular expression is found.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        A regular expression of RE2: no lookaround, no backreferences.

    Returns
    -------
    Expr
        ``int``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.regexp_count("s", "an"), s=["banana", "pear", None])
    [2, 0, None]
    """
    return as_column(x).regexp_count(pattern)


def regexp_extract(x: object, pattern: str, idx: int = 1) -> Expr:
    r"""What a group of a regular expression matches first.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        A regular expression of RE2: no lookaround, no backreferences.
    idx
        Which group, counted from 1; 0 is the whole match.

    Returns
    -------
    Expr
        ``string``; ``''`` where nothing matches, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.regexp_extract("s", r"(\w+)@(\w+)", 2), s=["ann@home", "pear", None])
    ['home', '', None]
    """
    return as_column(x).regexp_extract(pattern, idx)


def regexp_like(x: object, pattern: str) -> Expr:
    """Whether a regular expression is found anywhere in the text; the same as `rlike`.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        A regular expression of RE2: no lookaround, no backreferences, and ``$`` is the end of the text.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.regexp_like("s", "^b.n"), s=["banana", "pear", None])
    [True, False, None]
    """
    return as_column(x).rlike(pattern)


def regexp_replace(x: object, pattern: str, replacement: str) -> Expr:
    """All that a regular expression matches, replaced.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        A regular expression of RE2: no lookaround, no backreferences.
    replacement
        What stands there instead; ``$1`` is the first group.

    Returns
    -------
    Expr
        ``string``; null for null.

    See Also
    --------
    functions.replace : plain texts.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.regexp_replace("s", "a(n)", "$1-"), s=["banana", None])
    ['bn-n-a', None]
    """
    return as_column(x).regexp_replace(pattern, replacement)


def rlike(x: object, pattern: str) -> Expr:
    """Whether a regular expression is found anywhere in the text.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        A regular expression of RE2: no lookaround, no backreferences, and ``$`` is the end of the text.

    Returns
    -------
    Expr
        ``boolean``; null for null.

    See Also
    --------
    functions.regexp_extract : what a group of it matches.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.rlike("s", "an+a$"), s=["banana", "pear", None])
    [True, False, None]
    """
    return as_column(x).rlike(pattern)


def sha1(x: object) -> Expr:
    """The SHA-1 hash in hexadecimal digits.

    Parameters
    ----------
    x
        A column's name, or an expression: texts or binary.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.sha1("s"), s=["abc", None])
    ['a9993e364706816aba3e25717850c26c9cd0d89d', None]
    """
    return as_column(x).sha1()


def sha2(x: object, bits: int = 256) -> Expr:
    """The SHA-2 hash in hexadecimal digits.

    Parameters
    ----------
    x
        A column's name, or an expression: texts or binary.
    bits
        224, 256, 384 or 512; 0 is 256.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.sha2("s", 224), s=["abc", None])
    ['23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7', None]
    """
    return as_column(x).sha2(bits)


def split(x: object, pattern: str, limit: int = -1) -> Expr:
    """The pieces between what a regular expression matches, as a list.

    Parameters
    ----------
    x
        A column's name, or an expression: texts.
    pattern
        A regular expression of RE2: no lookaround, no backreferences.
    limit
        At most so many pieces, the last with all that is left; as many as there are for 0 and below.

    Returns
    -------
    Expr
        ``array<string>``; null for null.

    Notes
    -----
    Several parts of one text are taken from one split of the page.

    See Also
    --------
    functions.split_part : one piece, by a plain delimiter.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.split("s", "[,;]"), s=["a,b;c", "", None])
    [['a', 'b', 'c'], [''], None]
    >>> values(F.split("s", "[,;]", 2), s=["a,b;c"])
    [['a', 'b;c']]
    """
    return as_column(x).split(pattern, limit)
