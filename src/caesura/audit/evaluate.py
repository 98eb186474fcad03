"""A plan on plain rows, step by step: what each view must be for the rows and promises of a prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from caesura.audit.loops import least_solution, open_loops
from caesura.audit.ordered import answered, matched
from caesura.audit.progress import Known, bound_of, carried, needed, reached
from caesura.audit.values import NotAuditedError, RowValues
from caesura.audit.windows import over_windows, totals, tumbling
from caesura.fixpoint.automaton.node import Match
from caesura.fixpoint.node import RANK, Fixpoint, Recursive
from caesura.ops.aggregate import Totals, Tumbling
from caesura.ops.archive import Archive
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.deliver import Deliver
from caesura.ops.impute import Impute
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime
from caesura.ops.pass_through import PassThrough
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.ops.windows import Bucket, Quantise, Windows
from caesura.plan import Node
from caesura.punctuation import INFINITY
from caesura.qre.step.node import Over, OverEachKey
from caesura.testing import oracles
from caesura.testing.oracles.rows import Payload, Rows, canonical, key, same

Given = Callable[[Node], Known]


def evaluate(outputs: Mapping[str, Node], given: Given) -> dict[str, Rows]:
    """The rows of each output, from the rows and the punctuation of each source."""
    whole = Evaluation(given)
    return {name: whole.of(node).rows for name, node in outputs.items()}


class Evaluation:
    """What every step gives; inside a loop, what it gives for the rows that the loop has so far."""

    def __init__(
        self, given: Given, around: Evaluation | None = None, loop: str = "", rows: Rows | None = None
    ) -> None:
        self.given, self.around, self.loop = given, around, loop
        self.looped: Rows = rows or []
        self.known: dict[str, Known] = {}

    def of(self, node: Node) -> Known:
        """A step's rows and promises; each step is computed once."""
        if self.around is not None and self.loop not in open_loops(node):
            return self.around.of(node)
        if node.fingerprint not in self.known:
            try:
                self.known[node.fingerprint] = self._computed(node)
            except NotAuditedError as error:
                raise error.at(node.step, node.place) from None
        return self.known[node.fingerprint]

    def _computed(self, node: Node) -> Known:
        if isinstance(node, Recursive):
            hidden = {RANK: 0} if RANK in node.schema.names else {}
            return Known([(le, re, {**p, **hidden}) for le, re, p in self.looped])
        if isinstance(node, Fixpoint):
            seed, body = node.inputs
            start = self.of(seed)
            made = least_solution(
                node, start.rows, lambda rows: Evaluation(self.given, self, node.loop, rows).of(body).rows
            )
            return Known(made, carried(node, [start]) if start.progress and start.progress.closed else None)
        if not node.inputs or hasattr(node, "reader"):
            return self.given(node)
        inputs = [self.of(child) for child in node.inputs]
        return Known(_step(node, inputs), carried(node, inputs))


