"""Raw streams for tests of the ingress, and a slow, obvious ingress to hold against the fast one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from caesura.events import Item, Page
from caesura.events.page import NO_NEW_END
from caesura.io import Policy, Source, delay, from_arrow
from caesura.io.ingress.ingress import SourceIngress
from caesura.plan import Raw
from caesura.punctuation import INFINITY, MIN_TIME, cti


def schema_of(ids: pa.DataType) -> pa.Schema:
    """The full physical form, with ids of some type."""
    times = [(name, pa.int64()) for name in ("LE", "RE", "RE_new")]
    return pa.schema([("kind", pa.string()), *times, ("id", ids)])


SCHEMA = schema_of(pa.int64())


class Change(NamedTuple):
    """A row of the full physical form; None is no end."""

    kind: str
    le: int
    re: int | None
    new: int | None
    id: object


class Placed(NamedTuple):
    """A row with its lane and offset."""

    lane: int
    offset: int
    row: Change


def batch(rows: Iterable[Change], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * 5
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def source(policy: Policy | None = None, late: str = "reject", schema: pa.Schema = SCHEMA) -> Source:
    """A source in the full physical form; its rows are given to its ingress by hand."""
    return from_arrow(
        pa.Table.from_batches([], schema),
        time="LE",
        end="RE",
        kind="kind",
        new_end="RE_new",
        punctuate=policy,
        late=late,
    )


def raws(rows: Sequence[Placed], cuts: Iterable[int], schema: pa.Schema = SCHEMA) -> list[Raw]:
    """Rows cut into batches: at the given places, and where the lane changes."""
    ends = set(cuts) | {i for i in range(1, len(rows)) if rows[i].lane != rows[i - 1].lane} | {len(rows)}
    out, start = [], 0
    for end in sorted(e for e in ends if 0 < e <= len(rows)):
        part = rows[start:end]
        out.append(Raw(part[0].lane, part[0].offset, batch((p.row for p in part), schema)))
        start = end
    return out


def pushed(rows: Sequence[Placed], said: Mapping[int, int], cuts: Iterable[int]) -> list[Item]:
    """Rows as pages to be fed, with CTIs between them, and the end behind them."""
    ends = sorted({*cuts, *said, len(rows)})
    out: list[Item] = []
    start = 0
    for end in ends:
        some = [p.row for p in rows[start:end]]
        if some:
            out.append(_page(some))
        out += [cti(said[end])] if end in said else []
        start = max(start, end)
    return [*out, cti(INFINITY)]


def _page(rows: Sequence[Change]) -> Page:
    payload = pa.record_batch({"id": pa.array([row.id for row in rows], pa.int64())})
    ends = [INFINITY if row.re is None else row.re for row in rows]
    news = [NO_NEW_END if row.kind == "+" else INFINITY if row.new is None else row.new for row in rows]
    return Page.of(payload, le=[row.le for row in rows], re=ends, re_new=news)


def with_lanes(node: Source, lanes: int) -> SourceIngress:
    """The ingress of a source, as if its reader had so many lanes."""
    node.reader.lanes = lanes
    return node.operator()


def feed(ingress: SourceIngress, some: Iterable[Raw]) -> list[Item]:
    return [item for raw in some for item in ingress.raw(raw)]


def late_rows(ingress: SourceIngress) -> list[tuple[int, int, str]]:
    table = ingress.drain_late()
    if table is None:
        return []
    rows = [(r["lane"], r["offset"], r["reason"]) for r in table.to_pylist()]
    assert len(rows) == len(set(rows))
    return sorted(rows)


def obvious(
    rows: Sequence[Placed],
    lanes: int,
    lag: int | None,
    late: str,
    said: Mapping[int, int] | None = None,
    future: int | None = None,
) -> tuple[Counter, list]:
    """The history and the late rows, one row at a time; ``said`` are CTIs by the row that they precede."""
    courses: list[list[int]] = [[] for _ in range(lanes)]
    tops, there, waiting, refused = [MIN_TIME] * lanes, Counter(), [], []

    promised = MIN_TIME

    def bound(lane: int) -> int:
        own = tops[lane] - lag if lag is not None and tops[lane] > MIN_TIME else MIN_TIME
        return max(own, promised)

    def take(lane: int, row: Change) -> bool:
        mine = sorted(v for v in there if v[:3] == (row.id, row.le, row.re) and there[v] > 0)
        if not mine:
            return False
        begin = mine[0][3]
        there[mine[0]] -= 1
        if row.new > begin:
            there[(row.id, row.le, row.new, begin)] += 1
            release((row.id, row.le, row.new))
        return True

    def release(version: tuple) -> None:
        for held in waiting:
            place = held.row
            if (place.id, place.le, place.re) == version and min(place.re, place.new) >= stream:
                waiting.remove(held)
                assert take(held.lane, place)
                return

    for place, (lane, offset, raw) in enumerate(rows):
        promised = max(promised, (said or {}).get(place, MIN_TIME))
        row = raw._replace(re=INFINITY if raw.re is None else raw.re)
        if row.kind == "-":
            row = row._replace(new=INFINITY if row.new is None else row.new)
        flaw = _flaw(row)
        if flaw:
            refused.append((lane, offset, flaw))
            continue
        last = sorted(courses[lane][-16:])
        if future is not None and len(last) == 1 and last[0] <= row.le + future:
            tops[lane] = last[0]
        stream = min(map(bound, range(lanes)))
        limit = bound(lane)
        courses[lane].append(row.le)
        if future is not None and last and row.le > last[len(last) // 4] + future:
            told = f"is more than {future} ahead of its lane, which is at {last[len(last) // 4]}"
            refused.append((lane, offset, f"time {row.le} {told}"))
            continue
        tops[lane] = max(tops[lane], row.le if future is None or last else MIN_TIME)
        sync = row.le if row.kind == "+" else min(row.re, row.new)
        begin = row.le
        if sync < limit:
            if late == "reject" or row.kind == "-" or row.re <= limit:
                judged = f"time {sync} came after its lane had passed {limit}"
                refused.append((lane, offset, f"came after definite: time < {limit}" if said else judged))
                continue
            begin = limit
        if row.kind == "+":
            there[(row.id, row.le, row.re, begin)] += 1
            release((row.id, row.le, row.re))
        elif not take(lane, row):
            waiting.append(Placed(lane, offset, row))
    refused += [(p.lane, p.offset, "retract matches no event") for p in waiting]
    history: Counter = Counter()
    for (id_, _, end, begin), n in there.items():
        history[(begin, end, (id_,))] += n
    return +history, sorted(refused)


def _flaw(row: Change) -> str:
    if row.kind not in ("+", "-"):
        return "is of no known kind: not '+', '-', 'insert', 'retract'; nor, of an edge, 'start', 'end'"
    if row.re <= row.le:
        return "ends at or before its start"
    if row.kind == "-" and row.new == row.re:
        return "a retract that changes nothing"
    return "its new end is before its start" if row.kind == "-" and row.new < row.le else ""


ticks = st.integers(0, 12)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Any row, sensible or not, from so small a domain that rows meet."""
    kind = draw(st.sampled_from("++--?"))
    le = draw(ticks)
    length = st.sampled_from([1, 2, 5, 0, None, 3])
    end, new = draw(length), draw(st.sampled_from([0, 1, 2, 5, None, -1]))
    return Change(
        kind,
        le,
        None if end is None else le + end,
        None if kind == "+" or new is None else le + new,
        draw(st.integers(0, 1)),
    )


