"""Maps inside split, iter, or_ and combine run on kernels, and say what the oracle says."""

from __future__ import annotations

import random

import paper_queries as paper
import pyarrow as pa
import pytest
from depth import examples
from qre_random import ITEMS, close, fitting_word, with_maps_inside, word

from caesura import qre
from caesura.expr import Expr, col
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.reference.oracle import denote

EXAMPLES = examples(12, short=6)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_the_kernel_agrees_with_the_oracle_page_by_page(block: int) -> None:
    answered = 0
    for seed in range(block * EXAMPLES, (block + 1) * EXAMPLES):
        rng = random.Random(seed)
        query = with_maps_inside(rng)
        batch = fitting_word(rng, query, 9) if seed % 4 else word(rng, 7)
        running = Evaluator(query, kernel="table")
        assert running.explain().startswith("kernel"), running.explain()
        got = []
        for at in range(0, batch.num_rows, 1 + seed % 4):
            fresh = Evaluator(query, kernel="table")
            fresh.load(running.save())
            running = fresh
            got += running.values(batch.slice(at, 1 + seed % 4))
        wanted = denote(query, batch)
        assert all(close(a, b) for a, b in zip(wanted, got, strict=True)), f"{query}\n{wanted}\n{got}"
        answered += sum(v is not qre.UNDEFINED for v in wanted)
    assert answered > EXAMPLES / 2


def test_two_critical_days_run_on_kernels() -> None:
    query = paper.critical_patients(paper.patients_items(), 5.0)
    assert qre.explain(query).startswith("kernel: ") and qre.explain(query).endswith(", 2 maps inside")


def test_values_that_no_thread_holds_are_let_go() -> None:
    sync = col("k") == 2
    body = qre.split(
        qre.iter1(qre.atom(col("k") != 2, 1, items=ITEMS), qre.sum()),
        qre.match(sync, items=ITEMS),
        op=col("_0"),
    )
    daily = qre.apply(qre.map_collect(sync, "key", body, every=qre.letter(sync)), qre.rel().max())
    running = Evaluator(qre.iter1(daily, qre.sum()), kernel="table")
    sizes = set()
    for _ in range(5):
        rows = [{"k": 0 if i % 10 else 2, "key": i % 7, "v": 1, "f": 0.0} for i in range(1, 401)]
        running.run(pa.RecordBatch.from_pylist(rows, ITEMS.schema))
        sizes.add(running.nbytes)
    assert len(sizes) <= 2 and running.keys == 0


@pytest.mark.parametrize(("first", "of"), [(col("v") * 2, qre.rel().max()), (col("f"), qre.rel().count())])
def test_the_first_piece_of_a_window_over_maps_may_be_of_another_type(first: Expr, of: qre.Query) -> None:
    sync = col("k") == 2
    own = qre.iter1(qre.atom(~sync, col("f"), items=ITEMS), qre.min())
    body = qre.split(own, qre.match(sync, items=ITEMS), op=col("_0"))
    made = qre.apply(qre.map_collect(sync, "key", body, every=qre.letter(sync)), of)
    query = qre.wnd(made, 2, qre.sum(), first=qre.atom(col("k") == 1, first, items=ITEMS))
    rows = [(1, 3, 0.25), (0, 1, 1.5), (2, 0, 0.0), (1, 1, 4.0), (0, 1, 0.5), (2, 0, 0.0), (2, 0, 0.0)]
    batch = pa.RecordBatch.from_pylist([{"k": k, "key": v, "v": v, "f": f} for k, v, f in rows], ITEMS.schema)
    running = Evaluator(query, kernel="table")
    assert running.explain().startswith("kernel") and running.values(batch) == denote(query, batch)
