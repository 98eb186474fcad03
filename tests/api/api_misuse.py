"""What users can call, and arguments for it of which some are wrong."""

from __future__ import annotations

import inspect
import math
import operator
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

import caesura as cz
from caesura import Stream, col, qre
from caesura.api.grouped import Grouped
from caesura.api.windowed import Windowed
from caesura.ops.aggregate.kinds import Aggregate
from caesura.runtime import Query

ELSEWHERE = {"session", "from_spark"}
"""What needs Spark."""
OUTSIDE = {"start", "to_spark", "run_batch", "watch", "derived"}
"""Methods that start Spark or wait, and one that calls whatever it is given."""
ROWS = [{"ts": n, "id": n % 3, "v": 0.5 * n, "s": "ab"[n % 2]} for n in range(6)]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
BATCH = pa.record_batch({"id": [1, 2], "v": [0.5, None], "s": ["a", "b"]}, schema=SCHEMA)
TABLE = pa.table({"id": [1, 2], "v": [0.5, 1.5]})
FOLDER = Path(tempfile.mkdtemp(prefix="caesura-misuse-"))


def stream() -> Stream:
    return cz.from_rows(ROWS, time="ts", punctuate=cz.delay(1))


def timely() -> Stream:
    """A stream whose time is no number."""
    rows = [{"ts": datetime(2024, 5, 1, 12, n), "id": n % 3, "v": 0.5 * n} for n in range(6)]
    return cz.from_rows(rows, time="ts", punctuate=cz.delay("1m"))


def pushed() -> Query:
    return cz.input_stream("clicks", SCHEMA).where(col("id") > 0).query()


def claiming() -> Query:
    query = stream().query(claims=cz.tokens(every=2))
    query.run()
    return query


def views() -> cz.Pipeline:
    return cz.pipeline(all=stream(), sums=stream().totals(n=cz.sum("v")))


def pattern() -> qre.Query:
    return qre.atom(col("id") > 0, col("v"), items=qre.items(SCHEMA))


OWNERS: dict[str, Callable[[], Any]] = {
    "Stream": stream,
    "Stream.timely": timely,
    "Grouped": lambda: stream().group_by("id"),
    "Windowed": lambda: stream().group_by("id").tumbling(4),
    "Windowed.session": lambda: stream().group_by("id").session(2),
    "Expr": lambda: col("v"),
    "Expr.text": lambda: col("s"),
    "Aggregate": lambda: cz.max("v"),
    "read": lambda: cz.read,
    "Policy": lambda: cz.delay(1),
    "Query": lambda: stream().query(),
    "Query.pushed": pushed,
    "Query.claiming": claiming,
    "Result": lambda: stream().run(claims=cz.tokens(every=2)),
    "Preview": lambda: stream().preview(3),
    "History": lambda: stream().run().history,
    "Trace": lambda: stream().trace("ts = 2"),
    "Verdict": lambda: stream().totals(n=cz.count()).check(),
    "Pattern": lambda: cz.Pattern(id=3),
    "Punctuation": lambda: cz.cti(3),
    "Archive": lambda: cz.Archive(TABLE, ("id",), "v"),
    "Pipeline": views,
    "Views": lambda: views().run(),
    "Claim": lambda: stream().run(claims=cz.tokens(every=2)).claims[0],
    "Prefix": lambda: stream().run(claims=cz.tokens(every=2)).claims[0].prefix["read"],
    "qre.Query": pattern,
    "qre.Regex": lambda: qre.star(col("id") > 0),
    "qre.Items": lambda: qre.items(SCHEMA),
    "qre.Fold": lambda: qre.sum(),
    "qre.Evaluator": lambda: qre.Evaluator(pattern()),
}
"""Objects that users hold, each made anew for every call."""
CLASSES = ("Archive", "Claim", "History", "Pattern", "Pipeline", "Prefix", "Punctuation")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "lt", "ge")
OPERATORS = {"Expr": BINARY, "Expr.text": BINARY, "Aggregate": BINARY, "Policy": ("and_",)}
OPERATORS |= {"qre.Query": ("rshift",), "qre.Regex": ("or_", "add")}
"""The operators that a class has."""
LOOKED_UP = ("Pipeline", "Views", "Trace", "Pattern")


def total(values: list[float]) -> float:
    return sum(values)


@cache
def functions() -> dict[str, Callable[[], Callable[..., Any]]]:
    """Everything that can be called, by name: functions, and methods of what they give."""
    found: dict[str, Callable[[], Callable[..., Any]]] = {}
    for room, names in ((cz, cz.__all__), (qre, qre.__all__), (cz.functions, cz.functions.__all__)):
        for name in names:
            member = getattr(room, name)
            label = name if room is cz else f"{room.__name__.removeprefix('caesura.')}.{name}"
            if isinstance(member, FunctionType) and not name.startswith("_") and name not in ELSEWHERE:
                found[label] = lambda member=member: member
    for name in CLASSES:
        found[name] = lambda name=name: getattr(cz, name)
    for label, make in OWNERS.items():
        for name, _ in inspect.getmembers(make(), _method):
            if not name.startswith("_") and name not in OUTSIDE:
                found[f"{label}.{name}"] = lambda make=make, name=name: getattr(make(), name)
    for label, names in OPERATORS.items():
        for name in names:
            found[f"{label}.{name}"] = lambda label=label, name=name: Operated(OWNERS[label](), name)
    for label in LOOKED_UP:
        found[f"{label}.getitem"] = lambda label=label: Operated(OWNERS[label](), "getitem")
    return found


def _method(member: Any) -> bool:
    return callable(member) and not isinstance(member, type)


