"""Recursive stream queries that know how far they have got: the Flying Fixed-Point."""

from typing import TYPE_CHECKING, Any

from caesura.fixpoint.node import Fixpoint, Keep, Progress, Recursive

if TYPE_CHECKING:
    from caesura.fixpoint.build import fixpoint
else:

    def __getattr__(name: str) -> Any:
        """Whoever has no loop to close does not import what checks one."""
        if name != "fixpoint":
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from caesura.fixpoint.build import fixpoint

        return fixpoint


__all__ = ["Fixpoint", "Keep", "Progress", "Recursive", "fixpoint"]
