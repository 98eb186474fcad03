"""How late the rows end that steps have lost to feedback, so that a withdrawal keeps back what lacks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from caesura.punctuation import MIN_TIME

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell


def note_losses(cells: Sequence[Cell]) -> dict[str, int]:
    """Lets every step know how late the rows end that steps above it have lost; nothing may be queued.

    Gives by fingerprint how late the output ends that each step has lost.
    """
    lost: dict[str, int] = {}
    for cell in sorted(cells, key=lambda c: c.depth):
        above = max((lost.get(child.fingerprint, MIN_TIME) for child in cell.node.inputs), default=MIN_TIME)
        if cell.responder is None:
            lost[cell.node.fingerprint] = above
            continue
        suppression = cell.responder.suppression
        suppression.lost = max(suppression.lost, above)
        lost[cell.node.fingerprint] = suppression.lost_out
    return lost


def start_over(cells: Sequence[Cell]) -> None:
    """Forgets all feedback; what lost something to it stays suppressed until punctuation closes it."""
    note_losses(cells)
    for cell in cells:
        if cell.responder is not None:
            cell.responder.start_over()
