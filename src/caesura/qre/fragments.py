"""From a query to threads: positions, what a thread holds at each, and what a step does to it.

A thread stands at the atom occurrence that it read last and holds named slots: accumulators of the
iterations it is in, values of the parts it has behind it. Going from one position to the next assigns
some slots from the old ones and the item; the others are carried. Typing guarantees that at most one
thread stands at a position. `combine` runs its parts in step: its positions are pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from caesura.expr import Expr
from caesura.qre import ir
from caesura.qre.inference import part_types, value_type
from caesura.qre.inputs import Inputs
from caesura.qre.ir import Term
from caesura.qre.lowering import NotCompiled, Value, Word, fitted, flattened, leaves, lowered, rebuilt
from caesura.qre.operations import Operation
from caesura.qre.query import Atom, Combine, Iter, Or, Query, Split, Window, key_of
from caesura.qre.query import Value as Empty
from caesura.qre.regex import Star
from caesura.qre.types import INT, TEXT, UNIT, ValueType
from caesura.qre.windows import exact

Assign = dict[str, Term]
MOST_POSITIONS = 4000
MOST_REFOLDED = 4096
"""A larger window is not worked out anew for every value."""


STORE = "ring:"
"""The name of what a step writes into a ring, instead of a slot."""
BEGIN = "begin:"
"""The name of what a step says of a map inside the query: it may begin with this item."""


@dataclass
class Ring:
    """A sliding window's memory: the last ``size`` values, per key; single bits where they are 0 or 1."""

    name: str
    size: int
    bits: bool = False
    real: bool = False
    """Whether it holds doubles."""
    slots: frozenset[str] = frozenset()
    """What a thread holds while it is in the window; one thread at a time may."""


@dataclass
class Refold:
    """A sliding window whose fold is worked out from all its values, for want of a way to take one out."""

    size: int
    rings: list[tuple[str, str]]
    """Per scalar of a value the rings that hold it and whether it is there."""
    init: list[Term]
    step: list[Term]
    """Per scalar of the fold, and whether it is there: over locals ``a0``, ... (the fold) and ``x0``, ..."""


@dataclass
class Fragment:
    """A piece of the automaton, with nothing said about what was held before it."""

    masks: dict[int, int] = field(default_factory=dict)
    """Per position the letters it reads."""
    first: dict[int, Assign] = field(default_factory=dict)
    follow: dict[tuple[int, int], Assign] = field(default_factory=dict)
    last: dict[int, Value] = field(default_factory=dict)
    empty: Value | None = None


