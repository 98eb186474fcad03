"""Everything that a user can call, called wrongly: what leaves it is one of our errors, with a remedy."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import caesura as cz
from caesura import CaesuraError, Stream, col
from caesura.api.grouped import Grouped
from caesura.api.windowed import Windowed
from caesura.ops.aggregate.functions import Aggregate

ROUNDS = 200 if "CAESURA_SEARCH" in os.environ else 2
ELSEWHERE = {"session", "from_spark", "subscribe", "from_claimed", "read_claimed", "pipeline"}
"""What needs Spark or a store."""
OUTSIDE = {"start", "to_spark", "run_batch", "watch", "publish", "audit"}
"""Methods that start Spark, or run a plan twice."""
ROWS = [{"ts": n, "id": n % 3, "v": 0.5 * n, "s": "ab"[n % 2]} for n in range(6)]


def stream() -> Stream:
    return cz.from_rows(ROWS, time="ts", punctuate=cz.delay(1))


def wrong() -> list[Any]:
    """Values of all kinds: each is wrong for most arguments."""
    plain = [
        None,
        0,
        -1,
        7,
        2**70,
        1.5,
        math.nan,
        math.inf,
        True,
        "",
        "x",
        "id",
        "v > 3",
        "300000000d",
        "5m",
        b"x",
    ]
    more = [[], [1], ["id"], ["id", "id"], {}, {"id": "v"}, {1: 2}, {"id"}, (), ("id", None), object(), math]
    ours = [
        col("id"),
        col("nope"),
        col("v") > 1,
        cz.lit(3),
        cz.count(),
        cz.max("v"),
        cz.Pattern(id=3),
        stream(),
        cz,
    ]
    times = [
        timedelta(days=10**6),
        datetime(2024, 1, 1),
        Decimal("1.5"),
        np.int64(3),
        np.array([1]),
        pa.array([1]),
    ]
    return [
        *plain,
        *more,
        *ours,
        *times,
        pa.int64(),
        pa.table({"a": [1]}),
        len,
        lambda: 1,
        lambda x: x,
        int,
        Ellipsis,
    ]


def good(name: str) -> list[Any]:
    """Values that may be right for an argument of this name."""
    known: dict[str, list[Any]] = {
        **{n: ["id"] for n in ("on", "columns", "names")},
        **{n: [stream()] for n in ("other", "others", "control", "seed")},
        **{n: [4, 2] for n in ("size", "every", "gap", "within", "after", "d", "n")},
        **{n: ["v"] for n in ("column", "value")},
        "by": ["id", stream()], "predicate": [col("v") > 1], "rows": [ROWS], "time": ["ts"],
        "aggregates": [cz.count()], "outputs": [cz.sum("v")], "step": [lambda r: r], "name": ["step"],
    }  # fmt: skip
    return known.get(name, ["v", 3])


def functions() -> dict[str, Callable[..., Any]]:
    """Everything that can be called, by name: functions, and methods of what they give."""
    found: dict[str, Callable[..., Any]] = {}
    for name in cz.__all__:
        member = getattr(cz, name)
        if isinstance(member, FunctionType) and name not in ELSEWHERE:
            found[name] = member
    groups = stream().group_by("id")
    for owner in (stream(), groups, groups.tumbling(4), groups.session(2), col("v"), col("s"), cz.max("v")):
        for name, member in inspect.getmembers(owner, callable):
            if not name.startswith("_") and name not in OUTSIDE and not isinstance(member, type):
                found[f"{type(owner).__name__}.{name}"] = member
    for name in ("parquet", "csv", "json"):
        found[f"read.{name}"] = getattr(cz.read, name)
    for name in dir(cz.functions):
        member = getattr(cz.functions, name)
        if isinstance(member, FunctionType) and not name.startswith("_"):
            found[f"functions.{name}"] = member
    return found


NAMES = sorted(functions())


def arguments(call: Callable[..., Any], random: Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that fit a signature, some of them wrong; now and then one too many."""
    args: list[Any] = []
    more: dict[str, Any] = {}
    for parameter in inspect.signature(call).parameters.values():
        pool = wrong() if random.random() < 0.6 else good(parameter.name)
        chosen = random.choice(pool)
        optional = parameter.default is not parameter.empty
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += [random.choice(pool) for _ in range(random.randint(0, 2))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            more |= {label: random.choice(pool) for label in ("x", "id")[: random.randint(0, 2)]}
        elif parameter.kind is parameter.KEYWORD_ONLY or optional:
            more |= {} if optional and random.random() < 0.6 else {parameter.name: chosen}
        else:
            args.append(chosen)
    if random.random() < 0.05:
        more["nonsense"] = 1
    return args, more


def used(result: Any) -> Iterator[None]:
    """Goes on with what a call gave: plans run, expressions are used."""
    if isinstance(result, Stream):
        yield
        result.run()
        result.check()
        str(result.explain())
    elif isinstance(result, Windowed):
        yield
        result.agg(n=cz.count(), top=cz.max("v")).run()
    elif isinstance(result, Grouped):
        yield
        result.totals(n=cz.count()).run()
    elif isinstance(result, cz.Expr):
        yield
        stream().with_columns(x=result).run()
    elif isinstance(result, Aggregate):
        yield
        stream().tumbling(4).agg(x=result).run()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_called_wrongly_says_so_in_our_words(name: str) -> None:
    for number in range(ROUNDS):
        random = Random(f"{name}/{number}")
        call = functions()[name]
        args, more = arguments(call, random)
        try:
            for _ in used(call(*args, **more)):
                pass
        except CaesuraError as error:
            assert error.problem and error.remedy, (name, number)
        except Exception as error:
            told = f"{name} round {number}: {type(error).__name__}: {error}"
            raise AssertionError(told) from error
