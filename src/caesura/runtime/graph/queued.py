"""What waits between the steps of a query, as bytes, so that it can be saved between two of them."""

from __future__ import annotations

from collections.abc import Mapping

from caesura.errors import StreamError
from caesura.events.chunks import Chunks, SavedJson
from caesura.runtime.graph.graph import Graph
from caesura.runtime.packets.packet import decode, encode

QUEUES = "queues"


class Queues:
    """The items on the edges of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._saved = SavedJson(QUEUES)

    def snapshot(self, *, tagged: bool) -> Chunks:
        """All items that wait, edge by edge, if that is news; ``tagged`` ones cannot be saved."""
        sizes = [len(edge.items) for edge in self.graph.edges]
        if tagged and any(sizes):
            raise StreamError(
                "a query with claims cannot be saved while items wait between its steps.",
                remedy="Call run() first.",
            )
        items = tuple(item for edge in self.graph.edges for item in edge.items)
        return self._saved.changed_bytes(encode({"sizes": sizes}, items) if items else b"")

    def restore(self, chunks: Mapping[str, bytes]) -> None:
        """Puts back what `snapshot` took, into the edges of the same plan."""
        data = self._saved.read_bytes(chunks)
        if not data:
            return
        header, items = decode(data)
        waiting = iter(items)
        for edge, size in zip(self.graph.edges, header["sizes"], strict=True):
            edge.items.extend(next(waiting) for _ in range(size))
