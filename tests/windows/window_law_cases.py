"""Every window's cases in the law suite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caesura.expr import col
from caesura.kernels.ticks import LAST
from caesura.ops.aggregate import Aggregate, Tumbling, kinds
from caesura.ops.top import First, Order
from caesura.ops.windows import Bucket, Count, Frame, Grid, Quantise, Session, Snapshot, Windows
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing import oracles
from caesura.testing.case import LawCase
from caesura.testing.oracles.windows import aggregates_over, windowed
from caesura.testing.spec import InputSpec

CASES: list[LawCase] = []
FLOATS = InputSpec({"id": "key", "v": "float"}, key="id")
INTS = InputSpec({"id": "key", "v": "int"}, key="id")
NAMES = InputSpec({"id": "key", "v": "str"}, key="id")
POINTS = replace(INTS, lifetimes="points")
FINITE = replace(INTS, lifetimes="finite")

BASIC = {"n": ("count", None), "total": ("sum", "v"), "low": ("min", "v"), "mean": ("avg", "v")}
PICKS = {
    "a": ("first", "v"),
    "z": ("last", "v"),
    "top": ("top_k", "v", 2),
    "d": ("count_distinct", "v"),
    "q": ("quantile", "v", 0.75),
    "all": ("collect", "v"),
}
ROBUST = {"mad": ("median_absolute_deviation", "v"), "often": ("mode", "v")}
SPREAD = {"var": ("variance", "v", 1), "dev": ("stddev", "v", 1), "mid": ("median", "v")}


def made(aggs: Any) -> Any:
    """The engine's aggregates for the oracle's."""
    return tuple((n, one(kind, c, *option)) for n, (kind, c, *option) in aggs.items())


def one(kind: str, c: Any, *option: Any) -> Aggregate:
    """The engine's aggregate of a column, or of a pair: string_agg takes the second in order of the first."""
    if kind == "string_agg" and isinstance(c, tuple):
        ((separator, descending),) = option
        return kinds.string_agg(c[1], separator, order=c[0], descending=descending)
    return getattr(kinds, kind)(*c) if isinstance(c, tuple) else Aggregate(kind, c and col(c), *option)  # type: ignore[no-any-return]


