"""Large queries: what it takes to type and to compile them grows with their size."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pyarrow as pa
import pytest

from caesura import qre
from caesura.expr import col
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Query


def own() -> Query:
    items = qre.items(pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    return qre.atom(col("k") == 1, col("v"), items=items)


def repeated(times: int) -> Query:
    return qre.iter_n(own(), times, qre.sum())


def words(count: int) -> Query:
    """One of so many words of eight letters."""
    rng, items = random.Random(1), own().items
    spelled = {tuple(rng.randrange(20) for _ in range(8)) for _ in range(count)}
    atoms = [qre.atom(col("k") == letter, col("v"), items=items) for letter in range(20)]
    return qre.or_(*(qre.split(*(atoms[c] for c in word), op=col("_0")) for word in sorted(spelled)))


def in_a_row(count: int) -> Query:
    first = own()
    return qre.split(*[first] * count, op=col("_0") + col("_1"))


def calls(make: Callable[[], object]) -> int:
    called = 0

    def note(_frame: object, event: str, _what: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        make()
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize(("make", "size"), [(repeated, 60), (words, 10), (in_a_row, 60)])
def test_the_work_to_prepare_a_query_grows_with_its_size(make: Callable[[int], Query], size: int) -> None:
    once, four = (calls(lambda n=n: Evaluator(make(n), kernel="table")) for n in (size, 4 * size))  # type: ignore[misc]
    assert four < 5 * once


@pytest.mark.slow
def test_a_pattern_of_thousands_of_pieces_is_prepared_and_runs() -> None:
    query = repeated(1500)
    batch = pa.record_batch({"k": [1] * 1500, "v": range(1500)})
    assert qre.evaluate(query, batch)[-1] == sum(range(1500))
    assert str(query) == "iter_n(atom(k = 1, v), 1500, acc + coalesce(x, 0))"
    assert query.key == repeated(1500).key != repeated(1499).key
