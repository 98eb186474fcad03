"""Whether a rate parses every word in one way only: two runs in step, never a determinised automaton.

The automaton runs against itself. A word is ambiguous when two runs differ somewhere and both
accept; a breadth-first search over pairs of positions finds a shortest one, whatever its length.

>>> from caesura.expr import col
>>> from caesura.qre.checking.positions import positions
>>> from caesura.qre.language.regex import letter, seq, star
>>> a, b = letter(col("k") == 1), letter(col("k") == 2)
>>> masks = {a.predicate.key: 1, b.predicate.key: 2}
>>> ambiguous_word(positions(seq(star(a | b), b, star(a | b)), masks.__getitem__))
[1, 1]
>>> ambiguous_word(positions(seq(star(a), b, star(a | b)), masks.__getitem__)) is None
True
"""

from __future__ import annotations

from collections import deque

from caesura.qre.checking.positions import Positions, bits

State = tuple[int, int]
"""(p, p) with a mark is one run, (p, q) two; see `_TOGETHER` and `_MERGED`."""
_TOGETHER, _MERGED = -1, -2


def ambiguous_word(auto: Positions) -> list[int] | None:
    """A shortest word with two accepting runs, as letters; None when there is none."""
    if auto.deterministic:
        return None
    start = (auto.size, _TOGETHER)
    seen: dict[State, tuple[State, int] | None] = {start: None}
    todo = deque([start])
    while todo:
        state = todo.popleft()
        for letter, after in _steps(auto, state):
            if after in seen:
                continue
            seen[after] = (state, letter)
            if _accepting(auto, after):
                return _word(seen, after)
            todo.append(after)
    return None


def _accepting(auto: Positions, state: State) -> bool:
    p, q = state
    if q == _TOGETHER:
        return False
    other = p if q == _MERGED else q
    return bool(auto.last >> p & auto.last >> other & 1)


def _steps(auto: Positions, state: State) -> list[tuple[int, State]]:
    p, q = state
    moves = auto.by_letter[p]
    out: list[tuple[int, State]] = []
    if q == _MERGED:
        return [(c, (i, _MERGED)) for c, targets in moves.items() for i in bits(targets)]
    if q == _TOGETHER:
        twice = auto.double[p] if p < auto.size else 0
        for c, targets in moves.items():
            some = list(bits(targets))
            for n, i in enumerate(some):
                out.append((c, (i, _MERGED if twice >> i & 1 else _TOGETHER)))
                out += [(c, (i, j)) for j in some[n + 1 :]]
        return out
    theirs = auto.by_letter[q]
    for c, mine in moves.items():
        other = theirs.get(c, 0)
        if other:
            out += [(c, _pair(i, j)) for i in bits(mine) for j in bits(other)]
    return out


def _pair(i: int, j: int) -> State:
    return (i, _MERGED) if i == j else (i, j) if i < j else (j, i)


def _word(seen: dict[State, tuple[State, int] | None], state: State) -> list[int]:
    word: list[int] = []
    came = seen[state]
    while came is not None:
        state, letter = came
        word.append(letter)
        came = seen[state]
    return word[::-1]


def common_word(a: Positions, b: Positions) -> list[int] | None:
    """A shortest word of both languages; None when they are disjoint."""
    if a.nullable and b.nullable:
        return []
    start = (a.size, b.size)
    seen: dict[State, tuple[State, int] | None] = {start: None}
    todo = deque([start])
    while todo:
        state = todo.popleft()
        theirs = b.by_letter[state[1]]
        for c, mine in a.by_letter[state[0]].items():
            for i in bits(mine):
                for j in bits(theirs.get(c, 0)):
                    if (i, j) in seen:
                        continue
                    seen[i, j] = (state, c)
                    if a.last >> i & b.last >> j & 1:
                        return _word(seen, (i, j))
                    todo.append((i, j))
    return None
