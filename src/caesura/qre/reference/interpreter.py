"""The plain-Python evaluator: one small machine per node, after the paper's Figures 3 and 4.

A machine consumes stacks (`start`: a thread begins here) and items (`next`), and answers with the
stack of the one thread that completes, if any. States are plain values, so a thread may fork, a state
may be saved, and two states may be compared. (Figure 3 restarts an iteration's own state; it means
the child's.)
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from caesura.events.chunks import ChunkFormat
from caesura.events.plain import weight
from caesura.kernels.hashing import I64
from caesura.qre.checking.inference import part_types, value_type
from caesura.qre.compiler.columns import PageColumns, null_key, reader_of
from caesura.qre.compiler.window_values import RefoldingWindow, sliding
from caesura.qre.language import query as q
from caesura.qre.language.types import Record
from caesura.qre.language.whole_numbers import refuse_void, whole
from caesura.qre.reference.oracle import UNDEFINED
from caesura.qre.reference.saved_values import read_states, write_states

SAMPLED_KEYS = 1000
"""The states of so many keys are weighed."""
Stack = Any
"""None for no thread, else () or (value, rest)."""
Made = tuple[Any, Stack]
"""The state after a call, and the stack that came out."""


class NodeMachine:
    """An evaluator of one node; `idle` is its state before any thread."""

    idle: Any = None

    def start(self, state: Any, stack: Stack) -> Made:
        raise NotImplementedError

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        raise NotImplementedError


class AtomMachine(NodeMachine):
    """The state is the stack that waits for the next item."""

    def __init__(self, node: q.Atom) -> None:
        self.node = node

    def start(self, state: Any, stack: Stack) -> Made:
        return stack, None

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        if state is None or not page.hits(self.node.predicate)[row]:
            return None, None
        return None, (page.value(self.node, row), state)


class ValueMachine(NodeMachine):
    def __init__(self, node: q.Value) -> None:
        self.value = node.op.closure({})({})

    def start(self, state: Any, stack: Stack) -> Made:
        return None, (self.value, stack)

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        return None, None


class SplitMachine(NodeMachine):
    """One machine per part; a part's answer starts the next part."""

    def __init__(self, node: q.Split) -> None:
        self.names = node.names
        self.parts = [machine_of(p) for p in node.parts]
        self.op = node.op.closure(part_types(node))
        self.idle = tuple(p.idle for p in self.parts)

    def start(self, state: Any, stack: Stack) -> Made:
        states = list(state)
        return self._flow(states, stack, 0)

    def _flow(self, states: list[Any], stack: Stack, at: int) -> Made:
        """Hands a stack on from part to part, as long as parts answer at once."""
        while stack is not None and at < len(self.parts):
            states[at], stack = self.parts[at].start(states[at], stack)
            at += 1
        return tuple(states), None if stack is None else self._reduced(stack)

    def _reduced(self, stack: Stack) -> Stack:
        env = {}
        for name in reversed(self.names):
            env[name], stack = stack
        return (self.op(env), stack)

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        states = list(state)
        given: Stack = None
        for at, part in enumerate(self.parts):
            states[at], own = part.next(states[at], page, row)
            passed: Stack = None
            if given is not None:
                states[at], passed = part.start(states[at], given)
            given = own if own is not None else passed
        return tuple(states), None if given is None else self._reduced(given)


class IterMachine(NodeMachine):
    def __init__(self, node: q.Iter) -> None:
        self.body = machine_of(node.body)
        self.init = node.init.closure({})({})
        self.op = node.op.closure({"acc": value_type(node), "x": value_type(node.body)})
        self.idle = self.body.idle

    def start(self, state: Any, stack: Stack) -> Made:
        begun = (self.init, stack)
        state, _ = self.body.start(state, begun)
        return state, begun

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        state, out = self.body.next(state, page, row)
        if out is None:
            return state, None
        x, (acc, rest) = out
        stack = (self.op({"acc": acc, "x": x}), rest)
        state, _ = self.body.start(state, stack)
        return state, stack


