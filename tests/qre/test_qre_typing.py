"""Ill-typed queries are refused when they are built, each with a shortest witness."""

from __future__ import annotations

import ast
import datetime as dt
import itertools
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from caesura import qre
from caesura.errors import CaesuraError, PlanError
from caesura.expr import Expr, col, lit
from caesura.qre.checking.ambiguity import ambiguous_word
from caesura.qre.checking.containment import missing_word
from caesura.qre.checking.positions import Positions, positions
from caesura.qre.language.query import Query
from caesura.qre.language.regex import Regex, any_of, letter, seq, star

ITEMS = qre.items(pa.schema([("k", pa.string()), ("v", pa.int64())]))
A, B, C = (col("k") == x for x in "abc")


def atom(predicate: Expr) -> Query:
    return qre.atom(predicate, col("v"), items=ITEMS)


def caught(build: object) -> CaesuraError:
    with pytest.raises(CaesuraError) as raised:
        build()  # type: ignore[operator]
    return raised.value


def refused(build: object) -> str:
    return str(caught(build))


def test_the_papers_ambiguous_expression_is_refused_with_bb_and_its_two_parses() -> None:
    either = atom(col("k").isin(["a", "b"]))
    text = refused(
        lambda: qre.split(qre.iter(either, qre.sum()), atom(B), qre.iter(either, qre.sum()), op=col("_0"))
    )
    assert "can be divided among the parts of this split in two ways" in text
    assert "1     'b'  0" in text and "2     'b'  0" in text and "3  " not in text
    assert "parse 1: ε · 1 · 2" in text and "parse 2: 1 · 2 · ε" in text
    assert "^^^^" in text and "(test_qre_typing.py:" in text


def test_its_unambiguous_form_is_taken() -> None:
    either = atom(col("k").isin(["a", "b"]))
    qre.split(qre.iter(atom(A), qre.sum()), atom(B), qre.iter(either, qre.sum()), op=col("_0"))


def test_the_smallest_ambiguous_part_is_underlined() -> None:
    text = refused(lambda: qre.split(atom(C), qre.Query and qre.or_(atom(A), atom(A | B)), op=col("_0")))
    line, marks = text.splitlines()[1:3]
    assert (
        line[marks.index("^") : marks.rindex("^") + 1] == "or_(atom(k = 'a', v), atom(k = 'a' OR k = 'b', v))"
    )


def test_a_code_whose_shortest_witness_is_long_is_found() -> None:
    """a, a b^14, b^14 a: the shortest word with two readings is a b^14 a."""
    masks = {A.key: 1, B.key: 2}
    a, b = letter(A), letter(B)
    code = any_of(a, seq(a, *[b] * 14), seq(*[b] * 14, a))
    word = ambiguous_word(positions(star(code), masks.__getitem__))
    assert word is not None and len(word) == 16


def brute(auto: Positions, size: int) -> list[int] | None:
    """The shortest word with two runs, by counting the runs of every word."""
    for length in range(1, size + 1):
        for word in itertools.product(range(2), repeat=length):
            runs = dict.fromkeys(_bits(auto.by_letter[-1].get(word[0], 0)), 1)
            for c in word[1:]:
                after: dict[int, int] = {}
                for p, n in runs.items():
                    for q in _bits(auto.by_letter[p].get(c, 0)):
                        after[q] = after.get(q, 0) + n * (2 if auto.double[p] >> q & 1 else 1)
                runs = after
            if sum(n for q, n in runs.items() if auto.last >> q & 1) > 1:
                return list(word)
    return None


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def some_regex(rng: random.Random, depth: int) -> Regex:
    if depth == 0:
        return rng.choice([letter(A), letter(B)])
    parts = [some_regex(rng, depth - 1) for _ in range(rng.choice([1, 2, 2]))]
    kind = rng.choice(["seq", "any", "star"])
    return (
        seq(*parts) if kind == "seq" else any_of(*parts) if kind == "any" else star(seq(letter(A), parts[0]))
    )


