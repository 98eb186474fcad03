"""A plan as text: numbered references, so that a shared sub-plan prints once.

r0 := read 'sensors'                              (flow.py:12)
      id int64, speed double | points | punctuation on time
r1 := where r0: speed >= 50                       (flow.py:13)
      ...
"""

from __future__ import annotations

from itertools import product

import pyarrow as pa

from caesura.plan.cut import Stages
from caesura.plan.node import Node, walk
from caesura.plan.outline import PlanText, outline
from caesura.plan.samples import sample

PunctuationKinds = frozenset[tuple[str, ...]]
"""The kinds of definite punctuation an edge may carry, each by the attributes it names."""


def explain(*roots: Node) -> PlanText:
    """The plan behind some steps, inputs first."""
    return PlanText.of(outline(*roots))


def columns(schema: pa.Schema) -> str:
    """A schema on one line."""
    return ", ".join(f"{field.name} {field.type}" for field in schema) or "no columns"


def in_words(given: PunctuationKinds) -> str:
    """What may be promised, in words."""
    if not given:
        return "punctuation only at the end"
    return "punctuation on " + " or ".join("+".join(names) for names in sorted(given))


def carried(node: Node, inputs: list[PunctuationKinds]) -> PunctuationKinds:
    """Which kinds of punctuation leave a step, asked of its own rule with sample patterns."""
    if node.scheme is not None:
        return frozenset(tuple(sorted(template.marked)) for template in node.scheme if template.marked)
    if node.declares is not None:
        return frozenset((name,) for name in node.declares)
    if not node.inputs:
        return frozenset({("time",)})
    shares: list[set[tuple[str, ...]]] = []
    for port, kinds in enumerate(inputs):
        if node.steers(port):
            continue
        passed = (node.carry(port, sample(node.inputs[port].schema, names)) for names in kinds)
        shares.append({tuple(sorted(p.attributes)) for p in passed if p is not None})
    return frozenset(tuple(sorted(set().union(*combo))) for combo in product(*shares))


def explain_stages(stages: Stages) -> str:
    """The stages of a plan: what runs where, which exchanges lead there, and why."""
    lines: list[str] = []
    for stage in stages.stages:
        where = "in front of the first exchange" if stage.number == 0 else "one bucket per partition"
        lines.append(f"stage {stage.number} ({where})")
        for arrival in stage.arrivals:
            origin = "its source" if arrival.source_stage == 0 else f"stage {arrival.source_stage}"
            lines.append(f"  <- {arrival.producer.step} from {origin}, {arrival.route()}: {arrival.why}")
        lines += [f"  {node.step}: {node.describe()}" for node in stage.nodes]
        lines += [f"  -> output '{name}'" for name in stage.outputs]
    tables = {n.fingerprint for n in walk(*stages.outputs.values())}
    placed = {n.fingerprint for stage in stages.stages for n in stage.nodes}
    held = [n.step for n in walk(*stages.outputs.values()) if n.fingerprint in tables - placed]
    if held:
        lines.append(f"every bucket holds: {', '.join(held)}")
    return "\n".join(lines)
