"""What feedback holds at a step, as chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from caesura.events.chunks import Chunks
from caesura.feedback.responder import META
from caesura.punctuation import Pattern

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell


def _priorities(cell: Cell) -> list[list[Pattern]]:
    """What is wanted first of a step, and of each of its inputs."""
    return [cell.feedback.desired, *(edge.desired for edge in cell.inputs)]


def snapshot_of(cell: Cell) -> Chunks:
    """What feedback holds at a step, as chunks of what changed."""
    responder, feedback, place = cell.responder, cell.feedback, cell.node.fingerprint
    priorities = [[p.to_json() for p in some] for some in _priorities(cell)]
    chunks = feedback.saved_priorities.changed(priorities if any(priorities) else None)
    if responder is not None:
        chunks |= {f"feedback/{name}": data for name, data in responder.guards.rows().items()}
        chunks |= responder.saved.changed(responder.meta())
    return {f"{place}/{name}": data for name, data in chunks.items()}


def restore_into(cell: Cell, chunks: Mapping[str, bytes]) -> None:
    """Takes what `snapshot_of` gave."""
    priorities = cell.feedback.saved_priorities.read(chunks)
    if priorities is not None:
        for mine, saved in zip(_priorities(cell), priorities, strict=False):
            mine[:] = [Pattern.from_json(p) for p in saved]
        cell.operator.prefer(list(cell.feedback.desired))
    if META not in chunks:
        return
    prefix = "feedback/"
    rows = {n[len(prefix) :]: d for n, d in chunks.items() if n.startswith(prefix) and n != META}
    responder = cell.feedback.listen()
    responder.restore(responder.saved.read(chunks), rows)