def test_ambiguity_and_its_shortest_witness_agree_with_brute_force() -> None:
    masks = {A.key: 1, B.key: 2}
    for seed in range(300):
        auto = positions(some_regex(random.Random(seed), 3), masks.__getitem__)
        got, wanted = ambiguous_word(auto), brute(auto, 6)
        assert (got is None or len(got) > 6) if wanted is None else len(got or []) == len(wanted)


def test_containment_agrees_with_brute_force() -> None:
    masks = {A.key: 1, B.key: 2}
    checked = 0
    for seed in range(400):
        rng = random.Random(seed)
        one, two = (positions(some_regex(rng, 2), masks.__getitem__) for _ in range(2))
        if ambiguous_word(one) or ambiguous_word(two):
            continue
        words = [list(w) for n in range(7) for w in itertools.product(range(2), repeat=n)]
        outside = [w for w in words if one.accepts(w) and not two.accepts(w)]
        got = missing_word(one, two)
        assert got == [] or got is None or (one.accepts(got) and not two.accepts(got))
        assert bool(outside) <= (got is not None)
        assert not outside or (got is not None and len(got) == len(outside[0]))
        checked += 1
    assert checked > 100


def cycles(rng: random.Random) -> tuple[Regex, set[int]]:
    """Words of one letter whose lengths lie in some classes of a period, and those lengths up to 200."""
    period, a = rng.randrange(1, 10), letter(A)
    rests = rng.sample(range(period), rng.randrange(1, period + 1))
    lengths = {n for n in range(200) if n % period in rests}
    return seq(star(seq(*[a] * period)), any_of(*(seq(*[a] * r) for r in rests))), lengths


def test_containment_is_decided_whatever_the_length_of_the_shortest_word_outside() -> None:
    longest = 0
    for seed in range(400):
        rng = random.Random(seed)
        (one, ours), (two, theirs) = cycles(rng), cycles(rng)
        got = missing_word(*(positions(r, {A.key: 1}.__getitem__) for r in (one, two)))
        assert (None if got is None else len(got)) == min(ours - theirs, default=None)
        longest = max(longest, len(got or []))
    assert longest > 40


def test_rates_of_ones_own_that_ignore_keyed_items_are_taken_every_time() -> None:
    keyed = ~C.coalesce(False)
    own = qre.split(qre.iter1(atom(keyed), qre.sum()), qre.match(C, items=ITEMS), op=col("_0"))
    for seed in range(100):
        rng = random.Random(seed)
        before = rng.choice([star(keyed), any_of(seq(), seq(star(keyed), keyed))])
        unit = seq(before, C)
        some = any_of(*(seq(*[unit] * (n + 1)) for n in range(rng.randrange(1, 4))))
        qre.map_collect(C, "v", own, rate=rng.choice([some, seq(unit, star(unit))]))


def test_the_witness_of_different_rates_is_a_shortest_one() -> None:
    a, b, c = (atom(x) for x in (A, B, C))
    long = qre.split(a, b, c, op=col("_0"))
    for one, two in ((long, qre.or_(long, a)), (qre.or_(long, a), long)):
        error = caught(lambda one=one, two=two: qre.combine(one, two, op=col("_0")))
        assert error.witness == [{"k": "a", "v": 0}]


def test_a_rate_that_depends_on_keyed_items_shows_two_streams() -> None:
    end = qre.match(C, items=ITEMS)
    body = qre.split(qre.iter1(atom(~C), qre.sum()), end, op=col("_0"))
    keyed = ~C.coalesce(False)
    for rate, rows in ((seq(A, C), 2), (seq(keyed, star(keyed), C), 2), (star(keyed), 1), (seq(C, A), 2)):
        error = caught(lambda rate=rate: qre.map_collect(C, "v", body, rate=rate))
        assert "depends on keyed items" in str(error) and len(error.witness or []) == rows


SMALL = pa.schema(
    [
        pa.field("n", pa.int8(), False),
        pa.field("u", pa.uint8()),
        pa.field("at", pa.timestamp("s"), False),
        pa.field("x", pa.float32(), False),
        pa.field("s", pa.string(), False),
    ]
)
MOMENT = dt.datetime(2024, 1, 1, 0, 0, 0, 500)


