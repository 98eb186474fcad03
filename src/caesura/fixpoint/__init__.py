"""Recursive stream queries that know how far they have got: the Flying Fixed-Point."""

from caesura.fixpoint.build import fixpoint
from caesura.fixpoint.node import Fixpoint, Keep, Progress, Recursive

__all__ = ["Fixpoint", "Keep", "Progress", "Recursive", "fixpoint"]
