"""Whether a fold of whole numbers may lead beyond 64 bits, decided before it runs: most need no more room.

A fold to which every step adds a number of a known size never does, if that is small: 2**40 items lie
beyond any stream, and a window holds as many as it is long.

>>> from caesura.expr import col
>>> from caesura.qre.compiler.ir import ZERO
>>> from caesura.qre.compiler.lowering import lowered
>>> from caesura.qre.language.operations import operation
>>> from caesura.qre.language.types import INT
>>> def run(step):
...     made = lambda acc: lowered(operation(step), {"acc": acc})
...     return folding(INT, ScalarTerm(ZERO, bits=0), [made], [])
>>> [run(step)[0].risky for step in (col("acc") + 1, col("acc") + col("acc"))]
[False, True]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import HANDLE, Value, fitted, flattened, leaves, rebuilt
from caesura.qre.compiler.scalar_terms import FITTING, UNKNOWN, ScalarTerm
from caesura.qre.language.types import ValueType

STREAM = 40
"""The size of streams: no fold sees 2**40 values."""
Sizes = dict[Term, int]


def folding(
    t: ValueType,
    start: Value,
    steps: Sequence[Callable[[Value], Value]],
    pieces: Sequence[Value],
    times: int = STREAM,
) -> list[Value]:
    """A value of the fold's type whose words say which may be beyond 64 bits, and how large the others are.

    The fold is of less than 2 to the power ``times`` pieces.
    """
    if t is HANDLE:
        return [start]
    begun = leaves(fitted(start, t))
    words = [
        ScalarTerm(Term("local", kind, payload=f"fold {i}"), over=w.over, bits=FITTING - 1)
        for i, (w, (_, kind, _)) in enumerate(zip(begun, flattened(t), strict=True))
    ]
    sizes = {w.term: w.bits for x in pieces for w in leaves(x)}
    while True:
        made = [leaves(fitted(step(rebuilt(t, list(words))), t)) for step in steps]
        after = [
            _settled(i, w, begun[i], [some[i] for some in made], sizes, times) for i, w in enumerate(words)
        ]
        if after == words:
            return [rebuilt(t, _sized(words, begun, made, sizes, times))]
        words = after


def _settled(
    number: int, before: ScalarTerm, first: ScalarTerm, made: list[ScalarTerm], sizes: Sizes, times: int
) -> ScalarTerm:
    """What is known of a scalar after one step more; its size is kept back while it is not refuted."""
    over = before.over
    if any(w.risky for w in made):
        over = Term("local", "i", payload=f"over {number}")
    fits = _bits(before, first, made, sizes, times) < FITTING
    return replace(before, over=over, bits=before.bits if fits else UNKNOWN)


def _bits(before: ScalarTerm, first: ScalarTerm, made: list[ScalarTerm], sizes: Sizes, times: int) -> int:
    largest = max((_added(w.term, before.term, sizes) for w in made), default=0)
    return max(first.bits, largest + times) + 1


def _sized(
    words: list[ScalarTerm], begun: list[ScalarTerm], made: list[list[ScalarTerm]], sizes: Sizes, times: int
) -> list[ScalarTerm]:
    return [
        replace(w, bits=min(w.bits, _bits(w, begun[i], [some[i] for some in made], sizes, times)))
        if w.bits < UNKNOWN
        else w
        for i, w in enumerate(words)
    ]


def _added(t: Term, before: Term, sizes: Sizes) -> int:
    """The size of what is added to a number."""
    if t == before:
        return 0
    if t.op == "select":
        return max(_added(x, before, sizes) for x in t.args[1:])
    if t.op in ("add", "sub") and t.kind == "i":
        a, b = t.args
        ways = [max(_added(a, before, sizes), _size(b, sizes)) + 1]
        if t.op == "add":
            ways.append(max(_added(b, before, sizes), _size(a, sizes)) + 1)
        return min(ways)
    return _size(t, sizes)


def _size(t: Term, sizes: Sizes) -> int:
    """A power of 2 that a number is less than in size."""
    if t in sizes:
        return sizes[t]
    if t.op == "const" and t.kind == "i":
        return int(t.payload).bit_length()
    if t.op == "select" and t.kind == "i":
        return max(_size(x, sizes) for x in t.args[1:])
    return 1 if t.op in ("eq", "lt", "not", "and", "or") else UNKNOWN


_COUNTED = ("carried", "borrowed", "too_large", "spoilt", "both", "less")


def regroups(words: list[ScalarTerm]) -> bool:
    """Whether only sums may be beyond 64 bits, so that it does not matter how values are grouped."""
    return all(_sums(w.over) and not any(map(_reads_counts, (w.term, w.there))) for w in words)


def _sums(over: Term) -> bool:
    if over.op in ("spoilt", "too_large"):
        return False
    if over.op == "const":
        return bool(over.payload == 0)
    if over.op == "select":
        return not _reads_counts(over.args[0]) and all(map(_sums, over.args[1:]))
    return over.op not in ("both", "less", "add") or all(map(_sums, over.args))


def _reads_counts(t: Term) -> bool:
    return t.op in _COUNTED or any(map(_reads_counts, t.args))


__all__ = ["folding", "regroups"]
