"""Sliding windows inside a pattern, in three ways: take the oldest out, two stacks, or fold all again.

A value may still change while its piece goes on, so it is put into the fold when the next piece begins;
until then the fold is looked at as if it were in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from caesura.qre.checking.inference import piece_type, value_type
from caesura.qre.compiler import ir
from caesura.qre.compiler.fold_ranges import folding, regroups
from caesura.qre.compiler.ir import Kind, Term
from caesura.qre.compiler.lowering import (
    NotCompiled,
    ScalarTerm,
    Value,
    fitted,
    flattened,
    leaves,
    lowered,
    rebuilt,
)
from caesura.qre.compiler.pieces import STORE, Assign, AutomatonPiece, Refold, Stacks, WindowRing
from caesura.qre.compiler.scalar_terms import UNKNOWN, chosen
from caesura.qre.compiler.window_values import exact
from caesura.qre.language.query import SlidingWindow
from caesura.qre.language.types import INT, TEXT, ValueType

if TYPE_CHECKING:
    from caesura.qre.compiler.threads import Builder


def window(b: Builder, query: SlidingWindow) -> AutomatonPiece:
    """As an iteration, by the cheapest way that is exact for the fold."""
    t, fold = b.type(query), query.fold
    body, start = b.build(query.body), _begun(b, query)
    pieces = [*body.last.values(), *start.last.values()]
    whole = fold.name == "count" or piece_type(query) == INT
    if fold.evict is not None and exact(t) and whole and query.size > 1 and _takes_out(query, pieces):
        return _evicting(b, query, t, body, start)
    if query.size == 1:
        return _newest(query, t, body, start)
    steps = [_stepping(query, t, x) for x in pieces]
    like = folding(t, _init(query, t), steps, pieces, query.size.bit_length())
    if fold.combine is None:
        return _refolded(b, query, body, start, like)
    try:
        like, join = _joined(query, t, like)
    except NotCompiled:
        return _refolded(b, query, body, start, like)
    if not all(map(regroups, [join, *(leaves(step(like[0])) for step in steps)])):
        return _refolded(b, query, body, start, like)
    return _stacked(b, query, t, body, start, like, join)


def _init(query: SlidingWindow, t: ValueType) -> Value:
    return fitted(lowered(query.fold.init, {}), t)


def _stepping(query: SlidingWindow, t: ValueType, x: Value) -> Callable[[Value], Value]:
    """A value into the fold."""
    own = fitted(x, piece_type(query))
    return lambda acc: fitted(lowered(query.fold.step, {"acc": acc, "x": own}), t)


def _joined(query: SlidingWindow, t: ValueType, like: list[Value]) -> tuple[list[Value], list[ScalarTerm]]:
    """What may be beyond 64 bits where folds are joined too; and how they are."""
    assert query.fold.combine is not None
    while True:
        a, b = _local("a", t, like), _local("b", t, like)
        join = leaves(fitted(lowered(query.fold.combine, {"a": a, "b": b}), t))
        before = leaves(like[0])
        after = [
            replace(w, over=Term("local", "i", payload="over"), bits=UNKNOWN)
            if made.risky and not w.risky
            else w
            for w, made in zip(before, join, strict=True)
        ]
        if after == before:
            return like, join
        like = [rebuilt(t, after)]


def _begun(b: Builder, query: SlidingWindow) -> AutomatonPiece:
    return AutomatonPiece() if query.first is None else b.build(query.first)


def _ring(
    b: Builder, size: int, *, bits: bool = False, real: bool = False, coded: bool = False
) -> WindowRing:
    b.rings.append(WindowRing(f"r{len(b.rings)}", size, bits, real, coded=coded))
    return b.rings[-1]


def _whole(b: Builder) -> tuple[str, Term]:
    """A slot for a whole number that is always there."""
    (name,), value = b.held(INT, ())
    assert isinstance(value, ScalarTerm)
    return name, value.term


def _opened(
    query: SlidingWindow,
    body: AutomatonPiece,
    start: AutomatonPiece,
    begin: Assign,
    put_in: Callable[[Value], Assign],
    come: Callable[[Value], Assign],
    value: Value | Callable[[Value], Value],
) -> AutomatonPiece:
    """Pieces one behind the other: what puts a value in, what it does when it comes, and the fold then."""
    last = {**body.last, **start.last}
    for p, x in last.items():
        put = put_in(x)
        for q, first in body.first.items():
            body.follow[p, q] = {**put, **first}
    opening = start.first if query.first is not None else body.first
    done = AutomatonPiece({**body.masks, **start.masks}, {}, {**body.follow, **start.follow})
    done.first = {q: {**begin, **first} for q, first in opening.items()}
    coming = {q: come(x) for q, x in last.items()}
    for q, move in [*done.first.items(), *((q, m) for (_, q), m in done.follow.items())]:
        move |= {s: ir.substitute(t, _before(dict(move))) for s, t in coming.get(q, {}).items()}
    done.last = {q: value(x) if callable(value) else value for q, x in last.items()}
    return done


def _before(put: Assign) -> Callable[[Term], Term | None]:
    return lambda x: put.get(x.payload)


# The oldest value is taken out of the fold.


def _takes_out(query: SlidingWindow, pieces: list[Value]) -> bool:
    """Whether values can be taken out again: not if nulls are left out, or a value may not fit."""
    if query.fold.name == "count":
        return True
    words = [w for x in pieces for w in leaves(x)]
    able = query.fold.name in ("sum", "count_if") or all(w.there == ir.TRUE for w in words)
    return able and not any(w.risky for w in words)


def _evicting(
    b: Builder, query: SlidingWindow, t: ValueType, body: AutomatonPiece, start: AutomatonPiece
) -> AutomatonPiece:
    ring = _ring(b, query.size, bits=query.fold.name == "count_if")
    last = [*body.last.values(), *start.last.values()]
    oldest = _oldest(query, ring, ir.ZERO, last)

    def step(x: Value, which: int) -> Callable[[Value], Value]:
        return lambda acc: _after(query, t, acc, _plain(query, x), oldest)[which]

    steps = [step(x, which) for x in last for which in (0, 1)]
    pieces = [oldest, *(_plain(query, x) for x in last)]
    names, acc = b.held(t, folding(t, _init(query, t), steps, pieces, (query.size + 1).bit_length()))
    (at, position), (count, held) = _whole(b), _whole(b)
    ring.slots = frozenset([*(s for n in names for s in (n, n + "?", n + "!")), at, count])
    zero = {at: ir.const(0), count: ir.const(0)}
    begin = {**b.keep(names, _init(query, t), t), **zero}

    def put_in(x: Value) -> Assign:
        value, (next_position, more) = _slid(
            query, t, acc, x, _oldest(query, ring, position, last), (position, held)
        )
        stored = Term("store", "i", (position, _plain(query, x).term), ring.name)
        return {**b.keep(names, value, t), at: next_position, count: more, STORE + ring.name: stored}

    def folded(x: Value) -> Value:
        return _slid(query, t, acc, x, _oldest(query, ring, position, last), (position, held))[0]

    return _opened(query, body, start, begin, put_in, lambda x: {}, folded)


def _plain(query: SlidingWindow, x: Value) -> ScalarTerm:
    """A value as it lies in the ring."""
    if query.fold.name == "count":
        return ScalarTerm(ir.const(0), bits=0)
    assert isinstance(x, ScalarTerm)
    return x if x.there == ir.TRUE else ScalarTerm(ir.select(x.there, x.term, ir.const(0)), bits=x.bits)


def _oldest(query: SlidingWindow, ring: WindowRing, position: Term, pieces: list[Value]) -> ScalarTerm:
    """What lies at a place of the ring."""
    return ScalarTerm(
        Term("ring", "i", (position,), ring.name), bits=max(_plain(query, x).bits for x in pieces)
    )


def _after(
    query: SlidingWindow, t: ValueType, acc: Value, x: ScalarTerm, oldest: ScalarTerm
) -> tuple[Value, Value]:
    """The fold with a value more, and then without the oldest."""
    assert query.fold.evict is not None
    more = fitted(lowered(query.fold.step, {"acc": acc, "x": x}), t)
    return more, fitted(lowered(query.fold.evict, {"acc": more, "x": oldest}), t)


def _slid(
    query: SlidingWindow, t: ValueType, acc: Value, x: Value, oldest: ScalarTerm, at: tuple[Term, Term]
) -> tuple[Value, tuple[Term, Term]]:
    """The fold after a value, and where the ring goes on and how many values it then holds."""
    position, held = at
    full = ir.eq(held, ir.const(query.size))
    after, less = _after(query, t, acc, _plain(query, x), oldest)
    pairs = zip(leaves(after), leaves(less), strict=True)
    value = rebuilt(t, [replace(chosen(full, y, x), there=x.there) for x, y in pairs])
    return value, _turned(position, held, query.size)


def _turned(position: Term, held: Term, size: int) -> tuple[Term, Term]:
    """Where a ring goes on, and how many values it then holds."""
    return _next(position, size), ir.select(
        ir.eq(held, ir.const(size)), ir.const(size), ir.add(held, ir.const(1))
    )


def _next(position: Term, size: int) -> Term:
    return ir.select(ir.eq(position, ir.const(size - 1)), ir.const(0), ir.add(position, ir.const(1)))


def _newest(
    query: SlidingWindow, t: ValueType, body: AutomatonPiece, start: AutomatonPiece
) -> AutomatonPiece:
    """A window of one value holds nothing else."""

    def folded(x: Value) -> Value:
        return _stepping(query, t, x)(_init(query, t))

    return _opened(query, body, start, {}, lambda x: {}, lambda x: {}, folded)


# Two stacks.


def _stacked(
    b: Builder,
    query: SlidingWindow,
    t: ValueType,
    body: AutomatonPiece,
    start: AutomatonPiece,
    like: list[Value],
    join: list[ScalarTerm],
) -> AutomatonPiece:
    """In constant time, all in all: the back's fold is held, the front's folds lie in rings.

    A value that comes makes room for itself; where that leaves a full window without a front, the back is
    turned over behind it. The fold is worked out as it was before that, so no step reads what it writes.
    """
    rings = _rings(b, query.size, leaves(like[0]), t)
    named = [tuple(r.name for r in some) for some in rings]
    b.stacks.append(Stacks(query.size, named, _flat(join, leaves(like[0]))))
    turn = f"{STORE}turn {len(b.stacks) - 1}"
    (names, back), (now, value) = b.held(t, like), b.held(t, like)
    (at, position), (count, held), (ahead, front) = _whole(b), _whole(b), _whole(b)
    for one in (r for some in rings for r in some):
        one.slots = frozenset([*(s for n in names for s in (n, n + "?", n + "!")), at, count, ahead])
    init = _init(query, t)
    one_less, zero = ir.const(query.size - 1), ir.const(0)
    full = ir.eq(held, ir.const(query.size))
    fewer, rest = ir.select(full, one_less, held), ir.select(full, ir.sub(front, ir.const(1)), front)
    oldest = _read(rings, _back(position, fewer, query.size), t, like)
    over = ir.and_(ir.eq(fewer, one_less), ir.eq(rest, zero))

    def stepped(acc: Value, x: Value) -> Value:
        return _stepping(query, t, x)(acc)

    def put_in(x: Value) -> Assign:
        next_position = {at: _next(position, query.size), count: ir.add(held, ir.const(1))}
        return {
            **b.keep(names, stepped(back, x), t),
            **next_position,
            **_stores(rings, leaves(stepped(init, x)), position),
        }

    def come(x: Value) -> Assign:
        assert query.fold.combine is not None
        newest = stepped(back, x)
        both = fitted(lowered(query.fold.combine, {"a": oldest, "b": newest}), t)
        put = b.keep(now, _either(ir.eq(rest, zero), newest, both, t), t)
        put |= b.keep(names, _either(over, init, back, t), t)
        put |= {count: fewer, ahead: ir.select(over, one_less, rest)}
        put[turn] = Term("turn", "i", (_back(position, ir.const(1), query.size), over), len(b.stacks) - 1)
        return put

    begin = {**b.keep(names, init, t), at: zero, count: zero, ahead: zero}
    return _opened(query, body, start, begin, put_in, come, value)


def _back(position: Term, by: Term, size: int) -> Term:
    """A place in a ring before another."""
    at = ir.sub(position, by)
    return ir.select(ir.lt(at, ir.const(0)), ir.add(at, ir.const(size)), at)


def _rings(b: Builder, size: int, words: list[ScalarTerm], t: ValueType) -> list[tuple[WindowRing, ...]]:
    """Per scalar of a type rings for its values, for whether they are there and, if need be, what is over."""
    out: list[tuple[WindowRing, ...]] = []
    for w, (_, kind, leaf) in zip(words, flattened(t), strict=True):
        more = [_ring(b, size) for _ in range(2 if w.risky else 1)]
        out.append((_ring(b, size, real=kind == "f", coded=leaf == TEXT), *more))
    for ring in (r for some in out for r in some):
        ring.sticky = True
    return out


def _flat(words: list[ScalarTerm], like: list[ScalarTerm]) -> list[Term]:
    """The terms of scalars: per scalar two or three, as those like it have."""
    return [x for w, known in zip(words, like, strict=True) for x in w.terms[: 3 if known.risky else 2]]


def _read(rings: list[tuple[WindowRing, ...]], at: Term, t: ValueType, like: list[Value]) -> Value:
    words = []
    for some, known in zip(rings, leaves(like[0]), strict=True):
        terms = [Term("ring", "f" if one.real else "i", (at,), one.name) for one in some]
        over = terms[2] if known.risky else ir.ZERO
        words.append(ScalarTerm(terms[0], terms[1], over=over, bits=known.bits))
    return rebuilt(t, words)


def _either(test: Term, a: Value, b: Value, t: ValueType) -> Value:
    pairs = zip(leaves(a), leaves(b), strict=True)
    return rebuilt(t, [chosen(test, x, y) for x, y in pairs])


# Everything anew.


def _refolded(
    b: Builder, query: SlidingWindow, body: AutomatonPiece, start: AutomatonPiece, like: list[Value]
) -> AutomatonPiece:
    """The values lie in rings; the fold is worked out anew whenever one has come."""
    (at, position), (count, held) = _whole(b), _whole(b)
    own = piece_type(query)
    pieces = [leaves(fitted(x, own)) for x in (*body.last.values(), *start.last.values())]
    values = [
        replace(max(some, key=lambda w: w.risky), bits=max(w.bits for w in some))
        for some in zip(*pieces, strict=True)
    ]
    rings = _rings(b, query.size, values, own)
    named = [tuple(r.name for r in some) for some in rings]
    number = _refold(b, query, named, rebuilt(own, list(values)), like)
    for one in (r for some in rings for r in some):
        one.slots = frozenset([at, count])
    next_position, more = _turned(position, held, query.size)

    def folded(x: Value) -> Value:
        scalars = _flat(leaves(fitted(x, own)), values)
        return _numbered(value_type(query), like, "refold", (position, held, *scalars), number)

    def come(x: Value) -> Assign:
        return _stores(rings, leaves(fitted(x, own)), position)

    begin = {at: ir.const(0), count: ir.const(0)}
    return _opened(query, body, start, begin, lambda x: {at: next_position, count: more}, come, folded)


def _refold(
    b: Builder, query: SlidingWindow, rings: list[tuple[str, ...]], piece: Value, like: list[Value]
) -> int:
    """Writes down how the fold is worked out; gives its number."""
    t, x, known = value_type(query), piece_type(query), leaves(like[0])
    env = {"acc": _local("a", t, like), "x": _local("x", x, [piece])}
    step = leaves(fitted(lowered(query.fold.step, env), t))
    flat = [_flat(words, known) for words in (leaves(_init(query, t)), step)]
    b.refolds.append(Refold(query.size, rings, *flat))
    return len(b.refolds) - 1


def _stores(rings: list[tuple[WindowRing, ...]], scalars: list[ScalarTerm], position: Term) -> Assign:
    """A value into the rings."""
    return {
        STORE + ring.name: Term("store", term.kind, (position, term), ring.name)
        for some, w in zip(rings, scalars, strict=True)
        for ring, term in zip(some, w.terms, strict=False)
    }


def _local(name: str, t: ValueType, like: list[Value]) -> Value:
    """A value whose scalars are locals of a loop."""
    return _numbered(t, like, name)


def _numbered(
    t: ValueType, like: list[Value], name: str, args: tuple[Term, ...] = (), number: int | None = None
) -> Value:
    """A value whose terms are numbered one after the other: locals, or what a loop makes."""
    words, count = [], 0

    def term(kind: Kind) -> Term:
        nonlocal count
        count += 1
        if number is None:
            return Term("local", kind, payload=f"{name}{count - 1}")
        return Term(name, kind, args, (number, count - 1))

    for (_, kind, leaf), known in zip(flattened(t), leaves(like[0]), strict=True):
        value, there = term(kind), term("i")
        over = term("i") if known.risky else ir.ZERO
        words.append(ScalarTerm(value, there, leaf == TEXT, over=over, bits=known.bits))
    return rebuilt(t, words)
