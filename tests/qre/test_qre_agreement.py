"""The oracle, the twin, the table-driven kernel and generated kernels give the same values."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from depth import examples
from qre_random import CASES, ITEMS, _collected, close, fitting_word, well_typed, word

from caesura import qre
from caesura.errors import CaesuraError, StreamError
from caesura.expr import col
from caesura.qre.compiler import generation
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Query
from caesura.qre.reference.oracle import denote

CASED = examples(40, short=20)
BLOCK = examples(50, short=25)
PAGED = examples(60, short=30)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated sources run as plain Python here: compiling thousands of them would take an hour."""
    monkeypatch.setattr(generation, "interpreted", lambda: True)


def agree(query: Query, batch: object, *kernels: str) -> int:
    wanted = denote(query, batch)  # type: ignore[arg-type]
    for kernel in kernels:
        running = Evaluator(query, kernel=kernel)  # type: ignore[arg-type]
        got = running.values(batch)  # type: ignore[arg-type]
        assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), (
            f"{kernel}: {query}\n{wanted}\n{got}"
        )
    return sum(v is not qre.UNDEFINED for v in wanted)


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("block", range(8))
def test_all_evaluators_agree_on_random_queries(block: int) -> None:
    defined = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        rng = random.Random(seed)
        query = well_typed(rng, rng.choice([1, 2, 3]), windows=True, maps=seed % 4 == 0)
        batch = fitting_word(rng, query, 7) if seed % 3 else word(rng, 6)
        defined += agree(query, batch, "twin", "table", "generated")
    assert defined > BLOCK


def test_all_evaluators_agree_on_items_that_no_case_declares() -> None:
    """By value; or all refuse, where the query is ambiguous with such items."""
    defined = 0
    for seed in range(CASED):
        rng = random.Random(seed)
        query = well_typed(rng, rng.choice([1, 2, 2, 3]), maps=seed % 4 == 0, of=CASES)
        query = qre.partition(query, by="key") if seed % 5 == 0 else query
        batch = word(rng, 7, kinds=(0, 0, 1, 1, 2, 2, 3, None))
        try:
            defined += agree(query, batch, "twin", "table", "generated")
        except StreamError:
            for kernel in ("twin", "table", "generated"):
                with pytest.raises(StreamError, match="no case declares"):
                    qre.evaluate(query, batch, kernel=kernel)
    assert defined > CASED // 3


def test_items_that_no_case_declares_are_refused_where_the_query_is_ambiguous_with_them() -> None:
    kind = col("k")
    query = qre.or_(qre.atom(kind != 0, 1, items=CASES), qre.atom((kind != 1) & (kind != 2), 2, items=CASES))
    batch = word(random.Random(1), 1, kinds=(7,))
    for kernel in ("twin", "table", "generated"):
        with pytest.raises(StreamError, match="no case declares an item like"):
            qre.evaluate(query, batch, kernel=kernel)  # type: ignore[arg-type]


def test_an_item_of_another_kind_is_not_read_as_one_that_is_declared() -> None:
    of = qre.tagged(pa.schema([("k", pa.string()), ("v", pa.int64())]), "k", a=("v",), b=("v",))
    a, b = (qre.atom(of.is_(kind), col("v"), items=of) for kind in "ab")
    query = qre.split(qre.iter(a, qre.sum()), b, op=col("_0"))
    batch = pa.record_batch({"k": ["a", "c", "b"], "v": [1, 2, 3]})
    assert agree(query, batch, "twin", "table", "generated") == 0


def test_all_evaluators_agree_on_random_partitions() -> None:
    for seed in range(examples(50, short=25)):
        rng = random.Random(seed)
        body = well_typed(rng, rng.choice([1, 2]))
        query = qre.partition(body, by="key", again=seed % 2 == 0)
        agree(query, word(rng, 9), "twin", "table", "generated")


def test_all_evaluators_agree_on_random_map_collects() -> None:
    for seed in range(examples(80, short=40)):
        rng = random.Random(seed)
        query = collected(rng, seed)
        if query is not None:
            agree(query, word(rng, 12), "twin", "table", "generated")


def collected(rng: random.Random, seed: int) -> Query | None:
    """A map-collect, every other time one that begins anew; None if it is refused."""
    try:
        query = _collected(rng, 2, ITEMS, {})
        return qre.iter_last(query.children()[0]) if seed % 2 else query
    except CaesuraError:
        return None


def test_pages_with_and_without_nulls_go_through_one_evaluator() -> None:
    seen = 0
    for seed in range(PAGED):
        rng = random.Random(seed)
        query = collected(rng, seed) if seed % 4 else qre.partition(well_typed(rng, 2), by="key")
        if query is None:
            continue
        pages = [word(rng, 6, nulls=nulls) for nulls in (False, True, False)]
        batch = pa.Table.from_batches(pages).combine_chunks().to_batches()[0]
        wanted, running = denote(query, batch), Evaluator(query, kernel="generated")
        got = [value for page in pages for value in running.values(page)]
        assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"
        seen += sum(v is not qre.UNDEFINED for v in got)
    assert seen > PAGED


def test_a_saved_state_goes_on_where_it_was() -> None:
    for seed in range(examples(40, short=20)):
        rng = random.Random(seed)
        query = well_typed(rng, 2, maps=True)
        batch = fitting_word(rng, query, 8)
        for kernel in ("twin", "table"):
            first, again = Evaluator(query, kernel=kernel), Evaluator(query, kernel=kernel)  # type: ignore[arg-type]
            head = first.values(batch.slice(0, 3))
            again.load(first.save())
            got = head + again.values(batch.slice(3))
            assert all(close(a, b) for a, b in zip(denote(query, batch), got, strict=True))


@pytest.mark.slow
def test_machine_code_agrees_too(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(generation, "interpreted", lambda: False)
    monkeypatch.setenv("CAESURA_CACHE", str(tmp_path))
    for seed in (3, 14):
        rng = random.Random(seed)
        query = well_typed(rng, 3, windows=False)
        agree(query, fitting_word(rng, query, 7), "generated")
