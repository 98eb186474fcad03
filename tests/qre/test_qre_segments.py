"""Aggregates of many maps at once give what the operation gives on each map."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import paper_queries as paper
import pyarrow as pa
import pytest

from caesura import qre
from caesura.expr import col
from caesura.qre.kernels.segments import Entries, aggregated
from caesura.qre.language.relations import RelOp, rel
from caesura.qre.language.types import MapOf, Scalar

SHAPES = {
    "count": rel().count(),
    "sum": rel().sum(),
    "avg": rel().avg(),
    "min": rel().min(),
    "max": rel().max(),
    "best": rel().best(),
    "filtered": rel().filter(col("value") > 1).max(),
    "mapped": rel().map_values(col("value") * 2).min(),
}


def each(op: RelOp, entries: Entries) -> list[object]:
    run = op.closure({"_0": MapOf(Scalar(pa.int64()), Scalar(entries.values.type))})
    keys, values = entries.keys.to_pylist(), entries.values.to_pylist()
    cuts = pairwise([*entries.starts.tolist(), len(values)])
    return [run({"_0": dict(zip(keys[a:b], values[a:b], strict=True))}) for a, b in cuts]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
@pytest.mark.parametrize("shape", SHAPES)
def test_aggregates_of_columns_are_those_of_maps(shape: str, kind: pa.DataType) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        sizes = [rng.randrange(5) for _ in range(6)]
        keys = [k for size in sizes for k in rng.sample(range(9), size)]
        values = [rng.choice([0, 1, 2, 3, -4, *([None] if seed % 2 else [])]) for _ in keys]
        starts = np.cumsum([0, *sizes[:-1]])
        entries = Entries(starts, pa.array(keys, pa.int64()), pa.array(values, kind))
        got = aggregated(SHAPES[shape], entries)
        assert got is not None and got.to_pylist() == each(SHAPES[shape], entries)


def test_values_that_are_no_numbers_are_left_to_the_operation() -> None:
    entries = Entries(np.array([0]), pa.array([1, 2]), pa.array([float("nan"), 1.0]))
    assert aggregated(rel().max(), entries) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_aggregates_of_maps_do_not_depend_on_the_order_of_keys(shape: str) -> None:
    run = SHAPES[shape].closure({"_0": MapOf(Scalar(pa.int64()), Scalar(pa.float64()))})
    odd = [0.5, 2.0, math.nan, math.inf, -math.inf, 1.7e308, 1.7e308, -1.7e308, None]
    for seed in range(200):
        rng = random.Random(seed)
        given = list(enumerate(rng.choice(odd[seed % 2 * 4 :]) for _ in range(rng.randrange(6))))
        wanted = run({"_0": dict(given)})
        rng.shuffle(given)
        assert repr(run({"_0": dict(given)})) == repr(wanted), given


def test_no_number_is_greater_than_all_numbers_in_maps() -> None:
    given = {"_0": {3: math.nan, 2: math.inf, 1: math.nan}}
    types = {"_0": MapOf(Scalar(pa.int64()), Scalar(pa.float64()))}
    got = [SHAPES[shape].closure(types)(given) for shape in ("min", "max", "best")]
    assert repr(got) == "[inf, nan, {'key': 1, 'value': nan}]"


def test_explain_says_how_an_operation_on_maps_runs() -> None:
    assert qre.explain(paper.n4(paper.auction_items())).endswith("maps collected, applied to maps by columns")
    per_item = paper.n4(paper.auction_items()).children()[0]
    sized = qre.apply(per_item, qre.function(len, returns="bigint"))
    assert qre.explain(sized).endswith("maps collected, applied to maps in Python")
