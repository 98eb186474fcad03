"""Loops that keep the best row of a key with further columns, of products, and of several streams."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from fixpoint_law_cases import routes, slow_routes
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream, col, lit
from caesura.audit.evaluate import evaluate
from caesura.audit.progress import ENDED, Known
from caesura.errors import PlanError
from caesura.fixpoint.node import PROGRESS
from caesura.testing.laws import as_history
from caesura.testing.oracles.rows import Rows

NODE = st.integers(0, 3)
SPAN = st.tuples(st.integers(0, 6), st.integers(1, 6))
ROADS = st.lists(st.tuples(SPAN, NODE, NODE, st.integers(0, 2)), min_size=1, max_size=9)
STARTS = st.lists(st.tuples(SPAN, NODE), min_size=1, max_size=3)


def stream(rows: Rows, name: str) -> Stream:
    """One row a page, in the order given: rows take each other's place as they come."""
    plain = [{"LE": le, "RE": re, **p} for le, re, p in rows]
    return cz.from_rows(plain, time="LE", end="RE", batch_size=1, name=name)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(STARTS, ROADS, st.sampled_from(PROGRESS), st.randoms(use_true_random=False))
def test_equal_ways_are_told_apart_by_their_columns_and_never_by_arrival(
    starts: list[Any], roads: list[Any], progress: Any, chance: Any
) -> None:
    given_rows: dict[str, Rows] = {
        "nodes": [(a, a + n, {"node": node}) for (a, n), node in starts],
        "roads": [(t, t + n, {"a": a, "b": b, "w": w}) for (t, n), a, b, w in roads],
    }
    for rows in given_rows.values():
        chance.shuffle(rows)
    nodes, links = (stream(rows, name).node for name, rows in given_rows.items())
    made = routes(nodes, links, progress)
    wanted = as_history(slow_routes(**given_rows), made)
    assert Stream(made).run().history == wanted
    audited = evaluate({"out": made}, lambda node: Known(given_rows[node.name], ENDED))["out"]
    assert as_history(audited, made) == wanted


LINKS = [("A", "B", 0.5), ("A", "C", 0.9), ("C", "B", 0.9), ("B", "A", 1.0), ("B", "D", 0.5)]
SEED = cz.from_rows([{"ts": 1, "node": "A", "p": 1.0}], time="ts").set_duration(9)
WIRES = cz.from_rows([{"ts": 1, "a": a, "b": b, "q": q} for a, b, q in LINKS], time="ts").set_duration(9)


def along(r: Stream, wires: Stream) -> Stream:
    return r.join(wires, on={"node": "a"}).select(node=col("b"), p=col("p") * col("q"))


def test_the_likeliest_way_is_a_product_of_bounded_factors() -> None:
    sound = WIRES.where((col("q") > 0) & (col("q") <= 1))
    seed = SEED.where(col("p") >= 0)
    best = cz.fixpoint(seed, lambda r: along(r, sound), keep=cz.greatest("p", per="node")).run()
    found = {row["node"]: row["p"] for row in best.table().to_pylist()}
    assert found == {"A": 1.0, "C": 0.9, "B": 0.9 * 0.9, "D": 0.9 * 0.9 * 0.5}
    dear = WIRES.select("a", "b", q=1 / col("q")).where(col("q") >= 1)
    least = cz.fixpoint(seed, lambda r: along(r, dear), keep=cz.least("p", per="node")).run()
    assert sorted(row["p"] for row in least.table().to_pylist()) == pytest.approx(
        [1, 1 / 0.9, 1 / 0.81, 2 / 0.81]
    )


@pytest.mark.parametrize(
    ("seed", "test"),
    [
        (SEED, (col("q") > 0) & (col("q") <= 1)),
        (SEED.where(col("p") >= 0), col("q") <= 1),
        (SEED.where(col("p") >= 0), (col("q") > 0) & (col("q") <= 2)),
        (SEED.where(col("p") >= -1), (col("q") > 0) & (col("q") <= 1)),
        (SEED.where(col("p") >= 0), (col("q") >= 0) & (col("q") <= 1)),
    ],
)
def test_a_factor_or_a_sign_that_nothing_bounds_is_refused(seed: Stream, test: Any) -> None:
    with pytest.raises(PlanError, match="which may be better") as error:
        cz.fixpoint(seed, lambda r: along(r, WIRES.where(test)), keep=cz.greatest("p", per="node"))
    assert "0 < q <= 1" in error.value.remedy and "'p' >= 0 in the seed" in error.value.remedy


