"""Row patterns in plain Python: what conditions and measures read, looked up row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caesura.audit.functions import fitted
from caesura.audit.values import RowValues
from caesura.audit.windows import folded
from caesura.ops.match import NUMBER, Formula, MatchFold, MatchRows, Navigation
from caesura.testing.oracles.match import Path, matched
from caesura.testing.oracles.rows import Payload, Rows
from caesura.testing.oracles.steps import recomputes

Read = Callable[[Rows, Path, int, int], Any]


@recomputes(MatchRows)
def _matched(node: MatchRows, given: Any) -> Rows:
    return matches_of(node, given.rows[0])


def matches_of(node: MatchRows, rows: Rows) -> Rows:
    """What a step shows of rows."""
    define = {name: _formula(node, one) for name, one in node.define}
    measures = {name: _formula(node, one) for name, one in node.measures}
    types = {name: node.schema.field(name).type for name in measures}

    def holds(rows: Rows, path: Path, number: int) -> bool:
        asked = define.get(path[-1][1])
        return asked is None or asked(rows, path, len(path), number) is True

    def measure(rows: Rows, path: Path, upto: int, number: int) -> Payload:
        return {name: fitted(read(rows, path, upto, number), types[name]) for name, read in measures.items()}

    return matched(
        rows,
        node.group,
        node.pattern,
        holds,
        measure,
        shown=node.shown,
        skip=node.skip.to,
        target=node.skip.of,
        within=node.within,
        order=node.order,
    )


def _formula(node: MatchRows, formula: Formula) -> Read:
    source = node.inputs[0]
    schema = formula.schema(source.schema, source.time)
    whole = RowValues(schema, source.time)
    of_row = RowValues(source.schema, source.time)
    reads = {
        name: _navigated(one, of_row) if isinstance(one, Navigation) else _folded(name, one, of_row, schema)
        for name, one in formula.reads
    }

    def read(rows: Rows, path: Path, upto: int, number: int) -> Any:
        found = {name: one(rows, path, upto, number) for name, one in reads.items()}
        return whole.of(formula.value, {NUMBER: number, **found})

    return read


def _members(path: Path, of: tuple[str, ...], upto: int | None) -> list[tuple[int, str]]:
    return [(row, variable) for row, variable, _ in path[:upto] if not of or variable in of]


def _navigated(one: Navigation, reader: RowValues) -> Read:
    def read(rows: Rows, path: Path, upto: int, number: int) -> Any:
        members = _members(path, one.of, None if one.final else upto)
        if len(members) <= one.by:
            return None
        row, variable = members[one.by] if one.first else members[-1 - one.by]
        if one.value is None:
            return variable
        if not 0 <= row + one.move < len(rows):
            return None
        le, re, payload = rows[row + one.move]
        return reader.of(one.value, payload, le, re)

    return read


def _folded(name: str, one: MatchFold, reader: RowValues, schema: Any) -> Read:
    compute = folded([(name, one.aggregate)], reader, schema)

    def read(rows: Rows, path: Path, upto: int, number: int) -> Any:
        members = _members(path, one.of, None if one.final else upto)
        return compute([rows[row] for row, _ in members], 0, 0)[name]

    return read