@pytest.mark.parametrize(
    "test",
    [
        (col("n") > 100, col("n") > 101, col("n") > 126, col("n") > 2.5, col("n") < -127),
        (col("u") < 1, col("u") > 254, col("u") <= 0),
        (col("at") > lit(MOMENT), col("at") < lit(MOMENT)),
        (col("x") > 1.5, col("x") < 1.5, col("n") + col("u") > 3),
        (col("s") > "", col("s") <= "a", col("n") * 2 > col("u")),
    ],
)
def test_witnesses_are_streams_that_the_types_have(test: tuple[Expr, ...]) -> None:
    of = qre.items(SMALL)
    for one, two in itertools.product(test, repeat=2):
        some = qre.or_(qre.atom(one, 1), qre.atom(one & two, 1))
        error = caught(lambda some=some: some.on(of))
        rows = error.witness or []
        pa.RecordBatch.from_pylist(rows, SMALL).validate(full=True)
        assert all(row[f.name] is not None for row in rows for f in SMALL if not f.nullable), str(error)


def test_what_the_type_of_a_column_excludes_can_never_be_true() -> None:
    of = qre.items(SMALL)
    between = (col("n") > 3) & (col("n") < 4)
    for never in (col("n") > 127, col("u") < 0, between, col("n") > 200, col("s") < ""):
        assert "can never be true" in refused(lambda never=never: qre.atom(never, 1, items=of))
    qre.or_(qre.atom(col("n") > 3, 1, items=of), qre.atom(col("n") < 4, 1, items=of))


def test_nothing_is_remembered_by_where_it_lies_in_memory() -> None:
    for file in Path(qre.__file__).parent.glob("*.py"):
        calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
        assert not [n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id == "id"], file


def test_a_query_has_one_key_in_every_process() -> None:
    script = """
import pyarrow as pa
from caesura import qre
from caesura.expr import col
one = qre.atom(op=col("v"), items=qre.items(pa.schema([("v", pa.float64())])))
half = qre.apply(one, qre.function(lambda v: v / 2, returns="double"))
print(qre.iter1(qre.combine(half, half, op=col("_0")), qre.median(epsilon=0.1)).key)
print(qre.wnd_count(half, 9, col("x") > 1, epsilon=0.1).key, qre.iter(half, [], lambda acc, x: [*acc, x]).key)
"""
    once, again = (subprocess.run([sys.executable, "-c", script], capture_output=True) for _ in "ab")
    assert once.stdout == again.stdout != b""


def test_a_map_that_is_missing_after_56_synchronisation_items_is_refused() -> None:
    some = seq()
    for _ in range(6):
        some = any_of(seq(), seq(C, some))
    own = qre.split(atom(~C), qre.iter1(qre.match(seq(*[C] * 7), items=ITEMS), qre.count()), op=col("_1"))
    every = seq(star(seq(*[C] * 8)), C, some)
    assert "no map is collected" in refused(lambda: qre.map_collect(C, "v", own, every=every))


def calls_to_type(atoms: int) -> int:
    """How many functions are called to type a sequence and a choice of so many atoms."""
    of = qre.items(pa.schema([("v", pa.int64())]))
    some = [qre.atom(col("v") == i) for i in range(atoms)]
    called = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        qre.split(*some, op=col("_0").field("v")).on(of)
        qre.iter(qre.or_(*some), 0, col("acc") + 1).on(of)
    finally:
        sys.setprofile(None)
    return called


def test_the_work_to_type_many_atoms_grows_with_their_number() -> None:
    calls_to_type(2)
    assert calls_to_type(300) < 3 * calls_to_type(150)


def test_different_rates_do_not_combine() -> None:
    text = refused(
        lambda: qre.combine(qre.iter(atom(A), qre.sum()), qre.iter1(atom(A), qre.sum()), op=col("_0"))
    )
    assert "different rates" in text and "(the empty stream)" in text


def test_an_iteration_of_the_empty_stream_is_refused() -> None:
    assert "matches the empty stream" in refused(lambda: qre.iter(qre.iter(atom(A), qre.sum()), qre.sum()))


