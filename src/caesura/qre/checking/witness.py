"""Refusals that show what is wrong: the part underlined, a shortest stream, its two parses.

step 'split' (flow.py:12): a stream can be divided among the parts of this split in two ways. ...
  split(iter(...), atom(k = 2), iter(...), ...)
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  k
  2
  2
  parse 1: ε · 1 · 2
  parse 2: 1 · 2 · ε
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from caesura.errors import PlanError
from caesura.qre.checking.minterms import Alphabet
from caesura.qre.checking.positions import Positions
from caesura.qre.language.printing import underlined
from caesura.qre.language.query import Iter, Or, Query, SlidingWindow, Split
from caesura.qre.language.regex import Regex

Auto = Callable[[Regex], Positions]


def refusal(
    root: Query, part: Query, problem: str, *, remedy: str, witness: list[dict[str, Any]] | None = None
) -> PlanError:
    """A diagnostic that underlines a part of a query; its witness is a stream's rows."""
    head, _, rest = problem.partition("\n")
    text = f"{head}\n{underlined(root, part)}" + (f"\n{rest}" if rest else "")
    error = PlanError(text, remedy=remedy, step=part.step, place=part.place)
    error.witness = witness
    return error


def rows_of(word: list[int], letters: Alphabet) -> list[dict[str, Any]]:
    """A word as rows of the user's schema."""
    names = letters.items.schema.names
    return [{n: letters.minterms[c].row.get(n) for n in names} for c in word]


def apart(query: Query) -> str:
    """What is wrong with an ambiguous node."""
    match query:
        case Or():
            return "two parts of this or_ match the same stream"
        case Split():
            return "a stream can be divided among the parts of this split in two ways"
        case Iter() | SlidingWindow():
            return "a stream can be cut into pieces of this iteration in two ways"
    return "this query is ambiguous"


def drawn(word: list[int], letters: Alphabet) -> str:
    """A word as rows of the user's schema."""
    if not word:
        return "  (the empty stream)"
    names = letters.items.schema.names
    rows = [[_cell(value) for value in row.values()] for row in rows_of(word, letters)]
    table = [["item", *names], *([str(i + 1), *row] for i, row in enumerate(rows))]
    width = [max(len(r[i]) for r in table) for i in range(len(table[0]))]
    return "\n".join(
        "  " + "  ".join(v.ljust(w) for v, w in zip(r, width, strict=True)).rstrip() for r in table
    )


def _cell(value: object) -> str:
    return "-" if value is None else str(value) if not isinstance(value, str) else repr(value)


def parses(query: Query, word: list[int], auto: Auto) -> str:
    """Two ways in which the parts of a node read a word."""
    lines = []
    for number, text in enumerate(_two(query, word, auto), 1):
        lines.append(f"  parse {number}: {text}")
    return "\n".join(lines)


def _two(query: Query, word: list[int], auto: Auto) -> list[str]:
    if isinstance(query, Or):
        return [f"all of it by {p}" for p in query.parts if auto(p.rate).accepts(word)][:2]
    found: list[str] = []
    if isinstance(query, Split):
        ways = _divided([auto(p.rate) for p in query.parts], word, 0)
    elif isinstance(query, (Iter, SlidingWindow)):
        ways = _cut(auto(query.body.rate), word, 0)
    else:
        return found
    for way in ways:
        found.append(" · ".join(_piece(a, b) for a, b in way))
        if len(found) == 2:
            break
    return found


def _piece(begin: int, end: int) -> str:
    if begin == end:
        return "ε"
    return str(begin + 1) if end == begin + 1 else f"{begin + 1}..{end}"


def _divided(autos: list[Positions], word: list[int], at: int) -> Iterator[list[tuple[int, int]]]:
    if len(autos) == 1:
        if autos[0].accepts(word[at:]):
            yield [(at, len(word))]
        return
    for end in range(at, len(word) + 1):
        if autos[0].accepts(word[at:end]):
            for rest in _divided(autos[1:], word, end):
                yield [(at, end), *rest]


def _cut(auto: Positions, word: list[int], at: int) -> Iterator[list[tuple[int, int]]]:
    if at == len(word):
        yield []
        return
    for end in range(at + 1, len(word) + 1):
        if auto.accepts(word[at:end]):
            for rest in _cut(auto, word, end):
                yield [(at, end), *rest]
