"""Whatever the functions of `caesura.qre` are given, what they raise is a diagnostic of ours."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from depth import examples

from caesura import qre
from caesura.errors import CaesuraError, PlanError
from caesura.expr import col

EXAMPLES = examples(150)
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64())])
ITEMS = qre.items(SCHEMA)
ONE = qre.atom(col("k") == "a", col("v"), items=ITEMS)
BATCH = pa.record_batch({"k": ["a", "b"], "v": [1.0, 2.0]})
ODD: list[Any] = [True, False, None, 0, -1, 3, 2.5, math.nan, math.inf, 10**30, "v", "v > 1", "", b"x"]
ODD += [(), [], {}, [1], ("k", 3), {"k": 1}, {1: col("v")}, object(), len, int, ONE, ITEMS, SCHEMA, BATCH]
ODD += [qre.sum(), col("v"), col("nope") > 1, col("v") > 1, qre.letter(col("v") > 1), qre.rel(), pa.int64()]
ODD += [dt.timedelta(1), ONE.rate, pa.Table.from_batches([BATCH]), qre.function(abs), lambda *_: 1 / 0]
ODD += [qre.atom(), {"k": ("a", ("v",))}]
GOOD: dict[str, list[Any]] = {
    "apply": [ONE, col("_0")],
    "atom": [col("v") > 1, col("v")],
    "combine": [ONE, ONE],
    "iter": [ONE, qre.sum()],
    "iter1": [ONE, 0, col("acc") + col("x")],
    "iter_last": [ONE],
    "iter_n": [ONE, 2, qre.sum()],
    "map_collect": [col("k") == "b", "k", ONE],
    "match": [col("v") > 1],
    "or_": [ONE, ONE],
    "part": [0],
    "partition": [ONE, "k"],
    "split": [ONE, ONE],
    "value": [1],
    "wnd": [ONE, 2, qre.sum()],
    "wnd_count": [ONE, 2, col("x") > 1],
    "filter": [col("v") > 1],
    "map": [col("v")],
    "check": [ONE],
    "Evaluator": [ONE],
    "evaluate": [ONE, BATCH],
    "explain": [ONE],
    "denote": [ONE, BATCH],
    "custom": [0, col("acc") + col("x")],
    "discounted": [0.5],
    "interpolated_avg": ["t", "v"],
    "linreg": ["x", "y"],
    "items": [SCHEMA],
    "tagged": [SCHEMA, "k", {"k": ("a", ("v",))}],
    "over": [ONE, ONE],
    "function": [abs],
    "letter": [col("v") > 1],
    "any_of": [col("v") > 1],
    "plus": [col("v") > 1],
    "seq": [col("v") > 1],
    "star": [col("v") > 1],
    "rel": ["_0"],
    "median": [],
    "quantile": [0.5],
}
OPTIONS: dict[str, list[str]] = {
    "atom": ["items"],
    "split": ["op"],
    "combine": ["op"],
    "match": ["items"],
    "filter": ["items"],
    "map": ["items"],
    "map_collect": ["every", "rate"],
    "partition": ["only"],
    "wnd": ["first"],
    "wnd_count": ["epsilon"],
    "evaluate": ["kernel"],
    "Evaluator": ["kernel"],
    "over": ["order_by", "ticks_every", "lives", "kernel"],
    "function": ["returns"],
    "median": ["epsilon"],
    "quantile": ["epsilon"],
    "custom": ["combine", "evict", "finish"],
}


def drawn(rng: random.Random) -> tuple[str, list[Any], dict[str, Any]]:
    """A call with something odd somewhere."""
    name = rng.choice(sorted(GOOD))
    args = list(GOOD[name])
    options = {o: rng.choice(ODD) for o in OPTIONS.get(name, []) if rng.random() < 0.4}
    if args and (not options or rng.random() < 0.5):
        args[rng.randrange(len(args))] = rng.choice(ODD)
    return name, args, options


def test_every_error_is_a_diagnostic_of_ours() -> None:
    told = 0
    for seed in range(EXAMPLES):
        name, args, options = drawn(random.Random(seed))
        try:
            made = getattr(qre, name)(*args, **options)
            if isinstance(made, qre.Query):
                made = made if made.items is not None else made.on(ITEMS)
                qre.evaluate(made, BATCH)
        except CaesuraError as error:
            assert error.remedy
            told += 1
        except Exception as error:
            raise AssertionError(f"{seed}: {name}(*{args}, **{options})") from error
    assert told > EXAMPLES // 3


MISUSE: dict[str, Any] = {
    "a condition": lambda: qre.atom(True),
    "col('v') > 1": lambda: qre.atom("v > 1"),
    "a count like 3": lambda: qre.iter_n(ONE, 2.5, qre.sum()),
    "atom(...)": lambda: ONE >> 3,
    "Did you mean 'generated'": lambda: qre.evaluate(ONE, BATCH, kernel="generatd"),
}


@pytest.mark.parametrize("remedy", MISUSE)
def test_misuse_names_what_to_write(remedy: str) -> None:
    with pytest.raises(PlanError) as raised:
        MISUSE[remedy]()
    assert remedy.lower() in str(raised.value).lower()


def test_a_table_is_read_as_its_rows() -> None:
    assert qre.evaluate(ONE, pa.Table.from_batches([BATCH])) == qre.evaluate(ONE, BATCH)
