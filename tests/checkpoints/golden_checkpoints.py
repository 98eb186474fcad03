"""Checkpoints of this version, for later ones to read: small queries, stopped in the middle of their streams.

``python tests/checkpoints/golden_checkpoints.py`` writes those of the format that this version writes, where
there are none yet; files that are there stay as they are, since an older version has written them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import caesura as cz
from caesura import qre
from caesura.api.stream import Stream
from caesura.events.chunks import STATE_FORMAT
from caesura.expr import col
from caesura.runtime import Query

FOLDER = Path(__file__).parent
NAMES = ["Ada", "Grace", "Émilie", "", "Lise"]
ROWS: list[dict[str, Any]] = [
    {
        "ts": t,
        "id": t * 7 % 5,
        "v": t * 13 % 11,
        "x": (t * 29 % 17) / 4,
        "name": NAMES[t % 5],
        "end": t % 8 == 7,
    }
    for t in range(48)
]
SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("name", pa.string()),
        ("end", pa.bool_()),
    ]
)
ITEMS = qre.items(SCHEMA.remove(0))
STOPS = (9, 21)
"""After how many steps the state is saved; the later snapshot holds what changed."""


def rows(part: int = 0, of: int = 1) -> Stream:
    some = [row for row in ROWS if row["ts"] % of == part]
    options = {"name": f"rows {part}", "batch_size": 2, "punctuate": cz.delay(3)}
    return cz.from_rows(some, SCHEMA, time="ts", **options)


def windows() -> Stream:
    sliding = rows().group_by("id").hopping(12, every=4)
    return sliding.agg(n=cz.count(), total=cz.sum("v"), top=cz.max("x"), mean=cz.avg("x"))


def sessions() -> Stream:
    return rows().group_by("name").session(6).agg(n=cz.count())


def joins() -> Stream:
    left, right = (rows(part, 2).set_duration(9).select("id", "v") for part in (0, 1))
    return left.join(right.rename(w="v"), on="id", how="left")


def totals() -> Stream:
    return rows().set_duration(20).group_by("name").totals(n=cz.count(), least=cz.min("v"))


def loops() -> Stream:
    edges = rows().select(a=col("id"), b=col("v") % 5).set_duration(11)
    hop = edges.rename(b="a", c="b")
    return cz.fixpoint(edges, lambda r: r.join(hop, on="b").select("a", b=col("c")), max_rounds=4)


def over(query: Any, **options: Any) -> Stream:
    return Stream(qre.over(rows().node, query, **options))


def texts() -> Stream:
    pair = qre.split(named(col("v") > 2), named(col("v") <= 7), op={"first": col("_0"), "then": col("_1")})
    return over(qre.partition(pair, by="id"))


def named(test: Any) -> Any:
    return qre.atom(test, col("name"), items=ITEMS)


def text_keys() -> Stream:
    return over(qre.partition(qre.wnd(number(), 3, qre.sum()), by=["name", "id"]), lives="until_next")


def number(column: str = "v") -> Any:
    return qre.atom(col(column) >= 0, col(column), items=ITEMS)


def generated() -> Stream:
    return over(qre.partition(qre.iter1(number(), qre.avg()), by="id"), kernel="generated")


def medians() -> Stream:
    return over(qre.iter(number("x"), qre.median()))


def histogram() -> Stream:
    return over(qre.iter(number("x"), qre.median(epsilon=0.05)))


def event_counts() -> Stream:
    return over(qre.wnd_count(number("x"), 10, col("x") > 1, epsilon=0.2))


def sliding() -> Stream:
    return over(qre.wnd(number("x"), 6, qre.max()))


def daily() -> Any:
    own, end = qre.atom(~col("end"), col("v"), items=ITEMS), qre.match(col("end"), items=ITEMS)
    body = qre.split(qre.iter1(own, qre.sum()), end, op=col("_0"))
    return qre.map_collect(col("end"), "name", body, every=qre.letter(col("end")))


def maps() -> Stream:
    return over(qre.iter_last(daily()))


def maps_inside() -> Stream:
    return over(qre.iter1(qre.apply(daily(), qre.rel().max()), qre.sum()))


def pipes() -> Stream:
    first = qre.partition(qre.iter1(number(), qre.sum()), by="id")
    after = qre.items(pa.schema([("value", pa.int64())]))
    return over(first >> qre.iter1(qre.atom(col("value") >= 0, col("value"), items=after), qre.max()))


def plain_python() -> Stream:
    return over(qre.partition(qre.iter1(number(), qre.max()), by="name"), kernel="twin")


def plain_maps() -> Stream:
    return over(qre.iter1(qre.apply(daily(), qre.rel().max()), qre.sum()), kernel="twin")


def modules() -> Stream:
    return rows().group_by("id").hopping(10, every=5).agg(spread=spread("x"), total=Total("v"))


@cz.uda
def spread(values: list[float]) -> float:
    return max(values) - min(values)


@cz.uda(mergeable=True)
class Total:
    def init(self) -> list[int]:
        return [0]

    def add(self, state: list[int], value: int) -> None:
        state[0] += value

    def remove(self, state: list[int], value: int) -> None:
        state[0] -= value

    def merge(self, state: list[int], other: list[int]) -> None:
        state[0] += other[0]

    def compute(self, state: list[int]) -> int:
        return state[0]


def claims() -> Stream:
    return rows().group_by("id").tumbling(8).agg(n=cz.count())


SPREADS = {"spread": cz.variance("far"), "root": cz.stddev("far"), "both": cz.covar_pop("far", "w")}
SPREADS |= {"like": cz.corr("far", "w"), "total": cz.sum("far")}


def far(power: float = 30.0) -> Stream:
    """Numbers so large and so small that sums of them, and of their squares, are kept in all limbs."""
    large = cz.when(col("v") % 2 == 0, 10.0**power).otherwise(10.0**-power)
    apart = rows().with_columns(w=col("v").cast("double") * large)
    return apart.with_columns(far=col("x") * col("w") * large * large)


def wide_spreads() -> Stream:
    return far().group_by("id").hopping(12, every=4).agg(**SPREADS)


def wide_totals() -> Stream:
    return far().set_duration(20).group_by("id").totals(**SPREADS)


def running() -> Stream:
    ever = far().group_by("id").over(rows=cz.INFINITY)
    return ever.agg(n=cz.count(), **SPREADS, least=cz.min("x"), some=cz.first("name"), most=cz.max("name"))


def lost_squares() -> Stream:
    """What a version that knew no such squares has saved of them cannot be read."""
    return far(60.0).group_by("id").hopping(12, every=4).agg(**SPREADS)


PLANS: dict[str, Callable[[], Stream]] = {
    plan.__name__: plan
    for plan in (windows, sessions, joins, totals, loops, texts, text_keys, generated, medians, histogram)
}
PLANS |= {plan.__name__: plan for plan in (wide_spreads, wide_totals, running)}
OTHERS: dict[str, Callable[[], Stream]] = {"lost_squares": lost_squares}
"""Of older versions, and not to be read."""
PLANS |= {
    plan.__name__: plan
    for plan in (event_counts, sliding, maps, maps_inside, pipes, plain_python, plain_maps, modules, claims)
}


def begin(name: str) -> Query:
    """A query of a plan, before its first step."""
    return (PLANS | OTHERS)[name]().query(claims=cz.tokens(every=6, saves=True) if name == "claims" else None)


def saved(name: str) -> dict[str, bytes]:
    """What a query saves until it is stopped."""
    query, chunks, steps = begin(name), dict[str, bytes](), 0
    for stop in STOPS:
        for _ in range(stop - steps):
            query.step()
        steps = stop
        found = [query.snapshot()] if name != "claims" else [some for _, some in query.saved()]
        for some in found:
            chunks |= {n: d for n, d in some.items() if d is not None}
            chunks = {n: d for n, d in chunks.items() if some.get(n, b"") is not None}
    return renamed(chunks, {cell.node.fingerprint: cell.label for cell in query.graph.cells})


def renamed(chunks: Mapping[str, bytes], names: Mapping[str, str]) -> dict[str, bytes]:
    """Chunks under other names of their steps: what a plan is known by may differ between versions."""
    parts = {name: name.partition("/") for name in chunks}
    return {f"{names.get(a, a)}{b}{c}": chunks[name] for name, (a, b, c) in parts.items()}


def restored(name: str, file: Path) -> Query:
    """A query that goes on from a checkpoint."""
    query = begin(name)
    query.restore(renamed(read(file), {cell.label: cell.node.fingerprint for cell in query.graph.cells}))
    return query


def write(name: str, chunks: Mapping[str, bytes]) -> None:
    """Puts a checkpoint beside this file, unless it is there."""
    file = FOLDER / f"format-{STATE_FORMAT}" / f"{name}.zip"
    file.parent.mkdir(exist_ok=True)
    if file.exists():
        return
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for chunk in sorted(chunks):
            out.writestr(zipfile.ZipInfo(chunk), chunks[chunk], zipfile.ZIP_DEFLATED)


def read(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as given:
        return {chunk: given.read(chunk) for chunk in given.namelist()}


if __name__ == "__main__":
    for name in PLANS:
        write(name, saved(name))