def earliest(size: int, hop: int, offset: int) -> Any:
    """The least CTI that windows on a grid must give."""

    def wanted(ctis: tuple[int, ...]) -> int:
        (t,) = ctis
        start = ((t - offset - size) // hop + 1) * hop + offset
        return t if t in (MIN_TIME, INFINITY) else max(MIN_TIME + 1, start)

    return wanted


LINGER = {"grid": 6, "gaps": 5, "snapshot": 1, "session": 3, "limited": 6}
"""How long past its end a row may be in an open window; count windows wait for more rows instead."""


def held(live: tuple[int, ...], each: int = 24) -> int:
    """Some rows of state for each live row: itself, and what each window that it is in keeps and has sent."""
    return each * live[0] + 8


def least(frame: str, stamp: str) -> Any:
    """The least CTI that a window must give, whatever its rows are; None where they can hold it back."""
    sizes = {"grid": (6, 4, 1), "gaps": (3, 5, 0)}
    if frame == "limited":
        return lambda ctis: ctis[0] if ctis[0] in (MIN_TIME, INFINITY) else max(MIN_TIME + 1, ctis[0] - 6)
    if frame not in sizes:
        return None
    early, size = earliest(*sizes[frame]), sizes[frame][0] if stamp == "point_at_end" else 0
    return lambda ctis: ctis[0] if ctis[0] in (MIN_TIME, INFINITY) else early(ctis) + size


def hopping(
    name: str, spec: InputSpec, aggs: Any, size: int, hop: int, offset: int = 0, group: Any = ("id",)
) -> None:
    """One case of built-in aggregates over a grid."""
    CASES.append(
        LawCase(
            f"hopping-{name}",
            build=lambda a: Tumbling(
                inputs=(a,), group=group, size=size, hop=hop, offset=offset, aggregates=made(aggs)
            ),
            oracle=lambda a, patterns: oracles.tumbling(
                a, group, size, offset, aggs, oracles.horizon(patterns[0]), hop
            ),
            inputs=(spec,),
            liveness=earliest(size, hop, offset),
            state_bound=held if group else None,  # promises on keys let go of groups alone
            linger=size + hop,
        )
    )


hopping("overlapping", FLOATS, BASIC, 6, 2)
hopping("uneven", INTS, BASIC, 5, 3, -1)
hopping("gaps", FLOATS, BASIC, 2, 5, 1)
hopping("picked floats", FLOATS, {**SPREAD, "q": PICKS["q"], "top": PICKS["top"]}, 6, 2)
CASES[-1] = replace(
    CASES[-1],
    state_bound=lambda live: held(live, 48),  # five rows for each of nine windows
    regressions=((("a", " LE RE | id v |\n 0 1 | 0 1.0 | +\n 0 1 | 0 0.2 | +\n-- definite: * --"),),),
)
hopping("picked points", replace(FLOATS, lifetimes="points", insert_only=True), SPREAD, 6, 2)
hopping("panes", replace(FLOATS, lifetimes="points", insert_only=True), BASIC, 6, 2, 1)
CASES[-1] = replace(
    CASES[-1],
    regressions=(
        (("a", " LE RE | id v |\n 0 1 | 0 0.0 | +\n 5 6 | 2 -inf | +\n-- definite: id = 2 --"),
         ("a", " LE RE | id v |\n 9 10 | null null | +\n 1 2 | 1 1.0 | +\n-- definite: time < 6 --"),
         ("a", " LE RE | id v |\n 10 11 | null 0.1 | +\n-- definite: * --")),
    ),
)  # fmt: skip
hopping("uneven-panes", replace(POINTS, insert_only=True), BASIC, 5, 3, -1)
hopping("picks", INTS, PICKS, 6, 3)
hopping("texts", NAMES, PICKS, 4, 4)
hopping("robust floats", FLOATS, ROBUST, 6, 3)
hopping("robust ints", INTS, ROBUST, 5, 5)
hopping("robust decimals", InputSpec({"id": "key", "v": "decimal"}, key="id"), ROBUST, 5, 5)
hopping("most frequent names", NAMES, {"often": ROBUST["often"]}, 4, 2)
TRUTHS = {"some": ("bool_or", "v"), "every": ("bool_and", "v")}
for name, only_come in (("truths", False), ("truths that only come", True)):
    hopping(name, InputSpec({"id": "key", "v": "bool"}, key="id", insert_only=only_come), TRUTHS, 6, 3)
hopping(
    "truths of points", InputSpec({"v": "bool"}, lifetimes="points", insert_only=True), TRUTHS, 6, 2, group=()
)
hopping("joined texts", NAMES, {"all": ("string_agg", "v", ", ")}, 5, 5)
BY_FLOAT = InputSpec({"id": "key", "v": "float", "w": "name"}, key="id")
IN_ORDER = {f"all{down}": ("string_agg", ("v", "w"), (", ", down)) for down in (False, True)}
hopping("joined texts in order", BY_FLOAT, IN_ORDER, 5, 3)
hopping("percentiles", FLOATS, {"p": ("percentile", "v", 0.3), "top": ("percentile", "v", 1.0)}, 6, 3)
ABOUT = {"d": ("approx_count_distinct", "v", 0.03), "rough": ("approx_count_distinct", "v", 0.04)}
"""Errors at which no two of the values that are drawn share a register: the number is exact."""
for kind in ("float", "text"):
    sketched = InputSpec({"id": "key", "v": kind}, key="id")  # type: ignore[dict-item]
    hopping(f"about how many {kind}s", sketched, ABOUT, 6, 3)
    hopping(f"about how many {kind}s that only come", replace(sketched, insert_only=True), ABOUT, 5, 5)
hopping("about how many of all", InputSpec({"v": "int"}, insert_only=True), ABOUT, 6, 3, group=())
BY = {"high": ("max_by", ("w", "v")), "low": ("min_by", ("w", "v")), "self": ("max_by", ("v", "v"))}
for kind in ("float", "text", "list"):
    pairs = InputSpec({"id": "key", "v": kind, "w": "name"}, key="id")  # type: ignore[dict-item]
    hopping(f"rows by {kind}", pairs, BY, 6, 3)
    hopping(f"rows by {kind} that only come", replace(pairs, insert_only=True), BY, 5, 5)
TOGETHER = {"r": ("corr", ("v", "w")), "pop": ("covar_pop", ("v", "w")), "samp": ("covar_samp", ("w", "v"))}
for kind in ("float", "int", "decimal"):
    numbers = InputSpec({"id": "key", "v": kind, "w": "float"}, key="id")  # type: ignore[dict-item]
    hopping(f"{kind}s together", numbers, TOGETHER, 6, 3)
LEADERS = {"low": ("min", "v"), "high": ("max", "v"), "top": ("top_k", "v", 2)}
for kind in ("text", "decimal"):
    keyed = InputSpec({"id": "key", "v": kind}, key="id")  # type: ignore[dict-item]
    hopping(f"leading {kind}s", keyed, LEADERS, 6, 3)
    hopping(f"leading {kind}s that only come", replace(keyed, insert_only=True), LEADERS, 5, 5)
hopping("spread", replace(INTS, insert_only=True), SPREAD, 6, 3, group=())

ENGINE: dict[str, Frame] = {
    "grid": Grid(6, 4, 1),
    "gaps": Grid(3, 5),
    "snapshot": Snapshot(),
    "start1": Count(1, "start"),
    "start3": Count(3, "start"),
    "end1": Count(1, "end"),
    "end2": Count(2, "end"),
    "session": Session(3),
    "limited": Session(4, 6),
}
ORACLE = {
    "grid": ("grid", 6, 4, 1),
    "gaps": ("grid", 3, 5, 0),
    "snapshot": ("snapshot",),
    "start1": ("count_start", 1),
    "start3": ("count_start", 3),
    "end1": ("count_end", 1),
    "end2": ("count_end", 2),
    "session": ("session", 3, None),
    "limited": ("session", 4, 6),
}


def built_in(
    frame: str, spec: InputSpec, aggs: Any, *, stamp: str = "aligned", name: str = "", group: Any = ("id",)
) -> None:
    """Built-in aggregates over any frame."""
    CASES.append(
        LawCase(
            f"{frame}-{stamp}{name}",
            build=lambda a: Windows(
                inputs=(a,),
                group=group,
                frame=ENGINE[frame],
                outputs=made(aggs),
                stamp=stamp,  # type: ignore[arg-type]
            ),
            oracle=lambda a, patterns: windowed(
                a,
                group,
                ORACLE[frame],
                aggregates_over(aggs),
                stamp=stamp,
                horizon=oracles.horizon(patterns[0]),
            ),
            inputs=(spec,),
            liveness=least(frame, stamp),
            state_bound=held if frame in LINGER and group else None,
            linger=LINGER.get(frame, 0),
        )
    )


REACHED = (
    (("a", " LE RE | id v |\n 7 inf | 1 0 | +\n-- definite: time < 3 --\n-- definite: time < 6 --"),
     ("a", " LE RE | id v |\n-- definite: * --")),
    (("a", " LE RE | id v |\n 0 inf | 1 0 | +\n-- definite: time < 4 --\n-- definite: time < 6 --"),
     ("a", " LE RE | id v |\n-- definite: * --")),
)  # fmt: skip
"""A window begins, and none ends, before the input does."""
LATER_ENDLESS = (
    (("a", " LE RE | id v |\n 1 2 | 0 0 | +\n-- definite: time < -3 --\n-- definite: time < 0 --"),
     ("a", " LE RE | id v |\n 1 2->inf | 0 0 | -\n-- definite: * --")),
    (("a", " LE RE | id v |\n -1 0 | 0 0 | +\n-- definite: time < -5 --\n 0 1 | 0 0 | +"),
     ("a", " LE RE | id v |\n-- definite: time < -2 --\n -1 0->inf | 0 0 | -\n-- definite: * --")),
    (("a", " LE RE | id v |\n -1 0 | 0 0 | +\n-- definite: time < -5 --\n -1 0->inf | 0 0 | -"),
     ("a", " LE RE | id v |\n-- definite: time < -2 --\n -1 inf | 0 0 | +\n-- definite: * --")),
)  # fmt: skip
"""Time moves while no window closes and all events end; then one does not any more."""

for each in ENGINE:
    built_in(each, INTS, BASIC)
    CASES[-1] = replace(CASES[-1], regressions=REACHED + LATER_ENDLESS)
built_in("snapshot", FLOATS, BASIC, name="-floats", group=())
built_in("snapshot", INTS, PICKS, name="-picks")
FLOAT_PICKS = {name: which for name, which in {**PICKS, **SPREAD}.items() if name != "all"}
built_in("snapshot", FLOATS, FLOAT_PICKS, name="-float-picks")
built_in("snapshot", INTS, {"n": ("count", None)}, name="-counts")
built_in("snapshot", INTS, {"n": ("count", None)}, name="-counts", group=(), stamp="point_at_end")
for name, group in (("-inserts", ("id",)), ("-inserts of all", ())):
    only_come = replace(INTS, insert_only=True)
    built_in("snapshot", only_come, {"n": ("count", None)}, name=f"-counts{name}", group=group)
built_in("snapshot", NAMES, {"n": ("count", None), "low": ("min", "v")}, name="-texts")
for each in ("grid", "snapshot", "start3", "end2", "session"):
    built_in(each, replace(FLOATS, insert_only=True), {**BASIC, "high": ("max", "v")}, name="-inserts")
built_in("grid", replace(POINTS, insert_only=True), PICKS, name="-insert-points", stamp="point_at_end")
built_in("start3", POINTS, BASIC, name="-points")
built_in("session", POINTS, BASIC, name="-points")
for each in ("grid", "snapshot", "start3", "end2", "session"):
    built_in(each, INTS, BASIC, stamp="point_at_end")
for each in ("grid", "gaps", "snapshot"):
    built_in(each, INTS, BASIC, stamp="time_bound")
    CASES[-1] = replace(CASES[-1], regressions=LATER_ENDLESS)
for each, how in (("snapshot", "aligned"), ("snapshot", "time_bound"), ("grid", "time_bound")):
    built_in(each, INTS, BASIC, stamp=how, name="-prompt")
    CASES[-1] = replace(CASES[-1], liveness=lambda ctis: ctis[0], paces=("arrival",))


def first_rows(frame: str, spec: InputSpec, *, n: int | None, group: Any = ("id",), ranks: Any = ()) -> None:
    """The first rows of windows by v, greatest first."""
    first = First((Order(col("v")),), n, tuple((kind, kind) for kind in ranks))
    by = [(lambda row: row[2]["v"], True)]

    def compute(members: Any, start: int, end: int) -> Any:
        found = oracles.first_of(members, n, by, first.ranks)
        return [(start, end, {name: v for name, v in p.items() if name not in group}) for p in found]

    CASES.append(
        LawCase(
            f"{frame}-first {n}{' with ranks' if ranks else ''}{'' if group else ' of all'}",
            build=lambda a: Windows(inputs=(a,), group=group, frame=ENGINE[frame], first=first),
            oracle=lambda a, patterns: windowed(
                a, group, ORACLE[frame], compute, horizon=oracles.horizon(patterns[0])
            ),
            inputs=(spec,),
            liveness=least(frame, "aligned"),
            state_bound=(lambda live: held(live, 48)) if frame in LINGER and group else None,
            linger=LINGER.get(frame, 0),
        )
    )


for each in ENGINE:
    first_rows(each, INTS, n=2)
first_rows("grid", FLOATS, n=3, ranks=("row_number", "rank", "dense_rank"))
first_rows("session", NAMES, n=None, ranks=("dense_rank",))
first_rows("snapshot", replace(FLOATS, insert_only=True), n=1, group=())


def quantised(rows: Any, size: int, period: int, offset: int) -> Any:
    """Each row from the end of its period on, or from the last start that there is."""
    ends = [min(LAST, ((le - offset) // period + 1) * period + offset) for le, _, _ in rows]
    return [(end, min(INFINITY, end + size), p) for end, (_, _, p) in zip(ends, rows, strict=True)]


def next_period(ctis: tuple[int, ...]) -> int:
    """Punctuation moves with the starts."""
    return ctis[0] if ctis[0] in (MIN_TIME, INFINITY) else min(LAST, (ctis[0] - 1) // 4 * 4 + 5)


CASES.append(
    LawCase(
        "hopping lifetimes",
        build=lambda a: Quantise(inputs=(a,), size=6, period=4, offset=1),
        oracle=lambda a, **_: quantised(a, 6, 4, 1),
        inputs=(INTS,),
        liveness=next_period,
        state_bound=lambda _: 0,
    )
)


def bucketed(rows: Any, attr: str, size: int, slide: int, origin: int) -> Any:
    """A copy of each row for every window that holds its attribute."""
    return [
        (le, re, {**p, "wid": w})
        for le, re, p in rows
        for at in [le if attr == "LE" else p[attr]]
        if at is not None
        for w in range((at - origin - size) // slide, (at - origin) // slide + 1)
        if origin + w * slide <= at < origin + w * slide + size
    ]


STARTS = (INTS, replace(INTS, lifetimes="points"), replace(INTS, insert_only=True))
for (size, slide), starts in zip(((3, 3), (5, 2), (2, 3)), STARTS, strict=True):
    for attr, drawn in (("v", replace(INTS, key="v")), ("LE", starts)):
        CASES.append(
            LawCase(
                f"bucket-{size}-{slide}" + ("-of-starts" if attr == "LE" else ""),
                build=lambda a, attr=attr, size=size, slide=slide: Bucket(
                    inputs=(a,), attr=attr, size=size, slide=slide, origin=1
                ),
                oracle=lambda a, attr=attr, size=size, slide=slide, **_: bucketed(a, attr, size, slide, 1),
                inputs=(drawn,),
                liveness=lambda ctis: ctis[0],
                state_bound=lambda _: 0,
            )
        )

BY_TEXT = InputSpec({"id": "key", "v": "text", "w": "list"}, key="id")
built_in("snapshot", BY_TEXT, BY, name="-by")
built_in("session", replace(BY_TEXT, insert_only=True), BY, name="-by-inserts")
TWO = InputSpec({"id": "key", "v": "float", "w": "int"}, key="id")
built_in("snapshot", TWO, TOGETHER, name="-together")
built_in("session", replace(TWO, insert_only=True), TOGETHER, name="-together-inserts")
