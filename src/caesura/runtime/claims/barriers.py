"""Tokens as barriers: what each step holds when a token passes it is a snapshot that lands on a claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.consistency import Claim
from caesura.events.chunks import Chunks, json_chunk
from caesura.runtime.feedback.saved import snapshot_of
from caesura.runtime.graph.cell import Cell

if TYPE_CHECKING:
    from caesura.runtime.claims.tokens import TokenClaims


class Barriers:
    """Snapshots in the making, by the number of their token, and those that are complete."""

    def __init__(self, sources: TokenClaims) -> None:
        self.sources = sources
        self._open: dict[int, Chunks] = {}
        self.saved: list[tuple[Claim, Chunks]] = []
        """Snapshots that are complete, each with the claim it lands on."""

    def save(self, number: int, cell: Cell) -> None:
        """A token passes a step."""
        chunks = self._open.setdefault(number, {})
        for name, data in cell.operator.snapshot().items():
            chunks[f"{cell.node.fingerprint}/{name}"] = data
        chunks |= snapshot_of(cell)

    def complete(self, made: Claim) -> None:
        """The token of a claim has passed every step."""
        self.saved.append((made, {**self._open.pop(made.number), **self._own(made)}))

    def _own(self, made: Claim) -> Chunks:
        """The part of a snapshot that is about the claim: offsets to read on from, and counts."""
        offsets = {
            label: {str(lane): at for lane, at in made.prefix[label].offsets.items()}
            for label in self.sources.readers
        }
        own = {
            "prefix": {label: made.prefix[label].to_json() for label in self.sources.emitters},
            "under": [message.to_json() for message in made.under],
            "number": made.number,
            "times": [] if made.time is None else [made.time],
            "passed": {e.label: e.passed_at.get(made.number, e.passed) for e in self.sources.roots},
            "given": dict(made.output),
        }
        return {"offsets": json_chunk(offsets), "claims": json_chunk(own)}