class Builder:
    """Builds fragments bottom up; slots and positions get fresh names at every occurrence."""

    def __init__(self, inputs: Inputs, mask: Callable[[Expr], int]) -> None:
        self.inputs = inputs
        self.mask = mask
        self._slots = count()
        self._positions = count()
        self._rings = count()
        self.kinds: dict[str, str] = {}
        self.rings: list[Ring] = []
        self.refolds: list[Refold] = []
        self.inits: Assign = {}
        """What a fold is before its first value, by slot, where that is known."""

    def type(self, query: Query) -> ValueType:
        """The type of a node's value as threads hold it."""
        return value_type(query)

    def lower(self, op: Operation, env: dict[str, Value], types: dict[str, ValueType]) -> Value:
        """An operation on values of these types."""
        return lowered(op, env)

    def fit(self, value: Value, t: ValueType, was: ValueType) -> Value:
        """A value of one type as another wants it."""
        return fitted(value, t)

    def build(self, query: Query) -> Fragment:
        match query:
            case Atom():
                return self._atom(query)
            case Empty(op=op):
                return Fragment(empty=fitted(lowered(op, {}), self.type(query)))
            case Split():
                return self._split(query)
            case Iter():
                return self._iter(query)
            case Or():
                return self._or(query)
            case Combine():
                return self._combine(query)
            case Window():
                return self._window(query)
        raise NotCompiled(f"'{type(query).__name__}' inside a query")

    def held(self, t: ValueType) -> tuple[list[str], Value]:
        """Fresh slots for a value of a type: their names, and the value that reads them."""
        names: list[str] = []
        read: list[Word] = []
        for _, kind, leaf in flattened(t):
            name = f"s{next(self._slots)}"
            names += [name, name + "?"]
            self.kinds[name], self.kinds[name + "?"] = kind, "i"
            read.append(Word(ir.slot(name, kind), ir.slot(name + "?", "i"), leaf == TEXT))
        return names, rebuilt(t, read)

    def keep(self, names: list[str], value: Value, t: ValueType) -> Assign:
        """The assignment that puts a value into slots."""
        out: Assign = {}
        for i, word in enumerate(leaves(fitted(value, t))):
            if self.kinds[names[2 * i]] == "i" and word.term.kind == "f":
                raise NotCompiled("a value that changes its kind")
            out[names[2 * i]], out[names[2 * i + 1]] = word.term, word.there
        return {name: term for name, term in out.items() if term != ir.slot(name, term.kind)}

    def _atom(self, query: Atom) -> Fragment:
        here = next(self._positions)
        t = self.type(query)
        names, read = self.held(t)
        put = self.keep(names, self.inputs.value(query.op), t)
        return Fragment({here: self.mask(query.predicate)}, {here: put}, {}, {here: read})

    def _split(self, query: Split) -> Fragment:
        if _is_iter1(query):
            once = self.build(query.parts[0])
            once.empty = None
            return once
        if _is_iter_last(query):
            return self._last_of_many(query.parts[1])
        types = [self.type(p) for p in query.parts]
        done = self.build(query.parts[0])
        lasts: dict[int, list[Value]] = {p: [v] for p, v in done.last.items()}
        begun: list[Value] | None = None if done.empty is None else [done.empty]
        for number, part in enumerate(query.parts[1:], 1):
            added = self.build(part)
            groups = [self.held(t) for t in types[:number]]
            enter = self._entering(groups, types)
            done.masks |= added.masks
            done.follow |= added.follow
            for q, put in added.first.items():
                for p, values in lasts.items():
                    done.follow[p, q] = {**enter(values), **put}
                if begun is not None:
                    done.first[q] = {**enter(begun), **put}
            kept = [read for _, read in groups]
            after = {p: [*kept, v] for p, v in added.last.items()}
            if added.empty is not None:
                after |= {p: [*values, added.empty] for p, values in lasts.items()}
            whole = begun is not None and added.empty is not None
            begun = [*begun, added.empty] if whole and begun is not None and added.empty is not None else None
            lasts = after
        return self._closed(query, done, lasts, begun)

    def _last_of_many(self, body: Query) -> Fragment:
        """The body again and again: unique iteration lets one thread stand for all that was skipped."""
        done = self.build(body)
        for p in done.last:
            for q, put in done.first.items():
                done.follow[p, q] = dict(put)
        done.empty = None
        return done

    def _entering(
        self, groups: list[tuple[list[str], Value]], types: list[ValueType]
    ) -> Callable[[list[Value]], Assign]:
        def enter(values: list[Value]) -> Assign:
            out: Assign = {}
            for (names, _), value, t in zip(groups, values, types, strict=False):
                out |= self.keep(names, value, t)
            return out

        return enter

    def _closed(
        self, query: Split | Combine, done: Fragment, lasts: dict[int, list[Value]], begun: list[Value] | None
    ) -> Fragment:
        t = self.type(query)

        def joined(values: list[Value]) -> Value:
            env = dict(zip(query.names, values, strict=True))
            return fitted(self.lower(query.op, env, part_types(query)), t)

        done.last = {p: joined(values) for p, values in lasts.items()}
        done.empty = None if begun is None else joined(begun)
        return done

    def _iter(self, query: Iter) -> Fragment:
        """Each value is folded in as soon as it is there, so that a thread holds the fold alone."""
        t = self.type(query)
        body = self.build(query.body)
        names, acc = self.held(t)
        ahead, folded = self.held(t)
        start = self.fit(lowered(query.init, {}), t, query.init.type({}))
        types = {"acc": value_type(query), "x": value_type(query.body)}
        self.inits |= {s: c for s, c in self.keep(ahead, start, t).items() if c.op == "const"}
        again = {
            p: fitted(self.lower(query.op, {"acc": acc, "x": v}, types), t) for p, v in body.last.items()
        }
        put = self.keep(names, folded, t)
        for p in again:
            for q, first in body.first.items():
                body.follow[p, q] = {**put, **first}
        begin = self.keep(names, start, t)
        body.first = {q: {**begin, **first} for q, first in body.first.items()}
        for q, first in body.first.items():
            first |= self._eager(ahead, again.get(q), first, t)
        for (_, q), move in body.follow.items():
            move |= self._eager(ahead, again.get(q), move, t)
        body.last = dict.fromkeys(again, folded)
        body.empty = start
        return body

    def _eager(self, names: list[str], value: Value | None, put: Assign, t: ValueType) -> Assign:
        """A value over the slots that a move is about to fill, worked out by the move itself."""
        if value is None:
            return {}
        now = [_moved(w, put) for w in leaves(value)]
        return self.keep(names, rebuilt(t, now), t)

    def _window(self, query: Window) -> Fragment:
        """As an iteration; the oldest value is read from a ring and taken out of the fold again."""
        t = self.type(query)
        counted = query.fold.name == "count"
        if query.fold.evict is None or not exact(t) or not (counted or self.type(query.body) == INT):
            return self._refolded(query)
        if query.size == 1:  # what is to be taken out would still have to be put in
            return self._refolded(query)
        try:
            return self._evicting(query, t)
        except _MayBeNull:
            return self._refolded(query)

    def _evicting(self, query: Window, t: ValueType) -> Fragment:
        body = self.build(query.body)
        ring = self._ring(query.size, bits=query.fold.name == "count_if")
        names, acc = self.held(t)
        (at, _), head = self.held(INT)
        (much, _), held = self.held(INT)
        assert isinstance(head, Word) and isinstance(held, Word)
        ring.slots = frozenset([*names, at, much])
        zero = {at: ir.const(0), much: ir.const(0)}
        begin = {**self.keep(names, fitted(lowered(query.fold.init, {}), t), t), **zero}
        start = self._begun(query)
        values: dict[int, Value] = {}
        for p, x in {**body.last, **start.last}.items():
            values[p], (onward, more, stored) = self._slid(query, ring, acc, x, head.term, held.term)
            put = {**self.keep(names, values[p], t), at: onward, much: more, STORE + ring.name: stored}
            for q, first in body.first.items():
                body.follow[p, q] = {**put, **first}
        opening = start.first if query.first is not None else body.first
        body.first = {q: {**begin, **first} for q, first in opening.items()}
        body.masks |= start.masks
        body.follow |= start.follow
        body.last, body.empty = values, None
        return body

    def _ring(self, size: int, *, bits: bool = False, real: bool = False) -> Ring:
        self.rings.append(Ring(f"r{next(self._rings)}", size, bits, real))
        return self.rings[-1]

    def _refolded(self, query: Window) -> Fragment:
        """The values lie in rings; the fold is worked out anew whenever one has come."""
        if query.size > MOST_REFOLDED:
            raise NotCompiled(f"a sliding window of {query.size} by '{query.fold}', nested in a pattern,")
        body, start = self.build(query.body), self._begun(query)
        (at, _), head = self.held(INT)
        (much, _), held = self.held(INT)
        assert isinstance(head, Word) and isinstance(held, Word)
        kinds = [kind for _, kind, _ in flattened(value_type(query.body))]
        rings = [(self._ring(query.size, real=kind == "f"), self._ring(query.size)) for kind in kinds]
        number = self._refold(query, [(a.name, b.name) for a, b in rings])
        for one in (r for pair in rings for r in pair):
            one.slots = frozenset([at, much])
        values: dict[int, Value] = {}
        stored: dict[int, Assign] = {}
        onward, more = _turned(head.term, held.term, query.size)
        for p, x in {**body.last, **start.last}.items():
            scalars = leaves(fitted(x, value_type(query.body)))
            args = (head.term, held.term, *(t for w in scalars for t in (w.term, w.there)))
            values[p] = self._result(query, number, args)
            stored[p] = _stores(rings, scalars, head.term)
            for q, first in body.first.items():
                body.follow[p, q] = {at: onward, much: more, **first}
        zero = {at: ir.const(0), much: ir.const(0)}
        opening = start.first if query.first is not None else body.first
        body.first = {q: {**zero, **first} for q, first in opening.items()}
        body.masks |= start.masks
        body.follow |= start.follow
        for q, put in body.first.items():
            put |= _moved_into(put, stored.get(q, {}))
        for (_, q), put in body.follow.items():
            put |= _moved_into(put, stored.get(q, {}))
        body.last, body.empty = values, None
        return body

    def _refold(self, query: Window, rings: list[tuple[str, str]]) -> int:
        """Writes down how the fold is worked out; gives its number."""
        t, x = value_type(query), value_type(query.body)
        init = leaves(fitted(lowered(query.fold.init, {}), t))
        env = {"acc": _local("a", t), "x": _local("x", x)}
        step = leaves(fitted(lowered(query.fold.step, env), t))
        flat = [[w for one in words for w in (one.term, one.there)] for words in (init, step)]
        self.refolds.append(Refold(query.size, rings, *flat))
        return len(self.refolds) - 1

    def _result(self, query: Window, number: int, args: tuple[Term, ...]) -> Value:
        t = value_type(query)
        words = [
            Word(Term("refold", kind, args, (number, 2 * j)), Term("refold", "i", args, (number, 2 * j + 1)))
            for j, (_, kind, _) in enumerate(flattened(t))
        ]
        return rebuilt(t, words)

    def _begun(self, query: Window) -> Fragment:
        return Fragment() if query.first is None else self.build(query.first)

    def _slid(
        self, query: Window, ring: Ring, acc: Value, x: Value, head: Term, held: Term
    ) -> tuple[Value, tuple[Term, Term, Term]]:
        """The fold after a value, and (new head, new count, what to store)."""
        x = Word(ir.const(0)) if query.fold.name == "count" else x
        assert isinstance(x, Word) and query.fold.evict is not None
        if x.there != ir.TRUE:
            if query.fold.name not in ("sum", "count", "count_if"):
                self.rings.pop()
                raise _MayBeNull
            x = Word(ir.select(x.there, x.term, ir.const(0)))
        full = ir.eq(held, ir.const(query.size))
        t = self.type(query)
        after = fitted(lowered(query.fold.step, {"acc": acc, "x": x}), t)
        oldest = Word(Term("ring", "i", (head,), ring.name))
        less = fitted(lowered(query.fold.evict, {"acc": after, "x": oldest}), t)
        pairs = zip(leaves(after), leaves(less), strict=True)
        value = rebuilt(t, [Word(ir.select(full, b.term, a.term), a.there) for a, b in pairs])
        onward, count_ = _turned(head, held, query.size)
        return value, (onward, count_, Term("store", "i", (head, x.term), ring.name))

    def _or(self, query: Or) -> Fragment:
        t = self.type(query)
        out = Fragment()
        for part in query.parts:
            one = self.build(part)
            out.masks |= one.masks
            out.first |= one.first
            out.follow |= one.follow
            own = value_type(part)
            out.last |= {p: self.fit(v, t, own) for p, v in one.last.items()}
            out.empty = self.fit(one.empty, t, own) if one.empty is not None else out.empty
        return out

    def _combine(self, query: Combine) -> Fragment:
        done = self.build(query.parts[0])
        lasts: dict[int, list[Value]] = {p: [v] for p, v in done.last.items()}
        begun: list[Value] | None = None if done.empty is None else [done.empty]
        for part in query.parts[1:]:
            other = self.build(part)
            done, lasts = self._product(done, lasts, other)
            begun = None if begun is None or other.empty is None else [*begun, other.empty]
        return self._closed(query, done, lasts, begun)

    def _product(
        self, a: Fragment, lasts: dict[int, list[Value]], b: Fragment
    ) -> tuple[Fragment, dict[int, list[Value]]]:
        """The pairs of positions that two fragments reach in step."""
        out = Fragment()
        numbers: dict[tuple[int, int], int] = {}
        todo: list[tuple[int, int]] = []
        after_a, after_b = _followers(a), _followers(b)

        def pair(p: int, q: int) -> int | None:
            both = a.masks[p] & b.masks[q]
            if not both:
                return None
            if (p, q) not in numbers:
                numbers[p, q] = next(self._positions)
                out.masks[numbers[p, q]] = both
                todo.append((p, q))
                if len(numbers) > MOST_POSITIONS:
                    raise NotCompiled("a combine of more positions than a kernel takes")
            return numbers[p, q]

        for p, put_a in a.first.items():
            for q, put_b in b.first.items():
                at = pair(p, q)
                if at is not None:
                    out.first[at] = {**put_a, **put_b}
        for p, q in todo:
            for p2, put_a in after_a.get(p, []):
                for q2, put_b in after_b.get(q, []):
                    at = pair(p2, q2)
                    if at is not None:
                        out.follow[numbers[p, q], at] = {**put_a, **put_b}
        both_last = {
            at: [*lasts[p], b.last[q]] for (p, q), at in numbers.items() if p in lasts and q in b.last
        }
        return out, both_last