class Operated:
    """An operator with its left side: it is never called with names."""

    def __init__(self, mine: Any, name: str) -> None:
        self.mine, self.name = mine, name

    def __call__(self, other: Any) -> Any:
        return getattr(operator, self.name)(self.mine, other)


def wrong() -> list[Any]:
    """Values of all kinds: each is wrong for most arguments."""
    plain = [None, 0, -1, 7, 2**70, 1.5, math.nan, math.inf, True, "", "x", "id", "v > 3", "300000000d", "5m"]
    more = [b"x", [], [1], ["id"], ["id", "id"], {}, {"id": "v"}, {1: 2}, {"id"}, (), ("id", None), object()]
    ours = [col("id"), col("nope"), col("v") > 1, cz.lit(3), cz.count(), cz.max("v"), cz.Pattern(id=3)]
    ours += [stream(), cz, cz.cti(3), cz.uda(total), cz.delay(1), cz.tokens(), views(), BATCH, SCHEMA]
    ours += [pattern(), qre.items(SCHEMA), qre.sum(), qre.star(col("id") > 0), qre.function(abs)]
    times = [timedelta(days=10**6), datetime(2024, 1, 1), Decimal("1.5"), np.int64(3), np.array([1])]
    functions = [
        len,
        lambda: 1,
        lambda x: x,
        lambda *_: 1 / 0,
        int,
        Ellipsis,
        math,
        {"out": b"x"},
        {"read": "x"},
    ]
    return [*plain, *more, *ours, *times, *functions, pa.array([1]), pa.int64(), pa.table({"a": [1]})]


def good(name: str) -> list[Any]:
    """Values that may be right for an argument of this name."""
    return GOOD[name]() if name in GOOD else ["v", 3]


GOOD: dict[str, Callable[[], list[Any]]] = {
    **dict.fromkeys(("on", "columns", "names"), lambda: ["id"]),
    **dict.fromkeys(("other", "others", "control", "seed"), lambda: [stream(), cz.Pattern(id=3)]),
    **dict.fromkeys(("size", "every", "gap", "within", "after", "d", "n"), lambda: [4, 2]),
    **dict.fromkeys(("column", "value"), lambda: ["v"]),
    **dict.fromkeys(("predicate", "what", "feedback", "sync"), lambda: [col("v") > 1]),
    **dict.fromkeys(("path", "folder"), lambda: [FOLDER / "views", str(FOLDER / "nothing")]),
    **dict.fromkeys(("query", "body", "queries", "parts", "first", "second"), lambda: [pattern()]),
    **dict.fromkeys(("fold", "op"), lambda: [qre.sum(), col("_0")]),
    **dict.fromkeys(("schema", "payload"), lambda: [SCHEMA, BATCH]),
    **dict.fromkeys(("output", "view"), lambda: ["out", "all", "final"]),
    **dict.fromkeys(("label",), lambda: ["clicks"]),
    **dict.fromkeys(
        ("item", "message", "punctuation"),
        lambda: [cz.cti(3), cz.parse(DRAWN)[0], *cz.parse(" LE RE | z |\n 1 2 | 7 | +")],
    ),
    **dict.fromkeys(("claims", "mode"), lambda: [cz.tokens(every=2)]),
    "by": lambda: ["id", stream(), cz.Archive(TABLE, ("id",), "v")],
    "rows": lambda: [ROWS, "ts = 2", 3],
    "items": lambda: [cz.parse(DRAWN), qre.items(SCHEMA)],
    "time": lambda: ["ts"],
    "aggregates": lambda: [cz.count()],
    "outputs": lambda: [cz.sum("v")],
    "step": lambda: [lambda r: r, col("acc") + col("x")],
    "name": lambda: ["step"],
    "table": lambda: [TABLE],
    "batch": lambda: [BATCH],
    "views": lambda: [stream(), {"out": stream()}],
    "publication": lambda: [stream().query().publish("out")],
    "chunks": lambda: [stream().query().snapshot()],
    "claim": lambda: stream().run(claims=cz.tokens(every=2)).claims,
    "target": lambda: [total],
    "pattern": lambda: [cz.Pattern(id=3)],
}
DRAWN = " LE RE | id v s |\n 1 2 | 7 1.5 a | +\n-- 5 --"


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
    plain = isinstance(call, Operated) or getattr(call, "__qualname__", "").startswith("Pattern.")
    if random.random() < 0.05 and not plain:
        more["nonsense"] = 1
    return args, more


def used(result: Any) -> None:
    """Goes on with what a call gave: plans run, expressions are used."""
    match result:
        case Stream():
            result.run()
            result.check()
            str(result.explain())
        case Windowed():
            result.agg(n=cz.count(), top=cz.max("v")).run()
        case Grouped():
            result.totals(n=cz.count()).run()
        case cz.Expr():
            stream().with_columns(x=result).run()
        case Aggregate():
            stream().tumbling(4).agg(x=result).run()
        case Query():
            result.run()
            result.late()
        case cz.Archive():
            stream().impute("v", by=result, missing=col("v") > 1).run()
        case cz.Pipeline():
            result.run()
        case cz.Pattern():
            stream().query().assume(result)
        case qre.Query():
            bound = result if result.items is not None else result.on(qre.items(SCHEMA))
            qre.evaluate(bound, BATCH)
        case cz.io.Policy():
            cz.from_rows(ROWS, time="ts", punctuate=result).run()
            cz.from_rows([{"ts": datetime(2024, 5, 1)}], time="ts", punctuate=result).run()
        case Iterator():
            for _ in zip(range(20), result, strict=False):
                pass
