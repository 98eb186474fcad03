"""The plan of a query on Spark as plain values, with the names by which its status calls the steps."""

from __future__ import annotations

from caesura.events.identity import LOCAL
from caesura.plan.cut import Stages
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.grafting import StagePlan
from caesura.runtime.metrics.plan_shape import PlanShape, shape_of_stages


def shape_of_job(stages: Stages, buckets: int) -> PlanShape:
    """The steps of all stages; those in front of the first exchange are not counted one by one."""
    labels: dict[tuple[int, str], str] = {}
    for stage in stages.stages[1:]:
        cells = Fragment(stages, stage.number, 0, buckets, LOCAL).query.parts.cells
        plan = StagePlan(stages, stage)
        for node in stage.nodes:
            cell = cells.get(plan.name_of(node.fingerprint))
            if cell is not None:
                labels[stage.number, node.fingerprint] = cell.label
    return shape_of_stages(stages, labels)
