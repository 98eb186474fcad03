"""Maps inside a query: which way a stream is read never depends on values, so values may come later.

A thread holds the number of a value that is made of maps; the kernel logs what it is to be made of, and
each logged value is worked out once, in order, when the page has been read. Maps are few: they come with
synchronisation items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from caesura.expr import Expr
from caesura.qre.checking.inference import value_type
from caesura.qre.compiler import ir
from caesura.qre.compiler.inputs import Inputs
from caesura.qre.compiler.ir import Term
from caesura.qre.compiler.lowering import HANDLE, NotCompiled, ScalarTerm, Value, leaves, lowered
from caesura.qre.compiler.threads import BEGIN, AutomatonPiece, Builder
from caesura.qre.compiler.window_values import sliding
from caesura.qre.language.operations import Operation
from caesura.qre.language.query import MapCollect, Query, SlidingWindow, walk
from caesura.qre.language.scalar import Closure
from caesura.qre.language.types import Record, ValueType
from caesura.qre.language.whole_numbers import of_words


@dataclass
class Later:
    """An operation that is worked out later: the types of its plain arguments, None for numbers of values."""

    run: Closure
    parts: list[tuple[str, ValueType | None]]


def has_maps(query: Query) -> bool:
    """Whether a value is made of maps."""
    return any(isinstance(node, MapCollect) for node in walk(query))


class MapBuilder(Builder):
    """Builds fragments of queries with maps inside."""

    frugal = False

    def __init__(self, inputs: Inputs, mask: Callable[[Expr], int]) -> None:
        super().__init__(inputs, mask)
        self.maps: list[MapCollect] = []
        self.later: list[Later] = []
        self.constants: list[Any] = [None]
        self.numbers: set[str] = set()
        """The slots that hold numbers of values."""
        self._made: dict[Query, bool] = {}

    def type(self, query: Query) -> ValueType:
        if query not in self._made:
            self._made[query] = has_maps(query)
        return HANDLE if self._made[query] else value_type(query)

    def lower(self, op: Operation, env: dict[str, Value], types: dict[str, ValueType]) -> Value:
        if not any(isinstance(v, ScalarTerm) and v.handle for v in env.values()):
            return lowered(op, env)
        if not op.compiles:
            raise NotCompiled(f"the operation '{op}'")
        return self._logged(op.closure(types), env, types)

    def _logged(self, run: Closure, env: dict[str, Value], types: dict[str, ValueType]) -> ScalarTerm:
        args: list[Term] = []
        parts: list[tuple[str, ValueType | None]] = []
        for name, value in env.items():
            own = isinstance(value, ScalarTerm) and value.handle
            parts.append((name, None if own else types[name]))
            args += [value.term] if own else [t for w in leaves(value) for t in w.terms]  # type: ignore[union-attr]
        self.later.append(Later(run, parts))
        return ScalarTerm(Term("defer", "i", tuple(args), len(self.later) - 1), handle=True)

    def fit(self, value: Value, t: ValueType, was: ValueType) -> Value:
        if t is not HANDLE or (isinstance(value, ScalarTerm) and value.handle):
            return super().fit(value, t, was)
        if all(t.op == "const" for w in leaves(value) for t in w.terms):
            return self.constant(_known(value, was))
        return self._logged(lambda env: env[""], {"": value}, {"": was})

    def constant(self, value: Any) -> ScalarTerm:
        """A value that is known now."""
        self.constants.append(value)
        return ScalarTerm(ir.const(len(self.constants) - 1), handle=True)

    def held(self, t: ValueType, like: Sequence[Value] | None = None) -> tuple[list[str], Value]:
        names, value = super().held(t, () if t is HANDLE else like)
        if t is HANDLE and isinstance(value, ScalarTerm):
            self.numbers.add(names[0])
            return names, replace(value, handle=True)
        return names, value

    def build(self, query: Query) -> AutomatonPiece:
        if isinstance(query, MapCollect):
            return self._map(query)
        return super().build(query)

    def _window(self, query: SlidingWindow) -> AutomatonPiece:
        """Over values made of maps: as an iteration, whose value is a window that never changes."""
        if not has_maps(query):
            return super()._window(query)
        window = sliding(query)
        done = self.build(query.body)
        start = self.build(query.first) if query.first is not None else AutomatonPiece()
        (names, acc), (ahead, slid) = self.held(HANDLE), self.held(HANDLE)
        own = [(done, query.body), *([(start, query.first)] if query.first is not None else [])]
        again = {
            p: self._logged(
                lambda env: window.insert(env["acc"], env["x"]), {"acc": acc, "x": x}, {"x": value_type(part)}
            )
            for fragment, part in own
            for p, x in fragment.last.items()
        }
        put = self.keep(names, slid, HANDLE)
        for p in again:
            for q, first in done.first.items():
                done.follow[p, q] = {**put, **first}
        begin = self.keep(names, self.constant(window.empty), HANDLE)
        opening = start.first if query.first is not None else done.first
        done.first = {q: {**begin, **first} for q, first in opening.items()}
        done.masks |= start.masks
        done.follow |= start.follow
        for q, move in [*done.first.items(), *((q, m) for (_, q), m in done.follow.items())]:
            move |= self._eager(ahead, again.get(q), move, HANDLE)
        value = self._logged(lambda env: window.value(env["acc"]), {"acc": slid}, {})
        done.last, done.empty = dict.fromkeys(again, value), None
        return done

    def _map(self, query: MapCollect) -> AutomatonPiece:
        """The rate alone; its threads' value is the map that is there when they arrive at an end."""
        from caesura.qre.language.derived import match

        number = len(self.maps)
        self.maps.append(query)
        done = super().build(match(query.over, items=query.items))
        (slot,), value = self.held(HANDLE)
        now = {slot: Term("collect", "i", (), number), slot + "?": ir.TRUE}
        for q, put in done.first.items():
            put[f"{BEGIN}{number}"] = ir.TRUE
            if q in done.last:
                put |= now
        for (_, q), put in done.follow.items():
            if q in done.last:
                put |= now
        done.last = dict.fromkeys(done.last, value)
        done.empty = None if done.empty is None else self.constant({})
        return done


def _known(value: Value, t: ValueType) -> Any:
    """A value whose scalars are all known."""
    if isinstance(value, dict):
        types = dict(t.fields) if isinstance(t, Record) else {}
        return {name: _known(inner, types[name]) for name, inner in value.items()}
    if not value.there.payload:
        return None
    if str(t) == "boolean":
        return bool(value.term.payload)
    return of_words(value.term.payload, value.over.payload) if value.risky else value.term.payload
