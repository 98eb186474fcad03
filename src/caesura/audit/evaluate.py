"""A plan on plain rows, step by step: what each view must be for the rows and promises of a prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from caesura.audit import matches, ordered, windows
from caesura.audit.loops import least_solution, open_loops
from caesura.audit.progress import Known, bound_of, carried, needed, reached
from caesura.audit.values import NotAuditedError, RowValues
from caesura.fixpoint.node import RANK, Fixpoint, Recursive
from caesura.ops.deliver import Deliver
from caesura.plan import Node, SourceNode
from caesura.punctuation import INFINITY
from caesura.testing.oracles.rows import Rows
from caesura.testing.oracles.steps import STEPS, recomputes
from caesura.testing.oracles.tumbling import Horizon

BESIDES = (matches, ordered, windows)
"""The steps with oracles of their own in this room."""
Sources = Callable[[Node], Known]


def evaluate(outputs: Mapping[str, Node], given: Sources) -> dict[str, Rows]:
    """The rows of each output, from the rows and the punctuation of each source."""
    whole = Evaluation(given)
    return {name: whole.of(node).rows for name, node in outputs.items()}


class Evaluation:
    """What every step gives; inside a loop, what it gives for the rows that the loop has so far."""

    def __init__(
        self, given: Sources, around: Evaluation | None = None, loop: str = "", rows: Rows | None = None
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
        if not node.inputs or isinstance(node, SourceNode):
            return self.given(node)
        inputs = [self.of(child) for child in node.inputs]
        return Known(_step(node, inputs), carried(node, inputs))


@dataclass(frozen=True)
class AuditInputs:
    """What a step was given: rows and promises of each input."""

    node: Node
    known: list[Known]

    @property
    def rows(self) -> list[Rows]:
        return [known.rows for known in self.known]

    @property
    def values(self) -> RowValues:
        return self.over(self.node.inputs[0].schema)

    def over(self, schema: pa.Schema) -> RowValues:
        return RowValues(schema, self.node.inputs[0].time)

    @property
    def horizon(self) -> Horizon:
        return reached(self.node, self.known[0])


def _step(node: Node, inputs: list[Known]) -> Rows:
    if type(node) in STEPS and not node.arrival_dependent:
        return STEPS[type(node)](node, AuditInputs(node, inputs))
    why = ": what it gives depends on when rows arrive" if node.arrival_dependent else ""
    raise NotAuditedError(
        f"the audit cannot recompute '{node.kind}'{why}.",
        remedy="Audit the views in front of it, or compare this one by hand.",
    )


@recomputes(Deliver)
def _delivered(node: Deliver, given: AuditInputs) -> Rows:
    """All rows; or those that can no longer change."""
    known = given.known[0]
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
