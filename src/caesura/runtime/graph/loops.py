"""Closes the loops of a graph: the edge that leads back, and every step's place on the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caesura.errors import PlanError
from caesura.fixpoint.node import Fixpoint, Recursive
from caesura.fixpoint.operator import SEED, FlyingFixpoint
from caesura.plan import Node, walk
from caesura.plan.loops import on_loop
from caesura.plan.ring import Ring
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.graph import Graph


@dataclass
class Loop:
    """A loop in a graph."""

    name: str
    head: Cell
    """The cell that closes it."""
    cells: list[Cell]
    """The cells that it runs through, the head not among them."""
    free: bool
    """Whether input may be read while it works: not where it is staged, nor where the order of input
    decides how deep a row lies."""

    def measure(self) -> None:
        """Counts the rows that the steps of the loop hold, for the step that closes it."""
        held = sum(cell.operator.counters.state_rows for cell in self.cells)
        self.head.operator.counters.extra["loop_state"] = held


def close(
    graph: Graph, node: Fixpoint, head: Cell, cells: Mapping[str, Cell], crossing: Node | None = None
) -> Loop:
    """Joins a loop's end to its beginning; its inner loops are closed already.

    ``crossing`` is the loop's body where what it derives crosses buckets on its way to the end.
    """
    body = node.inputs[1] if crossing is None else crossing
    circle = on_loop(body, node.loop)
    start = next(cells[n.fingerprint] for n in walk(body) if isinstance(n, Recursive) and n.loop == node.loop)
    head.around = graph.open(start, 0, back=True)
    members = [cells[fp] for fp in circle if fp in cells]
    for fp, ports in circle.items():
        _place(node.loop, cells[fp], ports)
    operator = head.operator
    assert isinstance(operator, FlyingFixpoint)
    operator.speculate, operator.across = "arrival", crossing is not None
    entries, entrances = _entries(node, members, head)
    operator.close_loop(entries, entrances)
    inner = [start.inputs[0], head.inputs[1]]
    inner += [cells[fp].inputs[port] for fp, ports in circle.items() for port in ports]
    if node.progress == "staged" and crossing is None:
        _stage(members, node.loop, head, inner)
    free = node.progress != "staged" and not node.ranked
    return Loop(node.loop, head, [start, *members], free)


def _place(loop: str, cell: Cell, ports: tuple[int, ...]) -> None:
    """A step's place on the loop; outer loops are entered after inner ones."""
    taken = {p for ring in cell.operator.rings.values() for p in ring.inside}
    every = range(len(cell.inputs))
    outside = tuple(p for p in every if p not in ports and p not in taken)
    if isinstance(cell.operator, FlyingFixpoint):
        outside = tuple(p for p in outside if p == SEED)
    cell.operator.rings[loop] = Ring(loop, cell.label, ports, outside, cell.node.carry)
    cell.operator.speculate = "arrival"  # what waits on a loop waits for itself


def _entries(
    node: Fixpoint, members: Sequence[Cell], head: Cell
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Where progress comes from outside, and where outer loops' guesses come in."""
    entries: list[str] = []
    ports: list[tuple[str, Cell, int]] = [("seed:0", head, SEED)]
    for cell in members:
        ring = cell.operator.rings[node.loop]
        for port in ring.outside:
            entries.append(f"{ring.step}:{port}")
            ports.append((entries[-1], cell, port))
        if isinstance(cell.operator, FlyingFixpoint) and cell.operator.inner_entries(node.loop):
            entries.append(f"{ring.step}:inside")
    entrances: dict[str, list[str]] = {}
    for name, cell, port in ports:
        for loop in _open_loops(cell, port, node.loop):
            entrances.setdefault(loop, []).append(name)
    return entries, {loop: tuple(names) for loop, names in entrances.items()}


def _open_loops(cell: Cell, port: int, own: str) -> set[str]:
    """The loops that an input depends on and that are closed further out."""
    inside = list(walk(cell.node.inputs[port]))
    closed = {n.loop for n in inside if isinstance(n, Fixpoint)}
    return {n.loop for n in inside if isinstance(n, Recursive)} - closed - {own}


def _stage(members: Sequence[Cell], loop: str, head: Cell, inner: Sequence[Edge]) -> None:
    """Input waits outside while anything moves inside."""
    gates = [head.inputs[SEED]]
    for cell in members:
        gates += [cell.inputs[port] for port in cell.operator.rings[loop].outside]
    for gate in gates:
        gate.behind.extend(inner)


def refuse_open(cells: Mapping[str, Cell], loops: Sequence[Loop]) -> None:
    """Refuses a plan that uses a recursive stream outside its loop."""
    closed = {loop.name for loop in loops}
    for cell in cells.values():
        if isinstance(cell.node, Recursive) and cell.node.loop not in closed:
            raise PlanError(
                "a recursive stream is used outside of its loop.",
                remedy="Use it only inside the step that it was given to.",
            ).at(cell.node.step, cell.node.place)
