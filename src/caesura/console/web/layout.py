"""Places the steps of a plan in layers: inputs above their consumers, few edges crossing.

>>> from caesura.runtime.metrics.plan_shape import PlanShape, StepShape
>>> step = lambda n, *inputs: StepShape(n, f"s{n}", "where", "", "", inputs)
>>> placed = place(PlanShape((step(0), step(1, 0), step(2, 0), step(3, 1, 2))))
>>> [box.y for box in placed.boxes] == [0, ROW, ROW, 2 * ROW]
True
>>> placed.boxes[0].x == placed.boxes[3].x == (placed.boxes[1].x + placed.boxes[2].x) / 2
True
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from caesura.runtime.metrics.plan_shape import PlanShape, edges

WIDTH, HEIGHT = 284.0, 96.0
COLUMN, ROW = 316.0, 148.0
LANE = 36.0
"""How far from others an edge that passes a layer lies."""
SWEEPS = 6
Slot = tuple[int, int]
"""A step, as (number, -1), or an edge that passes a layer, as (edge, layer)."""


@dataclass(frozen=True)
class Box:
    """Where a step lies: its upper left corner."""

    number: int
    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """Where an edge runs."""

    source: int
    target: int
    back: bool
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PlacedPlan:
    """A plan on a plane."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: float
    height: float


def place(shape: PlanShape) -> PlacedPlan:
    """Places every step and every edge of a plan."""
    layer = _layers(shape)
    forward = [(s, t) for s, t, back in edges(shape) if not back]
    chains = [
        [(s, -1), *((e, at) for at in range(layer[s] + 1, layer[t])), (t, -1)]
        for e, (s, t) in enumerate(forward)
    ]
    rows = _rows(layer, chains)
    above, below = _neighbours(chains)
    at = {slot: place for row in rows for place, slot in enumerate(row)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            _sort(row, above if down else below, at)
    x = _columns(rows, above, below)
    left = min((x[slot] for slot in x), default=0.0)
    boxes = tuple(Box(n, x[n, -1] - left, layer[n] * ROW) for n in sorted(layer))
    lines = [
        Line(s, t, False, _points(chain, layer, x, left))
        for (s, t), chain in zip(forward, chains, strict=True)
    ]
    right = max((box.x for box in boxes), default=0.0) + WIDTH
    for s, t, back in edges(shape):
        if back:
            lines.append(Line(s, t, True, _around(boxes[s], boxes[t], right + LANE)))
            right += LANE
    widest = max((x for line in lines for x, _ in line.points), default=0.0)
    return PlacedPlan(boxes, tuple(lines), max(right, widest) + LANE, len(rows) * ROW)


def _layers(shape: PlanShape) -> dict[int, int]:
    """How deep each step lies; what has no inputs lies right above the first that reads it."""
    layer: dict[int, int] = {}
    for step in shape.steps:
        layer[step.number] = max((layer[i] + 1 for i in step.inputs), default=0)
    for step in shape.steps:
        if not step.inputs:
            uses = [layer[other.number] for other in shape.steps if step.number in other.inputs]
            layer[step.number] = max(0, min(uses, default=1) - 1)
    return layer


def _rows(layer: dict[int, int], chains: list[list[Slot]]) -> list[list[Slot]]:
    """The slots of every layer, in the order of their coming."""
    rows: list[list[Slot]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for number, depth in layer.items():
        rows[depth].append((number, -1))
    for chain in chains:
        for slot in chain[1:-1]:
            rows[slot[1]].append(slot)
    return rows


def _neighbours(chains: list[list[Slot]]) -> tuple[dict[Slot, list[Slot]], dict[Slot, list[Slot]]]:
    above: dict[Slot, list[Slot]] = {}
    below: dict[Slot, list[Slot]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    return above, below


def _sort(row: list[Slot], beside: dict[Slot, list[Slot]], at: dict[Slot, int]) -> None:
    """Puts each slot where its neighbours lie on average."""
    mean = {s: sum(at[n] for n in beside[s]) / len(beside[s]) if s in beside else at[s] for s in row}
    row.sort(key=lambda slot: mean[slot])
    at |= {slot: place for place, slot in enumerate(row)}


def _columns(
    rows: list[list[Slot]], above: dict[Slot, list[Slot]], below: dict[Slot, list[Slot]]
) -> dict[Slot, float]:
    """Where each slot lies: near its neighbours, in the order of its layer, apart from the next."""
    x = {slot: place * COLUMN for row in rows for place, slot in enumerate(row)}
    for sweep in range(SWEEPS):
        beside = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [sum(x[n] for n in beside[s]) / len(beside[s]) if s in beside else x[s] for s in row]
            for slot, where in zip(row, _apart(row, wanted), strict=True):
                x[slot] = where
    return x


def _apart(row: list[Slot], wanted: list[float]) -> list[float]:
    """Places as near to the wanted ones as the order and the least distance allow: half from either side."""
    gaps = [_gap(a, b) for a, b in pairwise(row)]
    ahead, behind = wanted[:], wanted[:]
    for i, gap in enumerate(gaps):
        ahead[i + 1] = max(ahead[i + 1], ahead[i] + gap)
    for i in range(len(gaps) - 1, -1, -1):
        behind[i] = min(behind[i], behind[i + 1] - gaps[i])
    return [(a + b) / 2 for a, b in zip(ahead, behind, strict=True)]


def _gap(left: Slot, right: Slot) -> float:
    """The least distance between the left edges of two neighbours."""
    steps = (left[1] < 0) + (right[1] < 0)
    return (LANE, WIDTH / 2 + LANE, COLUMN)[steps]


def _points(
    chain: list[Slot], layer: dict[int, int], x: dict[Slot, float], left: float
) -> tuple[tuple[float, float], ...]:
    points: list[tuple[float, float]] = []
    for slot in chain:
        middle = x[slot] - left + WIDTH / 2
        if slot[1] >= 0:
            points += [(middle, slot[1] * ROW), (middle, slot[1] * ROW + HEIGHT)]
        else:
            y = layer[slot[0]] * ROW
            points.append((middle, y + HEIGHT if slot is chain[0] else y))
    return tuple(points)


def _around(source: Box, target: Box, x: float) -> tuple[tuple[float, float], ...]:
    """An edge back, past everything on the right."""
    low, high = source.y + HEIGHT / 2, target.y + HEIGHT / 2
    return ((source.x + WIDTH, low), (x, low), (x, high), (target.x + WIDTH, high))
