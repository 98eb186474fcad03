"""The audit recomputes every kind of step that it says it can, and finds a row that is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura import Stream, col, lit, qre
from caesura.audit import audit_states
from caesura.events import History

TABLE = pa.table(
    {
        "t": [1, 3, 2, 6, 9, 8, 12, 4, 15, 16],
        "end": [5, 9, 4, 7, 20, 9, 14, 6, 18, 17],
        "k": [0, 1, 0, 2, 1, 0, 1, 2, 0, 1],
        "v": [3, None, 5, 1, 2, 2, 7, 0, 4, 4],
    }
)


def read() -> Stream:
    return cz.from_arrow(TABLE, time="t", end="end", punctuate=cz.delay(3), batch_size=2)


def other() -> Stream:
    return read().select("k", w=col("v") + 1)


def forever() -> Stream:
    endless = TABLE.drop(["end"]).append_column("end", pa.nulls(TABLE.num_rows, pa.int64()))
    return cz.from_arrow(endless, time="t", end="end", punctuate=cz.delay(3), batch_size=2)


def filled(batch: pa.RecordBatch) -> pa.Array:
    return pa.array([100 + k for k in batch.column("k").to_pylist()])


@cz.udf
def twice(v: int | None) -> int | None:
    return None if v is None else 2 * v


TWICE = twice


@cz.uda
def Range(values: list[int | None]) -> int:
    some = [v for v in values if v is not None]
    return max(some, default=0) - min(some, default=0)


@cz.uda
class Summing:
    def init(self) -> int:
        return 0

    def add(self, state: int, value: int | None) -> int:
        return state + (value or 0)

    def remove(self, state: int, value: int | None) -> int:
        return state - (value or 0)

    def compute(self, state: int) -> int:
        return state


@cz.uda
def lasts(events: list[cz.Event[int]], window: cz.Window) -> int:
    return sum(e.end - e.start for e in events) + window.start


@dataclass
class Best:
    value: int


@cz.udo
def two_best(values: list[int | None]) -> list[Best]:
    return [Best(v) for v in sorted((v or 0 for v in values), reverse=True)[:2]]


@cz.uda(vectorised=True, returns="double")
def spread(values: Any, starts: Any) -> Any:
    ends = [*starts[1:], len(values)]
    return [float(max(values[a:b]) - min(values[a:b])) for a, b in zip(starts, ends, strict=True)]


ITEMS = qre.items(pa.schema([("k", pa.int64()), ("v", pa.int64())]))
TICKED = qre.items(pa.schema([("k", pa.int64()), ("v", pa.int64())]), ticks=True)
SUMS = qre.iter1(qre.atom(op=col("v").coalesce(0), items=ITEMS), qre.sum())
VALUES = qre.atom(op=col("v").coalesce(0), items=ITEMS)
PAIRS = qre.split(VALUES, VALUES, op=col("_0") - col("_1"))


def about(fold: Any) -> qre.Query:
    return qre.iter1(VALUES, fold)


PER_TICK = qre.iter_last(
    qre.split(
        qre.iter(qre.atom(~qre.TICK, col("v").coalesce(0), items=TICKED), qre.sum()),
        qre.match(qre.TICK, items=TICKED),
        op=col("_0"),
    )
)
RISES = cz.automaton(
    [cz.arc("S", "up", col("k") < 2, n=col("k")), cz.arc("up", "up", col("k") >= col("n"), n=col("k"))],
    {"n": 0},
    9,
    accept={"up": col("n") > 0},
)

STEPS: dict[str, Callable[[], Stream]] = {
    "where": lambda: read().where((col("v") > 1) & ~(col("k") == 2) | col("v").is_null()),
    "select": lambda: read().select(
        "k", x=col("v") * 2 - 1, y=col("v") / 2, z=cz.when(col("k") > 0, 1).otherwise(0)
    ),
    "inner join": lambda: read().join(other(), on="k", where=col("v") < col("w")),
    "left join": lambda: read().join(other(), on="k", how="left"),
    "full join": lambda: read().join(other().where(col("k") != 1), on="k", how="full"),
    "semi join": lambda: read().join(other(), on="k", how="semi"),
    "anti join": lambda: read().join(other().where(col("w") > 3), on="k", how="anti"),
    "union": lambda: read().union(read().where(col("k") == 1)),
    "distinct": lambda: read().select("k").distinct(),
    "difference": lambda: read().select("k").difference(other().where(col("w") > 3).select("k")),
    "shift": lambda: read().shift(4),
    "extend": lambda: read().extend(2),
    "scale": lambda: read().scale(2),
    "points": lambda: read().points_at_end(),
    "chop": lambda: read().chop(4),
    "clip": lambda: read().clip(other().where(col("w") > 2), on="k"),
    "as-of join": lambda: read().join_asof(other(), on="k"),
    "as-of join, nearest": lambda: read().join_asof(other(), on="k", direction="nearest", how="inner"),
    "join within an interval": lambda: read().join(other(), on="k", within=(-2, 3)),
    "over rows": lambda: (
        read().group_by("k").over(rows=3).agg(m=cz.avg("v"), before=cz.lag("v"), first=cz.first_value("v"))
    ),
    "over time": lambda: read().over(range=4).agg(n=cz.count("v"), after=cz.lead(col("v") + 1)),
    "totals": lambda: read().group_by("k").totals(n=cz.count(), s=cz.sum("v"), m=cz.median("v")),
    "tumbling": lambda: read().group_by("k").tumbling(5).agg(n=cz.count("v"), hi=cz.max("v")),
    "hopping": lambda: read().hopping(6, every=2).agg(mean=cz.avg("v")),
    "snapshot": lambda: read().group_by("k").snapshot().agg(n=cz.count(), s=cz.sum("v")),
    "session": lambda: read().session(2).agg(n=cz.count(), first=cz.first("v")),
    "count windows": lambda: read().count_by_start(3).agg(s=cz.sum("v")),
    "count by end": lambda: read().group_by("k").count_by_end(2).agg(n=cz.count(), low=cz.min("v")),
    "long sessions": lambda: read().group_by("k").session(3, longest=6).agg(last=cz.last("v")),
    "picks": lambda: (
        read()
        .group_by("k")
        .tumbling(7)
        .agg(top=cz.top_k("v", 3), q=cz.quantile("v", 0.3), d=cz.count_distinct("v"), all=cz.collect("v"))
    ),
    "spread": lambda: (
        read()
        .hopping(9, every=3)
        .agg(
            mad=cz.median_absolute_deviation("v"),
            often=cz.mode("v"),
            var=cz.variance("v", ddof=0),
            dev=cz.stddev("v"),
            r=cz.corr("v", "k"),
            mid=cz.median("v", where=col("k") > 0),
        )
    ),
    "right join": lambda: read().join(other(), on="k", how="right", where=col("v") < col("w")),
    "lifetimes on a grid": lambda: read().hopping_lifetimes(6, every=3),
    "bucket": lambda: read().bucket("v", size=3, slide=2),
    "impute": lambda: read().impute("v", by=filled),
    "functions": lambda: read().select(
        a=col("v").coalesce(0).power(2).round(1),
        b=col("k").cast("string").concat(lit("-x")).upper(),
        c=TWICE("v"),
        d=col("v").greatest(col("k")),
    ),
    "own aggregate": lambda: read().group_by("k").hopping(6, every=3).agg(r=Range("v"), n=cz.count()),
    "own incremental aggregate": lambda: read().group_by("k").snapshot().agg(s=Summing("v")),
    "own time-sensitive aggregate": lambda: read().hopping(6, every=4).agg(w=lasts("v"), clip="full"),
    "own operator": lambda: read().group_by("k").tumbling(6).apply(two_best("v")),
    "own aggregate of arrays": lambda: read().where(col("v").is_not_null()).session(2).agg(m=spread("v")),
    "quantitative expression": lambda: Stream(qre.over(read(), SUMS)),
    "expression behind a filter": lambda: Stream(
        qre.over(read().where(col("k") != 2), SUMS, lives="until_next")
    ),
    "expression with ticks": lambda: Stream(qre.over(read(), PER_TICK, ticks_every=5)),
    "approximate median": lambda: Stream(qre.over(read(), about(qre.median(epsilon=0.1)))),
    "exact quantile": lambda: Stream(qre.over(read(), about(qre.quantile(0.75)))),
    "windows of items": lambda: Stream(qre.over(read(), qre.wnd(VALUES, 3, qre.max()))),
    "partition": lambda: Stream(qre.over(read(), qre.partition(PAIRS, by={"who": "k"}))),
    "automaton": lambda: read().select("k").match(RISES),
    "windows of events that never end": lambda: forever().group_by("k").hopping(8, every=4).agg(n=cz.count()),
    "chop of events that never end": lambda: forever().select("k").chop(5),
}


def claimed(stream: Stream) -> list[tuple[cz.Claim, dict[str, History]]]:
    done = stream.run(claims=cz.tokens(every=3))
    return [(claim, {"out": done.at(claim)}) for claim in done.claims]


@pytest.mark.thin(2)
@pytest.mark.parametrize("step", STEPS)
def test_the_audit_agrees_with_the_engine_at_every_claim(step: str) -> None:
    stream = STEPS[step]()
    judged = claimed(stream)
    findings = audit_states({"out": stream.node}, judged)
    assert [str(f) for f in findings if not f.right] == []
    claim, views = judged[-1]
    assert len(views["out"]), "nothing came out, so nothing was compared"
    short = History(views["out"].page.slice(1, len(views["out"]) - 1))
    (found,) = audit_states({"out": stream.node}, [(claim, {"out": short})])
    assert len(found.missing) == 1


NOT_AUDITED: dict[str, tuple[Callable[[], Stream], str]] = {
    "a clock": (
        lambda: cz.from_arrow(TABLE, time="t", punctuate=cz.delay(3, idle="1h")),
        "judges lateness by more than its own rows",
    ),
    "regular expressions": (
        lambda: read().select(x=col("k").cast("string").rlike("a+")),
        "RLIKE 'a+'' by itself",
    ),
    "how far sessions had come": (
        lambda: Stream(qre.over(read().session(2).agg(k=cz.count(), v=cz.sum("v")), SUMS)),
        "how far its input had come at the claim does not follow",
    ),
}
"""All that the audit leaves to others, and says so."""


@pytest.mark.parametrize("what", NOT_AUDITED)
def test_what_the_audit_cannot_recompute_it_names(what: str) -> None:
    make, why = NOT_AUDITED[what]
    stream = make()
    found = [f for f in audit_states({"out": stream.node}, claimed(stream)) if not f.right]
    assert found and all(why in str(f) and "not audited" in str(f) for f in found)
