"""What automata are built of: pieces with threads that hold slots, and the memory of sliding windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import Value

Assign = dict[str, Term]
STORE = "ring:"
"""The name of what a step writes into a ring, instead of a slot."""
BEGIN = "begin:"
"""The name of what a step says of a map inside the query: it may begin with this item."""


@dataclass
class WindowRing:
    """A sliding window's memory: the last ``size`` values, per key; single bits where they are 0 or 1."""

    name: str
    size: int
    bits: bool = False
    real: bool = False
    """Whether it holds doubles."""
    slots: frozenset[str] = frozenset()
    """What a thread holds while it is in the window."""
    coded: bool = False
    """Whether it holds codes of texts."""
    sticky: bool = False
    """Whether a thread holds all of that even where it is known, since the ring is in use nevertheless."""


@dataclass
class Refold:
    """A sliding window whose fold is worked out from all its values, for want of a better way."""

    size: int
    rings: list[tuple[str, ...]]
    """Per scalar of a value the rings that hold it, whether it is there and, if that may be, what is over."""
    init: list[Term]
    step: list[Term]
    """The scalars of the fold, as the rings have them: over locals ``a0``, ... (the fold) and ``x0``, ..."""


@dataclass
class Stacks:
    """A sliding window as two stacks in one ring: folds of single values, newest last, behind folds of what
    is at their place and all newer ones of the front."""

    size: int
    rings: list[tuple[str, ...]]
    """Per scalar of the fold the rings that hold it, whether it is there and, if need be, what is over."""
    join: list[Term]
    """The scalars of the fold, as the rings have them: over ``a0``, ... and ``b0``, ..., the newer."""


@dataclass
class AutomatonPiece:
    """A piece of the automaton, with nothing said about what was held before it."""

    masks: dict[int, int] = field(default_factory=dict)
    """Per position the letters it reads."""
    first: dict[int, Assign] = field(default_factory=dict)
    follow: dict[tuple[int, int], Assign] = field(default_factory=dict)
    last: dict[int, Value] = field(default_factory=dict)
    empty: Value | None = None
