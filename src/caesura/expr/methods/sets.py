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
        """Whether the set has a member with this value.

        Parameters
        ----------
        member
            A whole number or text, or an expression of such.

        Returns
        -------
        Expr
            ``boolean``; null where either is null.

        See Also
        --------
        set_of : begins a set.

        Examples
        --------
        >>> from caesura import col
        >>> import caesura as cz
        >>> from caesura.testing import values
        >>> values(cz.set_of(1, 5).set_has(col("a")), a=[1, 2, None])
        [True, False, None]
        """
        return nodes.apply("set_has", self, member)

    def set_add(self, member: object) -> Expr:
        """The set with this member; the same set where it has it.

        Parameters
        ----------
        member
            A whole number or text, or an expression of such.

        Returns
        -------
        Expr
            ``binary``, the set's bytes; null where either is null.

        See Also
        --------
        set_of : begins a set.

        Examples
        --------
        >>> from caesura import col
        >>> import caesura as cz
        >>> from caesura.testing import values
        >>> values(cz.set_of(1).set_add(col("a")).set_has(2), a=[2, 3, None])
        [True, False, None]
        """
        return nodes.apply("set_add", self, member)
