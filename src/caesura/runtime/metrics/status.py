"""How a query that runs in buckets stands: what each step has done and holds, how far time has come.

Every bucket reports with its epoch; the board adds the reports up. A promise is what all buckets give.

>>> board = Board()
>>> for bucket, bound in (("0", 10), ("1", 8)):
...     step = {"rows_in": 5, "rows_out": 2, "state_rows": 3, "state_bytes": 90, "promised": bound}
...     board.take(f"1:{bucket}", {"steps": {"join": step}, "sources": {}})
>>> board.status().steps["join"].rows_in, board.status().steps["join"].promised
(10, 8)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from caesura.events.show.html import table
from caesura.io.ingress.ingress import SourceIngress
from caesura.plan.operator import Counters
from caesura.plan.step_log import StepLog, observed_by
from caesura.plan.tally import Number, Tallies, Tally, together
from caesura.punctuation import MIN_TIME

if TYPE_CHECKING:
    from caesura.runtime.graph.cell import Cell

log = logging.getLogger("caesura.epochs")
COURSE = 120
"""How many of the last epochs are known one by one."""


@dataclass(frozen=True)
class StepStatus:
    """One step, over all buckets."""

    stage: int = 0
    rows_in: int = 0
    rows_out: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    promised: int = MIN_TIME
    """The time up to which its output is definite."""
    held_by: str = ""
    extra: Mapping[str, int] = field(default_factory=dict)
    """What only some steps count: the rounds, guesses, lag and longest silence of a loop, and their like."""
    feedback: Mapping[str, int] = field(default_factory=dict)
    """What feedback did: guards put up and gone, rows stopped at each place, messages sent."""
    observed: Tallies = field(default_factory=dict)
    """What `observe` counts, by the user's names."""

    @staticmethod
    def told(report: Mapping[str, Any]) -> StepStatus:
        """A step as a bucket has reported of it."""
        observed = {name: Tally.from_json(tally) for name, tally in report.get("observed", {}).items()}
        return StepStatus(**{**report, "observed": observed})

    def plus(self, other: StepStatus) -> StepStatus:
        return StepStatus(
            self.stage,
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.state_rows + other.state_rows,
            self.state_bytes + other.state_bytes,
            min(self.promised, other.promised),
            self.held_by or other.held_by,
            _added(self.extra, other.extra),
            _added(self.feedback, other.feedback),
            together(self.observed, other.observed),
        )