class _MayBeNull(Exception):  # noqa: N818 - a verdict
    """The window's values cannot be taken out of the fold, since nulls are not in it."""


def _turned(head: Term, held: Term, size: int) -> tuple[Term, Term]:
    """Where a ring goes on, and how much it then holds."""
    onward = ir.select(ir.eq(head, ir.const(size - 1)), ir.const(0), ir.add(head, ir.const(1)))
    return onward, ir.select(ir.eq(held, ir.const(size)), ir.const(size), ir.add(held, ir.const(1)))


def _moved_into(put: Assign, more: Assign) -> Assign:
    """Assignments over the slots that a move is about to fill, made by the move itself."""
    return {s: ir.substitute(t, lambda x: put.get(x.payload)) for s, t in more.items()}


def _stores(rings: list[tuple[Ring, Ring]], scalars: list[Word], head: Term) -> Assign:
    """A value into the rings; until the next one begins, a longer one may take its place."""
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


def _is_iter1(query: Split) -> bool:
    """split(iter(f, init, op), f, op): an iteration that is not empty."""
    match query.parts:
        case (Iter(body=body, op=op), other) if query.names == ("acc", "x"):
            return bool(op.key == query.op.key and key_of(body) == key_of(other))
    return False


def _is_iter_last(query: Split) -> bool:
    """split(match(R(f)*), f, second): only the last piece counts."""
    if len(query.parts) != 2 or str(query.op) != query.names[1] or value_type(query.parts[0]) != UNIT:
        return False
    return query.parts[0].rate == Star(query.parts[1].rate)


def _moved(w: Word, put: Assign) -> Word:
    def read(x: Term) -> Term | None:
        return put.get(x.payload)

    return replace(w, term=ir.substitute(w.term, read), there=ir.substitute(w.there, read))


def _followers(f: Fragment) -> dict[int, list[tuple[int, Assign]]]:
    out: dict[int, list[tuple[int, Assign]]] = {}
    for (p, q), put in f.follow.items():
        out.setdefault(p, []).append((q, put))
    return out


__all__ = ["BEGIN", "STORE", "Assign", "Builder", "Fragment", "Refold", "Ring"]
