"""A plan that goes on from here: which state of Spark's stages fits which step of the new plan.

State is where its stage is, so it can be carried over within a stage only. A step that holds state must find
state that fits; an input of a stage must find what its origins have promised.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from caesura.errors import StreamError
from caesura.events.identity import LOCAL
from caesura.io.sources.source import Source
from caesura.plan.cut import Exchange, Stages
from caesura.runtime.buckets.fragment import Fragment
from caesura.runtime.buckets.stage0 import root_of
from caesura.runtime.durable.change import PlanChange, SavedStep

Saved = dict[str, Any]


def described_fragments(stages: Stages, buckets: int, read: Mapping[str, str]) -> tuple[Saved, Saved]:
    """What lies under which fingerprint in the state store, and by stage, for a later plan."""
    labels = {fingerprint: label for label, fingerprint in read.items()}
    steps: Saved = {}
    by_stage: Saved = {}
    for stage in stages.stages[1:]:
        cells = Fragment(stages, stage.number, 0, buckets, LOCAL).query.graph.cells
        fed = {cell.node.fed: cell.node.fingerprint for cell in cells if cell.node.fed}
        own: Saved = {}
        for cell in cells:
            known = {"stage": stage.number, "step": cell.label, "place": cell.node.place}
            steps[cell.node.fingerprint] = {**known, "does": cell.node.describe()}
            if not cell.node.fed:
                step = dataclasses.replace(SavedStep.of(cell.node), text="")
                own[cell.label] = [cell.node.fingerprint, dataclasses.asdict(step)]
        inputs = [
            {
                "under": [fed[a.label], a.producer.fingerprint],
                "way": _way(a, stages, labels),
                "step": a.producer.step,
            }
            for a in stage.arrivals
            if a.label in fed
        ]
        by_stage[str(stage.number)] = {"steps": own, "inputs": inputs}
    return steps, by_stage


def _way(arrival: Exchange, stages: Stages, labels: Mapping[str, str]) -> list[Any]:
    """What an input has to be for what is known of another to fit: from where, how spread, which rows."""
    keys = None if arrival.keys is None else list(arrival.keys)
    root = root_of(arrival.producer, stages) if arrival.source_stage == 0 else None
    source = labels.get(root.fingerprint, "") if isinstance(root, Source) else ""
    held = "" if isinstance(root, Source) and root.shape.insert_only else str(arrival.producer.schema)
    return [arrival.source_stage, arrival.back, keys, source, held]


def carried_names(then: Saved, now: Saved, change: PlanChange) -> dict[str, str]:
    """By the fingerprint that state lies under, the one that it belongs under; "" for a step that is gone."""
    if then["stages"] != now["stages"]:
        raise _elsewhere(f"the plan had {then['stages'] - 1} stages, and has {now['stages'] - 1}")
    sources = {then["read"][a]: now["read"][b] for a, b in change.renamed.items() if a in then["read"]}
    if set(sources) != set(then["sources"]) or set(sources.values()) != set(now["sources"]):
        raise _elsewhere("the plan reads other sources")
    labels = {a: b for a, b in change.renamed.items() if a in then["read"]}
    names = dict(sources)
    for number, made in now["fragments"].items():
        names |= _in_stage(then["fragments"][number], made, labels)
    return {a: b for a, b in names.items() if a != b}


def _in_stage(was: Saved, made: Saved, labels: Mapping[str, str]) -> dict[str, str]:
    steps = [{label: SavedStep(**step) for label, (_, step) in plan["steps"].items()} for plan in (was, made)]
    between = PlanChange.between(*steps)
    if between.lost:
        raise _elsewhere(
            f"what '{between.lost[0].step}' would go on with lies in another stage, or has another form"
        )
    names = {fingerprint: "" for fingerprint, _ in was["steps"].values()}
    for before, after in between.renamed.items():
        names[was["steps"][before][0]] = made["steps"][after][0]
    left = list(was["inputs"])
    for one in made["inputs"]:
        found = next(_alike(left, one, labels), None)
        if found is None:
            raise _elsewhere(f"nothing is known of how far '{one['step']}' has come")
        left.remove(found)
        names |= dict(zip(found["under"], one["under"], strict=True))
    return names


def _alike(inputs: list[Saved], one: Saved, labels: Mapping[str, str]) -> Iterator[Saved]:
    """The inputs that are the same way; one from a step of the same name first."""
    fit = [i for i in inputs if [*i["way"][:3], labels.get(i["way"][3], ""), i["way"][4]] == one["way"]]
    yield from sorted(fit, key=lambda i: i["step"] != one["step"])


def _elsewhere(why: str) -> StreamError:
    return StreamError(
        f"the plan cannot go on from here on Spark: {why}.",
        remedy="Take on_change='rebuild', put the steps back, or start with a new checkpoint.",
    )
