"""Sliding windows inside a pattern, in three ways: take the oldest out, two stacks, or fold all again.

A value may still change while its piece goes on, so it is put into the fold when the next piece begins;
until then the fold is looked at as if it were in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from caesura.qre import ir
from caesura.qre.inference import piece_type, value_type
from caesura.qre.ir import Term
from caesura.qre.lowering import NotCompiled, Value, Word, fitted, flattened, leaves, lowered, rebuilt
from caesura.qre.pieces import STORE, Assign, Fragment, Refold, Ring, Stacks
from caesura.qre.query import Window
from caesura.qre.types import INT, TEXT, ValueType
from caesura.qre.windows import exact

if TYPE_CHECKING:
    from caesura.qre.fragments import Builder


def window(b: Builder, query: Window) -> Fragment:
    """As an iteration, by the cheapest way that is exact for the fold."""
    t, fold = b.type(query), query.fold
    known = len(b.rings)
    whole = fold.name == "count" or piece_type(query) == INT
    if fold.evict is not None and exact(t) and whole and query.size > 1:
        try:
            return _evicting(b, query, t)
        except _MayBeNull:
            del b.rings[known:]
    if query.size == 1:
        return _newest(b, query, t)
    if fold.combine is None:
        return _refolded(b, query)
    try:
        join = leaves(fitted(lowered(fold.combine, {"a": _local("a", t), "b": _local("b", t)}), t))
    except NotCompiled:
        return _refolded(b, query)
    return _stacked(b, query, t, [x for w in join for x in (w.term, w.there)])


def _begun(b: Builder, query: Window) -> Fragment:
    return Fragment() if query.first is None else b.build(query.first)


def _ring(b: Builder, size: int, *, bits: bool = False, real: bool = False, sticky: bool = False) -> Ring:
    b.rings.append(Ring(f"r{len(b.rings)}", size, bits, real, sticky=sticky))
    return b.rings[-1]


def _whole(b: Builder) -> tuple[str, Term]:
    """A slot for a whole number that is always there."""
    (name, _), value = b.held(INT)
    assert isinstance(value, Word)
    return name, value.term


def _opened(
    query: Window,
    body: Fragment,
    start: Fragment,
    begin: Assign,
    put_in: Callable[[Value], Assign],
    come: Callable[[Value], Assign],
    value: Value | Callable[[Value], Value],
) -> Fragment:
    """Pieces one behind the other: what puts a value in, what it does when it comes, and the fold then."""
    last = {**body.last, **start.last}
    for p, x in last.items():
        put = put_in(x)
        for q, first in body.first.items():
            body.follow[p, q] = {**put, **first}
    opening = start.first if query.first is not None else body.first
    done = Fragment({**body.masks, **start.masks}, {}, {**body.follow, **start.follow})
    done.first = {q: {**begin, **first} for q, first in opening.items()}
    coming = {q: come(x) for q, x in last.items()}
    for q, move in [*done.first.items(), *((q, m) for (_, q), m in done.follow.items())]:
        move |= {s: ir.substitute(t, _before(dict(move))) for s, t in coming.get(q, {}).items()}
    done.last = {q: value(x) if callable(value) else value for q, x in last.items()}
    return done


def _before(put: Assign) -> Callable[[Term], Term | None]:
    return lambda x: put.get(x.payload)


# The oldest value is taken out of the fold.


class _MayBeNull(Exception):  # noqa: N818 - a verdict
    """The window's values cannot be taken out of the fold, since nulls are not in it."""


def _evicting(b: Builder, query: Window, t: ValueType) -> Fragment:
    body = b.build(query.body)
    ring = _ring(b, query.size, bits=query.fold.name == "count_if")
    names, acc = b.held(t)
    (at, head), (much, held) = _whole(b), _whole(b)
    ring.slots = frozenset([*names, at, much])
    zero = {at: ir.const(0), much: ir.const(0)}
    begin = {**b.keep(names, fitted(lowered(query.fold.init, {}), t), t), **zero}

    def put_in(x: Value) -> Assign:
        value, (onward, more, stored) = _slid(query, t, ring, acc, x, head, held)
        return {**b.keep(names, value, t), at: onward, much: more, STORE + ring.name: stored}

    def folded(x: Value) -> Value:
        return _slid(query, t, ring, acc, x, head, held)[0]

    return _opened(query, body, _begun(b, query), begin, put_in, lambda x: {}, folded)