class WindowMachine(NodeMachine):
    """As an iteration, with a sliding window on the stack instead of the folded value."""

    def __init__(self, node: q.SlidingWindow) -> None:
        self.body = machine_of(node.body)
        self.first = None if node.first is None else machine_of(node.first)
        self.window: RefoldingWindow = sliding(node)
        self.idle = (self.body.idle, None if self.first is None else self.first.idle)

    def start(self, state: Any, stack: Stack) -> Made:
        body, first = state
        begun = (self.window.empty, stack)
        if self.first is None:
            return (self.body.start(body, begun)[0], None), None
        first, out = self.first.start(first, begun)
        return self._slid(body, first, out)

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        body, first = state
        body, out = self.body.next(body, page, row)
        if self.first is not None:
            first, opened = self.first.next(first, page, row)
            out = opened if out is None else out
        return self._slid(body, first, out)

    def _slid(self, body: Any, first: Any, out: Stack) -> Made:
        if out is None:
            return (body, first), None
        x, (held, rest) = out
        held = self.window.insert(held, x)
        body, _ = self.body.start(body, (held, rest))
        return (body, first), (self.window.value(held), rest)


class OrMachine(NodeMachine):
    def __init__(self, node: q.Or) -> None:
        self.parts = [machine_of(p) for p in node.parts]
        self.idle = tuple(p.idle for p in self.parts)

    def start(self, state: Any, stack: Stack) -> Made:
        return _first([p.start(s, stack) for p, s in zip(self.parts, state, strict=True)])

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        return _first([p.next(s, page, row) for p, s in zip(self.parts, state, strict=True)])


def _first(made: list[Made]) -> Made:
    return tuple(s for s, _ in made), next((out for _, out in made if out is not None), None)


class CombineMachine(NodeMachine):
    """Every part carries the stack; equivalent rates let them answer together."""

    def __init__(self, node: q.Combine) -> None:
        self.names = node.names
        self.parts = [machine_of(p) for p in node.parts]
        self.op = node.op.closure(part_types(node))
        self.idle = tuple(p.idle for p in self.parts)

    def start(self, state: Any, stack: Stack) -> Made:
        return self._joined([p.start(s, stack) for p, s in zip(self.parts, state, strict=True)])

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        return self._joined([p.next(s, page, row) for p, s in zip(self.parts, state, strict=True)])

    def _joined(self, made: list[Made]) -> Made:
        states, outs = tuple(s for s, _ in made), [out for _, out in made]
        if outs[0] is None:
            return states, None
        env = {name: out[0] for name, out in zip(self.names, outs, strict=True)}
        return states, (self.op(env), outs[0][1])


class MapCollectMachine(NodeMachine):
    """(rate, shared, threads): keys that have seen only synchronisation items share one state."""

    def __init__(self, node: q.MapCollect) -> None:
        from caesura.qre.language.derived import match

        self.node = node
        self.rate = machine_of(match(node.over, items=node.items))
        self.body = machine_of(node.body)
        self.idle = (self.rate.idle, self.body.idle, {})
        self.deep = any(isinstance(part, q.MapCollect) for part in q.walk(node.body))

    def start(self, state: Any, stack: Stack) -> Made:
        rate, shared, threads = state
        rate, out = self.rate.start(rate, stack)
        shared, _ = self.body.start(shared, ())
        threads = {k: self.body.start(s, ())[0] for k, s in threads.items()}
        return (rate, shared, threads), None if out is None else ({}, out[1])

    def next(self, state: Any, page: PageColumns, row: int) -> Made:
        rate, shared, threads = state
        rate, out = self.rate.next(rate, page, row)
        if not page.hits(self.node.sync)[row]:
            key = page.keys(self.node.by)[row]
            if key is None:
                raise null_key(row, page, self.node.by)
            after, _ = self.body.next(self._own(threads, key, shared), page, row)
            return (rate, shared, _with(threads, key, after, shared)), None
        shared, _ = self.body.next(shared, page, row)
        own_states: dict[Any, Any] = {}
        found: dict[Any, Any] = {}
        for key, old in threads.items():
            after, got = self.body.next(old, page, row)
            if after != shared:
                own_states[key] = after
            if got is not None:
                found[key] = got[0]
        return (rate, shared, own_states), None if out is None else (whole(found), out[1])

    def _own(self, threads: dict[Any, Any], key: Any, shared: Any) -> Any:
        """A key's state. Maps inside are written in place, so a first item copies what is shared."""
        return threads[key] if key in threads else deepcopy(shared) if self.deep else shared


def _with(threads: dict[Any, Any], key: Any, state: Any, shared: Any) -> dict[Any, Any]:
    """Threads belong to one state only, so they are written in place; the empty ones are shared."""
    if key not in threads and state == shared:
        return threads
    if not threads:
        return {key: state}
    threads[key] = state
    return threads


