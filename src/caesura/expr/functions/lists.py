"""Functions of lists; text names a column.

>>> array_contains("tags", "new"), slice("a", 1, 2)
(Expr(array_contains(tags, 'new')), Expr(slice(a, 1, 2)))
"""

from __future__ import annotations

from caesura.expr.nodes import Expr, apply, as_column, as_expr, plain_text

__all__ = [
    "array",
    "array_contains",
    "array_distinct",
    "array_join",
    "array_length",
    "array_max",
    "array_min",
    "array_position",
    "array_size",
    "array_sort",
    "element_at",
    "flatten",
    "get",
    "size",
    "slice",
    "sort_array",
    "try_element_at",
]


def array(first: object, *others: object) -> Expr:
    """A list of these values, which have one type.

    Parameters
    ----------
    first, *others
        Columns' names, expressions or values.

    Returns
    -------
    Expr
        A list of their common type; a null is an element as others are.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array("a", "b", 0), a=[1, None], b=[2, 3])
    [[1, 2, 0], [None, 3, 0]]
    """
    return apply("array", *(as_column(v) for v in (first, *others)))


def array_contains(x: object, value: object) -> Expr:
    """Whether a list has a value.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    value
        A value, or an expression; a text is itself, not a column's name.

    Returns
    -------
    Expr
        ``boolean``; null for null, and where the list does not have the value and has nulls.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_contains("a", 2), a=[[1, 2], [1], [1, None], None])
    [True, False, None, None]
    """
    return apply("array_contains", as_column(x), as_expr(value))


def array_distinct(x: object) -> Expr:
    """The different elements of a list, where they come first.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.

    Returns
    -------
    Expr
        The same type; null for null. A null counts as one value.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_distinct("a"), a=[[2, 1, 2, None, None], None])
    [[2, 1, None], None]
    """
    return apply("array_distinct", as_column(x))


def array_join(x: object, delimiter: str, null_replacement: str | None = None) -> Expr:
    """The texts of a list in one.

    Parameters
    ----------
    x
        A column's name, or an expression: lists of texts.
    delimiter
        What stands between two texts.
    null_replacement
        What stands for a null; nulls are left out where it is None.

    Returns
    -------
    Expr
        ``string``; null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_join("a", "-"), a=[["x", None, "y"], None])
    ['x-y', None]
    >>> values(F.array_join("a", "-", "?"), a=[["x", None, "y"]])
    ['x-?-y']
    """
    if null_replacement is not None:
        null_replacement = plain_text("array_join", null_replacement)
    options = (plain_text("array_join", delimiter), null_replacement)
    return apply("array_join", as_column(x), options=options)


def array_length(x: object) -> Expr:
    """How many elements a list, or entries a map has.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        ``int``; null for null, where Spark's old rule gave -1.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_length("a"), a=[[1, 2], [], None])
    [2, 0, None]
    """
    return size(x)


def array_max(x: object) -> Expr:
    """The greatest element of a list; nulls do not count.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.

    Returns
    -------
    Expr
        The type of the elements; null for null, and for a list without values. NaN is the greatest
        number.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_max("a"), a=[[3, None, 1], [], None])
    [3, None, None]
    """
    return apply("array_max", as_column(x))


def array_min(x: object) -> Expr:
    """The least element of a list; nulls do not count.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.

    Returns
    -------
    Expr
        The type of the elements; null for null, and for a list without values.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_min("a"), a=[[3, None, 1], [], None])
    [1, None, None]
    """
    return apply("array_min", as_column(x))


def array_position(x: object, value: object) -> Expr:
    """Where a list has a value first, counted from 1.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    value
        A value, or an expression; a text is itself, not a column's name.

    Returns
    -------
    Expr
        ``bigint``; 0 for nowhere, null for null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_position("a", 2), a=[[1, 2], [1], None])
    [2, 0, None]
    """
    return apply("array_position", as_column(x), as_expr(value))


def array_size(x: object) -> Expr:
    """How many elements a list, or entries a map has.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        ``int``; null for null, where Spark's old rule gave -1.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_size("a"), a=[[1, 2], [], None])
    [2, 0, None]
    """
    return size(x)


