"""Row patterns: which rows of a group, in order of time, match a regular expression of conditions."""

from caesura.ops.match.formula import NUMBER, Formula, MatchFold, Navigation
from caesura.ops.match.node import MatchRows, Skip

__all__ = ["NUMBER", "Formula", "MatchFold", "MatchRows", "Navigation", "Skip"]
