"""Cases of aggregates: over all time, in windows, over what is alive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import law_regressions as kept
from law_specs import (
    END,
    FLOATS,
    INTS,
    held,
    slowest,
)

from caesura.expr import col
from caesura.ops.aggregate import Aggregate, Alive, Totals, Tumbling, kinds
from caesura.ops.lifetimes import Lifetime
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec

AGGREGATES = {
    "n": ("count", None),
    "m": ("count", "v"),
    "total": ("sum", "v"),
    "low": ("min", "v"),
    "high": ("max", "v"),
    "mean": ("avg", "v"),
}
MADE = tuple((n, Aggregate(kind, None if c is None else col(c))) for n, (kind, c) in AGGREGATES.items())


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

RUNNING = {"n": ("count", None), "some": ("count", "v"), "total": ("sum", "v"), "mean": ("avg", "v")}
ENDS = {"low": ("min", "v"), "high": ("max", "v")}
PICKED = {"d": ("count_distinct", "v"), "mid": ("median", "v"), "last": ("last", "v")}


def alive(
    label: str,
    spec: InputSpec,
    aggs: Any,
    *,
    group: Any = ("id",),
    endless: bool = False,
    regressions: tuple[Any, ...] = (),
) -> None:
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
            regressions=regressions,
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
HALF_WAY = (
    (
        (
            "a",
            " LE RE | id v w |\n 0 1 | 0 0.0 1e+16 | +\n 0 1 | 0 -2.5 0.1 | +\n 0 1 | 0 -2.5 0.1 | +\n"
            "-- definite: * --",
        ),
    ),
)
"""Their covariance is all but half way between two doubles."""
alive(
    "two columns that only come",
    replace(TWO, insert_only=True),
    {**TOGETHER, **RUNNING},
    endless=True,
    regressions=HALF_WAY,
)
ABOUT = {"d": ("approx_count_distinct", "v", 0.05)}
alive("about how many", TEXTS, ABOUT)
alive("about how many that only come", replace(TEXTS, insert_only=True), {**ABOUT, **ENDS}, endless=True)
COUNTED = {"d": ("count_distinct", "v")}
alive("texts that only come", replace(TEXTS, insert_only=True), {**ENDS, **COUNTED}, endless=True)
alive("texts", TEXTS, COUNTED)
alive("picked of all that only come", replace(INTS, insert_only=True), {**PICKED, **ENDS}, endless=True)
