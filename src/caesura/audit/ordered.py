"""What reads a stream as one word: quantitative expressions by their denotation, automata run by run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.audit.functions import fitted
from caesura.audit.progress import Known, Progress, needed
from caesura.audit.values import NotAuditedError, RowValues
from caesura.expr import attributes, conjuncts
from caesura.fixpoint.automaton.arcs import Arc
from caesura.fixpoint.automaton.node import Match
from caesura.punctuation import INFINITY
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.choice import machine_for
from caesura.qre.engine.outputs import as_rows, output_schema
from caesura.qre.language.items import TICK
from caesura.qre.language.query import Partition, Pipe, Query
from caesura.qre.language.types import Record
from caesura.qre.reference.interpreter import Interpreter
from caesura.qre.reference.oracle import UNDEFINED, denote
from caesura.qre.step.node import Over, OverEachKey
from caesura.testing.oracles.rows import Row, Rows
from caesura.testing.oracles.rows import key as row_key
from caesura.testing.oracles.steps import recomputes

SHORT = 40
"""Longer words are read by the machines of the paper's Figures 3 and 4: trying all splits takes too long."""


def word(rows: Rows, by: tuple[str, ...], until: int) -> Rows:
    """The events before a time as one word: by start, the named columns, the payload; nulls last."""

    def rank(value: Any) -> tuple[Any, ...]:
        if isinstance(value, dict):
            return (0, tuple(rank(v) for v in value.values()))
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            value = sorted(value, key=lambda entry: rank(entry[0]))
        if isinstance(value, list | tuple):
            return (0, tuple(rank(v) for v in value))
        if value is None:
            return (2, 0)
        return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)

    def place(row: Row) -> tuple[Any, ...]:
        names = [*by, *(n for n in row[2] if n not in by)]
        return (row[0], *(rank(row[2][n]) for n in names))

    return sorted((r for r in rows if r[0] < until), key=place)


# Quantitative expressions.


@recomputes(Over, OverEachKey)
def answered(node: Over, given: Any) -> Rows:
    """The answers of a query as far as progress had come."""
    known: Known = given.known[0]
    progress = needed(node, known, why="", whole=node.every is not None)
    rows = word(known.rows, node.order_by, progress.cti)
    if node.every is not None:
        rows = woven(rows, node.every, progress)
    assert node.query.items is not None
    names = node.query.items.schema.names
    items = pa.RecordBatch.from_pylist(
        [{n: p.get(n) for n in names} for _, _, p in rows], node.query.items.schema
    )
    found = answers(node.query, items, [le for le, _, _ in rows])
    times = [(rows[at][0], at, payload) for at, payload in found]
    if node.lives == "point":
        return [(t, t + 1, payload) for t, _, payload in times]
    return _until_next(node.query, times)


def woven(rows: Rows, every: int, progress: Progress) -> Rows:
    """The word with a tick at the end of every period, as far as progress had come."""
    events = [(le, re, {**p, TICK: False}) for le, re, p in rows]
    if not rows:
        return events
    bounds = [
        t for p in progress.patterns if (t := p.time_bound) is not None and not p.without_time().attributes
    ]
    ends = [t for t in bounds if t != INFINITY]
    if progress.closed:
        ends.append((rows[-1][0] // every + 1) * every)
    first = rows[0][0] // every + 1
    last = max(ends, default=0) // every
    ticks = [(t * every, t * every + 1, {TICK: True}) for t in range(first, last + 1)]
    return sorted([*ticks, *events], key=lambda row: (row[0], not row[2][TICK]))


def answers(query: Query, items: pa.RecordBatch, le: list[int]) -> list[tuple[int, dict[str, Any]]]:
    """(item, output row) of every answer."""
    if isinstance(query, Pipe):
        given = [(at, v) for at, v in enumerate(_values(query.first, items, le)) if v is not UNDEFINED]
        assert query.second.items is not None
        record = isinstance(value_type(query.first), Record)
        rows = [v if record else {"value": v} for _, v in given]
        after = pa.RecordBatch.from_pylist(rows, query.second.items.schema)
        return [(given[n][0], payload) for n, payload in answers(query.second, after, [])]
    at, out = as_rows(query, _values(query, items, le), items, output_schema(query))
    return list(zip(at.tolist(), out.to_pylist(), strict=True))


def _values(query: Query, items: pa.RecordBatch, le: list[int]) -> list[Any]:
    times = np.array(le, np.int64) if le else None
    ends = None if times is None else times + 1
    if items.num_rows <= SHORT:
        return denote(query, items, times, ends)
    if not isinstance(query, Pipe) and not machine_for(query).compiled:
        raise NotAuditedError(
            f"the audit cannot recompute a quantitative expression over {items.num_rows} items that the "
            "engine runs in plain Python too: it would ask the same code twice.",
            remedy=f"Audit it on a stream of at most {SHORT} items.",
        )
    return Interpreter(query).run(items, times, ends)


def _until_next(query: Query, times: list[tuple[int, int, dict[str, Any]]]) -> Rows:
    """Each answer lives until the next one, of its key if there is one."""
    by = [name for name, _ in query.by] if isinstance(query, Partition) else []
    out: Rows = []
    for place, (t, at, payload) in enumerate(times):
        key = [payload[name] for name in by]
        later = (u for u, n, p in times[place + 1 :] if n != at and [p[name] for name in by] == key)
        end = next(later, INFINITY)
        out += [(t, end, payload)] if end > t else []
    return out


# Automata.


@recomputes(Match)
def matched(node: Match, given: Any) -> Rows:
    """All runs of an automaton over the events that progress has passed."""
    known: Known = given.known[0]
    progress = needed(node, known, why="")
    auto = node.automaton
    reader = RowValues(auto.scope(node.inputs[0].schema), node.time)
    types = auto.register_types()
    groups: dict[Any, Rows] = {}
    for item in word(known.rows, node.order_by, progress.cti):
        groups.setdefault(row_key(item[2], node.group), []).append(item)
    out: Rows = []
    for items in groups.values():
        for first, (begin, _, _) in enumerate(items):
            runs = [(auto.start, {n: fitted(v, types[n]) for n, v in auto.registers.items()})]
            for length, (le, _, payload) in enumerate(items[first:], 1):
                if le >= begin + node.within or not runs:
                    break
                runs = [
                    (arc.target, _changed(arc, reader, {**payload, **held}, held, types))
                    for state, held in runs
                    for arc in auto.arcs
                    if arc.source == state and _taken(arc, reader, {**payload, **held}, set(held))
                ]
                beside = {name: payload[name] for name in node.beside}
                for state, held in runs:
                    if auto.accept is None or (state in auto.accept and reader.of(auto.accept[state], held)):
                        found = {"begin": reader.moment(begin), "length": length, "state": state, **held}
                        out.append((le, begin + node.within, {**beside, **found}))
    return out


def _taken(arc: Arc, reader: RowValues, row: dict[str, Any], registers: set[str]) -> bool:
    """Whether an item takes an arc; where it needs a value that is null or NaN, it does not."""
    tests = [part for part in conjuncts(arc.when) if attributes(part) & registers]
    read = {name for expr in (*tests, *arc.changes.values()) for name in attributes(expr)}
    if any(row[n] is None or row[n] != row[n] for n in read - registers):
        return False
    return reader.of(arc.when, row) is True


def _changed(
    arc: Arc, reader: RowValues, row: dict[str, Any], held: dict[str, Any], types: dict[str, Any]
) -> dict[str, Any]:
    return {
        n: fitted(reader.of(arc.changes[n], row), types[n]) if n in arc.changes else v
        for n, v in held.items()
    }
