"""The bound in a schema holds: drawn approximate queries against what they would give exactly."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from qre_random import close

from caesura import qre
from caesura.errors import CaesuraError, PlanError
from caesura.expr import col, lit, when
from caesura.qre.checking.checking import letters_of
from caesura.qre.checking.inference import value_type
from caesura.qre.checking.positions import bits, positions
from caesura.qre.language.query import Pipe, Query
from caesura.qre.language.types import INT

ITEMS = qre.items(pa.schema([("k", pa.int64()), ("v", pa.float64()), ("n", pa.uint8())]))
END = col("k") == 1
EXAMPLES = examples(180)


def rough(rng: random.Random, depth: int, exact: bool) -> Query:
    """Something approximate, or, from the same numbers, the same computed exactly; it may be refused."""
    if depth == 0:
        return leaf(rng, exact)
    one = rough(rng, depth - 1, exact)
    match rng.choice(["nested", "nested", "fold", "fold", "two", "op", "or", "wnd", "function", "mixed"]):
        case "nested":
            return ended(qre.iter1(one, quantile(rng, exact)))
        case "fold":
            return ended(qre.iter1(one, rng.choice(FOLDS)()))
        case "wnd":
            return ended(qre.wnd(one, rng.choice([2, 3]), rng.choice(FOLDS)()))
        case "two":
            return qre.combine(one, one, op=rng.choice(TWO))
        case "or":
            return qre.or_(one, qre.atom(col("k") == 2, rng.choice([col("v"), col("n"), 1]), items=ITEMS))
        case "function":
            return qre.apply(one, qre.function(lambda v: v, returns="double"))
        case "mixed":
            return qre.combine(one, qre.apply(one, rng.choice([lit(3), lit(-3)])), op=rng.choice(TWO))
    return qre.apply(one, rng.choice(ONE))


def leaf(rng: random.Random, exact: bool) -> Query:
    own = qre.atom(col("k") == 0, rng.choice([col("v"), -col("v"), col("n")]), items=ITEMS)
    if rng.random() < 0.2:
        return ended(qre.wnd_count(own, 4, col("x") > 1, epsilon=None if exact else 0.5))
    return ended(qre.iter1(own, quantile(rng, exact)))


def ended(query: Query) -> Query:
    """One piece of a pattern that may be repeated: its end is seen."""
    return qre.split(query, qre.match(END, items=ITEMS), op=col("_0"))


def quantile(rng: random.Random, exact: bool) -> qre.Fold:
    q, epsilon = rng.choice([0.0, 0.5, 0.5, 1.0]), rng.choice([0.1, 0.5])
    return qre.quantile(q, epsilon=None if exact else epsilon, nonnegative=rng.random() < 0.3)


FOLDS = [qre.sum, qre.avg, qre.min, qre.max, qre.count, qre.stddev, lambda: qre.discounted(0.5)]
A, B = col("_0"), col("_1")
TWO: list[Any] = [A + B, A.greatest(B), A.least(B), A - B, A * B, A / B, {"a": A, "b": A + B}]
ONE: list[Any] = [
    A / lit(-2),
    A * 3,
    -A,
    A.abs(),
    A + 1,
    A - 1,
    A.cast("bigint"),
    when(A > 1, A).otherwise(0),
]
ONE += [when(A.is_null(), 1).otherwise(A), A.coalesce(0), A.sqrt(), lit(1) / A]


def piped(rng: random.Random, query: Query) -> Query:
    """Now and then, what another query makes of the answers."""
    if rng.random() < 0.7:
        return query
    what = col("value") if rng.random() < 0.5 else -col("value")
    return query >> qre.iter1(qre.atom(op=what), rng.choice([*FOLDS, qre.median]))


def fitting(rng: random.Random, query: Query) -> pa.RecordBatch:
    """A word that walks through the query's rate."""
    letters = letters_of(query)
    auto = positions(query.rate, lambda key: letters.mask(letters.exprs[letters.predicates[key]]))
    rows: list[dict[str, Any]] = []
    at = auto.size
    while len(rows) < 24 and auto.by_letter[at]:
        c = rng.choice(list(auto.by_letter[at]))
        at = rng.choice(list(bits(auto.by_letter[at][c])))
        value = rng.choice([0.0, 1.0, 1.04, 1.49, 1.51, 2.2, 3.3, 97.0, None])
        rows.append({"k": letters.minterms[c].row["k"], "v": value, "n": rng.randrange(9)})
    return pa.RecordBatch.from_pylist(rows, ITEMS.schema)


