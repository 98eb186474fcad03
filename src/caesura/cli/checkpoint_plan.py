"""The plan of a query that runs in another process: from its file, held against what its checkpoint says.

A checkpoint says in words what the steps do, and not how. With the file beside it, a stretch of what the
query has read last is read again here, traced, stepped through and compared; the query runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from caesura.cli.load import load
from caesura.console.web.stretch_rows import StretchRows
from caesura.errors import StreamError
from caesura.events.chunks import SavedJson
from caesura.io.places import Place
from caesura.plan import Node
from caesura.plan.prune import prune
from caesura.runtime.durable.manifest import Manifests
from caesura.runtime.graph.source_reader import lanes_of
from caesura.runtime.metrics.plan_shape import PlanShape, shape_of_query
from caesura.runtime.query.pipelines import StateLog
from caesura.runtime.query.query import Query
from caesura.runtime.query.read_again import read_again
from caesura.runtime.query.recorded_rows import FOLDER as RECORDED
from caesura.runtime.query.recorded_rows import RecordedRows
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.result import Output, delivered

ROWS, EDGE_ROWS = 2_000, 200
"""So many of the last rows of each lane are read again: for the debugger, and for rows between steps."""
Reread = Callable[[Node, int], Recording]


@dataclass(frozen=True)
class CheckpointPlan:
    """The plan of a query, and how its last input is read again."""

    node: Node
    planned: Mapping[str, Node]
    """As it was cut."""
    reread: Reread

    @staticmethod
    def of(checkpoint: Place, target: str, shape: PlanShape) -> CheckpointPlan:
        """The plan in a file, if it is the one that the checkpoint speaks of."""
        stream = load(target)
        made = _embedded if Manifests(checkpoint).last() is not None else _on_spark
        for form in get_args(Output):
            outputs = prune({"out": delivered(stream.node, form)})
            found, plan = made(checkpoint, outputs)
            if _steps(found) == _steps(shape):
                return plan
        lacking = next((one for one in _steps(shape) if one not in _steps(found)), None)
        what = "has other steps" if lacking is None else f"has no step '{lacking[0]}: {lacking[1]}'"
        raise StreamError(
            f"the plan of '{target}' {what}: it is not the one of '{checkpoint}'.",
            remedy="Give the file and the stream, as in flow.py:speeds, that the query was started from.",
        )

    def stretch(self) -> Recording:
        """The last rows that the query has read."""
        return self.reread(self.node, ROWS)

    def rows(self) -> StretchRows:
        """The last rows between its steps."""
        planned = self.planned
        return StretchRows(planned, lambda output: self.reread(planned[output], EDGE_ROWS))


def _steps(shape: PlanShape) -> list[tuple[Any, ...]]:
    """What makes a plan, wherever its file lies."""
    return [(step.label, step.does, step.inputs, step.stage) for step in shape.steps]


def _embedded(checkpoint: Place, outputs: Mapping[str, Node]) -> tuple[PlanShape, CheckpointPlan]:
    query = Query(outputs)
    labels = {cell.node.fingerprint: cell.label for cell in query.graph.cells}

    def again(node: Node, rows: int) -> Recording:
        if (ring := _ring(checkpoint)) is not None:
            return ring.recording(node)
        last = Manifests(checkpoint).last()
        chunks = StateLog(checkpoint / "state", labels).load(() if last is None else last.state)
        positions = SavedJson("offsets").read(chunks) or {}
        ends = {mark: lanes_of(positions.get(label, {})) for mark, label in labels.items()}
        return read_again(node, ends, rows=rows)

    return shape_of_query(query), CheckpointPlan(outputs["out"], outputs, again)


def _on_spark(checkpoint: Place, outputs: Mapping[str, Node]) -> tuple[PlanShape, CheckpointPlan]:
    from caesura.spark.host.checkpoint import buckets_of
    from caesura.spark.host.host import make_job
    from caesura.spark.host.part import SparkPart
    from caesura.spark.host.replay import read_again_on_spark
    from caesura.spark.host.shape import shape_of_job

    part = SparkPart.of(checkpoint)
    buckets = buckets_of(checkpoint, 1, None)
    job = make_job(outputs, buckets, speculate="arrival", closes=False, loop=f"{part.folder}/loop")

    def again(node: Node, rows: int) -> Recording:
        ring = _ring(part.folder)
        return read_again_on_spark(part, job, node, rows) if ring is None else ring.recording(node)

    planned = job.stages.outputs
    return shape_of_job(job.stages, buckets), CheckpointPlan(outputs["out"], planned, again)


def _ring(folder: Place) -> RecordedRows | None:
    """What ``record=`` has kept there, if it has."""
    kept = folder / RECORDED
    return RecordedRows(kept, 0.0) if kept.is_folder() else None
