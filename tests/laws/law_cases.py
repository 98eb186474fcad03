"""Every operator's case in the law suite."""

from __future__ import annotations

from typing import Any

from caesura.expr import col
from caesura.ops.lifetimes import Lifetime, Rule
from caesura.ops.select import Select
from caesura.ops.union import Union
from caesura.ops.where import Where
from caesura.punctuation import INFINITY, MIN_TIME
from caesura.testing import oracles
from caesura.testing.case import LawCase, register
from caesura.testing.spec import InputSpec

READINGS = InputSpec({"id": "key", "v": "float"}, key="id")
NAMED = InputSpec({"id": "key", "n": "int", "s": "str"}, key="id")


def none(_: tuple[int, ...]) -> int:
    """No row may be held."""
    return 0


def slowest(ctis: tuple[int, ...]) -> int:
    """The output is as far as the slowest input."""
    return min(ctis)


def moved(by: int) -> Any:
    """The output is as far as the slowest input, and some ticks."""
    return lambda ctis: min(ctis) if min(ctis) in (MIN_TIME, INFINITY) else min(ctis) + by


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
lifetime("extend", lambda a: oracles.extend(a, 4), amount=4)
lifetime("extend", lambda a: oracles.extend(a, -3), amount=-3, by=-3)
lifetime("scale", lambda a: oracles.scale(a, 2), amount=2)
lifetime("scale", lambda a: oracles.scale(a, 3, 2), amount=3, per=2)
lifetime("scale", lambda a: oracles.scale(a, 1, 3), amount=1, per=3, insert_only=True)
lifetime("start_at", lambda a: oracles.start_at(a, 4), amount=4)
lifetime("points_at_start", oracles.points_at_start)
lifetime("points_at_end", oracles.points_at_end)
