"""How a query stands, in files beside its checkpoint: for whoever looks from another process.

The plan is written when the query is started, the status behind every epoch; both are read by name alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from caesura.errors import StreamError
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.places.lease import is_held
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.plan_shape import PlanShape
from caesura.runtime.metrics.read_rate import ReadRate
from caesura.runtime.metrics.status import Board

log = logging.getLogger("caesura.epochs")
STATUS, PLAN = "status.json", "plan.json"
REMEDY = "Take it away: the next start, or epoch, writes it anew."


ON_SPARK, IN_A_PROCESS = "on Spark", "in a process"


def save_shape(
    checkpoint: Place, shape: PlanShape, *, name: str, timed: bool, folder: str = "", host: str = ON_SPARK
) -> None:
    """Writes the plan that a query is started with, where it runs, and the folder that its sink fills."""
    own = {"name": name, "timed": timed, "began": time.time(), "folder": folder, "host": host}
    told = {**own, "steps": shape.to_json()}
    (checkpoint / PLAN).put(json.dumps(told).encode())


def save_status(checkpoint: Place, board: Board, epoch: int, seconds: float) -> None:
    """Writes how a query stands behind an epoch that took so many seconds to write."""
    if not board.course:
        board.course = _earlier_course(checkpoint)
    board.note_epoch(epoch, seconds, time.time())
    told = {**board.to_json(), "epoch": epoch, "seconds": seconds, "at": time.time()}
    (checkpoint / STATUS).put(json.dumps(told).encode())


def _earlier_course(checkpoint: Place) -> list[dict[str, Any]]:
    """The epochs of an earlier start; none where its status is damaged: it is written anew."""
    try:
        return saved_board(checkpoint).course
    except StreamError as error:
        log.warning("the status of an earlier start is not read: %s", error)
        return []


def saved_board(checkpoint: Place) -> Board:
    """What all buckets had told as of the last epoch."""
    told = _told(checkpoint)
    return Board() if told is None else Board.from_json(told)


def _told(checkpoint: Place) -> Mapping[str, Any] | None:
    file = checkpoint / STATUS
    return read_json(file, REMEDY, wants=("reports", "unread", "forgotten")) if file.is_file() else None


class SavedFigures:
    """A query that runs in another process, or did, as its checkpoint tells."""

    def __init__(self, checkpoint: Place) -> None:
        file = checkpoint / PLAN
        if not file.is_file():
            raise StreamError(
                f"'{checkpoint}' has no {PLAN}: no query was started on it that could be looked at.",
                remedy="Give what was checkpoint= when a query was started, or the folder of its sink.",
            )
        told = read_json(file, REMEDY, wants=("steps", "name", "timed", "began"))
        self._checkpoint = checkpoint
        self._rate: ReadRate | None = None
        """From the first look on: what was read before says nothing of how fast."""
        self.shape, self.name = PlanShape.from_json(told["steps"]), str(told["name"])
        self.host = str(told.get("host", ON_SPARK))
        """Where it runs, in words."""
        self.folder = str(told.get("folder", ""))
        """Where the sink writes; empty where that is no folder."""
        self._timed, self._began = bool(told["timed"]), float(told["began"])

    def board(self) -> Board:
        """What all buckets had told as of the last epoch."""
        return saved_board(self._checkpoint)

    def read(self) -> Figures:
        """The query as of its last epoch."""
        told = _told(self._checkpoint)
        active = is_held(self._checkpoint)
        board = Board() if told is None else Board.from_json(told)
        status = board.status()
        if told is not None:
            rows = sum(source.rows for source in status.sources.values())
            self._rate = self._rate or ReadRate(rows)
            rate = self._rate.of(rows)
            epoch, seconds = int(told.get("epoch", -1)), float(told.get("seconds", 0.0))
            status = replace(status, epoch=epoch, seconds=seconds, rows_per_second=rate)
        return Figures(
            self.name, status, active=active, timed=self._timed, began=self._began, buckets=board.buckets()
        )
