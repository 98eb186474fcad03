"""Functions on lists, maps and structs, under the names Spark users know; text names a column.

>>> array_contains("tags", "new"), transform("a", lambda x: x + 1)
(Expr(array_contains(tags, 'new')), Expr(transform(a, x -> x + 1)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caesura.errors import ExprError
from caesura.expr.lambdas import each, fold
from caesura.expr.nodes import Expr, apply, as_column, as_expr, plain_text
from caesura.expr.rewrite import name_of

__all__ = [
    "aggregate",
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
    "create_map",
    "element_at",
    "exists",
    "explode",
    "explode_outer",
    "filter",
    "flatten",
    "forall",
    "get",
    "map_contains_key",
    "map_entries",
    "map_keys",
    "map_values",
    "posexplode",
    "posexplode_outer",
    "size",
    "slice",
    "sort_array",
    "struct",
    "transform",
    "try_element_at",
]


def size(x: object) -> Expr:
    """How many elements a list, or entries a map has."""
    return apply("size", as_column(x))


def array_size(x: object) -> Expr:
    """The same as `size`."""
    return size(x)


def array_length(x: object) -> Expr:
    """The same as `size`."""
    return size(x)


def get(x: object, index: object) -> Expr:
    """The element of a list at a place that counts from 0; null where there is none."""
    return apply("get", as_column(x), as_column(index))


def element_at(x: object, key: object) -> Expr:
    """The element at a place that counts from 1, or from the end as -1; a map's value, null for no such key.

    A row without that place is refused; `try_element_at` gives null there.
    """
    return apply("element_at", as_column(x), as_expr(key))


def try_element_at(x: object, key: object) -> Expr:
    """As `element_at`, with null for a place that is not there."""
    return apply("try_element_at", as_column(x), as_expr(key))


def array_contains(x: object, value: object) -> Expr:
    """Whether a list has a value; null if it has not, and has nulls."""
    return apply("array_contains", as_column(x), as_expr(value))


def array_position(x: object, value: object) -> Expr:
    """Where a list has a value first, counted from 1; 0 for nowhere."""
    return apply("array_position", as_column(x), as_expr(value))


def array(first: object, *others: object) -> Expr:
    """A list of these values, which have one type."""
    return apply("array", *(as_column(v) for v in (first, *others)))


def struct(first: object, *others: object) -> Expr:
    """A struct of these values, by their names."""
    values = [as_column(v) for v in (first, *others)]
    return apply("struct", *values, options=tuple(name_of(v) for v in values))


def create_map(first: object, *others: object) -> Expr:
    """A map: a key, its value, and so on. A key that is null or there twice refuses the row."""
    parts = [as_column(v) for v in (first, *others)]
    if len(parts) % 2:
        raise ExprError("the last key has no value.", remedy="Write create_map(key, value, key, value, ...).")
    return apply("create_map", *parts)


def map_keys(x: object) -> Expr:
    """The keys of a map, in their order."""
    return apply("map_keys", as_column(x))


def map_values(x: object) -> Expr:
    """The values of a map, in the order of its keys."""
    return apply("map_values", as_column(x))


def map_entries(x: object) -> Expr:
    """The entries of a map as structs of key and value, in the order of its keys."""
    return apply("map_entries", as_column(x))


def map_contains_key(x: object, key: object) -> Expr:
    """Whether a map has a key."""
    return apply("map_contains_key", as_column(x), as_expr(key))


def array_sort(x: object) -> Expr:
    """The list in ascending order, nulls last."""
    return apply("array_sort", as_column(x), options=(False, "last"))


def sort_array(x: object, asc: bool = True) -> Expr:
    """The list in order: ascending with nulls first, or descending with nulls last."""
    return apply("sort_array", as_column(x), options=(not asc, "first" if asc else "last"))


def array_distinct(x: object) -> Expr:
    """The different elements of a list, where they come first."""
    return apply("array_distinct", as_column(x))


def array_min(x: object) -> Expr:
    """The least element of a list; nulls do not count."""
    return apply("array_min", as_column(x))


def array_max(x: object) -> Expr:
    """The greatest element of a list; nulls do not count, NaN is the greatest."""
    return apply("array_max", as_column(x))


def flatten(x: object) -> Expr:
    """The elements of the lists in a list; null where one of those is null."""
    return apply("flatten", as_column(x))


def slice(x: object, start: object, length: object) -> Expr:
    """So many elements from a place on, which counts from 1, or from the end as -1."""
    return apply("slice", as_column(x), as_column(start), as_column(length))


def array_join(x: object, delimiter: str, null_replacement: str | None = None) -> Expr:
    """The texts of a list in one; nulls are left out, or replaced."""
    if null_replacement is not None:
        null_replacement = plain_text("array_join", null_replacement)
    options = (plain_text("array_join", delimiter), null_replacement)
    return apply("array_join", as_column(x), options=options)


def transform(x: object, f: Callable[..., Any]) -> Expr:
    """A list of what a function makes of each element; a second parameter is its place, from 0 on."""
    return each("transform", x, f)


def filter(x: object, f: Callable[..., Any]) -> Expr:
    """The elements of a list for which a condition is true; it may take the element's place, from 0 on."""
    return each("filter", x, f)


def exists(x: object, f: Callable[..., Any]) -> Expr:
    """Whether a condition is true for an element; null if for none, and null for one."""
    return each("exists", x, f)


def forall(x: object, f: Callable[..., Any]) -> Expr:
    """Whether a condition is true for all elements; null if false for none, and null for one."""
    return each("forall", x, f)


def aggregate(
    x: object,
    initialValue: object,
    merge: Callable[..., Any],
    finish: Callable[..., Any] | None = None,
) -> Expr:
    """A list folded into one value: ``aggregate("a", 0, lambda acc, x: acc + x)``."""
    return fold(x, initialValue, merge, finish)


def explode(x: object) -> Expr:
    """A row for each element of a list or entry of a map: one column of `select` or `with_columns`."""
    return apply("explode", as_column(x))


def explode_outer(x: object) -> Expr:
    """As `explode`, and one row with null for a list that is null or empty."""
    return apply("explode_outer", as_column(x))


def posexplode(x: object) -> Expr:
    """As `explode`, with the element's place, from 0 on, in a column ``pos``."""
    return apply("posexplode", as_column(x))


def posexplode_outer(x: object) -> Expr:
    """As `explode_outer`, with the element's place, from 0 on, in a column ``pos``."""
    return apply("posexplode_outer", as_column(x))
