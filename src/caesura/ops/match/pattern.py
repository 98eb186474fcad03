"""Row patterns as a tree, and as the small program that a search runs.

A pattern is a regular expression whose letters are variables; each takes a row that its condition holds for.
Of several ways to match, the standard prefers the leftmost alternative, and of a quantifier as many rounds as
there can be (or, reluctant, as few). An empty round is not repeated: behind it the quantifier is left.

The program is built from its end: every part gets the place to go on at where it took rows, and the place
where it took none, so that no search has to remember whether a round was empty.

>>> pattern = Concat((RowVariable("A"), Repeat(RowVariable("B"), 1, None)))
>>> str(pattern), program(pattern, ("A", "B")).shape
('A B+', (4, 6))
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np

from caesura.errors import PlanError
from caesura.kernels.hashing import I64

ROW, SPLIT, MATCH, BEGIN, END = range(5)
"""Take a row, try two ways, be done, ask for the first row, ask for the end."""
LARGEST = 10_000
"""The most steps that the program of a pattern may have."""


@dataclass(frozen=True)
class RowVariable:
    """A row for which the condition of a variable holds."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class EmptyPattern:
    """No row."""

    def __str__(self) -> str:
        return "()"


@dataclass(frozen=True)
class Anchor:
    """The first row of a group follows, or none does."""

    side: Literal["^", "$"]

    def __str__(self) -> str:
        return self.side


@dataclass(frozen=True)
class Concat:
    """One part behind the other."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return " ".join(_within(part, (Alternatives,)) for part in self.parts)


@dataclass(frozen=True)
class Alternatives:
    """One of several parts; the first is preferred."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))


