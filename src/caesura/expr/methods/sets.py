"""What is asked of sets: binary columns that `set_of` has begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class SetMethods:
    """What is asked of sets, of any size, of whole numbers and texts."""

    def set_has(self, member: object) -> Expr:
        """Whether the set has a member with this value."""
        return nodes.apply("set_has", self, member)

    def set_add(self, member: object) -> Expr:
        """The set with this member; the same set where it has it."""
        return nodes.apply("set_add", self, member)
