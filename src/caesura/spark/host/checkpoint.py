"""What a checkpoint belongs to: sources, steps that keep state, buckets; written when it is first used.

State lies under what a step does and what it does it to, not under its name or place. So a plan may
gain outputs, lose them, and gain steps that keep nothing behind those that do; a step whose state
would have to begin in the middle of the stream is refused, naming what changed.

Spark keeps its own part in the same folder; after a rebuild in a folder ``plan-N`` below, which
``caesura.json`` names: see `rebuild`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from caesura.errors import StreamError
from caesura.events.chunks import later, of_0_1_0
from caesura.events.identity import Secret
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.sources.source import Source
from caesura.plan import Node
from caesura.plan.cut import Stages, cut
from caesura.plan.labelled import labelled
from caesura.plan.prune import prune
from caesura.runtime.buckets.owner import KeptPlan
from caesura.runtime.durable.change import PlanChange, SavedStep, answers_of
from caesura.runtime.durable.corrections import forms_of
from caesura.runtime.durable.rebuild import GivenOutput, columns_of
from caesura.runtime.query.secret import FORMAT, forgotten
from caesura.spark.host.carry import described_fragments
from caesura.spark.worker.job import SECRET

NAME = "caesura.json"
PLAN, FOLDER, FIRST, VERSION = "plan", "folder", "first_epoch", "version"
"""The steps as users know them; where Spark keeps its part; which epoch of the sink Spark's first one is; how
many plans the query has had."""
CARRIED = "carried"
"""Changes of plan that the state has gone through where it lies, each with its number and other names."""
GENERATION, BEFORE, FINAL_ROWS = "generation", "before", "final_rows"
"""The generation of the output; what the plan before a rebuild had given, and what of its final rows."""
PLANS = "plans"
"""The numbers of the plans that have made what the sink holds, one from where the other stopped."""
REPLAYED = "replayed"
"""In how many epochs of its folder a rebuilt plan has read what was read before, ahead of its corrections."""
ENTERED = "entered"
"""That what enters besides rows is taken down from the first epoch on; an earlier version forgets it."""
SWITCHED = (FOLDER, FIRST, VERSION, CARRIED, GENERATION, BEFORE, FINAL_ROWS, PLANS, REPLAYED, ENTERED)
CHECKPOINT_FORMAT = 3
"""In format 1 all state lay in Spark's store; since then what is large may lie in files beside it.

In format 2 a bucket's stamp was a state variable of its own; since then it is a row among its chunks.
"""
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
    if saved_plan[FORMAT] > CHECKPOINT_FORMAT:
        raise later(f"the checkpoint '{checkpoint}'", saved_plan[FORMAT], CHECKPOINT_FORMAT)
    return saved_plan


def refuse_unknown(checkpoint: Place, last: int) -> None:
    """Refuses a folder in which Spark has written epochs, up to the ``last``, that are none of `start`'s."""
    if last >= 0 and not (checkpoint / NAME).is_file():
        raise StreamError(
            f"'{checkpoint}' is the checkpoint of a query that start(...) has not started: it has no {NAME}.",
            remedy="Give a new folder; what to_spark(...) has begun goes on with to_spark(...). "
            f"If {NAME} was lost, put it back.",
        )


def secret_of_checkpoint(checkpoint: Place) -> Secret:
    """The secret that a checkpoint's state is kept under; a new checkpoint gets a new one."""
    file = checkpoint / SECRET
    if file.is_file():
        return Secret(bytes.fromhex(file.read_text()))
    if (checkpoint / NAME).is_file():
        raise forgotten(f"the checkpoint '{checkpoint}'")
    file.create(Secret.drawn().key.hex().encode(), private=True)
    return Secret(bytes.fromhex(file.read_text()))