@st.composite
def chains(draw: st.DrawFn) -> list[Change]:
    """An event and up to two retracts, each of the version before it."""
    le, id_ = draw(ticks), draw(st.integers(0, 1))
    end = draw(st.sampled_from([None, le + 3]))
    out = [Change("+", le, end, None, id_)]
    for _ in range(draw(st.integers(0, 2))):
        new = le + draw(st.sampled_from([1, 2, 5, 0]))
        out.append(Change("-", le, end, new, id_))
        end = new
    return out


@st.composite
def garbled(draw: st.DrawFn, lanes: int = 1) -> list[Placed]:
    """Rows in any lanes and in any order, most of which belong to some event, and some to none."""
    parts = draw(st.lists(st.one_of(chains(), chains(), st.lists(changes(), max_size=2)), max_size=10))
    rows = [row for part in parts for row in part]
    jitter = draw(st.lists(st.integers(0, 6), min_size=len(rows), max_size=len(rows)))
    order = sorted(range(len(rows)), key=lambda i: i + jitter[i])
    offsets, out = [0] * lanes, []
    for i in order:
        lane = draw(st.integers(0, lanes - 1))
        out.append(Placed(lane, offsets[lane], rows[i]))
        offsets[lane] += 1
    return out


@st.composite
def lawful(draw: st.DrawFn) -> list[list[Change]]:
    """Two lanes of events that differ; each retract behind its event, or alone in either lane."""
    out: list[list[Change]] = [[], []]
    for id_ in range(draw(st.integers(0, 10))):
        le, lane = draw(ticks) + id_, draw(st.integers(0, 1))
        end = draw(st.sampled_from([None, le + 4, le + 9]))
        out[lane].append(Change("+", le, end, None, id_))
        new = draw(st.sampled_from([le, le + 2, le + 5]))
        if draw(st.booleans()):
            other = draw(st.integers(0, 1))
            out[other].insert(draw(st.integers(0, len(out[other]))), Change("-", le, end, new, id_))
        elif draw(st.booleans()):
            out[lane] += [Change("-", le, end, new + 1, id_), Change("-", le, new + 1, new, id_)]
    return out


__all__ = [
    "Change",
    "Placed",
    "batch",
    "delay",
    "feed",
    "garbled",
    "late_rows",
    "lawful",
    "obvious",
    "pushed",
    "raws",
    "source",
    "with_lanes",
]