def test_a_loop_of_several_streams_keeps_the_best_of_each() -> None:
    """Distances by an even and by an odd number of roads: each way back is one more."""
    roads = cz.from_rows(
        [{"ts": 1, "a": a, "b": b, "w": 1} for a, b in ("AB", "BC", "CA")], time="ts"
    ).set_duration(9)
    start = cz.from_rows([{"ts": 1, "node": "A", "dist": 0}], time="ts").set_duration(9)

    def onwards(r: Stream) -> Stream:
        met = r.join(roads.where(col("w") >= 0), on={"node": "a"})
        return met.select(node=col("b"), dist=col("dist") + col("w"))

    loop = cz.fixpoint(
        {"even": start, "odd": start.where(lit(False))},
        lambda even, odd: {"even": onwards(odd), "odd": onwards(even)},
        keep=cz.least("dist", per="node"),
    )
    found = {name: {r["node"]: r["dist"] for r in s.run().table().to_pylist()} for name, s in loop.items()}
    assert found == {"even": {"A": 0, "B": 4, "C": 2}, "odd": {"A": 3, "B": 1, "C": 5}}
    assert "least dist per node" in loop["odd"].explain()


HOPS = cz.from_rows([{"ts": 1, "a": 1, "b": 2, "w": 3}], time="ts")
FIRST = cz.from_rows([{"ts": 1, "n": 1, "d": 0, "via": 0}], time="ts")


@pytest.mark.parametrize(
    ("on", "test", "reads"),
    [
        ({"n": "a"}, col("via") < 5, "'via < 5' reads 'via'"),
        ({"via": "a"}, lit(True), "reads 'via'"),
    ],
)
def test_what_only_the_kept_row_knows_decides_nothing(on: dict[str, str], test: Any, reads: str) -> None:
    def hop(r: Stream) -> Stream:
        met = r.where(test).join(HOPS.where(col("w") > 0), on=on)
        return met.select(n=col("b"), d=col("d") + col("w"), via=col("via"))

    with pytest.raises(PlanError, match=reads) as error:
        cz.fixpoint(FIRST, hop, keep=cz.least("d", per="n"))
    assert "of which the loop keeps only that of the least 'd'" in str(error.value)


def test_a_row_without_a_value_is_none_where_rows_have_further_columns() -> None:
    rows: list[dict[str, Any]] = [{"ts": 1, "n": 1, "d": None, "via": 0}, {"ts": 1, "n": 2, "d": 4, "via": 0}]

    def hop(r: Stream) -> Stream:
        met = r.join(HOPS.where(col("w") > 0), on={"n": "a"})
        return met.select(n=col("b"), d=col("d") + col("w"), via=col("n"))

    found = cz.fixpoint(cz.from_rows(rows, time="ts"), hop, keep=cz.least("d", per="n")).run()
    assert found.table().select(["n", "d", "via"]).to_pylist() == [{"n": 2, "d": 4, "via": 0}]


def test_a_sum_that_grows_towards_a_tested_bound_ends_a_loop() -> None:
    def hop(r: Stream, least: int) -> Stream:
        met = r.where(col("d") < 7).join(HOPS.where(col("w") >= least), on={"n": "b"})
        return met.select("n", d=col("d") + col("w"))

    seed = cz.from_rows([{"ts": 1, "n": 2, "d": 0}], time="ts")
    found = cz.fixpoint(seed, lambda r: hop(r, 1)).run().table()
    assert sorted(found.column("d").to_pylist()) == [0, 3, 6, 9]
    with pytest.raises(PlanError, match="nothing shows that the loop ends"):
        cz.fixpoint(seed, lambda r: hop(r, 0))
