"""Cases of steps that take rows one by one, or all equal ones together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from law_specs import (
    BEGINNING,
    END,
    LEFT,
    NAMED,
    READINGS,
    RIGHT,
    SMALL,
    held,
    moved,
    none,
    slowest,
)

from caesura.expr import col
from caesura.ops.aggregate.kinds import count
from caesura.ops.aggregate.kinds import sum as sum_of
from caesura.ops.chop import Chop
from caesura.ops.clip import Clip
from caesura.ops.deliver import Deliver
from caesura.ops.layers import Layers
from caesura.ops.lifetimes import Lifetime, Rule
from caesura.ops.observe import Observe
from caesura.ops.sample import Sample
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.upserts import Upserts
from caesura.ops.where import Where
from caesura.punctuation import INFINITY
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec

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
        "observe",
        build=lambda a: Observe(
            inputs=(a,), name="seen", aggregates=(("rows", count()), ("total", sum_of("n")))
        ),
        oracle=lambda a, **_: a,
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
