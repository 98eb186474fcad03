"""Every operator's case in the law suite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import law_regressions as kept
import pyarrow as pa

from caesura.expr import col
from caesura.io.sources.table import table_of
from caesura.ops.aggregate import Aggregate, Alive, Totals, Tumbling, kinds
from caesura.ops.asof import AsOf, Direction
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.deliver import Deliver
from caesura.ops.held import HeldTable
from caesura.ops.join import How, Join
from caesura.ops.latest import Latest, Ops
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime, Rule
from caesura.ops.look_up import LookUp
from caesura.ops.over import OverFrame, first_value, lag, lead
from caesura.ops.sample import Sample
from caesura.ops.select import Select
from caesura.ops.top import Order, Rank, Top
from caesura.ops.union import Union
from caesura.ops.upserts import Upserts
from caesura.ops.where import Where
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec

READINGS = InputSpec({"id": "key", "v": "float"}, key="id")
SMALL = InputSpec({"id": "key", "s": "name"}, key="id")
NAMED = InputSpec({"id": "key", "n": "int", "s": "str"}, key="id")


def none(_: tuple[int, ...]) -> int:
    """No row may be held."""
    return 0


def slowest(ctis: tuple[int, ...]) -> int:
    """The output is as far as the slowest input."""
    return min(ctis)


def moved(by: int) -> Any:
    """The output is as far as the slowest input, and some ticks."""
    return lambda ctis: min(ctis) if min(ctis) in (MIN_TIME, INFINITY) else min(INFINITY - 2, min(ctis) + by)


register(
    LawCase(
        "where",
        build=lambda a: Where(inputs=(a,), predicate=(col("n") > 0) | (col("s") == "a")),
        oracle=lambda a, **_: oracles.where(a, lambda p: (p["n"] or 0) > 0 or p["s"] == "a"),
        inputs=(NAMED,),
        liveness=slowest,
        state_bound=none,
    )
)
HASHED = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
register(
    LawCase(
        "sample",
        build=lambda a: Sample(inputs=(a,), fraction=0.6, seed=4, by=("id", "n", "s")),
        oracle=lambda a, **_: oracles.sample(a, 0.6, 4, HASHED),
        inputs=(NAMED,),
        liveness=slowest,
        state_bound=none,
    )
)
register(
    LawCase(
        "select",
        build=lambda a: Select(inputs=(a,), columns=(("key", col("id")), ("m", col("n") + 1))),
        oracle=lambda a, **_: oracles.select(
            a, lambda p: {"key": p["id"], "m": None if p["n"] is None else p["n"] + 1}
        ),
        inputs=(NAMED,),
        liveness=slowest,
        state_bound=none,
    )
)
for key in (("id",), ("n", "LE")):
    register(
        LawCase(
            f"upserts-{'-'.join(key)}",
            build=lambda a, key=key: Upserts(inputs=(a,), key=key),
            oracle=lambda a, **_: a,
            inputs=(NAMED,),
            liveness=slowest,
            state_bound=none,
        )
    )
register(
    LawCase(
        "union",
        build=lambda a, b: Union(inputs=(a, b)),
        oracle=lambda a, b, **_: oracles.union(a, b),
        inputs=(READINGS, READINGS),
        liveness=slowest,
        state_bound=none,
    )
)


def lifetime(rule: Rule, oracle: Any, *, amount: int = 0, per: int = 1, by: int = 0, **spec: Any) -> None:
    """One case of the lifetime family."""
    plain = InputSpec({"id": "key", "v": "float"}, key="id", **spec)
    sign = f"({amount}/{per})" if amount else ""
    sign += f" about {spec['origin']}" if "origin" in spec else ""
    register(
        LawCase(
            f"{rule}{sign}",
            build=lambda a: Lifetime(inputs=(a,), rule=rule, amount=amount, per=per),
            oracle=lambda a, **_: oracle(a),
            inputs=(plain,),
            liveness=moved(by),
            state_bound=none,
        )
    )


END, BEGINNING = INFINITY - 25, MIN_TIME + 40
"""Origins of rows that live at the ends of time."""

lifetime("shift", lambda a: oracles.shift(a, 5), amount=5, by=5)
lifetime("shift", lambda a: oracles.shift(a, -7), amount=-7, by=-7)
lifetime("set_duration", lambda a: oracles.set_duration(a, 3), amount=3)
lifetime("forever", oracles.forever)
lifetime("extend", lambda a: oracles.extend(a, 4), amount=4)
lifetime("extend", lambda a: oracles.extend(a, -3), amount=-3, by=-3)
lifetime("scale", lambda a: oracles.scale(a, 2), amount=2)
lifetime("scale", lambda a: oracles.scale(a, 3, 2), amount=3, per=2)
lifetime("scale", lambda a: oracles.scale(a, 1, 3), amount=1, per=3, insert_only=True)
lifetime("start_at", lambda a: oracles.start_at(a, 4), amount=4)
lifetime("points_at_start", oracles.points_at_start)
lifetime("points_at_end", oracles.points_at_end)
lifetime("shift", lambda a: oracles.shift(a, 2**70), amount=2**70, by=2**70)
lifetime("shift", lambda a: oracles.shift(a, -(2**62)), amount=-(2**62), by=-(2**62))
lifetime("set_duration", lambda a: oracles.set_duration(a, INFINITY), amount=INFINITY)
lifetime("extend", lambda a: oracles.extend(a, INFINITY), amount=INFINITY)
lifetime("scale", lambda a: oracles.scale(a, INFINITY, 3), amount=INFINITY, per=3)
lifetime("start_at", lambda a: oracles.start_at(a, 2**70), amount=2**70)
for origin in (END, BEGINNING):
    lifetime("start_at", lambda a: oracles.start_at(a, 2**70), amount=2**70, origin=origin)
    lifetime("shift", lambda a: oracles.shift(a, 9), amount=9, by=9, origin=origin)
    lifetime("shift", lambda a: oracles.shift(a, -30), amount=-30, by=-30, origin=origin)
    lifetime("set_duration", lambda a: oracles.set_duration(a, 9), amount=9, origin=origin)
    lifetime("forever", oracles.forever, origin=origin)
    lifetime("extend", lambda a: oracles.extend(a, 9), amount=9, origin=origin)
    lifetime("scale", lambda a: oracles.scale(a, 7, 2), amount=7, per=2, origin=origin)
    lifetime("start_at", lambda a: oracles.start_at(a, 40), amount=40, origin=origin)
    lifetime("points_at_end", oracles.points_at_end, origin=origin)


def held(factor: int) -> Any:
    """So many rows for each one that lives."""
    return lambda live: factor * sum(live)


register(
    LawCase(
        "distinct",
        build=lambda a: Layers(inputs=(a,), count="distinct"),
        oracle=lambda a, **_: oracles.distinct(a),
        inputs=(SMALL,),
        liveness=slowest,
        state_bound=held(2),
    )
)


def difference(mode: Literal["bag", "set"]) -> None:
    """One case of the difference."""
    register(
        LawCase(
            f"difference-{mode}",
            build=lambda a, b: Layers(inputs=(a, b), count=mode),
            oracle=lambda a, b, **_: oracles.difference(a, b, mode=mode),
            inputs=(SMALL, SMALL),
            liveness=slowest,
            state_bound=held(3),
        )
    )


difference("bag")
difference("set")


def top(label: str, spec: InputSpec, *order: tuple[str, bool], n: int | None = None, **rest: Any) -> None:
    """One case of `Top`: by columns, with whether they descend."""
    ranks: tuple[tuple[str, Rank], ...] = tuple((kind, kind) for kind in rest.pop("ranks", ()))
    group = rest.pop("group", ("id",))

    def value(name: str) -> Any:
        return lambda row: row[2][name]

    register(
        LawCase(
            f"top {label}",
            build=lambda a: Top(
                inputs=(a,),
                group=group,
                order=tuple(Order(col(name), down) for name, down in order),
                n=n,
                ranks=ranks,
            ),
            oracle=lambda a, **_: oracles.top(
                a, n, [(value(name), down) for name, down in order], group=group, ranks=ranks
            ),
            inputs=(spec,),
            liveness=slowest,
            state_bound=lambda live: (8 if ranks else 4) * sum(live) ** 2,
        )
    )


VALUES = InputSpec({"id": "key", "v": "float", "n": "int"}, key="id")
ADDED = InputSpec({"id": "key", "v": "float", "n": "int"}, key="id", insert_only=True)
top("1 by a float", VALUES, ("v", True), n=1)
top("2 by two columns", NAMED, ("s", False), ("n", True), n=2)
WITHOUT_KEY = InputSpec({"id": "key", "v": "float", "n": "int"})
top("2 of all", WITHOUT_KEY, ("v", True), n=2, group=())
top("3 in order of time", WITHOUT_KEY, n=3, group=())
top("2 of rows that stay", ADDED, ("v", True), n=2)
top("all", VALUES, ("v", True))
top("2 with their numbers", VALUES, ("v", True), n=2, ranks=("row_number",))
top("ranks of all", VALUES, ("n", False), ranks=("rank", "dense_rank"))
top("ranks of rows that stay", ADDED, ("n", False), n=3, ranks=("row_number", "rank"))
BEGUN = InputSpec(
    {"id": "key", "v": "float", "n": "int", "s": "name"},
    key="id",
    lifetimes="endless",
    insert_only=True,
    max_rows=8,
)
"""Rows that only begin, which some steps take in one pass where they come in order."""
top("1 of rows that only begin", BEGUN, ("n", True), n=1)
top("2 of all rows that only begin", BEGUN, ("v", False), ("n", True), n=2, group=())
top("2 of rows that only begin, in order of time", BEGUN, n=2)
top("3 of rows that only begin, with their numbers", BEGUN, ("n", True), n=3, ranks=("row_number",))

LEFT = InputSpec({"id": "key", "v": "float"}, key="id", max_rows=4)
RIGHT = InputSpec({"other": "key", "s": "name"}, key="other", max_rows=4)
ROW_KEYED = InputSpec({"id": "key", "n": "int"}, key="n", max_rows=4)


def join(how: How, *, left: InputSpec = LEFT, right: InputSpec = RIGHT, name: str = "", **more: Any) -> None:
    """One case of the join."""
    register(
        LawCase(
            f"join-{how}{name}",
            build=lambda a, b: Join(inputs=(a, b), on=(("id", "other"),), how=how, residual=more.get("expr")),
            oracle=lambda a, b, **_: oracles.join(
                a, b, on=[("id", "other")], how=how, residual=more.get("residual")
            ),
            inputs=(left, right),
            liveness=slowest,
            state_bound=held(8),
            regressions=kept.JOIN if (left, right) == (LEFT, RIGHT) else (),
        )
    )


HOW: tuple[How, ...] = ("inner", "left", "right", "full", "semi", "anti")
for each in HOW:
    join(each)
    join(
        each,
        name="-residual",
        left=ROW_KEYED,
        expr=(col("n") > 0) & (col("s") != "a"),
        residual=lambda a, b: (a["n"] or 0) > 0 and b["s"] not in (None, "a"),
    )
join("inner", name="-inserts", left=replace(LEFT, insert_only=True), right=replace(RIGHT, insert_only=True))
join("left", name="-points", left=replace(LEFT, lifetimes="points"), right=replace(RIGHT, lifetimes="finite"))

TIED = InputSpec({"other": "key", "s": "name", "f": "float"}, key="other")


def join_asof(
    direction: Direction, tolerance: int | None = None, *, name: str = "", rest: Any = None, **spec: Any
) -> None:
    """One case of the as-of join; its bound counts the last right rows of four keys, with their ties."""
    rest = rest or {}
    reach = tolerance or 0
    behind = 0 if direction == "backward" else -reach

    def live(ctis: tuple[int, ...]) -> int:
        left, right = ctis
        return min(left, moved(behind)((right,)))

    register(
        LawCase(
            f"join_asof {direction}{'' if tolerance is None else f' within {tolerance}'}{name}",
            build=lambda a, b: AsOf(
                inputs=(a, b),
                on=(("id", "other"),),
                direction=direction,
                tolerance=tolerance,
                **{"how": "left", **rest},
            ),
            oracle=lambda a, b, **_: oracles.join_asof(
                a, b, [("id", "other")], ("s", "f"), direction=direction, tolerance=tolerance, **rest
            ),
            inputs=(replace(READINGS, **spec), replace(TIED, **spec)),
            liveness=live if direction == "backward" or tolerance is not None else None,
            state_bound=None if direction != "backward" else lambda live: 2 * sum(live) + 8,
            linger=2 * reach,
        )
    )


join_asof("backward")
join_asof("backward", 3)
join_asof("backward", name=", inner", rest={"how": "inner"})
join_asof("backward", name=" of points", lifetimes="points")
join_asof("backward", name=" of rows that stay", insert_only=True)
join_asof("backward", 0)
join_asof("backward", name=", never at once", rest={"exact": False})
join_asof("forward")
join_asof("forward", 4)
join_asof("forward", 2, name=", never at once, inner", rest={"exact": False, "how": "inner"})
join_asof("nearest")
join_asof("nearest", 3)
join_asof("nearest", 5, name=" of points that stay", lifetimes="points", insert_only=True)
join_asof("nearest", name=", never at once", rest={"exact": False})
join_asof("nearest", 2**70, name=" at the end", origin=END)
join_asof("forward", 2**63 - 5, name=" at the beginning", origin=BEGINNING)


def over(
    label: str,
    spec: InputSpec,
    group: tuple[str, ...] = ("id",),
    *,
    rows: int | None = None,
    span: int | None = None,
    aggs: Any = None,
    near: Any = None,
) -> None:
    """One case of columns over the rows before: aggregates by (kind, column), neighbours with an offset."""
    aggs, near = aggs or {}, near or {}
    made = [
        (n, getattr(kinds, kind)(*c) if isinstance(c, tuple) else Aggregate(kind, c and col(c)))
        for n, (kind, c) in aggs.items()
    ]
    reach = {"lag": lag, "lead": lead, "first_value": lambda v, _: first_value(v)}
    others = [(n, reach[kind](c, by)) for n, (kind, c, by) in near.items()]
    leads = any(kind == "lead" for kind, _, _ in near.values())
    register(
        LawCase(
            f"over {label}",
            build=lambda a: OverFrame(
                inputs=(a,), group=group, rows=rows, span=span, columns=(*made, *others)
            ),
            oracle=lambda a, **_: oracles.over(a, group, aggs, near, n=rows, span=span),
            inputs=(spec,),
            liveness=None if leads else slowest,
            state_bound=None if leads or (rows or 0) > 1 or near else held(4),
            linger=span or 0,
        )
    )


FRAMED = {"rows": ("count", None), "total": ("sum", "v"), "low": ("min", "v"), "mid": ("median", "v")}
BEFORE = {"last": ("lag", "v", 1), "third": ("lag", "n", 3)}
over("two rows", VALUES, rows=2, aggs=FRAMED, near=BEFORE)
over("three of rows that stay", ADDED, rows=3, aggs=FRAMED, near={"first": ("first_value", "v", 0)})
over(
    "three of two columns", VALUES, rows=3, aggs={"r": ("corr", ("v", "n")), "c": ("covar_samp", ("n", "v"))}
)
over("three of all", WITHOUT_KEY, (), rows=3, aggs=FRAMED)
over("some time", VALUES, span=4, aggs=FRAMED, near={"first": ("first_value", "n", 0)})
over("no time", VALUES, span=0, aggs=FRAMED)
over("some time and rows", ADDED, span=6, aggs=FRAMED, near=BEFORE)
over("rows before", replace(VALUES, lifetimes="points"), near=BEFORE)
over("rows behind", VALUES, near={"next": ("lead", "v", 1), "after": ("lead", "n", 2), **BEFORE})
over("rows behind, in time", ADDED, span=3, aggs=FRAMED, near={"next": ("lead", "v", 1)})

HELD = [
    {"other": key, "w": weight}
    for key, weight in ((0, 1), (1, 2), (1, 2), (1, -3), (2, None), (None, 7), (3, 0), (9, 9))
]
"""A table: keys of one row and of several, equal rows, a null key, and one that nobody has."""


def look_up(how: How, *, name: str = "", expr: Any = None, residual: Any = None) -> None:
    """One case of a join with a table."""
    always = [(MIN_TIME + 1, INFINITY, row) for row in HELD]
    register(
        LawCase(
            f"look-up-{how}{name}",
            build=lambda a: LookUp(
                inputs=(a,),
                table=HeldTable.of(table_of(HELD)),
                on=(("id", "other"),),
                how=how,
                residual=expr,
            ),
            oracle=lambda a, **_: oracles.join(a, always, on=[("id", "other")], how=how, residual=residual),
            inputs=(NAMED,),
            liveness=slowest,
            state_bound=none,
        )
    )


for each in ("inner", "left", "semi", "anti"):
    look_up(each)
    look_up(
        each,
        name="-residual",
        expr=(col("n") > col("w")) & (col("s") != "a"),
        residual=lambda a, b: None not in (a["n"], b["w"]) and a["n"] > b["w"] and a["s"] not in (None, "a"),
    )

LOG = InputSpec({"id": "key", "n": "int", "s": "name"}, key="id", max_rows=7)


def latest(name: str, spec: InputSpec = LOG, order: tuple[str, ...] = ()) -> None:
    """One case of the current rows of keys."""
    register(
        LawCase(
            f"latest-{name}",
            build=lambda a: Latest(
                inputs=(Lifetime(inputs=(a,), rule="forever"),), group=("id",), order=order
            ),
            oracle=lambda a, **_: oracles.latest(a, ["id"], order),
            inputs=(spec,),
            liveness=slowest,
            state_bound=lambda live: 2 * sum(live) + 4,
        )
    )


latest("rows")
latest("ordered", order=("s", "n"))
latest("points", replace(LOG, lifetimes="points", insert_only=True))
SAID = (("n", col("n")), ("op", col("s").coalesce("c")), ("id", col("id")))
register(
    LawCase(
        "changelog",
        build=lambda a: Latest(
            inputs=(Lifetime(inputs=(Select(inputs=(a,), columns=SAID),), rule="forever"),),
            group=("id",),
            order=("n",),
            ops=Ops("op", ("a", "c"), ("b",)),
        ),
        oracle=lambda a, **_: oracles.latest(
            oracles.select(a, lambda p: {"n": p["n"], "op": p["s"] or "c", "id": p["id"]}),
            ["id"],
            ["n"],
            "op",
            ["b"],
        ),
        inputs=(LOG,),
        liveness=slowest,
        state_bound=lambda live: 2 * sum(live) + 4,
    )
)

RENAMED = (("other", col("id")), ("s", col("v")))


def met_itself(how: How) -> None:
    """One case of a stream joined with itself: each page comes to both sides."""
    register(
        LawCase(
            f"join-{how}-with-itself",
            build=lambda a: Join(
                inputs=(a, Select(inputs=(a,), columns=RENAMED)), on=(("id", "other"),), how=how
            ),
            oracle=lambda a, **_: oracles.join(
                a,
                oracles.select(a, lambda p: {"other": p["id"], "s": p["v"]}),
                on=[("id", "other")],
                how=how,
            ),
            inputs=(LEFT,),
            liveness=slowest,
            state_bound=held(16),
            regressions=kept.MET_ITSELF,
        )
    )


for each in HOW:
    met_itself(each)

AGGREGATES = {
    "n": ("count", None),
    "m": ("count", "v"),
    "total": ("sum", "v"),
    "low": ("min", "v"),
    "high": ("max", "v"),
    "mean": ("avg", "v"),
}
MADE = tuple((n, Aggregate(kind, None if c is None else col(c))) for n, (kind, c) in AGGREGATES.items())
FLOATS = InputSpec({"id": "key", "v": "float"}, key="id")
INTS = InputSpec({"id": "key", "v": "int"}, key="id")


def totals(name: str, spec: InputSpec, group: tuple[str, ...], bound: Any = None) -> None:
    """One case of the totals."""
    register(
        LawCase(
            f"totals-{name}",
            build=lambda a: Totals(inputs=(a,), group=group, aggregates=MADE),
            oracle=lambda a, **_: oracles.totals(a, group, AGGREGATES),
            inputs=(spec,),
            state_bound=bound,
            regressions=kept.TOTALS if spec is INTS else (),
        )
    )


totals("floats", FLOATS, ("id",))
totals("ints", INTS, ("id",))
totals("inserts", replace(FLOATS, insert_only=True, max_rows=9), ("id",), lambda _: 3 * 4)
"""What only comes needs a slot, a sent row and at most a wide sum per group, however many rows there are."""
totals("all", INTS, ())

LEADERS = {"low": ("min", "v"), "high": ("max", "v"), "top": ("top_k", "v", 2)}
FEWER = {name: LEADERS[name] for name in ("low", "high")}


def leading(kind: Any, aggs: Any, bound: Any = None, **spec: Any) -> None:
    """Extremes of texts or decimals over all time."""
    named = tuple((n, Aggregate(k, col(c), *option)) for n, (k, c, *option) in aggs.items())
    register(
        LawCase(
            f"totals-of-{kind}s{'-inserts' if spec else ''}",
            build=lambda a: Totals(inputs=(a,), group=("id",), aggregates=named),
            oracle=lambda a, **_: oracles.totals(a, ("id",), aggs),
            inputs=(InputSpec({"id": "key", "v": kind}, key="id", max_rows=9, **spec),),
            state_bound=bound,
        )
    )


for kind in ("text", "decimal"):
    leading(kind, LEADERS)
    leading(kind, FEWER, lambda _: 4 * 4, insert_only=True)
"""Of texts and decimals that only come, one of each kind is kept per group."""


def tumbling(name: str, spec: InputSpec, group: tuple[str, ...], *, size: int = 5, offset: int = 0) -> None:
    """One case of tumbling windows."""

    def begun(ctis: tuple[int, ...]) -> int:
        (t,) = ctis
        return t if t in (MIN_TIME, INFINITY) else (t - offset) // size * size + offset

    register(
        LawCase(
            f"tumbling-{name}",
            build=lambda a: Tumbling(inputs=(a,), group=group, size=size, offset=offset, aggregates=MADE),
            oracle=lambda a, patterns: oracles.tumbling(
                a, group, size, offset, AGGREGATES, oracles.horizon(patterns[0])
            ),
            inputs=(spec,),
            liveness=begun,
            state_bound=held(30) if group else None,
            linger=size,
            regressions=kept.TUMBLING if spec in (INTS, FLOATS) else (),
        )
    )


tumbling("floats", FLOATS, ("id",))
tumbling("ints", INTS, ("id",), size=3, offset=-4)
tumbling("all", INTS, (), size=7, offset=2)
tumbling("inserts", replace(FLOATS, insert_only=True), ("id",))
tumbling("points", replace(INTS, lifetimes="points"), ("id",))
tumbling("finite", replace(FLOATS, lifetimes="finite"), ("id",))
tumbling("the last", replace(INTS, lifetimes="finite", insert_only=True, origin=END), ("id",))

BEST = (("top", Aggregate("top_k", col("v"), 2)), ("high", Aggregate("max", col("v"))))


def thrifty(name: str, spec: InputSpec, group: tuple[str, ...], *, size: int) -> None:
    """Windows that say which values no longer count: what comes out is the same."""
    best = {"top": ("top_k", "v", 2), "high": ("max", "v")}
    register(
        LawCase(
            f"thrifty-{name}",
            build=lambda a: Tumbling(inputs=(a,), group=group, size=size, aggregates=BEST, thrifty=True),
            oracle=lambda a, patterns: oracles.tumbling(
                a, group, size, 0, best, oracles.horizon(patterns[0])
            ),
            inputs=(replace(spec, insert_only=True, max_rows=16),),
            linger=size,
        )
    )


thrifty("points", replace(FLOATS, lifetimes="points"), ("id",), size=9)
thrifty("all", INTS, (), size=12)

WINDOWED = (("n", Aggregate("count", None)),)


def windowed(rows: oracles.Rows) -> oracles.Rows:
    """Counts per id and window of 5."""
    return oracles.tumbling(rows, ["id"], 5, 0, {"n": ("count", None)})


FINITE = replace(LEFT, lifetimes="finite")
FINITE_RIGHT = replace(RIGHT, lifetimes="finite")
register(
    LawCase(
        "join of a window with a stream",
        build=lambda a, b: Join(
            inputs=(Tumbling(inputs=(a,), group=("id",), size=5, aggregates=WINDOWED), b),
            on=(("id", "other"),),
            how="left",
        ),
        oracle=lambda a, b, **_: oracles.join(windowed(a), b, on=[("id", "other")], how="left"),
        inputs=(FINITE, FINITE_RIGHT),
    )
)
register(
    LawCase(
        "window over a union of a stream and its own filter",
        build=lambda a: Tumbling(
            inputs=(Union(inputs=(a, Where(inputs=(a,), predicate=col("id") > 0))),),
            group=("id",),
            size=5,
            aggregates=WINDOWED,
        ),
        oracle=lambda a, **_: windowed(oracles.union(a, oracles.where(a, lambda p: (p["id"] or 0) > 0))),
        inputs=(FINITE,),
    )
)
register(
    LawCase(
        "window over a join",
        build=lambda a, b: Tumbling(
            inputs=(Join(inputs=(a, b), on=(("id", "other"),), how="full"),),
            group=("id",),
            size=5,
            aggregates=WINDOWED,
        ),
        oracle=lambda a, b, **_: windowed(oracles.join(a, b, on=[("id", "other")], how="full")),
        inputs=(FINITE, FINITE_RIGHT),
    )
)
register(
    LawCase(
        "chop",
        build=lambda a: Chop(inputs=(a,), period=4),
        oracle=lambda a, patterns: oracles.chop(a, 4, oracles.horizon(patterns[0])),
        inputs=(READINGS,),
        liveness=slowest,
        state_bound=held(1),
    )
)


def clip(on: tuple[tuple[str, str], ...]) -> None:
    """One case of clip."""
    register(
        LawCase(
            f"clip-{len(on)}-keys",
            build=lambda a, b: Clip(inputs=(a, b), on=on, how="semi"),
            oracle=lambda a, b, **_: oracles.clip(a, b, on=on),
            inputs=(LEFT, RIGHT),
            liveness=slowest,
            state_bound=held(4),
        )
    )


clip((("id", "other"),))
clip(())
register(
    LawCase(
        "output final",
        build=lambda a: Deliver(inputs=(a,), mode="final"),
        oracle=lambda a, **_: a,
        inputs=(READINGS,),
    )
)
register(
    LawCase(
        "output final of points",
        build=lambda a: Deliver(inputs=(a,), mode="final"),
        oracle=lambda a, **_: a,
        inputs=(replace(READINGS, lifetimes="points"),),
    )
)


RUNNING = {"n": ("count", None), "some": ("count", "v"), "total": ("sum", "v"), "mean": ("avg", "v")}
ENDS = {"low": ("min", "v"), "high": ("max", "v")}
PICKED = {"d": ("count_distinct", "v"), "mid": ("median", "v"), "last": ("last", "v")}


def alive(label: str, spec: InputSpec, aggs: Any, *, group: Any = ("id",), endless: bool = False) -> None:
    """One case of aggregates over what is alive."""
    made = tuple(
        (n, getattr(kinds, kind)(*c) if isinstance(c, tuple) else Aggregate(kind, c and col(c), *more))
        for n, (kind, c, *more) in aggs.items()
    )

    def over(a: Any) -> Any:
        return Lifetime(inputs=(a,), rule="forever") if endless else a

    register(
        LawCase(
            f"alive {label}",
            build=lambda a: Alive(inputs=(over(a),), group=group, aggregates=made),
            oracle=lambda a, **_: oracles.alive(oracles.forever(a) if endless else a, group, aggs),
            inputs=(spec,),
            liveness=slowest,
            state_bound=None if endless else lambda live: 12 * sum(live) + 4,
        )
    )


alive("floats", FLOATS, RUNNING)
alive("ints", INTS, RUNNING)
alive("decimals", InputSpec({"id": "key", "v": "decimal"}, key="id"), RUNNING)
alive("all", InputSpec({"id": "key", "v": "int"}), RUNNING, group=())
alive("rows that only come", replace(FLOATS, insert_only=True), {**RUNNING, **ENDS}, endless=True)
alive("rows that begin and may go", FLOATS, RUNNING, endless=True)
alive("extremes", INTS, {**RUNNING, **ENDS})
alive("picked", INTS, PICKED)
SPREAD = {"d": ("count_distinct", "v"), "var": ("variance", "v", 1), "dev": ("stddev", "v", 0)}
alive("different", FLOATS, SPREAD)
alive("different that only come", replace(FLOATS, insert_only=True), {**SPREAD, **RUNNING}, endless=True)
TEXTS = InputSpec({"id": "key", "v": "text"}, key="id")
BY = {"high": ("max_by", ("w", "v")), "low": ("min_by", ("w", "v"))}
BY_TEXT = InputSpec({"id": "key", "v": "text", "w": "int"}, key="id")
alive("rows by text", BY_TEXT, BY)
alive(
    "rows by text that only come",
    replace(BY_TEXT, insert_only=True),
    {**BY, "n": ("count", None)},
    endless=True,
)
TOGETHER = {"r": ("corr", ("v", "w")), "pop": ("covar_pop", ("w", "v")), "samp": ("covar_samp", ("v", "w"))}
TWO = InputSpec({"id": "key", "v": "float", "w": "float"}, key="id")
alive("two columns", TWO, TOGETHER)
alive("two columns that only come", replace(TWO, insert_only=True), {**TOGETHER, **RUNNING}, endless=True)
ABOUT = {"d": ("approx_count_distinct", "v", 0.05)}
alive("about how many", TEXTS, ABOUT)
alive("about how many that only come", replace(TEXTS, insert_only=True), {**ABOUT, **ENDS}, endless=True)
COUNTED = {"d": ("count_distinct", "v")}
alive("texts that only come", replace(TEXTS, insert_only=True), {**ENDS, **COUNTED}, endless=True)
alive("texts", TEXTS, COUNTED)
alive("picked of all that only come", replace(INTS, insert_only=True), {**PICKED, **ENDS}, endless=True)

import expression_law_cases  # noqa: E402, F401  (registers the cases)
import nested_law_cases  # noqa: E402, F401
