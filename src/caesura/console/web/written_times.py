"""The times of a query as it has written them: in the status of its checkpoint, in the folder of its sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.consistency import Claim
from caesura.console.web.charts import bins_of, bounds_of, counted
from caesura.console.web.sink_folder import SinkFolder
from caesura.console.web.times import MAX_CHANGES, Arrival, Bin, LateExcerpt, OutputRows, SeenEpoch
from caesura.io.ingress.refusals import behind_bound
from caesura.io.sinks.protocol import LATE
from caesura.punctuation import MIN_TIME
from caesura.runtime.metrics.plan_shape import PlanShape
from caesura.runtime.metrics.status import Board, Status

LATE_COUNTED = 20_000
NO_COLUMNS = pa.schema([])
FIXED_ENDS = ("insert-only", "points", "fixed ends")
"""What `Properties` says of rows whose ends never change."""
NO_FOLDER = (
    'Rows can be seen here of queries that write Parquet files (sink="folder"); this one writes elsewhere.'
)


class WrittenTimes:
    """Answers the page of time from what is written behind every epoch."""

    def __init__(
        self,
        shape: PlanShape,
        board: Callable[[], Board],
        folder: SinkFolder | None,
        parts: Callable[[], Mapping[int, Mapping[str, float]]] | None = None,
    ) -> None:
        self._shape, self._board, self._folder = shape, board, folder
        self._parts = parts or dict
        """What the last epochs spent their seconds on, where somebody knows."""

    def outputs(self) -> Sequence[str]:
        planned = [name for step in self._shape.steps for name in step.outputs]
        return planned or ([] if self._folder is None else self._folder.outputs())

    def sources(self) -> Sequence[str]:
        planned = [step.label for step in self._shape.steps if step.source]
        return planned or ([] if self._folder is None else self._folder.sources())

    def changes(self, output: str) -> OutputRows:
        step = next((step for step in self._shape.steps if output in step.outputs), None)
        status = self._board().status()
        definite = _promised(status, None if step is None else step.label)
        fixed = step is not None and any(word in step.known for word in FIXED_ENDS)
        if self._folder is None:
            return OutputRows((), NO_COLUMNS, None, definite, fixed, NO_FOLDER)
        pages, schema, time = self._folder.changes(output, MAX_CHANGES)
        return OutputRows(tuple(pages), schema, time, definite, fixed)

    def arrivals(self, source: str) -> Sequence[Arrival]:
        seen = []
        for one in self._board().course:
            told = one["sources"].get(source)
            if told is not None:
                seen.append(Arrival(float(one["at"]), *map(int, told)))
        return seen

    def lateness(self, source: str) -> Sequence[Bin]:
        status = self._board().status()
        bounds = bounds_of(max((s.latest for s in status.sources.values()), default=MIN_TIME))
        kept = 0 if self._folder is None else self._folder.late_kept(source)
        rows = (
            None
            if self._folder is None
            else self._folder.late(source, max(0, kept - LATE_COUNTED), LATE_COUNTED)
        )
        if rows is None or not {"reason", "LE"} <= set(rows.column_names):
            return ()
        late = counted(behind_bound(rows, rows.schema.field("LE").type), bounds)
        late[0] = 0  # malformed ones lie behind nothing
        return bins_of(np.zeros_like(late).tolist(), late.tolist(), bounds)

    def late(self, source: str, first: int, count: int) -> LateExcerpt:
        told = self._board().status().sources.get(source)
        refused = 0 if told is None else told.late
        if self._folder is None:
            return LateExcerpt(None, 0, refused, NO_FOLDER)
        kept = self._folder.late_kept(source)
        return LateExcerpt(self._folder.late(source, first, count), kept, max(refused, kept))

    def epochs(self) -> Sequence[SeenEpoch]:
        return written_epochs(self._board(), self._folder, self._parts())

    def claims(self) -> Sequence[Claim]:
        return [] if self._folder is None else self._folder.claims()


def written_epochs(
    board: Board, folder: SinkFolder | None, parts: Mapping[int, Mapping[str, float]]
) -> list[SeenEpoch]:
    """The epochs that a status, a folder or Spark know of, the oldest first."""
    course = {int(one["epoch"]): one for one in board.course}
    commits = {} if folder is None else folder.commits
    return [
        _epoch(number, course.get(number), parts.get(number, {}), commits.get(number, []))
        for number in sorted({*course, *commits, *parts})
    ]


def _epoch(
    number: int, told: Mapping[str, Any] | None, parts: Mapping[str, float], files: Sequence[Any]
) -> SeenEpoch:
    written: dict[str, int] = {}
    for part in files:
        name = "late" if part.output == LATE else part.output
        written[name] = written.get(name, 0) + part.rows
    seconds = parts.get("triggerExecution", 0.0) or (0.0 if told is None else float(told["seconds"]))
    own = {name: spent for name, spent in parts.items() if name != "triggerExecution"}
    if told is None:
        return SeenEpoch(number, 0.0, seconds, None, None, own, written)
    sources = told["sources"].values()
    rows, late = (sum(int(one[at]) for one in sources) for at in (0, 1))
    return SeenEpoch(number, float(told["at"]), seconds, rows, late, own or {"writing": seconds}, written)


def _promised(status: Status, label: str | None) -> int:
    """How far an output is definite: by its step, or, where that is not counted, by the sources."""
    step = status.steps.get(label or "")
    if step is not None:
        return step.promised
    return min((source.promised for source in status.sources.values()), default=MIN_TIME)