def holds(m: Any, exact: Any, field: pa.Field) -> bool:
    """The promise of a field: equal, or of one sign and within the factor."""
    epsilon = float((field.metadata or {}).get(b"epsilon", b"0"))
    if m is None or exact is None or epsilon == 0:
        return close(m if m is None else float(m), exact if exact is None else float(exact))
    if b">= 0" in field.metadata[b"bound"] and min(m, exact) < 0:
        return False
    slack = 1e-9 * max(1.0, abs(exact))
    within = abs(m) <= abs(exact) + slack and abs(exact) <= (1 + epsilon) * abs(m) + slack
    return within and m * exact >= -slack


def drawn(seed: int, exact: bool) -> Query:
    rng = random.Random(seed)
    return piped(rng, rough(rng, seed % 4, exact))


def answers(seed: int) -> tuple[pa.Schema, list[tuple[Any, Any]]] | None:
    """The output schema, and each answer beside the exact one; None for a query that is refused."""
    try:
        near = drawn(seed, False)
        exact = drawn(seed, True)
        batch = fitting(random.Random(seed), exact.first if isinstance(exact, Pipe) else exact)
        pairs = zip(qre.evaluate(near, batch), qre.evaluate(exact, batch), strict=True)
        return qre.Evaluator(near).schema, list(pairs)
    except CaesuraError:  # also for a negative value where none was promised
        return None


@pytest.mark.slow
def test_the_bound_in_the_schema_holds_for_drawn_queries() -> None:
    checked = nested = 0
    for seed in range(EXAMPLES):
        schema, pairs = answers(seed) or (pa.schema([]), [])
        for m, x in pairs:
            assert (m is qre.UNDEFINED) == (x is qre.UNDEFINED)
            if m is qre.UNDEFINED:
                continue
            checked += 1
            for f in schema:
                a, b = (one[f.name] if isinstance(one, dict) else one for one in (m, x))
                assert holds(a, b, f), f"{seed}: {drawn(seed, False)}\n{m} {x}\n{f} {f.metadata}"
        nested += any(float((f.metadata or {}).get(b"epsilon", 0)) > 0.5 for f in schema)
    assert checked > EXAMPLES // 4 and nested > EXAMPLES // 60


def median(of: Query, **options: Any) -> Query:
    return qre.iter1(of, qre.median(**options))


def test_what_is_true_of_approximate_values_is_taken() -> None:
    own = qre.atom(col("k") == 0, col("n"), items=ITEMS)
    rough = qre.split(median(own, epsilon=0.5), qre.match(END, items=ITEMS), op=col("_0"))
    wanted = {
        "double within a factor 1 + 1.25, >= 0": median(rough, epsilon=0.5),
        "double within a factor 1 + 0.5, >= 0": qre.iter1(rough, qre.avg()),
    }
    for bound, query in wanted.items():
        assert str(value_type(query)) == bound
    most = qre.iter1(rough, qre.max())
    for query in (qre.combine(most, most, op=A + B), qre.combine(rough, qre.apply(rough, lit(2)), op=A + B)):
        assert str(value_type(query)) == "double within a factor 1 + 0.5, >= 0"
    assert value_type(qre.iter1(rough, qre.count())) == INT
    assert str(value_type(median(rough))) == "double within a factor 1 + 0.5, >= 0"
    assert str(value_type(qre.apply(rough, A / lit(-2)))) == "double within a factor 1 + 0.5"


@pytest.mark.parametrize(
    "op", [qre.function(lambda v: v, returns="double"), A.cast("bigint"), A > 1, lit(1) / A]
)
def test_what_would_void_a_bound_is_refused(op: Any) -> None:
    own = median(qre.atom(col("k") == 0, col("v"), items=ITEMS), epsilon=0.5)
    with pytest.raises(PlanError, match="would void the error bound"):
        qre.apply(own, op)
    with pytest.raises(PlanError, match="would void the error bound"):
        own >> qre.atom(col("value") > 1, 1)
