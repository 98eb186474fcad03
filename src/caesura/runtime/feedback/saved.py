"""What feedback holds at a step, as chunks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from caesura.events.rows import Chunks
from caesura.punctuation import Pattern

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell

META = "feedback/meta"
PRIORITIES = "wishes"


def _priorities(cell: Cell) -> list[list[Pattern]]:
    """What is wanted first of a step, and of each of its inputs."""
    return [cell.feedback.desired, *(edge.desired for edge in cell.inputs)]


def snapshot_of(cell: Cell) -> Chunks:
    """What feedback holds at a step, as chunks of what changed."""
    responder, feedback, place = cell.responder, cell.feedback, cell.node.fingerprint
    chunks: Chunks = {}
    priorities = json.dumps([[p.to_json() for p in some] for some in _priorities(cell)]).encode()
    if priorities != feedback.saved_priorities and (feedback.saved_priorities or any(_priorities(cell))):
        chunks[f"{place}/{PRIORITIES}"] = feedback.saved_priorities = priorities
    if responder is None:
        return chunks
    chunks |= {f"{place}/feedback/{name}": data for name, data in responder.guards.rows().items()}
    meta = json.dumps(responder.meta()).encode()
    if meta != responder.saved:
        chunks[f"{place}/{META}"] = responder.saved = meta
    return chunks


def restore_into(cell: Cell, chunks: Mapping[str, bytes]) -> None:
    """Takes what `snapshot_of` gave."""
    if PRIORITIES in chunks:
        cell.feedback.saved_priorities = chunks[PRIORITIES]
        for mine, saved in zip(_priorities(cell), json.loads(chunks[PRIORITIES]), strict=False):
            mine[:] = [Pattern.from_json(p) for p in saved]
        cell.operator.prefer(list(cell.feedback.desired))
    if META not in chunks:
        return
    prefix = "feedback/"
    rows = {n[len(prefix) :]: d for n, d in chunks.items() if n.startswith(prefix) and n != META}
    meta: dict[str, Any] = json.loads(chunks[META])
    responder = cell.feedback.listen()
    responder.restore(meta, rows)
    responder.saved = chunks[META]
