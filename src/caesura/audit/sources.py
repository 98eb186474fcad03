"""A source's rows up to a prefix, read again and judged late or not, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from caesura.audit.progress import Known, Progress
from caesura.audit.values import NotAuditedError
from caesura.consistency import Prefix
from caesura.errors import StreamError
from caesura.io.ingress.future_bound import ROWS
from caesura.io.ingress.in_data import find_marks
from caesura.io.sources.source import Source
from caesura.plan import Raw
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, Promises
from caesura.punctuation.writers import WriterPromises
from caesura.testing.oracles.rows import Rows, same


class EnteredRow(NamedTuple):
    """A row that has entered: an insert, or a retract to another end."""

    le: int
    re: int
    new: int | None
    payload: dict[str, Any]
    start: int
    """Where it starts; later than its own start where it came late and was adjusted."""


@dataclass
class ReplayedSource:
    """A source read again: what has entered, and what it could promise."""

    events: list[EnteredRow] = field(default_factory=list)
    tops: dict[int, int] = field(default_factory=dict)
    punctuation: list[Pattern] = field(default_factory=list)
    """Punctuation found in the data, in its order."""
    recent_times: dict[int, list[int]] = field(default_factory=dict)
    writers: WriterPromises = field(default_factory=WriterPromises)

    def reference(self, lane: int, time: int) -> int | None:
        """What a row is held against that a bound on the future may refuse; None for a lane's first."""
        recent = self.recent_times.setdefault(lane, [])
        before = sorted(recent)
        recent.append(time)
        del recent[:-ROWS]
        return before[len(before) // 4] if before else None

    def promised(self, lanes: int, lag: int | None) -> list[Pattern]:
        """What the rows allow to promise: what was said, and the slowest lane's time minus the delay."""
        tops = [self.tops.get(lane) for lane in range(max(lanes, len(self.tops)))]
        known = [top for top in tops if top is not None]
        if lag is None or not known or len(known) < len(tops):
            return list(self.punctuation)
        return [*self.punctuation, Pattern.before(min(known) - lag)]


def given_by(source: Source, prefix: Prefix, files: Sequence[str] | None = None) -> Known:
    """The history and the punctuation of a prefix of a source; late and malformed rows are left out.

    ``files`` are the files that make up the prefix, in order, where it is not counted in rows.
    """
    policy = source.policy
    clock = policy.clock_lag is not None or policy.idle is not None or policy.node is not None
    many = source.reader.lanes > 1 and (policy.column is not None or source.reader.punctuates)
    moved = source.late == "adjust" and not source.shape.insert_only
    if clock or many or moved:
        raise NotAuditedError(
            f"'{source.step}' judges lateness by more than its own rows.",
            remedy="Audit a pipeline whose sources give delay(...), in_data(...) of one lane, or nothing.",
        )
    lag = policy.lags(source.time)[0]
    judged = ReplayedSource()
    if files is not None:
        for raw in _read_files(source, files):
            _judge(source, raw, lag, judged)
        progress = Progress(tuple(judged.promised(source.reader.lanes, lag)))
        return Known(_folded(judged.events), progress if policy.every == 1 else None)
    if prefix.log:
        raise NotAuditedError(
            f"the rows behind {prefix.log} of '{source.step}' cannot be read again from here.",
            remedy="Audit a pipeline over files, or compare the views by hand.",
        )
    if lost := source.reader.cannot_replay():
        raise NotAuditedError(
            f"'{source.step}' cannot be read again: {lost}.",
            remedy="Audit a pipeline over files or tables, or compare the views by hand.",
        )
    _read_prefix(source, prefix, lag, judged)
    promised = judged.promised(source.reader.lanes, lag)
    if source.holds_always and source.reader.latest() == {0: len(judged.events) + 1}:
        promised.append(Pattern())  # a table says so behind its last row
    _check_promises(source, prefix, promised)
    at_end = prefix.closed and Promises(prefix.definite).cti == INFINITY
    punctuation = (*promised, Pattern()) if at_end else prefix.definite
    return Known(_folded(judged.events), Progress(punctuation))


def rows_of(source: Source, prefix: Prefix, files: Sequence[str] | None = None) -> Rows:
    """The history that a prefix of a source makes."""
    return given_by(source, prefix, files).rows


def _read_prefix(source: Source, prefix: Prefix, lag: int | None, judged: ReplayedSource) -> None:
    read: dict[int, int] = {}
    for part in source.read_between({}, prefix.offsets):
        read[part.lane] = max(read.get(part.lane, 0), part.end)
        _judge(source, part, lag, judged)
    for lane, end in prefix.offsets.items():
        if read.get(lane, 0) < end:
            raise StreamError(
                f"{end} rows of lane {lane} are claimed, and '{source.step}' has {read.get(lane, 0)}.",
                remedy="The claim is ahead of its source: the source has lost rows, or the claim is false.",
                step=source.step,
                place=source.place,
            )


def _check_promises(source: Source, prefix: Prefix, promised: Sequence[Pattern]) -> None:
    """Refuses a claim under punctuation that its rows do not bear out."""
    allowed = Promises(promised)
    over = [pattern for pattern in prefix.definite if not allowed.covers(pattern)]
    if over and not prefix.closed:
        shown = ", ".join(map(str, allowed.patterns())) or "nothing"
        raise StreamError(
            f"'{over[0]}' is claimed of '{source.step}', and the rows of the prefix promise {shown}.",
            remedy="The claim is ahead of its source: the source has changed, or the claim is false.",
            step=source.step,
            place=source.place,
        )


def _read_files(source: Source, files: Sequence[str]) -> Iterator[Raw]:
    reader = source.reader.as_files
    for file in files:
        if file.endswith(reader.suffixes):
            yield from reader.read_file(file)


def _judge(source: Source, raw: Raw, lag: int | None, judged: ReplayedSource) -> None:
    """Takes in the events of a batch that are on time; tells lanes and promises on."""
    marks = find_marks(raw, source.policy.column, source.schema, source.scheme)
    shaped = source.shape.cut(marks.batch, source.schema)
    columns = {n: c.to_pylist() for n, c in zip(source.schema.names, shaped.payload.columns, strict=True)}
    news = [None] * len(shaped.le) if shaped.re_new is None else shaped.re_new.tolist()
    flaws = [0] * len(shaped.le) if shaped.flaw is None else shaped.flaw.tolist()
    given = [(at, judged.writers.held(raw.lane, promise)) for at, promise in marks.patterns]
    patterns = [(at, pattern) for at, held in given for pattern in held]
    tops, ahead = judged.tops, source.policy.ahead(source.time)
    times = zip(shaped.le.tolist(), shaped.page.re.tolist(), shaped.advance.tolist(), strict=True)
    for i, (le, re, advance) in enumerate(times):
        while patterns and patterns[0][0] <= i:
            judged.punctuation.append(patterns.pop(0)[1])
        if flaws[i]:
            continue
        new = None if news[i] is None or news[i] == np.iinfo(np.int64).min else news[i]
        payload = {name: column[i] for name, column in columns.items()}
        top = tops.get(raw.lane)
        bound = MIN_TIME if lag is None or top is None else top - lag
        reference = judged.reference(raw.lane, advance)
        if ahead is not None and top is None and reference is not None and reference - ahead.ticks <= advance:
            tops[raw.lane] = top = reference
            bound = MIN_TIME if lag is None else top - lag
        if ahead is not None and reference is not None and advance > reference + ahead.ticks:
            continue
        if ahead is None or reference is not None:
            tops[raw.lane] = advance if top is None else max(top, advance)
        start = _start(source, judged.punctuation, bound, le, re, new, payload)
        if start is not None:
            judged.events.append(EnteredRow(le, re, new, payload, start))
    judged.punctuation += [pattern for _, pattern in patterns]


def _start(
    source: Source,
    punctuation: Sequence[Pattern],
    bound: int,
    le: int,
    re: int,
    new: int | None,
    payload: Mapping[str, Any],
) -> int | None:
    """Where a row starts, or None where it is late."""
    sync = le if new is None else min(re, new)
    bounds = [t for p in punctuation if p.attributes == ("time",) and (t := p.time_bound) is not None]
    limit = max([bound, *bounds])
    adjusted = sync < limit and source.late == "adjust" and re > limit
    if sync < limit and not adjusted:
        return None
    at = limit if adjusted else sync
    if any(p.matches_row({**payload, "time": at}) for p in punctuation):
        return None
    return limit if adjusted else le


def _folded(events: list[EnteredRow]) -> Rows:
    """The events with their corrections; a retract whose event is not there counts for nothing yet."""
    live: dict[Any, list[tuple[int, int, dict[str, Any]]]] = {}
    waiting = [e for e in events if e.new is not None]
    for one in events:
        if one.new is None:
            live.setdefault((one.le, one.re, same(one.payload)), []).append((one.start, one.re, one.payload))
    while waiting:
        left = []
        for one in waiting:
            there = live.get((one.le, one.re, same(one.payload)))
            if not there:
                left.append(one)
                continue
            there.pop()
            assert one.new is not None
            if one.new > one.le:
                after = (one.le, one.new, one.payload)
                live.setdefault((one.le, one.new, same(one.payload)), []).append(after)
        if len(left) == len(waiting):
            break
        waiting = left
    return [row for rows in live.values() for row in rows]
