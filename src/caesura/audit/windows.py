"""Aggregates and the user's modules over windows: members listed, in canonical order, and called for."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from caesura.audit.functions import fitted
from caesura.audit.nested import with_dicts
from caesura.audit.values import RowValues
from caesura.expr import Expr
from caesura.ops.aggregate import Aggregate, Alive, Totals, Tumbling
from caesura.ops.aggregate.accumulators.sketch import estimates, precision, sketched
from caesura.ops.over import Neighbour, OverFrame
from caesura.ops.windows import Count, Grid, Session, Windows
from caesura.ops.windows.frames import Frame
from caesura.testing.oracles.aggregates import aggregate, grouped
from caesura.testing.oracles.alive import stretched
from caesura.testing.oracles.over import framed
from caesura.testing.oracles.rows import Payload, Rows, place
from caesura.testing.oracles.steps import recomputes
from caesura.testing.oracles.top import first_of, readers
from caesura.testing.oracles.windows import windowed
from caesura.udm import Event, Use, Window
from caesura.udm.define import reads_window
from caesura.udm.mapping import mapping
from caesura.udm.module import steps_of
from caesura.udm.stamps import tick

Compute = Callable[[Rows, int, int], Rows]


def folded(outputs: Sequence[tuple[str, Any]], reader: RowValues, types: pa.Schema) -> Callable[..., Payload]:
    """From a window's members to its aggregates and the values of the user's, by name."""

    def compute(members: Rows, start: int, end: int) -> Payload:
        starts = [le for le, _, _ in members]
        out: Payload = {}
        for name, what in outputs:
            if isinstance(what, Use):
                out[name] = pa.scalar(
                    _called(what, reader, members, start, end), types.field(name).type
                ).as_py()
                continue
            values = [True if what.value is None else reader.of(what.value, p, a, b) for a, b, p in members]
            found = aggregate(what.kind, values, what.option, starts)
            if what.kind == "approx_count_distinct":
                found = _sketched(found, values, reader.type(what.value), what.option)
            out[name] = fitted(found, types.field(name).type)
        return out

    return compute


def _sketched(exact: int, values: list[Any], t: pa.DataType, error: float) -> int:
    """The estimate over the values that were listed; the exact number if it is further off than may be."""
    there = pa.array([v for v in values if v is not None], t)
    registers = sketched(np.zeros(len(there), np.int64), there, 1, precision(error))
    found = int(estimates(registers)[0])
    return found if abs(found - exact) <= 6 * error * exact else exact


@recomputes(Totals)
def totals(node: Totals, given: Any) -> Rows:
    """One row per group over all its rows; it lives from the first start to the last end."""
    compute = folded(node.aggregates, given.values, node.schema)
    out: Rows = []
    for group in grouped(given.rows[0], node.group):
        key = {name: group[0][2][name] for name in node.group}
        start, end = min(le for le, _, _ in group), max(re for _, re, _ in group)
        out.append((start, end, {**key, **compute(group, start, end)}))
    return out


@recomputes(Alive)
def alive(node: Alive, given: Any) -> Rows:
    """Aggregates of what is alive, at every instant."""
    return stretched(given.rows[0], node.group, folded(node.aggregates, given.values, node.schema))


@recomputes(OverFrame)
def over(node: OverFrame, given: Any) -> Rows:
    """Rows with what is computed over those before them."""
    aggregates = [(name, one) for name, one in node.columns if isinstance(one, Aggregate)]
    others = [(name, one) for name, one in node.columns if isinstance(one, Neighbour)]
    folds = folded(aggregates, given.values, node.schema)

    def compute(rows: Rows, at: int, low: int, high: int) -> Payload:
        found = folds(rows[low:high], rows[at][0], rows[at][1]) if aggregates else {}
        for name, one in others:
            place = {"lag": at - one.by, "lead": at + one.by, "first_value": low}[one.kind]
            there = rows[place] if 0 <= place < len(rows) else None
            found[name] = None if there is None else given.values.of(one.value, there[2], there[0], there[1])
        return {name: found[name] for name, _ in node.columns}

    return framed(given.rows[0], node.group, compute, n=node.rows, span=node.span)


@recomputes(Tumbling)
def tumbling(node: Tumbling, given: Any) -> Rows:
    """Built-in aggregates over a grid."""
    compute = folded(node.aggregates, given.values, node.schema)
    frame = ("grid", node.size, node.every, node.offset)
    return windowed(
        given.rows[0], node.group, frame, lambda m, s, e: [(s, e, compute(m, s, e))], horizon=given.horizon
    )


@recomputes(Windows)
def over_windows(node: Windows, given: Any) -> Rows:
    """Aggregates, the user's among them, or one operator of the user's, over any windows."""
    compute: Compute
    reader = given.values
    if node.first is not None:
        first, by = node.first, readers(node.first.order, reader)

        def compute(members: Rows, start: int, end: int) -> Rows:
            found = first_of(members, first.n, by, first.ranks)
            return [(start, end, {n: v for n, v in p.items() if n not in node.group}) for p in found]

    elif node.apply is None:
        fold = folded(node.outputs, reader, node.schema)

        def compute(members: Rows, start: int, end: int) -> Rows:
            return [(start, end, fold(members, start, end))]

    else:
        use = node.apply

        def compute(members: Rows, start: int, end: int) -> Rows:
            return _given_rows(use, _called(use, reader, members, start, end), (start, end), node.time)

    return windowed(
        given.rows[0],
        node.group,
        _frame(node.frame),
        compute,
        clip=node.clip,
        stamp=node.stamp,
        timed=node.timed,
        horizon=given.horizon,
        order=in_order(reader, _read_columns(node), timed=node.timed),
    )


def _frame(frame: Frame) -> tuple[Any, ...]:
    match frame:
        case Grid(size, hop, offset):
            return ("grid", size, hop, offset)
        case Count(n, by):
            return (f"count_{by}", n)
        case Session(gap, longest):
            return ("session", gap, longest)
    return ("snapshot",)


def _read_columns(node: Windows) -> list[Expr]:
    """What is read of the members: by the aggregates, then by the modules."""
    plain = [o.value for _, o in node.outputs if isinstance(o, Aggregate) and o.value is not None]
    return [*plain, *(expr for use in node.uses for _, expr in mapping(use, node.inputs[0].schema))]


def in_order(
    reader: RowValues, columns: Sequence[Expr], *, timed: bool
) -> Callable[[tuple[int, int, Payload]], Any]:
    """Canonical order: by start, by end where that is seen, and by what is read; null is the least."""

    def key(row: tuple[int, int, Payload]) -> tuple[Any, ...]:
        le, re, payload = row
        return (le, re if timed else 0, *(place(reader.of(expr, payload, le, re)) for expr in columns))

    return key


# The user's modules.


def _called(use: Use, reader: RowValues, members: Rows, start: int, end: int) -> Any:
    """A module on one window: a function is called, a class is given its members one by one."""
    module = use.module
    written: Any = module.target
    target = module.make(use.params)
    window = Window(start, end)
    by_class = isinstance(written, type)
    compute = target.compute if by_class else target
    own = written.compute if by_class else written
    if module.segments:
        spans = _window_for(own, Window(cast(Any, np.array([start])), cast(Any, np.array([end]))))
        return next(iter(compute(_view(use, reader, members), np.zeros(1, np.int64), **spans)))
    more = _window_for(own, window)
    if not module.incremental:
        return compute(_view(use, reader, members), **more)
    state = target.init()
    arguments = _window_for(steps_of(written)[0], window)
    for item in _items(use, reader, members):
        after = target.add(state, item, **arguments)
        state = state if after is None else after
    return compute(state, **more)


def _window_for(method: Callable[..., Any], window: Window) -> dict[str, Window]:
    return {"window": window} if reads_window(method) else {}


def _view(use: Use, reader: RowValues, members: Rows) -> Any:
    match use.module.view:
        case "array":
            return _array(use, reader, members)
        case "batch":
            return _batch(use, reader, members)
        case "frame":
            return _batch(use, reader, members).to_pandas()
    return _items(use, reader, members)


def _items(use: Use, reader: RowValues, members: Rows) -> list[Any]:
    module = use.module
    columns = mapping(use, reader.schema)
    types = dict(module.takes or ())
    out: list[Any] = []
    for le, re, payload in members:
        cells = {
            n: with_dicts(fitted(reader.of(e, payload, le, re), types.get(n)), reader.type(e))
            for n, e in columns
        }
        item: Any = next(iter(cells.values())) if len(cells) == 1 else cells
        item = item if module.row is None else _row(module.row, cells)
        out.append(Event(le, re, item) if module.events else item)
    return out


def _row(row: Any, cells: Mapping[str, Any]) -> Any:
    return dict(cells) if typing.is_typeddict(row) else row(**cells)


def _array(use: Use, reader: RowValues, members: Rows) -> Any:
    batch = _batch(use, reader, members)
    columns = {n: batch.column(n).to_numpy(zero_copy_only=False) for n, _ in mapping(use, reader.schema)}
    if len(columns) == 1:
        return next(iter(columns.values()))
    rows = list(zip(*columns.values(), strict=True))
    return np.array(rows, [(n, column.dtype) for n, column in columns.items()])


def _batch(use: Use, reader: RowValues, members: Rows) -> pa.RecordBatch:
    names, columns, types = [], [], dict(use.module.takes or ())
    for name, expr in mapping(use, reader.schema):
        names.append(name)
        column = pa.array([reader.of(expr, p, le, re) for le, re, p in members], reader.type(expr))
        columns.append(column.cast(types.get(name) or column.type))
    if use.module.timed:
        names += ["LE", "RE"]
        columns += [pa.array([row[place] for row in members], pa.int64()) for place in (0, 1)]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _given_rows(use: Use, result: Any, window: tuple[int, int], time: pa.DataType) -> Rows:
    """What an operator of the user's gave for a window, as rows."""
    if isinstance(result, pa.RecordBatch):
        result = result.to_pylist()
    elif hasattr(result, "to_dict") and hasattr(result, "columns"):
        result = result.to_dict("records")
    out: Rows = []
    for row in result or ():
        span: tuple[Any, Any] = window
        payload = row
        if isinstance(row, Event):
            span, payload = (row.start, row.end), row.payload
        elif use.module.stamps and isinstance(row, dict) and "LE" in row:
            span = (row["LE"], row["RE"])
        out.append((tick(span[0], time), tick(span[1], time), _cells(use, payload)))
    return out


def _cells(use: Use, row: Any) -> Payload:
    fields = list(use.module.gives)
    if isinstance(row, dict):
        cells = [row[f.name] for f in fields]
    elif len(fields) == 1 and not hasattr(row, fields[0].name):
        cells = [row]
    else:
        cells = [getattr(row, f.name) for f in fields]
    return {f.name: pa.scalar(v, f.type).as_py() for f, v in zip(fields, cells, strict=True)}