def _slid(
    query: Window, t: ValueType, ring: Ring, acc: Value, x: Value, head: Term, held: Term
) -> tuple[Value, tuple[Term, Term, Term]]:
    """The fold after a value, and (new head, new count, what to store)."""
    x = Word(ir.const(0)) if query.fold.name == "count" else x
    assert isinstance(x, Word) and query.fold.evict is not None
    if x.there != ir.TRUE:
        if query.fold.name not in ("sum", "count", "count_if"):
            raise _MayBeNull
        x = Word(ir.select(x.there, x.term, ir.const(0)))
    full = ir.eq(held, ir.const(query.size))
    after = fitted(lowered(query.fold.step, {"acc": acc, "x": x}), t)
    oldest = Word(Term("ring", "i", (head,), ring.name))
    less = fitted(lowered(query.fold.evict, {"acc": after, "x": oldest}), t)
    pairs = zip(leaves(after), leaves(less), strict=True)
    value = rebuilt(t, [Word(ir.select(full, y.term, x.term), x.there) for x, y in pairs])
    onward, count = _turned(head, held, query.size)
    return value, (onward, count, Term("store", "i", (head, x.term), ring.name))


def _turned(head: Term, held: Term, size: int) -> tuple[Term, Term]:
    """Where a ring goes on, and how much it then holds."""
    return _next(head, size), ir.select(
        ir.eq(held, ir.const(size)), ir.const(size), ir.add(held, ir.const(1))
    )


def _next(head: Term, size: int) -> Term:
    return ir.select(ir.eq(head, ir.const(size - 1)), ir.const(0), ir.add(head, ir.const(1)))


def _newest(b: Builder, query: Window, t: ValueType) -> Fragment:
    """A window of one value holds nothing else."""
    init = fitted(lowered(query.fold.init, {}), t)

    def folded(x: Value) -> Value:
        return fitted(lowered(query.fold.step, {"acc": init, "x": fitted(x, piece_type(query))}), t)

    return _opened(query, b.build(query.body), _begun(b, query), {}, lambda x: {}, lambda x: {}, folded)


# Two stacks.


def _stacked(b: Builder, query: Window, t: ValueType, join: list[Term]) -> Fragment:
    """In constant time, all in all: the back's fold is held, the front's folds lie in rings.

    A value that comes makes room for itself; where that leaves a full window without a front, the back is
    turned over behind it. The fold is worked out as it was before that, so no step reads what it writes.
    """
    body, start = b.build(query.body), _begun(b, query)
    rings = _pairs(b, query.size, t)
    b.stacks.append(Stacks(query.size, [(x.name, y.name) for x, y in rings], join))
    turn = f"{STORE}turn {len(b.stacks) - 1}"
    (names, back), (now, value) = b.held(t), b.held(t)
    (at, head), (much, held), (ahead, front) = _whole(b), _whole(b), _whole(b)
    for one in (r for pair in rings for r in pair):
        one.slots = frozenset([*names, at, much, ahead])
    init = fitted(lowered(query.fold.init, {}), t)
    one_less, zero = ir.const(query.size - 1), ir.const(0)
    full = ir.eq(held, ir.const(query.size))
    fewer, rest = ir.select(full, one_less, held), ir.select(full, ir.sub(front, ir.const(1)), front)
    oldest = _read(rings, _back(head, fewer, query.size), t)
    over = ir.and_(ir.eq(fewer, one_less), ir.eq(rest, zero))

    def stepped(acc: Value, x: Value) -> Value:
        return fitted(lowered(query.fold.step, {"acc": acc, "x": fitted(x, piece_type(query))}), t)

    def put_in(x: Value) -> Assign:
        onward = {at: _next(head, query.size), much: ir.add(held, ir.const(1))}
        return {
            **b.keep(names, stepped(back, x), t),
            **onward,
            **_stores(rings, leaves(stepped(init, x)), head),
        }

    def come(x: Value) -> Assign:
        assert query.fold.combine is not None
        newest = stepped(back, x)
        both = fitted(lowered(query.fold.combine, {"a": oldest, "b": newest}), t)
        put = b.keep(now, _either(ir.eq(rest, zero), newest, both, t), t)
        put |= b.keep(names, _either(over, init, back, t), t)
        put |= {much: fewer, ahead: ir.select(over, one_less, rest)}
        put[turn] = Term("turn", "i", (_back(head, ir.const(1), query.size), over), len(b.stacks) - 1)
        return put

    begin = {**b.keep(names, init, t), at: zero, much: zero, ahead: zero}
    return _opened(query, body, start, begin, put_in, come, value)


