"""Cases of steps that keep the rows of a group in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from law_specs import (
    NAMED,
    held,
    slowest,
)

from caesura.expr import col
from caesura.ops.aggregate import Aggregate, kinds
from caesura.ops.latest import Latest, Ops
from caesura.ops.lifetimes import Lifetime
from caesura.ops.over import OverFrame, first_value, lag, lead
from caesura.ops.select import Select
from caesura.ops.top import Order, Rank, Top
from caesura.punctuation import INFINITY
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec


def top(label: str, spec: InputSpec, *order: tuple[str, bool], n: int | None = None, **rest: Any) -> None:
    """One case of `Top`: by columns, with whether they descend."""
    ranks: tuple[tuple[str, Rank], ...] = tuple((kind, kind) for kind in rest.pop("ranks", ()))
    group, up_to = rest.pop("group", ("id",)), rest.pop("up_to", None)

    def wanted(row: Any) -> bool:
        return up_to is None or row[2][up_to[0]] <= up_to[1]

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
                up_to=up_to,
            ),
            oracle=lambda a, **_: list(
                filter(
                    wanted,
                    oracles.top(
                        a, n, [(value(name), down) for name, down in order], group=group, ranks=ranks
                    ),
                )
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
top("ranks up to 1", VALUES, ("n", False), ranks=("rank",), up_to=("rank", 1))
top("ranks up to 2", VALUES, ("n", False), ranks=("rank", "dense_rank"), up_to=("dense_rank", 2))
top("ranks up to 1 of rows that stay", ADDED, ("n", False), ("v", True), ranks=("rank",), up_to=("rank", 1))
TOGETHER = InputSpec({"id": "key", "n": "int"}, key="id", lifetimes="points")
top("ranks up to 1 of points", TOGETHER, ("n", True), ranks=("rank",), up_to=("rank", 1))
BEGUN = InputSpec(
    {"id": "key", "v": "float", "n": "int", "s": "name"},
    key="id",
    lifetimes="endless",
    insert_only=True,
    max_rows=8,
)
"""Rows that only begin, which some steps take in one pass where they come in order."""
top("1 of rows that only begin", BEGUN, ("n", True), n=1)
top("2 of all rows that only begin", replace(BEGUN, key=None), ("v", False), ("n", True), n=2, group=())
top("2 of rows that only begin, in order of time", BEGUN, n=2)
top("3 of rows that only begin, with their numbers", BEGUN, ("n", True), n=3, ranks=("row_number",))


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
over("all rows before", VALUES, rows=INFINITY, aggs=FRAMED)
RUNNING = {"rows": ("count", None), "some": ("count", "v"), "total": ("sum", "v"), "low": ("min", "v")}
FIRST = {"first": ("first_value", "v", 0), **BEFORE}
over("all that came before", VALUES, rows=INFINITY, aggs=RUNNING, near=FIRST)
over("all that came before, of all", WITHOUT_KEY, (), rows=INFINITY, aggs=RUNNING)
over("all that came before, and behind", ADDED, rows=INFINITY, aggs=RUNNING, near={"next": ("lead", "v", 1)})
over("some time", VALUES, span=4, aggs=FRAMED, near={"first": ("first_value", "n", 0)})
over("no time", VALUES, span=0, aggs=FRAMED)
over("some time and rows", ADDED, span=6, aggs=FRAMED, near=BEFORE)
over("rows before", replace(VALUES, lifetimes="points"), near=BEFORE)
over("rows behind", VALUES, near={"next": ("lead", "v", 1), "after": ("lead", "n", 2), **BEFORE})
over("rows behind, in time", ADDED, span=3, aggs=FRAMED, near={"next": ("lead", "v", 1)})

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
