"""Cases whose rows have lists, maps and structs: carried, compared, grouped by, collected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caesura.expr import col
from caesura.ops.aggregate import Aggregate, Totals, Tumbling
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.deliver import Deliver
from caesura.ops.explode import Explode
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.sample import Sample
from caesura.ops.top import Order, Top
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec


def slowest(ctis: tuple[int, ...]) -> int:
    """The output is as far as the slowest input."""
    return min(ctis)


def none(_: tuple[int, ...]) -> int:
    """No row may be held."""
    return 0


DEEP = InputSpec({"id": "key", "list": "list", "map": "map", "deep": "deep"}, key="id")
LISTS = InputSpec({"id": "key", "v": "list"}, key="id")
MAPS = InputSpec({"other": "key", "m": "map"}, key="other")
PAIR = InputSpec({"other": "key", "w": "list"}, key="other")


def nested(name: str, build: Any, oracle: Any, *inputs: InputSpec, **more: Any) -> None:
    """One case; what its rows say of progress and state is the business of the plain ones."""
    register(LawCase(f"nested-{name}", build=build, oracle=oracle, inputs=inputs or (DEEP,), **more))


nested(
    "where",
    lambda a: Where(inputs=(a,), predicate=(col("id") > 0) | col("deep").is_null()),
    lambda a, **_: oracles.where(a, lambda p: (p["id"] or 0) > 0 or p["deep"] is None),
)
nested(
    "sample",
    lambda a: Sample(inputs=(a,), fraction=0.6, seed=4, by=("list", "map", "deep")),
    lambda a, **_: oracles.sample(a, 0.6, 4, DEEP.schema.remove(0)),
)
nested("union", lambda a, b: Union(inputs=(a, b)), lambda a, b, **_: oracles.union(a, b), DEEP, DEEP)
nested("distinct", lambda a: Layers(inputs=(a,), count="distinct"), lambda a, **_: oracles.distinct(a))
nested(
    "difference",
    lambda a, b: Layers(inputs=(a, b), count="bag"),
    lambda a, b, **_: oracles.difference(a, b, mode="bag"),
    LISTS,
    LISTS,
)
nested(
    "chop",
    lambda a: Chop(inputs=(a,), period=4),
    lambda a, patterns: oracles.chop(a, 4, oracles.horizon(patterns[0])),
)
nested(
    "clip",
    lambda a, b: Clip(inputs=(a, b), on=(("v", "w"),), how="semi"),
    lambda a, b, **_: oracles.clip(a, b, on=[("v", "w")]),
    LISTS,
    PAIR,
)
nested(
    "top",
    lambda a: Top(inputs=(a,), group=("id",), n=2, order=(Order(col("list"), True),)),
    lambda a, **_: oracles.top(a, 2, [(lambda row: row[2]["list"], True)], group=("id",)),
)
for column, names in (("list", ("list",)), ("map", ("k", "w")), ("deep", ("each",))):
    for outer in (False, True):
        nested(
            f"explode-{column}{'-outer' if outer else ''}",
            lambda a, column=column, names=names, outer=outer: Explode(
                inputs=(a,), of=column, names=names, outer=outer, position="at" if outer else ""
            ),
            lambda a, column=column, names=names, outer=outer, **_: oracles.explode(
                a, column, names, outer=outer, position="at" if outer else ""
            ),
            liveness=slowest,
            state_bound=none,
        )
POINTS = replace(DEEP, lifetimes="points")
nested("output-final", lambda a: Deliver(inputs=(a,), mode="final"), lambda a, **_: a, POINTS)


def joined(how: Any, on: tuple[str, str], left: InputSpec, right: InputSpec) -> None:
    """One case of the join; null meets nothing."""
    small = [replace(spec, max_rows=4) for spec in (left, right)]
    nested(
        f"join-{how}-on-{on[0]}",
        lambda a, b: Join(inputs=(a, b), on=(on,), how=how),
        lambda a, b, **_: oracles.join(a, b, on=[on], how=how),
        *small,
    )


joined("left", ("id", "other"), DEEP, MAPS)
joined("full", ("v", "w"), LISTS, PAIR)
joined("anti", ("v", "w"), LISTS, PAIR)

GIVEN = {
    "a": ("first", "v"),
    "z": ("last", "v"),
    "low": ("min", "v"),
    "high": ("max", "v"),
    "d": ("count_distinct", "v"),
    "often": ("mode", "v"),
    "all": ("collect", "v"),
    "set": ("collect_set", "v"),
}


def aggregated(kind: Any, **spec: Any) -> None:
    """Aggregates of nested values over all time, and over windows grouped by them."""
    some = {n: a for n, a in GIVEN.items() if not spec or n in ("low", "high")}
    made = tuple((n, Aggregate(k, col(c))) for n, (k, c) in some.items())
    rows = InputSpec({"id": "key", "v": kind}, key="id", **spec)
    name = f"{kind}s{'-inserts' if spec else ''}"
    nested(
        f"totals-of-{name}",
        lambda a: Totals(inputs=(a,), group=("id",), aggregates=made),
        lambda a, **_: oracles.totals(a, ("id",), some),
        rows,
    )
    nested(
        f"windows-by-{name}",
        lambda a: Tumbling(inputs=(a,), group=("v",), size=5, aggregates=(("n", Aggregate("count")), *made)),
        lambda a, patterns: oracles.tumbling(
            a, ("v",), 5, 0, {"n": ("count", None), **some}, oracles.horizon(patterns[0])
        ),
        rows,
        linger=5,
    )


for each in ("list", "map", "deep"):
    aggregated(each)
aggregated("deep", insert_only=True)
