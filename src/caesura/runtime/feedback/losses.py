"""How late the rows end that steps have lost to feedback, so that a withdrawal keeps back what lacks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from caesura.punctuation import MIN_TIME

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell


def note_losses(cells: Sequence[Cell]) -> None:
    """Before a withdrawal: lets every step know how late the rows end that steps above it have lost.

    Nothing may be queued. Rows that may yet end later are followed from now on.
    """
    for cell in cells:
        if cell.responder is not None:
            cell.feedback.wake()
            cell.responder.watch()
    spread(cells)


def narrow(cells: Sequence[Cell]) -> None:
    """Once no lost row can end later any more: keeps back less."""
    spread(cells)
    for cell in cells:
        if cell.responder is not None:
            cell.responder.narrow()


def spread(cells: Sequence[Cell]) -> dict[str, int]:
    """Tells every step what those above it have lost; gives by fingerprint how late its lost output ends."""
    lost: dict[str, int] = {}
    moving: dict[str, bool] = {}
    for cell in sorted(cells, key=lambda c: c.depth):
        above = [child.fingerprint for child in cell.node.inputs]
        until = max((lost.get(step, MIN_TIME) for step in above), default=MIN_TIME)
        moves = any(moving.get(step, False) for step in above)
        if cell.responder is not None:
            suppression = cell.responder.suppression
            suppression.lost, suppression.moving = max(suppression.lost, until), moves
            until, moves = suppression.lost_out, moves or cell.responder.guards.moving
        lost[cell.node.fingerprint], moving[cell.node.fingerprint] = until, moves
    return lost


def start_over(cells: Sequence[Cell]) -> None:
    """Forgets all feedback; what lost something to it stays suppressed until punctuation closes it."""
    note_losses(cells)
    for cell in cells:
        if cell.responder is not None:
            cell.responder.start_over()