def machine_of(query: q.Query) -> NodeMachine:
    """The evaluator of a node."""
    return MACHINES[type(query)](query)


MACHINES: dict[type[q.Query], Callable[[Any], NodeMachine]] = {
    q.Atom: AtomMachine,
    q.Value: ValueMachine,
    q.Split: SplitMachine,
    q.Iter: IterMachine,
    q.SlidingWindow: WindowMachine,
    q.Or: OrMachine,
    q.Combine: CombineMachine,
    q.MapCollect: MapCollectMachine,
}


@dataclass
class InterpreterState:
    """What is saved of a query in plain Python."""

    departures: int
    states: bytes


INTERPRETER = ChunkFormat("a pattern in plain Python", InterpreterState)


class Interpreter:
    """A whole query at work in plain Python: pages in, a value or UNDEFINED per item out."""

    def __init__(self, query: q.Query) -> None:
        assert query.items is not None
        self.query = query
        self.reader = reader_of(query)
        self.first: Interpreter | None = None
        self.second: Interpreter | None = None
        self.states: dict[Any, Any] = {}
        self.departures = 0
        """How many items led out of the language."""
        self.departed: list[int] = []
        """The rows of the last page at which they did."""
        if isinstance(query, q.Pipe):
            self.first, self.second = Interpreter(query.first), Interpreter(query.second)
            return
        body = query.per_key
        q.refuse_deep(body, "plain Python")
        self.machine = machine_of(body)
        self.begun, _ = self.machine.start(self.machine.idle, ())

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        """The value at each item, in order."""
        if self.first is not None and self.second is not None:
            values = self.first.run(batch, le, re)
            refuse_void(values, batch)
            return self._piped(values)
        page = self.reader.page(batch, le, re)
        self.departed = []
        return self._keyed(self.query, page) if isinstance(self.query, q.Partition) else self._single(page)

    def _single(self, page: PageColumns) -> list[Any]:
        state = self.states.get((), self.begun)
        out = []
        for row in range(page.batch.num_rows):
            state, stack = self._next(state, page, row, reported=self.departures > 0)
            out.append(UNDEFINED if stack is None else stack[0])
        self.states[()] = state
        return out

    def _next(self, state: Any, page: PageColumns, row: int, reported: bool) -> Made:
        """One item; notes when no stream that goes on from it can match."""
        after, stack = self.machine.next(state, page, row)
        if stack is None and after == self.machine.idle and not reported:
            self.departed.append(row)
            self.departures += 1
        return after, stack

    def _keyed(self, query: q.Partition, page: PageColumns) -> list[Any]:
        """A key that can never match again, or is at its start, is let go and begins anew."""
        out: list[Any] = []
        seen = [True] * page.batch.num_rows if query.only is None else page.hits(query.only)
        for row, key in enumerate(page.keys(query.by)):
            if not seen[row]:
                out.append(UNDEFINED)
                continue
            if key is None:
                raise null_key(row, page, query.by)
            before = self.states.get(key, self.begun)
            state, stack = self._next(before, page, row, reported=before == self.machine.idle)
            if state == self.begun or (query.again and state == self.machine.idle):
                self.states.pop(key, None)
            else:
                self.states[key] = state
            out.append(UNDEFINED if stack is None else stack[0])
        return out

    def save(self) -> bytes:
        """Everything that must survive a restart; a value that is no plain data is refused."""
        return INTERPRETER.write(InterpreterState(self.departures, write_states(self.query, self.states)))

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave."""
        state = INTERPRETER.read(saved)
        self.departures, self.states = state.departures, read_states(self.query, state.states)

    @property
    def nbytes(self) -> int:
        """About how many bytes the states take; of many keys, as some of them tell."""
        some = dict(islice(self.states.items(), SAMPLED_KEYS))
        return weight(some) * len(self.states) // max(1, len(some))

    def _piped(self, values: list[Any]) -> list[Any]:
        assert (
            isinstance(self.query, q.Pipe) and self.second is not None and self.query.second.items is not None
        )
        plain = not isinstance(value_type(self.query.first), Record)
        rows = [{"value": v} if plain else v for v in values if v is not UNDEFINED]
        batch = pa.RecordBatch.from_pylist(rows, self.query.second.items.schema)
        after = iter(self.second.run(batch))
        return [v if v is UNDEFINED else next(after) for v in values]
