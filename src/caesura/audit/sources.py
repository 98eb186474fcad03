"""A source's rows up to a prefix, read again and judged late or not, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from caesura.audit.values import NotAuditedError
from caesura.consistency import Prefix
from caesura.errors import StreamError
from caesura.io.files import FileReader
from caesura.io.in_data import find_marks
from caesura.io.source import Source
from caesura.plan import Raw
from caesura.punctuation import Pattern
from caesura.testing.oracles.rows import Rows, same

Event = tuple[int, int, int | None, dict[str, Any]]


def rows_of(source: Source, prefix: Prefix, files: Sequence[str] | None = None) -> Rows:
    """The history that a prefix of a source makes; late and malformed rows are left out.

    ``files`` are the files that make up the prefix, in order, where it is not counted in rows.
    """
    policy = source.policy
    clock = policy.clock_lag is not None or policy.idle is not None or policy.node is not None
    many = source.reader.lanes > 1 and (policy.column is not None or source.reader.punctuates)
    if clock or many or source.late != "reject":
        raise NotAuditedError(
            f"'{source.step}' judges lateness by more than its own rows.",
            remedy="Audit a pipeline whose sources give delay(...), in_data(...) of one lane, or nothing.",
        )
    lag = policy.lags(source.time)[0]
    events: list[Event] = []
    read: dict[int, int] = {}
    tops: dict[int, int] = {}
    said: list[Pattern] = []
    if files is not None:
        for raw in _read_files(source, files):
            events += _events(source, raw, lag, tops, said)
        return _folded(events)
    if prefix.log:
        raise NotAuditedError(
            f"the rows behind {prefix.log} of '{source.step}' cannot be read again from here.",
            remedy="Audit a pipeline over files, or compare the views by hand.",
        )
    for raw in source.read({}):
        end = prefix.offsets.get(raw.lane, 0)
        if raw.offset >= end:
            continue
        part = _first(raw, end - raw.offset)
        read[raw.lane] = max(read.get(raw.lane, 0), part.offset + part.batch.num_rows)
        events += _events(source, part, lag, tops, said)
    for lane, end in prefix.offsets.items():
        if read.get(lane, 0) < end:
            raise StreamError(
                f"{end} rows of lane {lane} are claimed, and '{source.step}' has {read.get(lane, 0)}.",
                remedy="The claim is ahead of its source: the source has lost rows, or the claim is false.",
                step=source.step,
                place=source.place,
            )
    return _folded(events)


def _read_files(source: Source, files: Sequence[str]) -> Iterator[Raw]:
    reader = source.reader
    assert isinstance(reader, FileReader)
    for file in files:
        if file.endswith(reader.suffixes):
            yield from reader.read_file(file)


def _first(raw: Raw, rows: int) -> Raw:
    if rows >= raw.batch.num_rows:
        return raw
    marks = tuple(mark for mark in raw.punctuations if mark[0] < rows)
    return Raw(raw.lane, raw.offset, raw.batch.slice(0, rows), marks)


def _events(
    source: Source, raw: Raw, lag: int | None, tops: dict[int, int], said: list[Pattern]
) -> list[Event]:
    """The events of a batch that are on time; tells lanes and promises on."""
    marks = find_marks(raw, source.policy.column, source.schema, source.scheme)
    shaped = source.shape.cut(marks.batch, source.schema)
    columns = {n: c.to_pylist() for n, c in zip(source.schema.names, shaped.payload.columns, strict=True)}
    news = [None] * len(shaped.le) if shaped.re_new is None else shaped.re_new.tolist()
    flaws = [0] * len(shaped.le) if shaped.flaw is None else shaped.flaw.tolist()
    patterns = list(marks.patterns)
    out: list[Event] = []
    for i, (le, re, advance) in enumerate(
        zip(shaped.le.tolist(), shaped.re.tolist(), shaped.advance.tolist(), strict=True)
    ):
        while patterns and patterns[0][0] <= i:
            said.append(patterns.pop(0)[1])
        if flaws[i]:
            continue
        new = None if news[i] is None or news[i] == np.iinfo(np.int64).min else news[i]
        sync = le if new is None else min(re, new)
        payload = {name: column[i] for name, column in columns.items()}
        top = tops.get(raw.lane)
        late = lag is not None and top is not None and sync < top - lag
        late = late or any(p.matches_row({**payload, "time": sync}) for p in said)
        tops[raw.lane] = advance if top is None else max(top, advance)
        if not late:
            out.append((le, re, new, payload))
    said += [pattern for _, pattern in patterns]
    return out


def _folded(events: list[Event]) -> Rows:
    """The events with their corrections; a retract whose event is not there counts for nothing yet."""
    live: dict[Any, list[tuple[int, int, dict[str, Any]]]] = {}
    waiting = [e for e in events if e[2] is not None]
    for le, re, new, payload in events:
        if new is None:
            live.setdefault((le, re, same(payload)), []).append((le, re, payload))
    while waiting:
        left = []
        for le, re, new, payload in waiting:
            there = live.get((le, re, same(payload)))
            if not there:
                left.append((le, re, new, payload))
                continue
            there.pop()
            assert new is not None
            if new > le:
                live.setdefault((le, new, same(payload)), []).append((le, new, payload))
        if len(left) == len(waiting):
            break
        waiting = left
    return [row for rows in live.values() for row in rows]
