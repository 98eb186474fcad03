"""Whole numbers near the ends of 64 bits: all evaluators give the same values, or refuse the same answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import qre_random
from depth import DEPTH, examples
from qre_random import EXTREME, LARGEST, close, fitting_word, word

import caesura as cz
from caesura import qre
from caesura.errors import PlanError, StreamError
from caesura.expr import col
from caesura.qre.compiler import generation
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Query

EXAMPLES = examples(12)
KERNELS = ("twin", "table", "generated")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated sources run as plain Python here: compiling thousands of them would take an hour."""
    monkeypatch.setattr(generation, "interpreted", lambda: True)


@pytest.fixture
def extreme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws large numbers, and operations that lead beyond them."""
    for name in ("PREDICATES", "VALUES", "JOINS", "FOLDS", "STEPS"):
        monkeypatch.setattr(qre_random, name, getattr(qre_random, f"EXTREME_{name}"))
    monkeypatch.setattr(qre_random, "NUMBERS", EXTREME)
    monkeypatch.setattr(qre_random, "EXTREMES", EXTREME)


def answered(run: Callable[[], list[Any]]) -> list[Any] | str:
    """The values, or where the one is that is refused."""
    try:
        return run()
    except StreamError as error:
        return error.problem.partition("; the answer at")[2] or error.problem


def same(a: list[Any] | str, b: list[Any] | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return all(close(x, y) for x, y in zip(a, b, strict=True))


def agree(query: Query, batch: pa.RecordBatch, *kernels: Any) -> bool:
    """Whether there are answers; they are the same everywhere."""
    wanted = answered(lambda: qre.denote(query, batch))
    for kernel in kernels or KERNELS:
        running = Evaluator(query, kernel=kernel)
        got = answered(lambda running=running: running.values(batch))
        assert same(wanted, got), f"{kernel}: {query}\n{batch.to_pylist()}\n{wanted}\n{got}"
    return not isinstance(wanted, str)


def drawn(rng: random.Random, seed: int) -> Query:
    match seed % 6:
        case 0:
            return qre_random.windows_inside(rng)
        case 1:
            return qre_random.with_maps_inside(rng)
        case 2:
            return qre_random.maps_in_maps(rng)
        case 3:
            return qre.partition(qre_random.well_typed(rng, 2), by="key")
    return qre_random.well_typed(rng, rng.choice([1, 2, 3]), windows=True, maps=seed % 6 == 4)


@pytest.mark.slow
@pytest.mark.usefixtures("extreme")
def test_all_evaluators_agree_on_what_is_beyond_64_bits() -> None:
    given = refused = 0
    for seed in range(EXAMPLES):
        rng = random.Random(seed)
        query = drawn(rng, seed)
        batch = word(rng, 6) if seed % 6 in (2, 3) or seed % 4 == 0 else fitting_word(rng, query, 6)
        good = agree(query, batch)
        given, refused = given + good, refused + (not good)
    assert given > EXAMPLES // 3 and refused > 0


OF = qre.items(pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.int64(), False)]))


def items_of(*rows: tuple[int, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"k": k, "v": v} for k, v in rows], OF.schema)


def refuses(query: Query, batch: pa.RecordBatch, what: str) -> None:
    for run in (qre.denote, *(lambda q, b, k=k: qre.evaluate(q, b, kernel=k) for k in KERNELS)):
        with pytest.raises(StreamError, match=what):
            run(query, batch)


def test_a_sum_beyond_64_bits_never_leaves_and_one_that_comes_back_does() -> None:
    total = qre.iter(qre.atom(col("k") == 1, col("v"), items=OF), qre.sum())
    refuses(total, items_of((1, LARGEST), (1, 1)), r"beyond what its type.*the item \(k = 1, v = 1\)")
    ended = qre.split(total, qre.match(col("k") == 2, items=OF), op=col("_0"))
    there_and_back = items_of((1, LARGEST), (1, LARGEST), (1, 5), (1, -LARGEST), (1, -6), (2, 0))
    assert agree(ended, there_and_back)
    assert qre.evaluate(ended, there_and_back)[-1] == LARGEST - 1


def test_an_average_of_large_numbers_is_one() -> None:
    mean = qre.iter1(qre.atom(op=col("v"), items=OF), qre.avg())
    assert agree(mean, items_of((1, LARGEST), (1, LARGEST), (1, LARGEST)))


def test_an_expression_matters_on_items_that_its_atom_reads() -> None:
    """Though it is worked out for a whole page."""
    for large in (col("v") * 4, (col("v") * 4).cast("string").cast("bigint")):
        own = qre.iter(qre.atom(col("k") == 1, large, items=OF), qre.sum())
        query = qre.split(own, qre.match(col("k") == 2, items=OF), op=col("_0"))
        assert agree(query, items_of((1, 3), (2, LARGEST)))
        refuses(query, items_of((1, LARGEST), (2, 3)), r"the item \(k = 2, v = 3\)")
        assert agree(query, items_of((1, LARGEST), (3, 0)))


def test_a_predicate_is_asked_of_every_item_that_is_seen() -> None:
    query = qre.atom(col("v") * 4 > 2, col("k"), items=OF)
    refuses(
        query, items_of((1, 3), (2, LARGEST)), r"asks it of every item.*\(k = 2, v = 9223372036854775807\)"
    )
    seen = qre.partition(query, by="k", only=col("k") < 2)
    assert agree(seen, items_of((1, 3), (2, LARGEST)))


def test_a_sum_of_a_map_is_exact() -> None:
    sync = col("k") == 9
    body = qre.split(qre.atom(~sync, col("v"), items=OF), qre.match(sync, items=OF), op=col("_0"))
    maps = qre.map_collect(sync, "k", body, every=qre.letter(sync))
    total, mean = (qre.apply(maps, made) for made in (qre.rel().sum(), qre.rel().avg()))
    large = items_of((1, LARGEST), (2, 1), (9, 0))
    refuses(total, large, "beyond what its type can hold")
    assert agree(mean, large)
    assert agree(total, items_of((1, LARGEST), (2, LARGEST), (3, -LARGEST), (9, 0)))


def test_an_entry_without_a_value_leaves_its_map_without_one() -> None:
    sync = col("k") == 9
    body = qre.split(qre.atom(~sync, col("v") * 4, items=OF), qre.match(sync, items=OF), op=col("_0"))
    maps = qre.map_collect(sync, "k", body, every=qre.letter(sync))
    count = qre.apply(maps, qre.rel().count())
    for query in (maps, count, qre.iter1(count, qre.sum())):
        refuses(query, items_of((1, 7), (2, LARGEST), (9, 0)), r"the item \(k = 9, v = 0\)")


def test_what_is_made_of_a_test_without_an_answer_has_no_value() -> None:
    """A truth value is a small number, and may yet have no value."""
    test = (col("_0") * 4 > 2).cast("bigint")
    query = qre.apply(qre.apply(qre.atom(op=col("v"), items=OF), test), -col("_0"))
    refuses(query, items_of((1, LARGEST)), "beyond what its type can hold")
    assert agree(query, items_of((1, 3)))


def test_a_value_that_has_left_a_window_does_not_count() -> None:
    slid = qre.wnd(qre.atom(op=col("v") * 4, items=OF), 2, qre.sum())
    ended = qre.split(slid, qre.match(col("k") == 2, items=OF), op=col("_0"))
    assert agree(ended, items_of((1, LARGEST), (1, 3), (1, 4), (2, 0)))


def test_the_least_of_large_numbers_is_the_least() -> None:
    slid = qre.wnd(qre.atom(op=col("v"), items=OF), 2, qre.min())
    batch = items_of((1, LARGEST), (1, LARGEST - 1), (1, LARGEST - 2))
    assert agree(slid, batch) and qre.evaluate(slid, batch)[-1] == LARGEST - 2


def test_unsigned_numbers_beyond_64_bits_are_not_read_as_negative_ones() -> None:
    of = qre.items(pa.schema([pa.field("v", pa.uint64(), False)]))
    batch = pa.record_batch({"v": pa.array([2**63 + 5, 1], pa.uint64())})
    own = qre.atom(op=col("v"), items=of)
    refuses(own, batch.slice(0, 1), "beyond what its type can hold")
    assert agree(qre.split(own, own, op=col("_0") - col("_1") - 5), batch)


def test_a_pattern_has_no_rows_for_the_late_table() -> None:
    found = cz.from_rows([{"t": 1, "v": 2}], time="t").match(qre.atom(op=col("v")))
    with pytest.raises(PlanError, match=r"on_bad\('late'\) has no effect behind 'qre'"):
        found.on_bad("late")


def test_try_gives_null() -> None:
    query = qre.iter(qre.atom(op=col("v"), items=OF), 1, col("acc").try_multiply(col("x")).coalesce(-1))
    assert agree(query, items_of((1, 2**40), (1, 2**40), (1, 5)))


@pytest.mark.skipif(DEPTH == 1, reason="compiles a kernel")
def test_machine_code_counts_what_is_over_too(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(generation, "interpreted", lambda: False)
    monkeypatch.setenv("CAESURA_CACHE", str(tmp_path))
    own = qre.iter(qre.atom(col("k") == 1, col("v"), items=OF), 0, col("acc") - col("x") * col("x"))
    query = qre.split(own, qre.match(col("k") == 2, items=OF), op=-col("_0"))
    assert agree(query, items_of((1, 3037000499), (2, 0)), "generated")
    assert not agree(query, items_of((1, 3037000500), (2, 0)), "generated")