def array_sort(x: object) -> Expr:
    """The list in ascending order, nulls last.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.

    Returns
    -------
    Expr
        The same type; null for null. NaN is above every number.

    See Also
    --------
    functions.sort_array : descending, or nulls first.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.array_sort("a"), a=[[3, None, 1], None])
    [[1, 3, None], None]
    """
    return apply("array_sort", as_column(x), options=(False, "last"))


def element_at(x: object, key: object) -> Expr:
    """The element at a place that counts from 1, or from the end as -1; a map's value by its key.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.
    key
        The place or key: a value, or an expression.

    Returns
    -------
    Expr
        The type of the elements; null for null, and for a key that a map does not have. A row whose list
        has no such place is refused.

    See Also
    --------
    functions.try_element_at : null for a place that is not there.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.element_at("a", -1), a=[[7, 8], [9], None])
    [8, 9, None]
    """
    return apply("element_at", as_column(x), as_expr(key))


def flatten(x: object) -> Expr:
    """The elements of the lists in a list.

    Parameters
    ----------
    x
        A column's name, or an expression: lists of lists.

    Returns
    -------
    Expr
        A list; null for null, and where one of the lists is null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.flatten("a"), a=[[[1, 2], [3]], [[1], None], None])
    [[1, 2, 3], None, None]
    """
    return apply("flatten", as_column(x))


def get(x: object, index: object) -> Expr:
    """The element of a list at a place that counts from 0; null where there is none.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    index
        The place: a whole number, a column's name or an expression.

    Returns
    -------
    Expr
        The type of the elements; null where either is null.

    See Also
    --------
    functions.element_at : places from 1 on, and maps.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.get("a", 1), a=[[7, 8], [9], None])
    [8, None, None]
    """
    return apply("get", as_column(x), as_column(index))


def size(x: object) -> Expr:
    """How many elements a list, or entries a map has.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.

    Returns
    -------
    Expr
        ``int``; null for null, where Spark's old rule gave -1.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.size("a"), a=[[1, 2], [], None])
    [2, 0, None]
    """
    return apply("size", as_column(x))


def slice(x: object, start: object, length: object) -> Expr:
    """So many elements of a list from a place on.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    start
        The first of them, which counts from 1, or from the end as -1: a whole number, a column's name or
        an expression.
    length
        How many: a whole number, a column's name or an expression.

    Returns
    -------
    Expr
        The same type; null where one of them is null. A row with a start of 0 or a negative length is
        refused.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.slice("a", 2, 2), a=[[1, 2, 3, 4], [1], None])
    [[2, 3], [], None]
    """
    return apply("slice", as_column(x), as_column(start), as_column(length))


def sort_array(x: object, asc: bool = True) -> Expr:
    """The list in order: ascending with nulls first, or descending with nulls last.

    Parameters
    ----------
    x
        A column's name, or an expression: lists.
    asc
        Whether the order is ascending.

    Returns
    -------
    Expr
        The same type; null for null. NaN is above every number.

    See Also
    --------
    functions.array_sort : ascending with nulls last.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.sort_array("a"), a=[[3, None, 1], None])
    [[None, 1, 3], None]
    >>> values(F.sort_array("a", False), a=[[3, None, 1]])
    [[3, 1, None]]
    """
    return apply("sort_array", as_column(x), options=(not asc, "first" if asc else "last"))


def try_element_at(x: object, key: object) -> Expr:
    """As `element_at`, with null for a place that is not there.

    Parameters
    ----------
    x
        A column's name, or an expression: lists or maps.
    key
        The place or key: a value, or an expression.

    Returns
    -------
    Expr
        The type of the elements; null where either is null.

    Examples
    --------
    >>> from caesura import functions as F
    >>> from caesura.testing import values
    >>> values(F.try_element_at("a", 2), a=[[7, 8], [9], None])
    [8, None, None]
    """
    return apply("try_element_at", as_column(x), as_expr(key))
