"""What a step says of itself to those who follow rows through a plan: loops, stage 0, claims, the audit.

A new step that says nothing here is right everywhere, and admitted less often than it might be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from caesura.expr import Expr

PunctuatedBy = Literal["rule", "slowest", "rows"]
"""What the punctuation that leaves a step depends on: its rule alone, its slowest input, or also its rows."""
WHOLE = "what it gives stands for several rows, found in different rounds"


@dataclass(frozen=True)
class RowForm:
    """A step that gives at most one row for each, with its lifetime: as expressions of the row it takes."""

    columns: tuple[tuple[str, Expr], ...]
    conditions: tuple[Expr, ...] = ()
    """What is known to hold for rows that leave."""


@dataclass(frozen=True)
class OnLoop:
    """What a step does with the rows of a loop that runs through it."""

    adds: bool = False
    """Whether each row of the loop makes rows of its own there, or none."""
    monotone: bool = True
    """Whether more rows of the loop never take rows away."""
    reads_lifetimes: bool = False
    """Whether it looks at where rows start and end."""
    no_depth: str = WHOLE
    """Why a row behind it has no round in which it was found; empty where it has one."""


ROW_BY_ROW = OnLoop(adds=True, no_depth="")
"""A step that looks at one row at a time."""