def _added(mine: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    return {n: _together(n, mine.get(n, 0), theirs.get(n, 0)) for n in {**mine, **theirs}}


def _together(name: str, mine: int, theirs: int) -> int:
    """What two buckets count: distances are the greatest, all else adds up."""
    return max(mine, theirs) if name in ("lag", "silence") else mine + theirs


@dataclass(frozen=True)
class SourceStatus:
    """One source: rows read, rows refused, the latest time seen and the time promised."""

    rows: int = 0
    late: int = 0
    latest: int = MIN_TIME
    promised: int = MIN_TIME
    rows_unread: int = 0
    bytes_unread: int = 0
    """What feedback has saved from being read, since the query was started."""
    rows_first: int = 0
    """How many rows were read before others that came first, since the query was started."""
    late_dropped: int = 0
    """How many of the refused rows are no longer kept, because of a limit that the user has set."""

    def plus(self, other: SourceStatus) -> SourceStatus:
        return SourceStatus(
            max(self.rows, other.rows),
            self.late + other.late,
            max(self.latest, other.latest),
            min(self.promised, other.promised),
            late_dropped=self.late_dropped + other.late_dropped,
        )


@dataclass(frozen=True)
class Status:
    """A running query at a moment."""

    steps: Mapping[str, StepStatus] = field(default_factory=dict)
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    epoch: int = -1
    seconds: float = 0.0
    """How long the last epoch took."""
    rows_per_second: float = 0.0

    @property
    def latest(self) -> int:
        """The latest time that any source has seen."""
        return max((s.latest for s in self.sources.values()), default=MIN_TIME)

    @property
    def observed(self) -> dict[str, dict[str, Number | None]]:
        """What `Stream.observe` has counted since the query's first start, by its names."""
        return observed_by(self.steps)

    def log(self, *steps: str) -> StepLog:
        """What these steps, or all behind the first exchange, have counted, with the user's own keys."""
        return StepLog(self.steps, steps)

    def counters(self) -> dict[str, Counters]:
        """What each step behind the first exchange has done and holds, as a query in one process tells it."""
        own = ("rows_in", "rows_out", "state_rows", "state_bytes", "held_by")
        return {
            name: Counters(
                **{field: getattr(step, field) for field in own},
                extra=dict(step.extra),
                feedback=dict(step.feedback),
                observed=step.observed,
            )
            for name, step in self.steps.items()
        }

    def lag(self, step: str) -> int | None:
        """How far a step's promise is behind the latest time seen; None before it has promised anything."""
        promised = self.steps[step].promised
        return None if promised == MIN_TIME else max(0, self.latest - promised)

    def _repr_html_(self) -> str:
        heads = ("step", "stage", "in", "out", "state rows", "state bytes", "behind", "held by")
        rows = (
            (n, s.stage, s.rows_in, s.rows_out, s.state_rows, s.state_bytes, self.lag(n), s.held_by)
            for n, s in self.steps.items()
        )
        late = sum(source.late for source in self.sources.values())
        dropped = sum(source.late_dropped for source in self.sources.values())
        note = f"epoch {self.epoch}, {self.rows_per_second:,.0f} rows/s, {late} late"
        note += f" ({dropped} of them no longer kept)" if dropped else ""
        return table(heads, rows, note=note)

    def to_json(self) -> dict[str, Any]:
        """The status as plain values, with the lag of every step."""
        data = asdict(self)
        for name, step in data["steps"].items():
            step["lag"] = self.lag(name)
            step["observed"] = {what: tally.value for what, tally in self.steps[name].observed.items()}
        return data


@dataclass(frozen=True)
class BucketLoad:
    """What one bucket of a stage has taken and holds: who compares them sees a key with too many rows."""

    rows_in: int = 0
    state_rows: int = 0
    state_bytes: int = 0


def step_report(cell: Cell, stage: int) -> dict[str, Any]:
    """How one step stands, as plain values of `StepStatus`."""
    cell.feedback.measure()
    counted = cell.operator.measure()
    last = counted.punctuation_out
    bound = None if last is None else last.pattern.time_bound
    return {
        "stage": stage,
        "rows_in": counted.rows_in,
        "rows_out": counted.rows_out,
        "state_rows": counted.state_rows,
        "state_bytes": counted.state_bytes,
        "promised": MIN_TIME if bound is None else bound,
        "held_by": counted.held_by,
        "extra": dict(counted.extra),
        "feedback": dict(counted.feedback),
        "observed": {name: tally.to_json() for name, tally in counted.observed.items()},
    }


def status_of(cells: Iterable[Cell], epoch: int) -> Status:
    """A query in this process at a moment, from its cells."""
    steps, sources = {}, {}
    for cell in cells:
        if isinstance(cell.operator, SourceIngress):
            sources[cell.node.fed or cell.label] = _source_status(cell.operator)
        elif not cell.node.fed:
            steps[cell.label] = StepStatus.told(step_report(cell, 0))
    return Status(steps, sources, epoch)


def _source_status(ingress: SourceIngress) -> SourceStatus:
    latest = max((lane.top for lane in ingress.lanes.lanes.values()), default=MIN_TIME)
    late, dropped = ingress.table.count, ingress.table.dropped
    spared = ingress.counters.feedback
    return SourceStatus(
        ingress.counters.rows_in,
        late,
        latest,
        ingress.bound,
        rows_unread=spared.get("rows not read", 0),
        bytes_unread=spared.get("bytes not read", 0),
        rows_first=spared.get("rows read first", 0),
        late_dropped=dropped,
    )


def log_epoch(status: Status, epoch: int, seconds: float, query: str) -> None:
    """A line in the log for an epoch that was written."""
    rows = sum(source.rows for source in status.sources.values())
    late = sum(source.late for source in status.sources.values())
    facts = {"query": query, "epoch": epoch, "rows": rows, "late": late, "seconds": round(seconds, 3)}
    log.info("epoch %d written: %d rows read so far, %d late", epoch, rows, late, extra=facts)
    if log.isEnabledFor(logging.DEBUG):
        log_steps(status, epoch, query)


def log_steps(status: Status, epoch: int, query: str) -> None:
    """A line in the log for each step, behind an epoch."""
    for name, step in status.steps.items():
        facts: dict[str, Any] = {
            "rows_in": step.rows_in,
            "rows_out": step.rows_out,
            "state_rows": step.state_rows,
        }
        facts |= {"lag": status.lag(name), "held_by": step.held_by}
        named = {"query": query, "epoch": epoch, "step": name, "stage": step.stage}
        log.debug("step %s: %d rows in, %d out", name, step.rows_in, step.rows_out, extra={**named, **facts})


class Board:
    """The last report of every bucket of every stage."""

    def __init__(self) -> None:
        self._reports: dict[str, Mapping[str, Any]] = {}
        self._unread: dict[str, tuple[int, int, int]] = {}
        self._forgotten: dict[str, int] = {}
        self.course: list[dict[str, Any]] = []
        """How each source stood behind the last epochs: when, rows, late rows, latest time, promise."""

    @staticmethod
    def given_to(sink: Any) -> None:
        """Gives a sink a board, unless it has one."""
        if not hasattr(sink, "board"):
            sink.board = Board()

    def note_epoch(self, epoch: int, seconds: float, at: float) -> None:
        """An epoch was written, in so many seconds; the oldest that is known is forgotten."""
        sources = {
            name: [one.rows, one.late, one.latest, one.promised]
            for name, one in self.status().sources.items()
        }
        told = {"epoch": epoch, "at": round(at, 3), "seconds": round(seconds, 3), "sources": sources}
        self.course = [*self.course, told][-COURSE:]

    def to_json(self) -> dict[str, Any]:
        """Everything on it, as plain values."""
        own = {"reports": self._reports, "unread": self._unread, "forgotten": self._forgotten}
        return {**own, "course": self.course}

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Board:
        """The board that told this."""
        made = Board()
        made._reports, made._forgotten = told["reports"], told["forgotten"]
        made.course = list(told.get("course", ()))
        made._unread = {source: (rows, size, first) for source, (rows, size, first) in told["unread"].items()}
        return made

    def note_unread(self, report: Mapping[str, Any]) -> None:
        """A source did not read so many rows and bytes, and some parts before others."""
        rows, size, first = self._unread.get(report["source"], (0, 0, 0))
        more = (rows + report["rows"], size + report["bytes"], first + report["first"])
        self._unread[report["source"]] = more

    def forget(self, source: str, rows: int) -> None:
        """So many late rows of a source are no longer kept."""
        self._forgotten[source] = self._forgotten.get(source, 0) + rows

    def take(self, origin: str, report: Mapping[str, Any]) -> None:
        """A bucket's report; it replaces the one before."""
        self._reports[origin] = report

    def buckets(self) -> dict[tuple[int, int], BucketLoad]:
        """What each bucket of each stage has taken and holds, from its last report."""
        loads = {}
        for origin, report in self._reports.items():
            stage, _, bucket = origin.rpartition(":")
            steps = report["steps"].values()
            rows = max((step["rows_in"] for step in steps), default=0)
            held = (sum(step[name] for step in steps) for name in ("state_rows", "state_bytes"))
            loads[int(stage.rpartition(":")[2] or 0), int(bucket)] = BucketLoad(rows, *held)
        return loads

    def status(self) -> Status:
        """All reports together; a step whose name another stage has too is called ``name@stage``."""
        placed: dict[tuple[int, str], StepStatus] = {}
        sources: dict[str, SourceStatus] = {}
        for report in self._reports.values():
            for name, values in report["steps"].items():
                one = StepStatus.told(values)
                place = (one.stage, name)
                placed[place] = placed[place].plus(one) if place in placed else one
            for name, values in report["sources"].items():
                read = SourceStatus(**values)
                sources[name] = sources[name].plus(read) if name in sources else read
        for name, (rows, size, first) in self._unread.items():
            known = sources.get(name, SourceStatus())
            sources[name] = replace(known, rows_unread=rows, bytes_unread=size, rows_first=first)
        for name, dropped in self._forgotten.items():
            known = sources.get(name, SourceStatus())
            sources[name] = replace(known, late_dropped=known.late_dropped + dropped)
        steps: dict[str, StepStatus] = {}
        for stage, name in sorted(placed, key=lambda place: place[0]):
            steps[f"{name}@{stage}" if name in steps else name] = placed[stage, name]
        return Status(steps, sources)
