"""Plans that together hold every operator, and sources whose rows are cut as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import caesura as cz
from caesura import Stream, col, lit, qre
from caesura.events import NO_NEW_END, Item, Page, parse
from caesura.io import Reader, Source, delay
from caesura.io.ingress.shape import Shape
from caesura.ops.deliver import Deliver
from caesura.plan import Raw
from caesura.punctuation import INFINITY

OWN = [("kind", pa.string()), ("from", pa.int64()), ("to", pa.int64()), ("now", pa.int64())]


@dataclass(frozen=True)
class Scripted(Reader):
    """A reader that gives these batches."""

    key: str
    schema: pa.Schema
    raws: tuple[Raw, ...]
    lanes: int = 1
    punctuates: bool = False

    def read(self, offsets: Mapping[int, int]) -> Iterator[Raw]:
        return iter(self.raws)

    def describe(self) -> str:
        return self.key


def scripted(
    name: str,
    payload: pa.Schema,
    items: Sequence[Item],
    lanes: Sequence[int],
    cuts: Sequence[int],
    lag: int,
    future: int | None = None,
) -> Source:
    """A source in full physical form: rows dealt to lanes, each lane cut into batches in turn.

    All changes of an event lie in one lane: order is guaranteed only there.
    """
    schema = pa.schema([*OWN, *payload])
    rows = [row for item in items if isinstance(item, Page) for row in _raw_rows(item, payload)]
    count = max(lanes) + 1
    dealt = [[r for r in rows if lanes[_spread(r) % len(lanes)] == n] for n in range(count)]
    raws: list[Raw] = []
    at, turn = [0] * count, 0
    while any(a < len(d) for a, d in zip(at, dealt, strict=True)):
        lane, size = turn % count, cuts[turn % len(cuts)]
        part = dealt[lane][at[lane] : at[lane] + size]
        if part:
            raws.append(Raw(lane, at[lane], pa.RecordBatch.from_pylist(part, schema)))
        at[lane] += len(part)
        turn += 1
    shape = Shape.of(time="from", end="to", kind="kind", new_end="now")
    reader = Scripted(name, schema, tuple(raws), count)
    return Source(reader=reader, shape=shape, policy=delay(lag, future=future), name=name)


def _spread(row: dict[str, Any]) -> int:
    """A number that is the same for all changes of an event."""
    own = [value for name, value in row.items() if name not in ("kind", "to", "now")]
    return sum(map(ord, str([value + 0.0 if isinstance(value, float) else value for value in own])))


def _raw_rows(page: Page, payload: pa.Schema) -> Iterator[dict[str, Any]]:
    for le, re, new, values in page.rows():
        kept = new is None or new == NO_NEW_END
        ends = {"to": None if re == INFINITY else re, "now": None if kept or new == INFINITY else new}
        yield {
            "kind": "+" if kept else "-",
            "from": le,
            **ends,
            **dict(zip(payload.names, values, strict=True)),
        }


def inserts(
    name: str,
    payload: pa.Schema,
    items: Sequence[Item],
    cuts: Sequence[int],
    lag: int,
    future: int | None = None,
) -> Source:
    """A source of intervals: what the items insert, as it comes."""
    full = scripted(name, payload, items, [0], cuts, lag)
    assert isinstance(full.reader, Scripted)
    raws = [Raw(0, raw.offset, raw.batch.drop_columns(["kind", "now"])) for raw in full.reader.raws]
    schema = pa.schema([f for f in full.reader.schema if f.name not in ("kind", "now")])
    reader = Scripted(name, schema, tuple(raws))
    policy = delay(lag, future=future)
    return Source(reader=reader, shape=Shape.of(time="from", end="to"), policy=policy, name=name)


def has_rows(source: Source) -> bool:
    """Whether a scripted source gives any row: the first draw gives none, and shows little."""
    assert isinstance(source.reader, Scripted)
    return bool(source.reader.raws)


def output(stream: Stream, mode: Any) -> Stream:
    return Stream(Deliver(inputs=(stream.node,), mode=mode))


MADE = {
    "n": cz.count(),
    "total": cz.sum("v"),
    "low": cz.min("v"),
    "high": cz.max("v"),
    "mean": cz.avg("v"),
}
Build = Callable[[Stream, Stream], Stream]
WHOLE = {
    "n": cz.count(),
    "some": cz.count(where=col("v") > 0),
    "ids": cz.sum("id"),
    "few": cz.sum("id", where=col("v") > 1),
    "mean": cz.avg("id", where=col("v") > 0),
    "least": cz.min("v"),
    "most": cz.max("v"),
}
"""Aggregates that every bucket can have a share of."""
SPLIT = {
    **WHOLE,
    "total": cz.sum("v"),
    "average": cz.avg("v", where=col("id") > 0),
    "varies": cz.variance("v"),
    "deviates": cz.stddev("id", ddof=0),
    "together": cz.covar_samp("id", "v"),
    "related": cz.corr("id", "v"),
    "money": cz.sum(col("id").cast("decimal(20, 2)")),
    "different": cz.approx_count_distinct("v"),
    "positive": cz.bool_and(col("v") > 0),
}
"""The same of a key, where the plan asks for it."""


def matched(rows: Stream, by: str, shown: str, rises: str) -> Stream:
    """Rows that match a pattern."""
    measures = "MEASURES MATCH_NUMBER() AS m, COUNT(*) AS n, LAST(B.v) AS last"
    pattern = f"PATTERN (A B*) DEFINE B AS {rises}"
    text = f"SELECT * FROM a MATCH_RECOGNIZE ({by} ORDER BY ts {measures} {shown} {pattern})"
    return cz.sql(text, a=rows.with_columns(ts=cz.start()))


PLANS: dict[str, Build] = {
    "a source alone": lambda a, b: a,
    "where and select": lambda a, b: a.where(col("v") > 0).select("id", w=col("v") + 1),
    "union": lambda a, b: a.select("id").union(b.select("id")),
    "distinct": lambda a, b: a.select("id").distinct(),
    "difference of bags": lambda a, b: a.select("id").difference(b.select("id")),
    "difference of sets": lambda a, b: a.select("id").difference(b.select("id"), mode="set"),
    "totals by key": lambda a, b: a.group_by("id").totals(**MADE),
    "totals of all": lambda a, b: a.totals(**MADE),
    "totals by window of starts": lambda a, b: (
        a.set_duration(2).bucket("LE", 4).group_by("wid").totals(**MADE)
    ),
    "shift": lambda a, b: a.shift(3).group_by("id").tumbling(5).agg(n=cz.count()),
    "set_duration": lambda a, b: a.set_duration(4),
    "extend": lambda a, b: a.extend(-2),
    "scale": lambda a, b: a.scale(2),
    "start_at": lambda a, b: a.start_at(4),
    "points_at_start": lambda a, b: a.points_at_start(),
    "points_at_end": lambda a, b: a.points_at_end(),
    "chop": lambda a, b: a.chop(4),
    "clip": lambda a, b: a.clip(b, "id"),
    "as-of join": lambda a, b: a.join_asof(b.select("id", w=col("id") + 1), "id"),
    "as-of join, forward": lambda a, b: a.join_asof(
        b.select("id", w=col("id") + 1), "id", direction="forward"
    ),
    "as-of join, nearest": lambda a, b: a.join_asof(
        b.select("id", w=col("id") + 1), "id", direction="nearest", tolerance=4, how="inner"
    ),
    "join within an interval": lambda a, b: a.join(
        b.select("id", w=col("id") + 1), "id", within=(-3, 4), how="left"
    ),
    "over rows by key": lambda a, b: a.group_by("id").over(rows=3).agg(**MADE, last=cz.lag("v", 2)),
    "over time, of all": lambda a, b: a.over(range=4).agg(n=cz.count(), after=cz.lead("v")),
    "matches by key": lambda a, b: matched(a, "PARTITION BY id", "ONE ROW PER MATCH", "v > PREV(v)"),
    "matches of all": lambda a, b: matched(a, "", "ALL ROWS PER MATCH", "v >= FIRST(v)"),
    "clip by all": lambda a, b: a.clip(b),
    "tumbling by key": lambda a, b: a.group_by("id").tumbling(5).agg(**MADE),
    "tumbling over all": lambda a, b: a.tumbling(7, offset=2).agg(**MADE),
    "tumbling over all, combined": lambda a, b: a.tumbling(7, offset=2).agg(**WHOLE),
    "hopping over all, combined": lambda a, b: a.hopping(10, every=4, offset=1).agg(**WHOLE),
    "hopping with gaps over all, combined": lambda a, b: a.hopping(3, every=5).agg(**WHOLE),
    "totals of all, combined": lambda a, b: a.totals(**WHOLE),
    "skewed, tumbling by key": lambda a, b: a.group_by("id").tumbling(7, offset=2).agg(**SPLIT, skewed=True),
    "skewed, hopping by key": lambda a, b: a.group_by("id").hopping(10, every=4).agg(**SPLIT, skewed=True),
    "skewed, totals by key": lambda a, b: a.group_by("id").totals(**SPLIT, skewed=True),
    "skewed, over all": lambda a, b: a.tumbling(7).agg(**SPLIT, skewed=True),
    "skewed, behind a join": lambda a, b: (
        a.join(b, on="id").group_by("s").tumbling(5).agg(n=cz.count(), total=cz.sum("v"), skewed=True)
    ),
    "tumbling over a union": lambda a, b: a.select("id").union(b.select("id")).tumbling(5).agg(n=cz.count()),
    "window behind a window": lambda a, b: (
        a.group_by("id").tumbling(5).agg(n=cz.count()).tumbling(10).agg(k=cz.sum("n"))
    ),
    "a diamond": lambda a, b: (
        a.where(col("v") > 0).select("id").union(a.select("id")).group_by("id").tumbling(5).agg(n=cz.count())
    ),
    "a join of windows": lambda a, b: (
        a.group_by("id")
        .tumbling(5)
        .agg(n=cz.count())
        .join(b.group_by("id").tumbling(5).agg(m=cz.count()), on="id", how="full")
    ),
    "a key moved by a constant": lambda a, b: (
        a.select(key=col("id").cast("int"))
        .group_by("key")
        .totals(n=cz.count())
        .select("n", next=col("key") + lit(1, "bigint"))
        .join(b, on={"next": "id"})
    ),
    "lists": lambda a, b: (
        a.group_by("id")
        .tumbling(5)
        .agg(all=cz.collect("v"), set=cz.collect_set("v"))
        .group_by("set")
        .tumbling(5)
        .agg(n=cz.count(), most=cz.max("all"), every=cz.collect("all"))
        .distinct()
    ),
    "exploded lists": lambda a, b: (
        a.with_columns(
            all=cz.functions.array("v", "v", col("v") + 1), m=cz.functions.create_map(lit("k"), "v")
        )
        .explode("all", as_="each", position="at")
        .group_by("m")
        .tumbling(5)
        .agg(n=cz.sum("at"), each=cz.collect_set("each"))
    ),
    "output final": lambda a, b: output(a.join(b, on="id"), "final"),
    "output final of windows": lambda a, b: output(a.group_by("id").tumbling(5).agg(n=cz.count()), "final"),
    "output marked": lambda a, b: output(a.select("id").distinct(), "marked"),
}
for _how in ("inner", "left", "right", "full", "semi", "anti"):
    PLANS[f"join {_how}"] = lambda a, b, how=_how: a.join(b, on="id", how=how)
PLANS["join with a predicate"] = lambda a, b: a.join(b, on="id", how="left", where=col("s") != "a")
PLANS["join with a table"] = lambda a, b: (
    a.join(
        cz.from_rows(
            [{"from": 0, "id": 1, "word": "one"}, {"from": 0, "id": 2, "word": "two"}], time="from"
        ).set_duration(1000),
        on="id",
    )
    .group_by("word")
    .tumbling(5)
    .agg(n=cz.count())
)

HIGH = col("v") > 2


def collected(a: Stream, shape: str, *, ticks: bool = False, of_maps: Any = None, **more: Any) -> Stream:
    """Per key how many rows came before a high one (or a tick), as a map at each of these, or every other."""
    known = a.select(id=col("id").coalesce(-1), v=col("v"))
    of = qre.items(known.schema, ticks=ticks)
    sync = qre.TICK if ticks else HIGH
    own, end = qre.atom(~sync.coalesce(False), 1, items=of), qre.match(sync, items=of)
    some = qre.split(qre.iter1(own, qre.sum()), end, op=col("_0"))
    if shape == "all":
        body = qre.split(qre.match(qre.star(sync), items=of), some, op=col("_1"))
        query = qre.map_collect(sync, "id", body)
    elif shape == "each":
        query = qre.iter_last(qre.map_collect(sync, "id", some, every=qre.letter(sync)))
    else:
        rest = qre.split(qre.iter(own, qre.sum()), end, op=col("_0"))
        late = qre.split(end, some, op=col("_1"))
        body = qre.or_(qre.split(some, rest, op=col("_0") + col("_1")), late)
        query = qre.map_collect(sync, "id", body, every=qre.seq(sync, sync))
        query = qre.iter_last(query) if shape == "pairs" else query
    if of_maps is not None:
        query = qre.apply(query, of_maps)
    if ticks:
        more["ticks_every"] = 5
    return Stream(qre.over(known, query, **more))


def piped(a: Stream, then: str = "all", **more: Any) -> Stream:
    """Per key what came up to a high row; then the average of that, of all keys or of some."""
    known = a.select(id=col("id").coalesce(-1), v=col("v"))
    of, high = qre.items(known.schema), HIGH.coalesce(False)
    low, end = qre.atom(~high, 1, items=of), qre.atom(high, {"id": col("id"), "v": col("v")}, items=of)
    fields = {"n": col("_0"), "odd": col("_1").field("id") % 2, "v": col("_1").field("v")}
    run = qre.partition(qre.split(qre.iter(low, qre.sum()), end, op=fields), by={"_id": "id"})
    last = qre.custom(0.0, col("acc") * 0.5 + col("x"))
    rest = qre.iter1(qre.atom(op=col("n") + col("v")), last)
    if then != "all":
        rest = qre.partition(rest, by="odd")
    query = run >> rest
    if then == "three":
        query = query >> qre.iter1(qre.atom(op=col("value")), qre.max())
    return Stream(qre.over(known, query, **more))


def maps_of_maps(a: Stream, of_maps: Any = None, **more: Any) -> Stream:
    """Per key how many different v came before each high row, once one of them was low."""
    known = a.select(id=col("id").coalesce(-1), v=col("v"))
    of, high = qre.items(known.schema), HIGH
    other = qre.match(~high.coalesce(False), items=of)
    one = qre.split(
        qre.match(qre.plus(~high.coalesce(False)), items=of), qre.match(high, items=of), op={"n": lit(1)}
    )
    inner = qre.map_collect(high, {"w": col("v").coalesce(0.0)}, one, every=qre.letter(high))
    body = qre.split(other, qre.apply(inner, qre.rel().count()), op=col("_1"))
    query = qre.iter_last(qre.map_collect(high, "id", body, every=qre.letter(high)))
    return Stream(qre.over(known, query if of_maps is None else qre.apply(query, of_maps), **more))


PLANS |= {
    "maps of maps at events": lambda a, b: maps_of_maps(a),
    "the best of maps of maps": lambda a, b: maps_of_maps(a, qre.rel().best()),
    "maps that go on at ticks": lambda a, b: collected(a, "all", ticks=True),
    "maps at every other tick": lambda a, b: collected(a, "pairs", ticks=True, kernel="generated"),
    "the best of maps that go on at ticks": lambda a, b: collected(
        a, "all", ticks=True, of_maps=qre.rel().best(), order_by="v"
    ),
    "how many are in maps at every other tick": lambda a, b: collected(
        a, "pairs", ticks=True, of_maps=qre.rel().count()
    ),
    "a pipe from keys to all": lambda a, b: piped(a),
    "a pipe from keys to keys": lambda a, b: piped(a, "some", order_by="v"),
    "a pipe of three, until the next": lambda a, b: piped(a, "three", lives="until_next"),
    "maps at events": lambda a, b: collected(a, "all"),
    "maps at events, anew": lambda a, b: collected(a, "each"),
    "maps at every other event": lambda a, b: collected(a, "pairs"),
    "maps at events, generated": lambda a, b: collected(a, "all", kernel="generated"),
    "maps at events until the next": lambda a, b: collected(a, "each", lives="until_next"),
    "the sum of maps at events": lambda a, b: collected(a, "all", of_maps=qre.rel().sum(col("value") * 0.1)),
    "how many are in maps at events": lambda a, b: collected(a, "pairs", of_maps=qre.rel().count()),
    "the best of maps at events": lambda a, b: collected(a, "each", of_maps=qre.rel().best(), order_by="v"),
    "some of maps at events": lambda a, b: collected(
        a, "each", of_maps=qre.rel().filter(col("value") > 0), kernel="generated"
    ),
    "the most of maps at ticks": lambda a, b: collected(
        a, "each", ticks=True, of_maps=qre.rel().max(), kernel="generated"
    ),
    "how many are in maps at ticks": lambda a, b: collected(a, "each", ticks=True, of_maps=qre.rel().count()),
    "a map once": lambda a, b: collected(a, "once"),
    "how many are in a map once": lambda a, b: collected(a, "once", of_maps=qre.rel().count()),
    "maps at ticks": lambda a, b: collected(a, "each", ticks=True),
    "maps at ticks until the next": lambda a, b: collected(a, "each", ticks=True, lives="until_next"),
}
LEFT = pa.schema([("id", pa.int64()), ("v", pa.float64())])
RIGHT = pa.schema([("id", pa.int64()), ("s", pa.string())])
A = """
 LE  RE      | id v    |
  0  9       | 1  1.5  | +
  2  inf     | 2  2.5  | +
  4  5       | 1  0.25 | +
  0  9->6    | 1  1.5  | -
  6  30      | 3  7.0  | +
  2  inf->12 | 2  2.5  | -
  1  3       | 1  9.0  | +
 14  15      | 2  null | +
 20  29      | 1  4.0  | +
"""
B = """
 LE  RE      | id s |
  1  8       | 1  x | +
  3  inf     | 2  y | +
  7  11      | 3  x | +
  3  inf->10 | 2  y | -
 16  18      | 1  z | +
"""


def sources() -> tuple[Source, Source]:
    a = scripted("a", LEFT, parse(A, LEFT), [0], [2], 5)
    return a, scripted("b", RIGHT, parse(B, RIGHT), [0], [1], 5)
