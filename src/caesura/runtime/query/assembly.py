"""The graph of a plan: a cell for each step, edges to feed, readers of sources, loops that are closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caesura.errors import looked_up
from caesura.events.identity import Secret
from caesura.fixpoint.node import Fixpoint
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.ops.input import Input
from caesura.ops.observe import refuse_observed_twice
from caesura.plan import Node, SourceNode, Speculate, walk
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.graph import Graph
from caesura.runtime.graph.loops import Loop, close, refuse_open
from caesura.runtime.graph.publication import Subscribed
from caesura.runtime.graph.source_reader import SourceReader, share


class Assembly:
    """What a query is made of; equal sub-plans are one cell."""

    def __init__(
        self,
        outputs: Mapping[str, Node],
        *,
        capacity: int,
        speculate: Speculate,
        secret: Secret,
        crossing: Mapping[str, Node],
    ) -> None:
        self.outputs = dict(outputs)
        self.graph = Graph(capacity)
        self.cells: dict[str, Cell] = {}
        """By the fingerprint of the step."""
        self.inputs: dict[str, Edge] = {}
        """The edges that can be fed, by label."""
        self.readers: dict[str, SourceReader] = {}
        self.feeders: list[Callable[[], bool]] = []
        """Lets each running query whose publication is read here take a step."""
        self.loops: list[Loop] = []
        self._labels: set[str] = set()
        nodes = list(walk(*outputs.values()))
        refuse_observed_twice(nodes)
        for node in nodes:
            self._mount(node, speculate, secret)
        for node in [cell.node for cell in self.graph.cells]:
            if isinstance(node, Fixpoint):
                head = self.cells[node.fingerprint]
                self.loops.append(close(self.graph, node, head, self.cells, crossing.get(node.loop)))
        refuse_open(self.cells, self.loops)
        share(list(self.readers.values()))
        if any(isinstance(cell.node, Tumbling) for cell in self.graph.cells):
            from caesura.runtime.graph.fused import fuse

            fuse(self.graph.cells)

    def _mount(self, node: Node, speculate: Speculate, secret: Secret) -> None:
        operator = node.operator()
        operator.keep_pace(speculate)
        operator.secret.become(secret)
        cell = self.graph.add(node, operator, self._label(node.step))
        self.cells[node.fingerprint] = cell
        for port, source in enumerate(node.inputs):
            self.graph.connect(self.cells[source.fingerprint], cell, port)
        if isinstance(node, SourceNode):
            self.readers[cell.label] = SourceReader(node, cell)
        elif isinstance(node, Input):
            self.inputs[node.label] = self.graph.open(cell, 0)
            if isinstance(node, Subscribed):
                node.publication.attach(self.inputs[node.label])
                self.feeders.append(node.publication.advance)

    def _label(self, step: str) -> str:
        """The name of a step in this query, with a number where others have it too."""
        label, number = step, 2
        while label in self._labels:
            label, number = f"{step}-{number}", number + 1
        self._labels.add(label)
        return label

    def fed_by(self, label: str) -> Cell:
        """The step that an input feeds."""
        target = looked_up(self.inputs, label, "input", "feed").target
        assert target is not None
        return target

    def behind(self, output: str) -> Cell:
        """The step behind an output."""
        return self.cells[self.outputs[output].fingerprint]

    @property
    def ends(self) -> dict[str, Cell]:
        """The steps behind the outputs, by their names."""
        return {name: self.behind(name) for name in self.outputs}

    def loop_head(self, loop: str) -> Cell:
        """The step that closes a loop."""
        return next(known.head for known in self.loops if known.name == loop)
