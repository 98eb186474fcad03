"""Work that waits for its turn: a step with a budget has one in every epoch, also when nothing comes."""

from __future__ import annotations

from collections.abc import Iterable

from caesura.plan import Operator
from caesura.runtime.graph.cell import Cell


class Budgets:
    """The steps of a query that work to a budget."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = [cell for cell in cells if type(cell.operator).begin is not Operator.begin]

    @property
    def waits(self) -> bool:
        """Whether some step has work that waits."""
        return any(cell.operator.pending for cell in self.cells)

    def begin(self) -> None:
        """Another epoch brings the budgets."""
        for cell in self.cells:
            cell.operator.begin()

    def resume(self) -> bool:
        """Lets steps do work that waits, where no item gave them a turn; True if something came of it."""
        came = False
        for cell in self.cells:
            items = cell.guarded(cell.operator.resume)
            cell.send(items)
            came = came or bool(items)
        return came
