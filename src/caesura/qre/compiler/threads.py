"""From a query to threads: positions, what a thread holds at each, and what a step does to it.

A thread stands at the atom occurrence that it read last and holds named slots: accumulators of the
iterations it is in, values of the parts it has behind it. Going from one position to the next assigns
some slots from the old ones and the item; the others are carried. Typing guarantees that at most one
thread stands at a position. `combine` runs its parts in step: its positions are pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from caesura.expr import Expr
from caesura.qre.checking.inference import part_types, value_type
from caesura.qre.compiler import ir
from caesura.qre.compiler.fold_ranges import folding
from caesura.qre.compiler.inputs import Inputs
from caesura.qre.compiler.ir import Term
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
from caesura.qre.compiler.pieces import BEGIN, STORE, Assign, AutomatonPiece, Refold, Stacks, WindowRing
from caesura.qre.compiler.scalar_terms import UNKNOWN
from caesura.qre.compiler.windows import window
from caesura.qre.language.operations import Operation
from caesura.qre.language.query import Atom, Combine, Iter, Or, Query, SlidingWindow, Split, key_of
from caesura.qre.language.query import Value as Empty
from caesura.qre.language.regex import Star
from caesura.qre.language.types import TEXT, UNIT, ValueType

MAX_POSITIONS = 4000


class Builder:
    """Builds fragments bottom up; slots and positions get fresh names at every occurrence."""

    def __init__(self, inputs: Inputs, mask: Callable[[Expr], int]) -> None:
        self.inputs = inputs
        self.mask = mask
        self._slots = count()
        self._positions = count()
        self.kinds: dict[str, str] = {}
        self.coded: set[str] = set()
        """The slots that hold codes of texts."""
        self.rings: list[WindowRing] = []
        self.refolds: list[Refold] = []
        self.stacks: list[Stacks] = []
        self.inits: Assign = {}
        """What a fold is before its first value, by slot, where that is known."""

    frugal = True
    """Whether threads hold only what operations read."""

    def type(self, query: Query) -> ValueType:
        """The type of a node's value as threads hold it."""
        return value_type(query)

    def lower(self, op: Operation, env: dict[str, Value], types: dict[str, ValueType]) -> Value:
        """An operation on values of these types."""
        return lowered(op, env)

    def fit(self, value: Value, t: ValueType, was: ValueType) -> Value:
        """A value of one type as another wants it."""
        return fitted(value, t)

    def build(self, query: Query) -> AutomatonPiece:
        match query:
            case Atom():
                return self._atom(query)
            case Empty(op=op):
                return AutomatonPiece(empty=fitted(lowered(op, {}), self.type(query)))
            case Split():
                return self._split(query)
            case Iter():
                return self._iter(query)
            case Or():
                return self._or(query)
            case Combine():
                return self._combine(query)
            case SlidingWindow():
                return self._window(query)
        raise NotCompiled(f"'{type(query).__name__}' inside a query")

    def held(self, t: ValueType, like: Sequence[Value] | None = None) -> tuple[list[str], Value]:
        """Fresh slots for a value of a type: their names, and the value that reads them.

        Those for counts of 2**64 are there unless no value of those ``like`` it may be beyond 64 bits.
        """
        names: list[str] = []
        read: list[ScalarTerm] = []
        some = None if like is None else [leaves(fitted(v, t)) for v in like]
        for i, (_, kind, leaf) in enumerate(flattened(t)):
            name = f"s{next(self._slots)}"
            names.append(name)
            if leaf == TEXT:
                self.coded.add(name)
            self.kinds[name], self.kinds[name + "?"] = kind, "i"
            over, bits = (
                ir.ZERO,
                UNKNOWN if some is None else max((words[i].bits for words in some), default=0),
            )
            if some is None or any(words[i].risky for words in some):
                self.kinds[name + "!"], over = "i", ir.slot(name + "!", "i")
            read.append(
                ScalarTerm(ir.slot(name, kind), ir.slot(name + "?", "i"), leaf == TEXT, False, over, bits)
            )
        return names, rebuilt(t, read)

    def keep(self, names: list[str], value: Value, t: ValueType) -> Assign:
        """The assignment that puts a value into slots."""
        out: Assign = {}
        for name, word in zip(names, leaves(fitted(value, t)), strict=True):
            if self.kinds[name] == "i" and word.term.kind == "f":
                raise NotCompiled("a value that changes its kind")
            out[name], out[name + "?"] = word.term, word.there
            if name + "!" in self.kinds:
                out[name + "!"] = word.over
        return {name: term for name, term in out.items() if term != ir.slot(name, term.kind)}

    def _atom(self, query: Atom) -> AutomatonPiece:
        here = next(self._positions)
        t = self.type(query)
        value = self.inputs.value(query.op)
        names, read = self.held(t, [value])
        put = self.keep(names, value, t)
        return AutomatonPiece({here: self.mask(query.predicate)}, {here: put}, {}, {here: read})

    def _split(self, query: Split) -> AutomatonPiece:
        if _is_iter1(query):
            once = self.build(query.parts[0])
            once.empty = None
            return once
        if _is_iter_last(query):
            return self._last_of_many(query.parts[1])
        nodes = [query]
        while isinstance(first := nodes[-1].parts[0], Split):
            if _is_iter1(first) or _is_iter_last(first):
                break
            nodes.append(first)
        done = self.build(nodes[-1].parts[0])
        for node in reversed(nodes):
            done = self._continued(node, done)
        return done

    def _continued(self, query: Split, done: AutomatonPiece) -> AutomatonPiece:
        """A split whose first part is built."""
        types = [self.type(p) for p in query.parts]
        read = query.op.reads(query.names) if self.frugal else query.names
        lasts: dict[int, list[Value]] = {p: [v] for p, v in done.last.items()}
        begun: list[Value] | None = None if done.empty is None else [done.empty]
        for number, part in enumerate(query.parts[1:], 1):
            added = self.build(part)
            known = [*lasts.values(), *([begun] if begun is not None else [])]
            groups = [
                self.held(t, [values[at] for values in known]) if name in read else None
                for at, (name, t) in enumerate(zip(query.names, types[:number], strict=False))
            ]
            enter = self._entering(groups, types)
            done.masks |= added.masks
            done.follow |= added.follow
            for q, put in added.first.items():
                for p, values in lasts.items():
                    done.follow[p, q] = {**enter(values), **put}
                if begun is not None:
                    done.first[q] = {**enter(begun), **put}
            earlier: list[Value] = [{} if group is None else group[1] for group in groups]
            after = {p: [*earlier, v] for p, v in added.last.items()}
            if added.empty is not None:
                after |= {p: [*values, added.empty] for p, values in lasts.items()}
            whole = begun is not None and added.empty is not None
            begun = [*begun, added.empty] if whole and begun is not None and added.empty is not None else None
            lasts = after
        return self._closed(query, done, lasts, begun)

    def _last_of_many(self, body: Query) -> AutomatonPiece:
        """The body again and again: unique iteration lets one thread stand for all that was skipped."""
        done = self.build(body)
        for p in done.last:
            for q, put in done.first.items():
                done.follow[p, q] = dict(put)
        done.empty = None
        return done

    def _entering(
        self, groups: list[tuple[list[str], Value] | None], types: list[ValueType]
    ) -> Callable[[list[Value]], Assign]:
        def enter(values: list[Value]) -> Assign:
            out: Assign = {}
            for group, value, t in zip(groups, values, types, strict=False):
                if group is not None:
                    out |= self.keep(group[0], value, t)
            return out

        return enter

    def _closed(
        self,
        query: Split | Combine,
        done: AutomatonPiece,
        lasts: dict[int, list[Value]],
        begun: list[Value] | None,
    ) -> AutomatonPiece:
        t = self.type(query)

        def joined(values: list[Value]) -> Value:
            env = dict(zip(query.names, values, strict=True))
            return fitted(self.lower(query.op, env, part_types(query)), t)

        done.last = {p: joined(values) for p, values in lasts.items()}
        done.empty = None if begun is None else joined(begun)
        return done

    def _iter(self, query: Iter) -> AutomatonPiece:
        """Each value is folded in as soon as it is there, so that a thread holds the fold alone."""
        t = self.type(query)
        body = self.build(query.body)
        start = self.fit(lowered(query.init, {}), t, query.init.type({}))
        types = {"acc": value_type(query), "x": value_type(query.body)}

        def step(x: Value) -> Callable[[Value], Value]:
            return lambda acc: fitted(self.lower(query.op, {"acc": acc, "x": x}, types), t)

        pieces = list(body.last.values())
        like = folding(t, start, [step(x) for x in pieces], pieces)
        names, acc = self.held(t, like)
        ahead, folded = self.held(t, like)
        self.inits |= {s: c for s, c in self.keep(ahead, start, t).items() if c.op == "const"}
        again = {p: step(x)(acc) for p, x in body.last.items()}
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

    def _window(self, query: SlidingWindow) -> AutomatonPiece:
        return window(self, query)

    def _or(self, query: Or) -> AutomatonPiece:
        t = self.type(query)
        out = AutomatonPiece()
        for part in query.parts:
            one = self.build(part)
            out.masks |= one.masks
            out.first |= one.first
            out.follow |= one.follow
            own = value_type(part)
            out.last |= {p: self.fit(v, t, own) for p, v in one.last.items()}
            out.empty = self.fit(one.empty, t, own) if one.empty is not None else out.empty
        return out

    def _combine(self, query: Combine) -> AutomatonPiece:
        done = self.build(query.parts[0])
        lasts: dict[int, list[Value]] = {p: [v] for p, v in done.last.items()}
        begun: list[Value] | None = None if done.empty is None else [done.empty]
        for part in query.parts[1:]:
            other = self.build(part)
            done, lasts = self._product(done, lasts, other)
            begun = None if begun is None or other.empty is None else [*begun, other.empty]
        return self._closed(query, done, lasts, begun)

    def _product(
        self, a: AutomatonPiece, lasts: dict[int, list[Value]], b: AutomatonPiece
    ) -> tuple[AutomatonPiece, dict[int, list[Value]]]:
        """The pairs of positions that two fragments reach in step."""
        out = AutomatonPiece()
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
                if len(numbers) > MAX_POSITIONS:
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


def _moved(w: ScalarTerm, put: Assign) -> ScalarTerm:
    def read(x: Term) -> Term | None:
        return put.get(x.payload)

    return w.mapped(lambda t: ir.substitute(t, read))


def _followers(f: AutomatonPiece) -> dict[int, list[tuple[int, Assign]]]:
    out: dict[int, list[tuple[int, Assign]]] = {}
    for (p, q), put in f.follow.items():
        out.setdefault(p, []).append((q, put))
    return out


__all__ = ["BEGIN", "STORE", "Assign", "AutomatonPiece", "Builder", "Refold", "Stacks", "WindowRing"]
