"""A query's state as chunks: what its steps hold, what waits between them, and where its sources are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from caesura.events.chunks import Chunks, SavedJson, under
from caesura.runtime.feedback.consumer import ConsumerFeedback
from caesura.runtime.feedback.losses import start_over
from caesura.runtime.feedback.saved import restore_into, snapshot_of
from caesura.runtime.graph.publication import Publication
from caesura.runtime.graph.queued import Queues
from caesura.runtime.query.assembly import Assembly
from caesura.runtime.query.secret import Keeper, refuse_foreign

if TYPE_CHECKING:
    from caesura.runtime.claims.claiming import Claiming

PUBLISHED = "published:"


class SavedState:
    """Takes snapshots of a query, and restores them."""

    def __init__(
        self,
        parts: Assembly,
        keeper: Keeper,
        claiming: Claiming | None,
        consumer: ConsumerFeedback,
        published: Mapping[str, Publication],
    ) -> None:
        self._parts, self._keeper, self._claiming = parts, keeper, claiming
        self._consumer, self._published = consumer, published
        self._queues = Queues(parts.graph)
        self._offsets = SavedJson("offsets")
        self._readers_now = sorted([name, node.fingerprint] for name, node in parts.outputs.items())
        self._readers = SavedJson("readers")
        """The outputs under which feedback was taken."""

    def snapshot(self) -> Chunks:
        """The chunks of state that changed since the last snapshot."""
        chunks: Chunks = self._queues.snapshot(tagged=self._claiming is not None)
        cells = self._parts.graph.cells
        for cell in cells:
            for name, data in cell.operator.snapshot().items():
                chunks[f"{cell.node.fingerprint}/{name}"] = data
            chunks |= snapshot_of(cell)
        chunks |= self._consumer.snapshot()
        if any(cell.responder for cell in cells):
            chunks |= self._readers.changed(self._readers_now)
        for output, published in self._published.items():
            chunks |= {f"{PUBLISHED}{output}/{n}": data for n, data in published.snapshot().items()}
        if self._claiming is not None:
            chunks |= self._claiming.snapshot()
        chunks |= self._offsets.changed({label: r.position for label, r in self._parts.readers.items()})
        return chunks | self._keeper.snapshot()

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Takes the state of a query of the same plan; a step that it has none for begins empty."""
        readers, cells = self._parts.readers, self._parts.graph.cells
        refuse_foreign(chunks, readers, claims=self._claiming is not None)
        self._keeper.restore(chunks, [cell.operator for cell in cells])
        for cell in cells:
            mine = under(cell.node.fingerprint + "/", chunks)
            if mine:
                cell.operator.restore(mine)
                restore_into(cell, mine)
        self._queues.restore(chunks)
        others = self._readers.read(chunks) not in (None, self._readers_now)
        if others:
            start_over(cells)
        self._consumer.restore(chunks, again=others)
        for output, published in self._published.items():
            published.restore(under(f"{PUBLISHED}{output}/", chunks))
        if self._claiming is not None:
            self._claiming.restore(chunks)
        for label, offsets in self._offsets.read(chunks).items():
            readers[label].seek(offsets)
