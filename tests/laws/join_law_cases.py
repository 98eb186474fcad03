"""Cases of joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import law_regressions as kept
from law_specs import (
    BEGINNING,
    END,
    FINITE,
    FINITE_RIGHT,
    LEFT,
    NAMED,
    READINGS,
    RIGHT,
    ROW_KEYED,
    WINDOWED,
    held,
    moved,
    none,
    slowest,
    windowed,
)

from caesura.expr import col
from caesura.io.sources.table import table_of
from caesura.ops.aggregate import Tumbling
from caesura.ops.asof import AsOf, Direction
from caesura.ops.held import HeldTable
from caesura.ops.join import How, Join
from caesura.ops.look_up import LookUp
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec


def join(how: How, *, left: InputSpec = LEFT, right: InputSpec = RIGHT, name: str = "", **more: Any) -> None:
    """One case of the join."""
    register(
        LawCase(
            f"join-{how}{name}",
            build=lambda a, b: Join(
                inputs=(a, b),
                on=(("id", "other"),),
                how=how,
                residual=more.get("expr"),
                delays=more.get("delays", False),
            ),
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
join("inner", name="-delaying", delays=True)
join("inner", name="-delaying-by-row", left=ROW_KEYED, delays=True)
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