@dataclass(frozen=True)
class Permute:
    """All parts in any order; the order as written is preferred."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Excluded:
    """Rows that are matched, and left out of what is shown."""

    part: RowPattern

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


@dataclass(frozen=True)
class Repeat:
    """Rounds of a part; greedy where more are preferred."""

    part: RowPattern
    low: int
    high: int | None
    greedy: bool = True

    def __str__(self) -> str:
        bounds = (self.low, self.high)
        short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get(bounds)
        exact = f"{{{self.low}}}" if self.low == self.high else None
        text = short or exact or f"{{{self.low},{'' if self.high is None else self.high}}}"
        return _within(self.part, (Alternatives, Concat, Repeat)) + text + ("" if self.greedy else "?")


RowPattern: TypeAlias = (
    RowVariable | EmptyPattern | Anchor | Concat | Alternatives | Permute | Excluded | Repeat
)


def _within(part: RowPattern, loose: tuple[type, ...]) -> str:
    return f"({part})" if isinstance(part, loose) else str(part)


def variables(pattern: RowPattern) -> tuple[str, ...]:
    """The variables of a pattern, in the order in which they are written."""
    match pattern:
        case RowVariable(name):
            return (name,)
        case Concat(parts) | Alternatives(parts) | Permute(parts):
            return tuple(dict.fromkeys(name for part in parts for name in variables(part)))
        case Excluded(part) | Repeat(part):
            return variables(part)
    return ()


def nullable(pattern: RowPattern) -> bool:
    """Whether it may match no rows."""
    match pattern:
        case RowVariable():
            return False
        case Concat(parts) | Permute(parts):
            return all(nullable(part) for part in parts)
        case Alternatives(parts):
            return any(nullable(part) for part in parts)
        case Excluded(part):
            return nullable(part)
        case Repeat(part, low, _):
            return low == 0 or nullable(part)
    return True


def anchored(pattern: RowPattern, side: str) -> bool:
    """Whether it asks for the first row of a group, or for its end."""
    match pattern:
        case Anchor():
            return pattern.side == side
        case Concat(parts) | Alternatives(parts) | Permute(parts):
            return any(anchored(part, side) for part in parts)
        case Excluded(part) | Repeat(part):
            return anchored(part, side)
    return False


def excludes(pattern: RowPattern) -> bool:
    """Whether rows of it are left out of what is shown."""
    match pattern:
        case Concat(parts) | Alternatives(parts) | Permute(parts):
            return any(excludes(part) for part in parts)
        case Repeat(part):
            return excludes(part)
    return isinstance(pattern, Excluded)


def program(pattern: RowPattern, names: tuple[str, ...]) -> I64:
    """Columns of (step, first, second, third); the last one is where a search begins.

    ROW has the variable, where to go on, and whether the row is left out; SPLIT has both ways, the preferred
    one first; BEGIN and END have where to go on.
    """
    compiler = _Compiler({name: at for at, name in enumerate(names)}, pattern)
    done = compiler.add(MATCH)
    entry = compiler.emit(pattern, done, done, hidden=False)
    compiler.add(SPLIT, entry, entry)  # the entry is the last step, wherever the pattern begins
    return np.array(compiler.code, np.int64).T.copy()


class _Compiler:
    def __init__(self, numbers: dict[str, int], whole: RowPattern) -> None:
        self.code: list[list[int]] = []
        self._numbers, self._whole = numbers, whole

    def add(self, step: int, first: int = 0, second: int = 0, third: int = 0) -> int:
        if len(self.code) >= LARGEST:
            raise PlanError(
                f"the pattern has more than {LARGEST:,} steps when its rounds are written out.",
                remedy="Take fewer rounds of {n,m}, or * and +, and PERMUTE of fewer variables.",
            )
        self.code.append([step, first, second, third])
        return len(self.code) - 1

    def emit(self, node: RowPattern, moved: int, empty: int, *, hidden: bool) -> int:
        """Where a part begins; what follows is at ``moved`` if it took rows, else at ``empty``."""
        match node:
            case RowVariable(name):
                return self.add(ROW, self._numbers[name], moved, hidden)
            case Anchor(side):
                return self.add(BEGIN if side == "^" else END, empty)
            case Concat(parts):
                return self._joined(parts, moved, empty, hidden)
            case Permute(parts):
                orders = tuple(Concat(order) for order in permutations(parts))
                return self.emit(Alternatives(orders), moved, empty, hidden=hidden)
            case Alternatives(parts):
                *others, entry = (self.emit(part, moved, empty, hidden=hidden) for part in parts)
                for other in reversed(others):
                    entry = self.add(SPLIT, other, entry)
                return entry
            case Excluded(part):
                return self.emit(part, moved, empty, hidden=True)
            case Repeat():
                return self._repeated(node, moved, empty, hidden)
        return empty

    def _joined(self, parts: tuple[RowPattern, ...], moved: int, empty: int, hidden: bool) -> int:
        for part in reversed(parts):
            moved, empty = self._both(part, (moved, moved), (moved, empty), hidden)
        return empty

    def _both(
        self, part: RowPattern, moved: tuple[int, int], empty: tuple[int, int], hidden: bool
    ) -> tuple[int, int]:
        """Where a part begins behind rows, and behind none."""
        entry = self.emit(part, *moved, hidden=hidden)
        if moved == empty or (moved[0] == empty[0] and not nullable(part)):
            return entry, entry
        return entry, self.emit(part, *empty, hidden=hidden)

    def _repeated(self, node: Repeat, moved: int, empty: int, hidden: bool) -> int:
        then = moved, empty
        if node.high is None:
            head = self.add(SPLIT)
            self._ways(head, self.emit(node.part, head, moved, hidden=hidden), moved, node.greedy)
            first = head
            if moved != empty:
                first = self.add(SPLIT)
                self._ways(first, self.emit(node.part, head, empty, hidden=hidden), empty, node.greedy)
            then = head, first
        for _ in range(0 if node.high is None else node.high - node.low):
            bodies = self._both(node.part, (then[0], moved), (then[0], empty), hidden)
            heads = self.add(SPLIT), self.add(SPLIT) if moved != empty else -1
            self._ways(heads[0], bodies[0], moved, node.greedy)
            if heads[1] >= 0:
                self._ways(heads[1], bodies[1], empty, node.greedy)
            then = heads[0], heads[1] if heads[1] >= 0 else heads[0]
        for _ in range(node.low):
            then = self._both(node.part, (then[0], then[0]), then, hidden)
        return then[1]

    def _ways(self, head: int, body: int, out: int, greedy: bool) -> None:
        self.code[head][1:3] = (body, out) if greedy else (out, body)