def _back(head: Term, by: Term, size: int) -> Term:
    """A place in a ring before another."""
    at = ir.sub(head, by)
    return ir.select(ir.lt(at, ir.const(0)), ir.add(at, ir.const(size)), at)


def _pairs(b: Builder, size: int, t: ValueType) -> list[tuple[Ring, Ring]]:
    """Per scalar of a type a ring for its values and one for whether they are there."""
    return [
        (_ring(b, size, real=kind == "f", sticky=True), _ring(b, size, sticky=True))
        for _, kind, _ in flattened(t)
    ]


def _read(rings: list[tuple[Ring, Ring]], at: Term, t: ValueType) -> Value:
    words = [
        Word(Term("ring", "f" if one.real else "i", (at,), one.name), Term("ring", "i", (at,), flag.name))
        for one, flag in rings
    ]
    return rebuilt(t, words)


def _either(test: Term, a: Value, b: Value, t: ValueType) -> Value:
    pairs = zip(leaves(a), leaves(b), strict=True)
    return rebuilt(
        t, [Word(ir.select(test, x.term, y.term), ir.select(test, x.there, y.there)) for x, y in pairs]
    )


# Everything anew.


def _refolded(b: Builder, query: Window) -> Fragment:
    """The values lie in rings; the fold is worked out anew whenever one has come."""
    body, start = b.build(query.body), _begun(b, query)
    (at, head), (much, held) = _whole(b), _whole(b)
    own = piece_type(query)
    rings = _pairs(b, query.size, own)
    number = _refold(b, query, [(x.name, y.name) for x, y in rings])
    for one in (r for pair in rings for r in pair):
        one.slots = frozenset([at, much])
    onward, more = _turned(head, held, query.size)

    def folded(x: Value) -> Value:
        scalars = leaves(fitted(x, own))
        return _result(query, number, (head, held, *(t for w in scalars for t in (w.term, w.there))))

    def come(x: Value) -> Assign:
        return _stores(rings, leaves(fitted(x, own)), head)

    begin = {at: ir.const(0), much: ir.const(0)}
    return _opened(query, body, start, begin, lambda x: {at: onward, much: more}, come, folded)


def _refold(b: Builder, query: Window, rings: list[tuple[str, str]]) -> int:
    """Writes down how the fold is worked out; gives its number."""
    t, x = value_type(query), piece_type(query)
    init = leaves(fitted(lowered(query.fold.init, {}), t))
    env = {"acc": _local("a", t), "x": _local("x", x)}
    step = leaves(fitted(lowered(query.fold.step, env), t))
    flat = [[w for one in words for w in (one.term, one.there)] for words in (init, step)]
    b.refolds.append(Refold(query.size, rings, *flat))
    return len(b.refolds) - 1


def _result(query: Window, number: int, args: tuple[Term, ...]) -> Value:
    t = value_type(query)
    words = [
        Word(Term("refold", kind, args, (number, 2 * j)), Term("refold", "i", args, (number, 2 * j + 1)))
        for j, (_, kind, _) in enumerate(flattened(t))
    ]
    return rebuilt(t, words)


def _stores(rings: list[tuple[Ring, Ring]], scalars: list[Word], head: Term) -> Assign:
    """A value into the rings."""
    out: Assign = {}
    for (one, flag), w in zip(rings, scalars, strict=True):
        out[STORE + one.name] = Term("store", w.term.kind, (head, w.term), one.name)
        out[STORE + flag.name] = Term("store", "i", (head, w.there), flag.name)
    return out


def _local(name: str, t: ValueType) -> Value:
    """A value whose scalars are locals of a loop."""
    words = [
        Word(
            Term("local", kind, payload=f"{name}{2 * j}"),
            Term("local", "i", payload=f"{name}{2 * j + 1}"),
            leaf == TEXT,
        )
        for j, (_, kind, leaf) in enumerate(flattened(t))
    ]
    return rebuilt(t, words)
