"""Rows that were stopped further up because a step below said why it ignores them.

They can be asked for under the name of the step whose rows they are, and ``stopped``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import pyarrow as pa

from caesura.ops.input import Input
from caesura.plan import Node, walk
from caesura.plan.cut import Stage, Stages
from caesura.runtime.graph.cell import Cell

STOPPED = " stopped"


def rejected_by(cells: Iterable[Cell]) -> Iterator[tuple[Node, pa.Table]]:
    """The rows that were stopped for a reason since the last call, with the step they are of."""
    for cell in cells:
        if cell.responder is not None:
            yield from cell.responder.guards.rejected_rows()


def rejected_rows(cells: Iterable[Cell]) -> dict[str, pa.Table]:
    """The rows that were stopped for a reason since the last call, by the name of the step they are of."""
    found: dict[str, list[pa.Table]] = {}
    for node, table in rejected_by(cells):
        name = node.name or node.fed or node.step
        found.setdefault(name + STOPPED, []).append(table)
    return {name: table for key, some in found.items() for name, table in together(key, some)}


def late_tables(source: str, batches: list[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """Batches of late rows of a source as tables; steps of one name that differ in columns apart."""
    return together(source, [pa.Table.from_batches([batch]) for batch in batches])


def noted_by(cells: Iterable[Cell], *, but: Callable[[Node], bool] | None = None) -> dict[str, pa.Table]:
    """What steps note of rows since the last call, by step; what some note is forgotten."""
    tables: dict[str, pa.Table] = {}
    for cell in cells:
        table = cell.operator.drain_notes()
        if table is not None and (but is None or not but(cell.node)):
            tables[cell.label if cell.node.step in tables else cell.node.step] = table
    return tables


def untold(stages: Stages, stage: int, bucket: int) -> Callable[[Node], bool]:
    """Whether what a step of a bucket notes is told elsewhere: each row with a reason is told once.

    A table that every bucket holds is told by the stage that also reads it as a stream, or else by one
    bucket of the first stage that holds it.
    """

    @cache
    def told_before() -> set[str]:
        placed = {node.fingerprint for one in stages.stages for node in one.nodes}
        return placed.union(*(_held(stages, one) for one in stages.stages[:stage]))

    def elsewhere(node: Node) -> bool:
        if node.notes_copied():
            return bucket > 0
        if any(isinstance(leaf, Input) for leaf in walk(node)):
            return False
        return bucket > 0 or node.fingerprint in told_before()

    return elsewhere


def _held(stages: Stages, stage: Stage) -> set[str]:
    """The steps of the tables that a stage holds, beside those that work on what comes."""
    own = {node.fingerprint for node in stage.nodes}
    tables = [
        child
        for node in stage.nodes
        for port, child in enumerate(node.inputs)
        if child.fingerprint not in own and (stage.number, node.fingerprint, port) not in stages.exchange_of
    ]
    return {node.fingerprint for node in walk(*tables)}


def together(name: str, tables: Sequence[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Tables of a name as one; of steps of one name that differ in their columns, each by itself."""
    kinds: list[list[pa.Table]] = []
    for table in tables:
        same = next((some for some in kinds if some[0].schema == table.schema), None)
        if same is None:
            kinds.append([table])
        else:
            same.append(table)
    for number, some in enumerate(kinds, 1):
        yield name if number == 1 else f"{name} {number}", pa.concat_tables(some)
