"""The oracles of single steps, with the parameters that their nodes have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from caesura.ops.archive import Archive
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.deadline import Deadline
from caesura.ops.feedback_from import FeedbackFrom
from caesura.ops.impute import Impute
from caesura.ops.instrument import Instrument
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.look_up import LookUp
from caesura.ops.observe import Observe
from caesura.ops.pass_through import PassThrough
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.ops.windows import Bucket, Quantise
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing.oracles import lifetime
from caesura.testing.oracles.bags import difference, distinct
from caesura.testing.oracles.join import join
from caesura.testing.oracles.rows import Payload, Rows, canonical, key, same
from caesura.testing.oracles.steps import StepInputs, recomputes


@recomputes(Where)
def _where(node: Where, given: StepInputs) -> Rows:
    rows, values = given.rows[0], given.values
    if node.on_error == "late":
        rows = [(a, b, p) for a, b, p in rows if values.has_values((node.predicate,), p, a, b)]
    passed = [(a, b, p) for a, b, p in rows if values.of(node.predicate, p, a, b) is True]
    return [(a, b, {n: p[n] for n in node.keep}) for a, b, p in passed] if node.keep else passed


@recomputes(Select)
def _select(node: Select, given: StepInputs) -> Rows:
    rows, values = given.rows[0], given.values
    if node.on_error == "late":
        rows = [(a, b, p) for a, b, p in rows if values.has_values([e for _, e in node.columns], p, a, b)]
    return [(a, b, {n: values.of(e, p, a, b) for n, e in node.columns}) for a, b, p in rows]


@recomputes(Union)
def _union(node: Union, given: StepInputs) -> Rows:
    names = node.schema.names
    return [(a, b, {n: p[n] for n in names}) for rows in given.rows for a, b, p in rows]


@recomputes(Instrument, FeedbackFrom, Deadline, Observe)
def _passed(node: PassThrough | Observe, given: StepInputs) -> Rows:
    return given.rows[0]


@recomputes(Quantise)
def _quantised(node: Quantise, given: StepInputs) -> Rows:
    def start(le: int) -> int:
        return ((le - node.offset) // node.period + 1) * node.period + node.offset

    return [(start(le), start(le) + node.size, p) for le, _, p in given.rows[0]]


@recomputes(Chop)
def _chopped(node: Chop, given: StepInputs) -> Rows:
    return lifetime.chop(given.rows[0], node.period, given.horizon)


@recomputes(Clip)
def _clipped(node: Clip, given: StepInputs) -> Rows:
    return _by_key(given.rows, node.on, lambda a, b: lifetime.clip(a, b, on=node.on))


def _by_key(sides: Sequence[Rows], on: Sequence[tuple[str, str]], meet: Callable[[Rows, Rows], Rows]) -> Rows:
    """Two sides, key by key."""
    found: list[dict[Any, Rows]] = [{}, {}]
    for port in (0, 1):
        names = [pair[port] for pair in on]
        for row in sides[port]:
            found[port].setdefault(key(row[2], names), []).append(row)
    keys = list(dict.fromkeys([*found[0], *found[1]]))
    return [row for k in keys for row in meet(found[0].get(k, []), found[1].get(k, []))]


@recomputes(Join)
def _joined(node: Join, given: StepInputs) -> Rows:
    names = node.schema.names
    pairs = given.over(node.pair_schema)
    residual = node.residual

    def meets(a: Payload, b: Payload) -> bool:
        pair = {**a, **{n: b[n] for n in node.right_columns}}
        return residual is None or pairs.of(residual, pair) is True

    def meet(a: Rows, b: Rows) -> Rows:
        made = join(a, b, on=list(node.on), how=node.how, residual=meets)
        return [(le, re, {n: p.get(n) for n in names}) for le, re, p in made]

    return _by_key(given.rows, node.on, meet)


@recomputes(LookUp)
def _looked_up(node: LookUp, given: StepInputs) -> Rows:
    """A join with rows that hold over all time."""
    names, residual, pairs = node.schema.names, node.residual, given.over(node.pair_schema)
    rows = [(MIN_TIME + 1, INFINITY, row) for row in node.table.batch().to_pylist()]

    def meets(a: Payload, b: Payload) -> bool:
        pair = {**a, **{n: b[n] for n in node.added}}
        return residual is None or pairs.of(residual, pair) is True

    def meet(a: Rows, b: Rows) -> Rows:
        made = join(a, b, on=list(node.on), how=node.how, residual=meets)
        return [(le, re, {n: p.get(n) for n in names}) for le, re, p in made]

    return _by_key([given.rows[0], rows], node.on, meet)


@recomputes(Layers)
def _layers(node: Layers, given: StepInputs) -> Rows:
    sides = given.rows
    right = sides[1] if len(sides) > 1 else []
    groups: dict[Any, tuple[Rows, Rows]] = {}
    for port, rows in enumerate((sides[0], right)):
        for row in rows:
            groups.setdefault(same(row[2]), ([], []))[port].append(row)
    if node.count == "distinct":
        return [row for left, _ in groups.values() for row in distinct(left)]
    mode = node.count
    return [row for a, b in groups.values() for row in difference(a, b, mode=mode)]


@recomputes(Lifetime)
def _moved(node: Lifetime, given: StepInputs) -> Rows:
    rows = given.rows[0]
    match node.rule:
        case "shift":
            return lifetime.shift(rows, node.amount)
        case "set_duration":
            return lifetime.set_duration(rows, node.amount)
        case "forever":
            return lifetime.forever(rows)
        case "extend":
            return lifetime.extend(rows, node.amount)
        case "scale":
            return lifetime.scale(rows, node.amount, node.per)
        case "start_at":
            return lifetime.start_at(rows, node.amount)
        case "points_at_start":
            return lifetime.points_at_start(rows)
        case "points_at_end":
            return lifetime.points_at_end(rows)


@recomputes(Bucket)
def _bucketed(node: Bucket, given: StepInputs) -> Rows:
    """A copy of each row for every window that holds its attribute."""
    kind = pa.int64() if node.attr == "LE" else node.inputs[0].schema.field(node.attr).type
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    out: Rows = []
    for le, re, p in given.rows[0]:
        at = le if node.attr == "LE" else p[node.attr]
        if at is None:
            continue
        at = at if pa.types.is_integer(kind) else pa.scalar(at, kind).cast(whole).as_py()
        last = (at - node.origin) // node.slide
        first = (at - node.origin - node.size) // node.slide + 1
        out += [(le, re, {**p, "wid": w}) for w in range(first, last + 1)]
    return out


@recomputes(Impute)
def _imputed(node: Impute, given: StepInputs) -> Rows:
    """Rows with the missing value looked up, or worked out by the user's function, one by one."""
    archive: dict[Any, Any] = {}
    if isinstance(node.by, Archive):
        for row in node.by.table.to_pylist():  # the latest row of a key counts
            archive[tuple(canonical(row[n]) for n in node.by.on)] = row[node.by.value]
    out: Rows = []
    reader = given.values
    for le, re, p in given.rows[0]:
        if reader.of(node.missing, p, le, re) is True:
            if isinstance(node.by, Archive):
                found = archive.get(tuple(canonical(p[n]) for n in node.by.on))
            else:
                column = node.by(pa.RecordBatch.from_pylist([p], reader.schema))
                found = column.to_pylist()[0] if hasattr(column, "to_pylist") else next(iter(column))
            p = {**p, node.value: found}
        out.append((le, re, p))
    return out
