"""The steps of one stage as a plan of its own: an input fed by hand stands wherever an exchange arrives."""

from __future__ import annotations

from caesura.ops.input import Input
from caesura.plan import Node
from caesura.plan.cut import LOOP, Exchange, Stage, Stages
from caesura.plan.node import rebuilt
from caesura.runtime.buckets.labels import OUT


class StagePlan:
    """What one stage runs."""

    def __init__(self, stages: Stages, stage: Stage) -> None:
        self._stages, self._stage = stages, stage
        self._own = {node.fingerprint for node in stage.nodes}
        self._grafted: dict[str, Node] = {}
        self.outputs = {d.label: self._graft(d.producer) for d in stage.departures}
        """What departs, by the label of its exchange, and what leaves the plan, by its name."""
        self.outputs |= {OUT + name: self._graft(node) for name, node in stage.outputs.items()}

    @property
    def crossing(self) -> dict[str, Node]:
        """The bodies of loops that cross buckets, by the loop's name."""
        labels = [a.label for a in self._stage.arrivals]
        return {label[len(LOOP) :]: self.outputs[label] for label in labels if label.startswith(LOOP)}

    def name_of(self, fingerprint: str) -> str:
        """The fingerprint that a step of the plan has in this stage; empty where the stage has it not."""
        made = self._grafted.get(fingerprint)
        return "" if made is None else made.fingerprint

    def _graft(self, node: Node) -> Node:
        if node.fingerprint in self._grafted:
            return self._grafted[node.fingerprint]
        if node.fingerprint not in self._own:
            return _input(next(a for a in self._stage.arrivals if a.entry.fingerprint == node.fingerprint))
        inputs = tuple(self._graft_input(node, port) for port in range(len(node.inputs)))
        made = self._grafted[node.fingerprint] = rebuilt(node, inputs)
        return made

    def _graft_input(self, node: Node, port: int) -> Node:
        child, arrivals = node.inputs[port], self._stage.arrivals
        crossing = [a for a in arrivals if node.closes and a.label == LOOP + node.closes]
        if crossing and port == 1:
            return _input(crossing[0])
        if child.fingerprint in self._own:
            return self._graft(child)
        label = self._stages.exchange_of.get((self._stage.number, node.fingerprint, port))
        if label is None:
            return child  # a table that every bucket holds
        return _input(next(a for a in arrivals if a.label == label))


def _input(arrival: Exchange) -> Node:
    node = arrival.entry
    return Input(
        label=arrival.label,
        payload=node.schema,
        time_type=node.time,
        known=node.properties,
        name=node.name,
        place=node.place,
    )
