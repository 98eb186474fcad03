"""Elements of lists, values of maps, fields of structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from caesura.errors import ExprError
from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class NestedMethods:
    """Elements of lists, values of maps, fields of structs."""

    def __getitem__(self, key: object) -> Expr:
        """An element by its place, from 0 on; a map's value by its key; a struct's field by its name."""
        if isinstance(key, slice):
            raise ExprError(
                f"'{self}[...]' takes one place, not a stretch.",
                remedy="Write cz.functions.slice(a, 1, 3) for a list, .substring(1, 3) for a text.",
            )
        return nodes.apply("item", self, key)

    def get_item(self, key: object) -> Expr:
        """An element by its place from 0 on, a map's value by its key, a struct's field by its name.

        Parameters
        ----------
        key
            The place, key or name: a value or an expression. ``column[key]`` means the same.

        Returns
        -------
        Expr
            The type of the element; null where the list, map or struct is null, or the map has no such
            key. A row whose list has no such place is refused, as in Spark; ``functions.get`` gives null
            there.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("a").get_item(0), a=[[7, 8], None])
        [7, None]
        >>> values(col("a").get_item("x"), a=[{"x": 1}, None])
        [1, None]
        """
        return self[key]

    getItem = get_item  # noqa: N815 - as PySpark calls it

    def __iter__(self) -> NoReturn:
        raise ExprError(
            f"'{self}' is a column, not a list of Python's.",
            remedy="Take functions.transform(a, lambda x: ...) for its elements, or the step .explode('a').",
        )
