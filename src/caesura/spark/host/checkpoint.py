"""What a checkpoint belongs to: sources, steps that keep state, buckets; written when it is first used.

State lies under what a step does and what it does it to, not under its name or place. So a plan may
gain outputs, lose them, and gain steps that keep nothing behind those that do; a step whose state
would have to begin in the middle of the stream is refused, naming what changed.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from caesura.errors import StreamError
from caesura.events.chunks import STATE_FORMAT, later, of_0_1_0
from caesura.events.identity import LOCAL, Secret
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.sources.source import Source
from caesura.plan.cut import Exchange, Stages
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.stage0 import root_of
from caesura.runtime.durable.change import PlanChange
from caesura.runtime.query.secret import FORMAT, forgotten
from caesura.runtime.query.stored_plan import another_plan, described
from caesura.spark.worker.job import SECRET

NAME = "caesura.json"
SavedPlan = dict[str, Any]


def buckets_of(checkpoint: Place, partitions: int, limit: int | None) -> int:
    """How many buckets a query has: as many as its checkpoint says, or enough to spread further later."""
    saved_plan = read_plan(checkpoint)
    if saved_plan is not None:
        return int(saved_plan["buckets"])
    return max(partitions, limit or 0)


def read_plan(checkpoint: Place) -> SavedPlan | None:
    """What a checkpoint belongs to, if it is one of ours."""
    file = checkpoint / NAME
    if not file.is_file():
        return None
    saved_plan: SavedPlan = read_json(file, wants=("buckets",))
    if FORMAT not in saved_plan:
        raise of_0_1_0(f"the checkpoint '{checkpoint}'")
    if saved_plan[FORMAT] > STATE_FORMAT:
        raise later(f"the checkpoint '{checkpoint}'", saved_plan[FORMAT], STATE_FORMAT)
    return saved_plan


def secret_of_checkpoint(checkpoint: Place) -> Secret:
    """The secret that a checkpoint's state is kept under; a new checkpoint gets a new one."""
    file = checkpoint / SECRET
    if file.is_file():
        return Secret(bytes.fromhex(file.read_text()))
    if (checkpoint / NAME).is_file():
        raise forgotten(f"the checkpoint '{checkpoint}'")
    file.create(Secret.drawn().key.hex().encode(), private=True)
    return Secret(bytes.fromhex(file.read_text()))


def save_plan(checkpoint: Place, stages: Stages, buckets: int, partitions: int | None = None) -> Stages:
    """Writes what a new checkpoint belongs to, or holds the plan against it.

    Gives the stages with their sources in the order in which the checkpoint counts them.
    """
    spread = buckets if partitions is None else partitions
    now = {**_described(stages, buckets), "partitions": spread}
    then = read_plan(checkpoint)
    if then is None:
        write_plan(checkpoint, now)
        return stages
    if then["partitions"] != spread:
        raise StreamError(
            f"the checkpoint was made with {then['partitions']} buckets; this session has {spread}.",
            remedy=f"Move it with `caesura rescale CHECKPOINT --buckets {spread}`, or use "
            f"cz.session(buckets={then['partitions']}).",
        )
    _compare(then, now)
    write_plan(checkpoint, {**now, "sources": then["sources"]})
    order = {fingerprint: place for place, fingerprint in enumerate(then["sources"])}
    return dataclasses.replace(
        stages, sources=tuple(sorted(stages.sources, key=lambda s: order[s.fingerprint]))
    )


def plan_change(checkpoint: Place, stages: Stages) -> PlanChange:
    """What would become of the steps of a checkpoint under another plan."""
    then = read_plan(checkpoint)
    if then is None:
        raise StreamError(
            f"'{checkpoint}' is no checkpoint of a query.",
            remedy="Give the folder that was checkpoint= of query or start.",
        )
    now = _described(stages, then["buckets"])
    both = [{**plan["sources"], **plan["keeps"]} for plan in (then, now)]
    return PlanChange.of_texts(*both)


def query_id(checkpoint: Place) -> str:
    """The id that Spark gave the query of a checkpoint; none before its first start."""
    file = checkpoint / "metadata"
    return str(read_json(file, SPARKS, wants=("id",))["id"]) if file.is_file() else ""


SPARKS = (
    "Put back the file as it was. Spark wrote it when the checkpoint was new; its 'id' is also in "
    "'_commits/query' of the output, and in 'loop/owner'. Or start with a new checkpoint."
)


def write_plan(checkpoint: Place, content: SavedPlan) -> None:
    """Replaces, as a whole, what a checkpoint belongs to."""
    (checkpoint / NAME).put(json.dumps(content, indent=1).encode())


def _described(stages: Stages, buckets: int) -> SavedPlan:
    keeps: dict[str, str] = {}
    for stage in stages.stages[1:]:
        for node in stage.nodes:
            if not node.row_wise:
                keeps[f"{stage.number}:{node.fingerprint}"] = described(node)
        for arrival in stage.arrivals:
            text = f"the input of stage {stage.number} from {described(arrival.producer)}"
            keeps[f"{stage.number}:{_way(arrival, stages)}"] = text
    sources = {source.fingerprint: described(source) for source in stages.sources}
    own = {
        FORMAT: STATE_FORMAT,
        "buckets": buckets,
        "stages": len(stages.stages),
        "sources": sources,
        "keeps": keeps,
    }
    return {**own, "steps": _steps(stages, buckets)}


def _steps(stages: Stages, buckets: int) -> SavedPlan:
    """What lies under which fingerprint in the state store, for `caesura state`."""
    found: SavedPlan = {}
    for stage in stages.stages[1:]:
        for cell in Fragment(stages, stage.number, 0, buckets, LOCAL).query.graph.cells:
            known = {"stage": stage.number, "step": cell.label, "place": cell.node.place}
            found[cell.node.fingerprint] = {**known, "does": cell.node.describe()}
    return found


def _way(arrival: Exchange, stages: Stages) -> str:
    """What an input's state lies under; a gate without rows can go on from another of its source."""
    root = root_of(arrival.producer, stages) if arrival.source_stage == 0 else None
    if isinstance(root, Source) and root.shape.insert_only:
        return root.fingerprint
    return arrival.label


def _compare(then: SavedPlan, now: SavedPlan) -> None:
    if set(then["sources"]) != set(now["sources"]):
        raise another_plan(then["sources"], now["sources"])
    if then["stages"] != now["stages"]:
        raise StreamError(
            f"the checkpoint belongs to a plan of {then['stages'] - 1} stages; this one has "
            f"{now['stages'] - 1}.",
            remedy="Start with a new checkpoint, or write the new output in a query of its own.",
        )
    if set(now["keeps"]) - set(then["keeps"]):
        raise another_plan(then["keeps"], now["keeps"])
