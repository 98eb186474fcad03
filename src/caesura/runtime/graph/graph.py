"""Cells joined by edges: items queue downwards, feedback waits in a mailbox, one cell works at a time.

Law: whatever order the schedule picks, the history that comes out is the same.
"""

from __future__ import annotations

from caesura.errors import StreamError
from caesura.plan import Node, Operator
from caesura.runtime.feedback.mailbox import Mailbox
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge


class Graph:
    """Cells and edges; loops are allowed, and stop when nothing circulates any more."""

    def __init__(self, capacity: int = 8) -> None:
        self.capacity = capacity
        self.cells: list[Cell] = []
        self.mailbox = Mailbox()
        self.edges: list[Edge] = []
        self._by_depth: list[Edge] = []
        self._bottom_up: list[Cell] = []
        self.aligns = False
        """Whether tokens flow, and steps wait for them."""

    def add(self, node: Node, operator: Operator, label: str) -> Cell:
        cell = Cell(node, operator, label, self.mailbox)
        self.cells.append(cell)
        return cell

    def connect(self, source: Cell, target: Cell, port: int, *, back: bool = False) -> Edge:
        """An edge from a cell to another's port; ``back`` marks the one that closes a cycle."""
        edge = self.open(target, port, back=back)
        edge.source = source
        source.outputs.append(edge)
        if not back:
            target.depth = max(target.depth, source.depth + 1)
        return edge

    def open(self, target: Cell, port: int, *, back: bool = False) -> Edge:
        """An edge into a cell's port that is fed from outside."""
        if port < len(target.inputs):
            raise StreamError(
                f"port {port} of '{target.label}' has an input already.",
                remedy="Union the two streams first.",
            )
        edge = Edge(self.capacity, target, port, back)
        target.inputs.append(edge)
        self.edges.append(edge)
        return edge

    @property
    def bottom_up(self) -> list[Cell]:
        """The cells, nearest to the outputs first."""
        if len(self._bottom_up) != len(self.cells):
            self._bottom_up = sorted(self.cells, key=lambda c: -c.depth)
        return self._bottom_up

    def ready(self) -> list[Edge]:
        """Edges whose next item can be taken now."""
        return [edge for edge in self.edges if edge.items and self._free(edge)]

    def deepest(self) -> Edge | None:
        """Of the edges whose next item can be taken now, the one nearest to the outputs."""
        if len(self._by_depth) != len(self.edges):
            self._by_depth = sorted(self.edges, key=lambda e: -1 if e.target is None else -e.target.depth)
        for edge in self._by_depth:
            if edge.items and self._free(edge):
                return edge
        return None

    def _free(self, edge: Edge) -> bool:
        """Whether nothing keeps an edge's next item back."""
        if edge.target is None or edge.target.blocked:
            return False
        if self.aligns and edge.waits:
            return False
        return not edge.behind or not any(other.items for other in edge.behind)