def save_plan(
    checkpoint: Place,
    stages: Stages,
    buckets: int,
    partitions: int | None = None,
    nodes: Mapping[str, Node] | None = None,
) -> Stages:
    """Writes what a new checkpoint belongs to, or holds the plan against it.

    Gives the stages with their sources in the order in which the checkpoint counts them.
    """
    spread = buckets if partitions is None else partitions
    now = plan_now(stages, buckets, spread, nodes)
    then = read_plan(checkpoint)
    if then is None:
        write_plan(checkpoint, {**now, ENTERED: True})
        return stages
    refuse_spread(then, spread)
    if differs(then, now):
        changed(then, now).refuse("refuse")
    kept = {name: then[name] for name in (*SWITCHED, "sources") if name in then}
    write_plan(checkpoint, {**now, **kept})
    order = {fingerprint: place for place, fingerprint in enumerate(then["sources"])}
    return dataclasses.replace(
        stages, sources=tuple(sorted(stages.sources, key=lambda s: order[s.fingerprint]))
    )


def refuse_spread(then: SavedPlan, partitions: int) -> None:
    """Refuses a session with another number of partitions than the checkpoint's."""
    if then["partitions"] != partitions:
        raise StreamError(
            f"the checkpoint was made with {then['partitions']} buckets; this session has {partitions}.",
            remedy=f"Move it with `caesura rescale CHECKPOINT --buckets {partitions}`, or use "
            f"cz.session(buckets={then['partitions']}).",
        )


def plan_now(
    stages: Stages, buckets: int, partitions: int, nodes: Mapping[str, Node] | None = None
) -> SavedPlan:
    """What a checkpoint of a plan says of it."""
    return {
        **_described(stages, buckets, stages.outputs if nodes is None else nodes),
        "partitions": partitions,
    }


def differs(then: SavedPlan, now: SavedPlan) -> bool:
    """Whether a plan cannot go on with the state of another as it lies there."""
    was, made = (KeptPlan(plan["stages"], plan["sources"], plan["keeps"]) for plan in (then, now))
    return not was.fits(made)


def answers_differ(then: SavedPlan, now: SavedPlan) -> bool:
    """Whether a plan answers otherwise than another, whatever state of it fits."""
    return bool(then.get("answers", now["answers"]) != now["answers"])


def plans_of(saved: SavedPlan) -> list[int]:
    """The plans that have made what the sink holds."""
    return list(saved.get(PLANS, [saved.get(VERSION, 1)]))


def changed(then: SavedPlan, now: SavedPlan) -> PlanChange:
    """What becomes of the steps of a plan under another."""
    if PLAN in then:
        return PlanChange.between(
            *({n: SavedStep(**s) for n, s in plan[PLAN].items()} for plan in (then, now))
        )
    return PlanChange.of_texts(*({**plan["sources"], **plan["keeps"]} for plan in (then, now)))


def given_output(saved: SavedPlan) -> GivenOutput:
    """What the plan of a checkpoint has given."""
    return GivenOutput(saved.get("columns", {}), saved.get("forms", {}), saved.get(GENERATION, 1))


def plan_change(checkpoint: Place, outputs: Mapping[str, Node]) -> PlanChange:
    """What would become of the steps of a checkpoint under another plan."""
    then = read_plan(checkpoint)
    if then is None:
        raise StreamError(
            f"'{checkpoint}' is no checkpoint of a query.",
            remedy="Give the folder that was checkpoint= of query or start.",
        )
    nodes = prune(outputs)
    return changed(then, plan_now(cut(nodes, then["buckets"]), then["buckets"], then["partitions"], nodes))


def spark_folder(checkpoint: Place) -> Place:
    """Where Spark keeps its part of a checkpoint: there, or in a folder of its own after a rebuild."""
    folder = (read_plan(checkpoint) or {}).get(FOLDER, "")
    return checkpoint / folder if folder else checkpoint


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


def _described(stages: Stages, buckets: int, nodes: Mapping[str, Node]) -> SavedPlan:
    kept = KeptPlan.of(stages)
    own = {
        FORMAT: CHECKPOINT_FORMAT,
        "buckets": buckets,
        "stages": kept.stages,
        "sources": kept.sources,
        "keeps": kept.keeps,
    }
    known = labelled(nodes)
    told = {label: dataclasses.asdict(SavedStep.of(node)) for label, node in known.items()}
    read = {label: node.fingerprint for label, node in known.items() if isinstance(node, Source)}
    steps, fragments = described_fragments(stages, buckets, read)
    about = {PLAN: told, "read": read, "fragments": fragments}
    about |= {"columns": columns_of(nodes), "forms": forms_of(nodes), "answers": answers_of(nodes)}
    return {**own, "steps": steps, **about}
