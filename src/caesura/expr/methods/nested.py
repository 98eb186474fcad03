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
        """The same as ``[key]``."""
        return self[key]

    getItem = get_item  # noqa: N815 - as PySpark calls it

    def __iter__(self) -> NoReturn:
        raise ExprError(
            f"'{self}' is a column, not a list of Python's.",
            remedy="Take functions.transform(a, lambda x: ...) for its elements, or the step .explode('a').",
        )