def _step(node: Node, inputs: list[Known]) -> Rows:
    first = inputs[0]
    rows, child = first.rows, node.inputs[0]
    reader = RowValues(child.schema, child.time)
    sides = [known.rows for known in inputs]
    match node:
        case Where():
            if node.on_error == "late":
                rows = [(a, b, p) for a, b, p in rows if reader.kept((node.predicate,), p, a, b)]
            kept = [(a, b, p) for a, b, p in rows if reader.of(node.predicate, p, a, b) is True]
            return [(a, b, {n: p[n] for n in node.keep}) for a, b, p in kept] if node.keep else kept
        case Select():
            if node.on_error == "late":
                rows = [(a, b, p) for a, b, p in rows if reader.kept([e for _, e in node.columns], p, a, b)]
            return [(a, b, {n: reader.of(e, p, a, b) for n, e in node.columns}) for a, b, p in rows]
        case Union() if type(node) is Union:
            names = node.schema.names
            return [(a, b, {n: p[n] for n in names}) for some in sides for a, b, p in some]
        case Clip():
            return _by_key(sides, node.on, lambda a, b: oracles.clip(a, b, on=node.on))
        case Join():
            return _join(node, *sides)
        case Layers():
            return _layers(node, sides)
        case Lifetime():
            return _moved(node, rows)
        case Quantise():
            starts = [((a - node.offset) // node.period + 1) * node.period + node.offset for a, _, _ in rows]
            return [(s, s + node.size, p) for s, (_, _, p) in zip(starts, rows, strict=True)]
        case Bucket():
            return _bucketed(node, rows)
        case Chop():
            return oracles.chop(rows, node.period, reached(node, first))
        case Totals():
            return totals(node, rows, reader)
        case Tumbling():
            return tumbling(node, rows, reader, reached(node, first))
        case Windows():
            return over_windows(node, rows, reader, reached(node, first))
        case Over() if type(node) in (Over, OverEachKey):
            return answered(node, first)
        case Match():
            return matched(node, first)
        case Impute():
            return _imputed(node, rows, reader)
        case Deliver():
            return _delivered(node, first)
        case PassThrough() if not node.arrival_dependent:
            return rows
    why = ": what it gives depends on when rows arrive" if node.arrival_dependent else ""
    raise NotAuditedError(
        f"the audit cannot recompute '{node.kind}'{why}.",
        remedy="Audit the views in front of it, or compare this one by hand.",
    )


def _by_key(sides: Sequence[Rows], on: Sequence[tuple[str, str]], meet: Callable[[Rows, Rows], Rows]) -> Rows:
    """Two sides, key by key."""
    found: list[dict[Any, Rows]] = [{}, {}]
    for port in (0, 1):
        names = [pair[port] for pair in on]
        for row in sides[port]:
            found[port].setdefault(key(row[2], names), []).append(row)
    keys = list(dict.fromkeys([*found[0], *found[1]]))
    return [row for k in keys for row in meet(found[0].get(k, []), found[1].get(k, []))]


def _join(node: Join, left: Rows, right: Rows) -> Rows:
    names = node.schema.names
    pairs = RowValues(node.pair_schema, node.inputs[0].time)
    residual = node.residual

    def meets(a: Payload, b: Payload) -> bool:
        pair = {**a, **{n: b[n] for n in node.right_columns}}
        return residual is None or pairs.of(residual, pair) is True

    def meet(a: Rows, b: Rows) -> Rows:
        made = oracles.join(a, b, on=list(node.on), how=node.how, residual=meets)
        return [(le, re, {n: p.get(n) for n in names}) for le, re, p in made]

    return _by_key((left, right), node.on, meet)


def _layers(node: Layers, sides: list[Rows]) -> Rows:
    right = sides[1] if len(sides) > 1 else []
    groups: dict[Any, tuple[Rows, Rows]] = {}
    for port, rows in enumerate((sides[0], right)):
        for row in rows:
            groups.setdefault(same(row[2]), ([], []))[port].append(row)
    if node.count == "distinct":
        return [row for left, _ in groups.values() for row in oracles.distinct(left)]
    mode = node.count
    return [row for a, b in groups.values() for row in oracles.difference(a, b, mode=mode)]


def _moved(node: Lifetime, rows: Rows) -> Rows:
    match node.rule:
        case "shift":
            return oracles.shift(rows, node.amount)
        case "set_duration":
            return oracles.set_duration(rows, node.amount)
        case "extend":
            return oracles.extend(rows, node.amount)
        case "scale":
            return oracles.scale(rows, node.amount, node.per)
        case "start_at":
            return oracles.start_at(rows, node.amount)
        case "points_at_start":
            return oracles.points_at_start(rows)
        case "points_at_end":
            return oracles.points_at_end(rows)


def _bucketed(node: Bucket, rows: Rows) -> Rows:
    """A copy of each row for every window that holds its attribute."""
    kind = node.inputs[0].schema.field(node.attr).type
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    out: Rows = []
    for le, re, p in rows:
        if p[node.attr] is None:
            continue
        at = p[node.attr] if pa.types.is_integer(kind) else pa.scalar(p[node.attr], kind).cast(whole).as_py()
        last = (at - node.origin) // node.slide
        first = (at - node.origin - node.size) // node.slide + 1
        out += [(le, re, {**p, "wid": w}) for w in range(first, last + 1)]
    return out


def _imputed(node: Impute, rows: Rows, reader: RowValues) -> Rows:
    """Rows with the missing value looked up, or worked out by the user's function, one by one."""
    archive: dict[Any, Any] = {}
    if isinstance(node.by, Archive):
        for told in node.by.table.to_pylist():  # the latest row of a key counts
            archive[tuple(canonical(told[n]) for n in node.by.on)] = told[node.by.value]
    out: Rows = []
    for le, re, p in rows:
        if reader.of(node.missing, p, le, re) is True:
            if isinstance(node.by, Archive):
                found = archive.get(tuple(canonical(p[n]) for n in node.by.on))
            else:
                column = node.by(pa.RecordBatch.from_pylist([p], reader.schema))
                found = column.to_pylist()[0] if hasattr(column, "to_pylist") else next(iter(column))
            p = {**p, node.value: found}
        out.append((le, re, p))
    return out


def _delivered(node: Deliver, known: Known) -> Rows:
    """All rows; or those that can no longer change."""
    if node.mode == "marked":
        return known.rows
    properties = node.inputs[0].properties
    progress = needed(node, known, why="")
    if not (properties.fixed_ends or properties.insert_only or progress.closed):
        raise NotAuditedError(
            "the audit cannot recompute final output of rows whose ends may change: what left as an edge "
            "depends on when its end came.",
            remedy="Audit the changes, or compare this view by hand.",
        )
    out: Rows = []
    for le, re, p in known.rows:
        bound = bound_of(progress, p)
        if le < bound and (properties.fixed_ends or re < bound or re == INFINITY):
            out.append((le, re, p))
    return out
