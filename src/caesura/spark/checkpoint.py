"""What a checkpoint belongs to: the plan and the number of buckets, written when it is first used.

State is laid out by step, so a checkpoint goes on only with the plan that made it. A plan that
differs is refused, naming the first step that does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from caesura.errors import StreamError
from caesura.plan import Node, walk

NAME = "caesura.json"


def keep_plan(checkpoint: Path, outputs: Mapping[str, Node], buckets: int) -> None:
    """Writes the plan beside a new checkpoint; refuses one that another plan made."""
    now = {"buckets": buckets, "steps": steps(outputs)}
    file = checkpoint / NAME
    if not file.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".tmp")
        partial.write_text(json.dumps(now, indent=1))
        partial.rename(file)
        return
    then = json.loads(file.read_text())
    if then["buckets"] != buckets:
        raise StreamError(
            f"the checkpoint was made with {then['buckets']} buckets; this session has {buckets}.",
            remedy=f"Set spark.sql.shuffle.partitions to {then['buckets']}, or start with a new checkpoint.",
        )
    if then["steps"] != now["steps"]:
        raise _changed(then["steps"], steps(outputs))


def steps(outputs: Mapping[str, Node]) -> list[str]:
    """Every step with its parameters and columns, inputs first."""
    lines = []
    number: dict[str, int] = {}
    for node in walk(*outputs.values()):
        number[node.fingerprint] = len(number)
        inputs = " ".join(f"r{number[child.fingerprint]}" for child in node.inputs)
        columns = ", ".join(f"{f.name} {f.type}" for f in node.schema)
        lines.append(f"{node.step} {inputs}: {node.describe()} ({columns})")
    return [*lines, *(f"output {name}: r{number[n.fingerprint]}" for name, n in outputs.items())]


def _changed(then: list[str], now: list[str]) -> StreamError:
    place = next(
        (i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now))
    )
    was = then[place] if place < len(then) else "nothing"
    got = now[place] if place < len(now) else "nothing"
    return StreamError(
        f"the checkpoint belongs to another plan: where it has '{was}', this plan has '{got}'.",
        remedy="Start with a new checkpoint, or put the step back as it was.",
    )