def test_a_predicate_that_can_never_be_true_is_refused() -> None:
    assert "can never be true" in refused(lambda: atom((col("v") > 3) & (col("v") < 4)))


def test_types_that_do_not_fit_are_refused() -> None:
    assert "wanted values of one type" in refused(
        lambda: qre.iter(qre.atom(A, col("k"), items=ITEMS), qre.sum())
    )


def test_partition_and_composition_stand_only_at_the_top() -> None:
    inner = qre.partition(atom(A), by="k")
    assert "only at the top" in refused(lambda: qre.iter(inner, qre.sum()))
    assert "only at the top" in refused(lambda: qre.or_(atom(B), atom(A) >> qre.atom(op=col("value"))))


def test_a_map_collect_needs_a_keyed_item_and_a_rate_of_synchronisation_items() -> None:
    end = qre.match(C, items=ITEMS)
    assert "without any keyed item" in refused(
        lambda: qre.map_collect(C, "v", qre.split(qre.iter(atom(~C), qre.sum()), end, op=col("_0")))
    )
    body = qre.split(qre.iter1(atom(~C), qre.sum()), end, op=col("_0"))
    assert "depends on keyed items" in refused(
        lambda: qre.map_collect(C, "v", body, rate=seq(letter(A), letter(C)))
    )
    assert "no map is collected" in refused(lambda: qre.map_collect(C, "v", body, every=seq(C, C)))


def test_what_the_algebra_cannot_decide_is_a_verdict_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    of = qre.items(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    f, g = (col("a") * col("a") * 7 + 1 == col("b") * col("b") * 5), (col("a") + col("b") == 7919)
    text = refused(lambda: qre.or_(qre.atom(f, 1, items=of), qre.atom(g, 1, items=of)))
    assert (
        "cannot decide whether this query is well typed: it may be ambiguous if an item can satisfy" in text
    )
    assert "or install z3-solver, which knows sums and products." in text


def test_a_solver_decides_what_the_algebra_cannot() -> None:
    pytest.importorskip("z3")
    of = qre.items(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    even, odd = (col("a") * 2 == col("b")), (col("a") * 2 + 1 == col("b"))
    qre.or_(qre.atom(even, 1, items=of), qre.atom(odd, 1, items=of))


def test_conditions_between_columns_are_settled_by_samples_where_they_can_be() -> None:
    of = qre.items(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    less, more = col("a") < col("b"), col("a") > col("b") - 3
    text = refused(lambda: qre.or_(qre.atom(less, 1, items=of), qre.atom(more, 1, items=of)))
    assert "match the same stream" in text


def test_tagged_cases_exclude_each_other() -> None:
    of = qre.tagged(pa.schema([("kind", pa.string()), ("v", pa.int64())]), "kind", m=("v",), d=())
    big, end = col("v") > 3, of.is_("d")
    qre.or_(qre.atom(big, 1, items=of), qre.atom(end, 2, items=of))


def test_an_operation_that_voids_a_bound_is_refused_and_sums_carry_it() -> None:
    of = qre.items(pa.schema([("v", pa.float64())]))
    rough = qre.iter(qre.atom(op=col("v"), items=of), qre.median(epsilon=0.01, nonnegative=True))
    total = qre.combine(rough, rough, op=col("_0") + col("_1"))
    assert qre.over is not None and str(qre.Evaluator(total).schema.field(0).metadata) == str(
        {b"epsilon": b"0.01", b"bound": b"double within a factor 1 + 0.01, >= 0"}
    )
    assert "would void the error bound" in refused(
        lambda: qre.combine(rough, rough, op=col("_0") - col("_1"))
    )
    signed = qre.iter(qre.atom(op=col("v"), items=of), qre.median(epsilon=0.01))
    assert "can cancel" in refused(lambda: qre.combine(signed, signed, op=col("_0") + col("_1")))


def test_queries_without_items_are_checked_when_they_are_bound() -> None:
    loose = qre.or_(qre.atom(A), qre.atom(A))
    with pytest.raises(PlanError, match="match the same stream"):
        loose.on(ITEMS)
