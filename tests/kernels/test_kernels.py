"""The important kernels against the obvious: dictionaries, lists, fractions, counters."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura.events.delta import deltas, net_page
from caesura.events.identity import LOCAL, identity
from caesura.events.rows import RowState
from caesura.kernels import sums as kernel_sums
from caesura.kernels.chains import Chains
from caesura.kernels.keys import KeyTable
from caesura.kernels.memo import Register
from caesura.kernels.sums import STRETCH, in_stretches
from caesura.ops.aggregate import slots as aggregate_slots
from caesura.ops.aggregate.accumulators.along import run_floats
from caesura.ops.aggregate.accumulators.exact import (
    FULL,
    NONE,
    SPAN,
    add_floats,
    carry_limbs,
    leading_zeros,
    limbs_needed,
    round_limbs,
    round_slots,
)
from caesura.ops.aggregate.accumulators.float_sums import FloatSum
from caesura.ops.aggregate.accumulators.slide import ENTER, GIVE
from caesura.ops.join.kernel import REMOVED, pieces

few = settings(max_examples=35, deadline=None)
words = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63])


@few
@given(
    st.lists(st.lists(st.sampled_from([0, 1, 2, 70, 2**18 - 1, 2**18, -1, 2**40]), max_size=30), max_size=6)
)
def test_a_register_recalls_what_it_was_told_whichever_keys_come_together(pages: list[list[int]]) -> None:
    register, known = Register(), dict[int, int]()
    for page in pages:
        keys = np.array(page, np.int64)
        numbers, missed = register.recall(keys)
        found = np.array([known.setdefault(page[row], len(known)) for row in missed], np.int64)
        register.learn(keys, numbers, missed, found)
        assert numbers.tolist() == [known[key] for key in page]


@few
@given(st.lists(st.lists(st.tuples(st.integers(0, 9), words), max_size=90), max_size=5))
def test_a_key_keeps_its_number_whatever_page_it_comes_in(pages: list[list[tuple[int, int]]]) -> None:
    table, known = KeyTable(), dict[tuple[int, int], int]()
    for page in pages:
        h1, h2 = (np.array([key[i] for key in page], np.uint64) for i in (0, 1))
        numbers, fresh = table.encode(h1, h2)
        new = [i for i, key in enumerate(page) if key not in known and page.index(key) == i]
        assert fresh.tolist() == new
        assert numbers.tolist() == [known.setdefault(key, len(known)) for key in page]
    strange = np.array([77, 5], np.uint64)
    assert table.find(strange, strange).tolist() == [-1, known.get((5, 5), -1)]


@few
@given(st.lists(st.lists(st.integers(0, 70), min_size=1), max_size=6), st.lists(st.integers(0, 90)))
def test_chains_give_a_key_all_of_its_rows(added: list[list[int]], asked: list[int]) -> None:
    chains, rows = Chains(), defaultdict[int, list[int]](list)
    for keys in added:
        for number, key in enumerate(keys, chains.size):
            rows[key].append(number)
        chains.add(np.array(keys))
    owner, found = chains.gather(np.array(asked, np.int64))
    wanted = Counter((place, row) for place, key in enumerate(asked) for row in rows[key])
    assert Counter(zip(owner.tolist(), found.tolist(), strict=True)) == wanted


cells = st.sampled_from([None, 0, 1, -1, 2**40])
texts = st.sampled_from([None, "", "a", "ab", "12345678", "123456789", "é"])
floats = st.sampled_from([None, 0.0, -0.0, math.nan, -math.nan, 1.5])


@few
@given(st.lists(st.tuples(cells, texts, floats), min_size=2, max_size=20))
def test_rows_have_equal_identities_exactly_when_they_are_equal(rows: list[tuple]) -> None:
    types = (pa.int64(), pa.string(), pa.float64())
    columns = [pa.array([r[i] for r in rows], t) for i, t in enumerate(types)]
    h1, h2 = identity(columns, len(rows), LOCAL)
    same = [tuple("nan" if v != v else v for v in row) for row in rows]
    for i in range(len(rows)):
        for j in range(len(rows)):
            assert ((h1[i], h2[i]) == (h1[j], h2[j])) == (same[i] == same[j])


def test_an_identity_does_not_depend_on_the_page_the_offset_or_the_layout() -> None:
    column = pa.array(["x", None, "some text", "x"])
    whole = identity([column], 4, LOCAL)
    sliced = identity([column.slice(2, 2)], 2, LOCAL)
    encoded = identity([column.dictionary_encode().cast(pa.string())], 4, LOCAL)
    assert whole[0][2:].tolist() == sliced[0].tolist()
    assert whole[1].tolist() == encoded[1].tolist()


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
small = st.sampled_from([0.1, 0.2, -0.1, 1e16, 1.0, -1e16, 5e-324, 2.5, -2.5])


def exact(values: list[tuple[float, int]]) -> float:
    """The true sum, rounded once."""
    total = sum((Fraction(v) * w for v, w in values), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(finite | small, st.sampled_from([1, 1, 1, -1, 3])), max_size=25))
def test_float_sums_are_the_exact_sum_rounded_once(values: list[tuple[float, int]]) -> None:
    summed = FloatSum("x")
    slots = RowState(summed.fields())
    slots.append(summed.zeros(1))
    for value, weight in values:
        summed.add(slots, np.zeros(1, np.int64), np.array([weight]), pa.array([value], pa.float64()))
    assert summed.as_float(slots, np.zeros(1, np.int64)).tolist() == [exact(values)]


LIMB = st.one_of(st.integers(-3, 3), st.integers(-(2**33), 2**33), st.integers(0, 31).map(lambda n: 1 << n))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.tuples(*[LIMB] * SPAN), st.integers(-1, FULL - SPAN)), min_size=1, max_size=8))
def test_the_sum_of_a_slot_is_the_double_nearest_to_its_limbs(
    sums: list[tuple[tuple[int, ...], int]],
) -> None:
    limbs, base = np.array([one for one, _ in sums]), np.array([first for _, first in sums], np.int32)
    at, out, twin = np.arange(len(sums))[::-1].copy(), np.zeros(len(sums)), np.zeros(len(sums))
    round_slots.compiled()(limbs, base, at, out)
    round_slots.twin(limbs, base, at, twin)
    assert out.tobytes() == twin.tobytes()
    for (digits, first), found in zip(sums, out[::-1].tolist(), strict=True):
        power = 32 * max(0, first) - 1074
        true = sum(Fraction(d) * Fraction(2) ** (32 * n + power) for n, d in enumerate(digits))
        try:
            assert found == float(true)
        except OverflowError:
            assert found == (math.inf if true > 0 else -math.inf)


@given(st.integers(1, 2**64 - 1))
def test_leading_zeros_are_those_before_the_first_bit(word: int) -> None:
    assert leading_zeros.twin(np.uint64(word)) == 64 - word.bit_length()


@few
@given(st.lists(st.integers(0, 5 << STRETCH), max_size=40))
def test_rows_in_stretches_are_sorted_by_them_and_keep_their_order_within(places: list[int]) -> None:
    order, ordered = in_stretches(np.array(places, np.int64), (5 << STRETCH) + 1)
    assert order.tolist() == sorted(range(len(places)), key=lambda row: places[row] >> STRETCH)
    assert ordered.tolist() == [places[row] for row in order]


def test_groups_in_many_slots_have_the_aggregates_of_rows_in_any_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(3)
    table = pa.table(
        {"ts": np.arange(900) // 3, "k": random.integers(0, 60, 900), "v": random.normal(size=900)}
    )
    marked = table.append_column("odd", pc.if_else(pc.less(table["v"], -2), None, table["v"]))
    made = {
        "n": cz.count(),
        "s": cz.sum("v"),
        "a": cz.avg("odd"),
        "m": cz.max("v"),
        "d": cz.count_distinct("v"),
    }
    le, gone = marked["ts"], np.arange(0, 900, 5)
    signed = {"sign": ["+"] * 900, "end": pc.add(le, 1), "new": le}
    for name, column in signed.items():
        marked = marked.append_column(name, column if name != "sign" else pa.array(column))
    back = marked.take(gone).set_column(4, "sign", pa.array(["-"] * len(gone)))
    changes: dict[str, Any] = {"kind": "sign", "end": "end", "new_end": "new"}
    both = pa.concat_tables([marked, back]).take(np.argsort(np.concatenate([np.arange(900), gone + 6])))
    rows = cz.from_arrow(both, time="ts", punctuate=cz.delay(9), **changes)
    stream = rows.group_by("k").tumbling(100).agg(**made, f=cz.first("odd"), l=cz.last("v"))
    plain = stream.run().draw()
    for name in ("SCATTERED_ROWS", "SCATTERED_SLOTS"):
        monkeypatch.setattr(aggregate_slots, name, 1)
    monkeypatch.setattr(kernel_sums, "STRETCH", 3)
    assert stream.run().draw() == plain


@pytest.mark.parametrize(
    "values", [[0.1] * 10, [1e16, 1.0, -1e16], [1e300, 1e-300, -1e300], [2**53, 1.0, 1.0]]
)
def test_carrying_does_not_change_a_sum(values: list[float]) -> None:
    summed = FloatSum("x")
    slots = RowState(summed.fields())
    slots.append(summed.zeros(1))
    for value in values:
        summed.add(slots, np.zeros(1, np.int64), np.ones(1, np.int64), pa.array([value], pa.float64()))
        carry_limbs(slots.get("x_limbs"))
        carry_limbs(summed.full.get("limbs"))
    assert summed.as_float(slots, np.zeros(1, np.int64)).tolist() == [math.fsum(values)]


def test_the_twin_of_the_carry_carries_alike() -> None:
    limbs, base = np.zeros((1, SPAN), np.int64), np.full(1, -1, np.int32)
    for value in (1e9, 0.125, -3.0, 2.0**40):
        add_floats(np.zeros(1, np.int64), np.array([value]), np.full(1, 9), limbs, base, NONE)
    other = limbs.copy()
    carry_limbs.compiled()(limbs)
    carry_limbs.twin(other)
    np.testing.assert_array_equal(limbs, other)
    out = np.zeros(1)
    round_limbs(limbs, base, out)
    assert out.tolist() == [9 * (1e9 + 0.125 - 3.0 + 2.0**40)]


weighted = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 5), st.sampled_from([-1, 1, 1, 2]))


@few
@given(st.lists(weighted, max_size=14))
def test_the_net_page_of_weighted_rows_says_the_same_in_fewest_items(some: list[tuple[int, ...]]) -> None:
    ids, le, length, weight = (np.array([r[i] for r in some], np.int64) for i in range(4))
    page = net_page(pa.record_batch({"id": pa.array(ids, pa.int64())}), le, le + length, weight)
    wanted: Counter = Counter()
    for i, a, d, w in some:
        wanted[(i, a, a + d)] += w
    d = deltas(page)
    got: Counter = Counter()
    for row, a, b, w in zip(*(x.tolist() for x in d), strict=True):
        got[(page.payload.column("id")[row].as_py(), a, b)] += w
    assert {k: w for k, w in got.items() if w} == {k: w for k, w in wanted.items() if w}
    starts = {(i, a) for i, a, _, _ in some}
    least = 0
    for key in starts:
        gains = sum(w for (i, a, _), w in wanted.items() if (i, a) == key and w > 0)
        losses = -sum(w for (i, a, _), w in wanted.items() if (i, a) == key and w < 0)
        least += max(gains, losses)
    assert len(page) == least


spans = st.tuples(st.integers(0, 9), st.integers(1, 6)).map(lambda s: (s[0], s[0] + s[1]))


@few
@given(spans, st.lists(spans, max_size=5), st.booleans())
def test_pieces_are_where_a_row_is_covered_or_where_it_is_not(
    row: tuple[int, int], covers: list[tuple[int, int]], covered: bool
) -> None:
    covers = sorted(covers)
    c_le, c_re = (np.array([c[i] for c in covers], np.int64) for i in (0, 1))
    out = [np.empty(len(covers) + 2, np.int64) for _ in range(3)]
    one = np.zeros(len(covers), np.int64), np.array([row[0]]), np.array([row[1]])
    always, none = np.full(1, np.iinfo(np.int64).min), np.full(1, REMOVED)
    made = pieces(one[0], c_le, c_re, one[1], one[2], always, none, covered, *out)
    ticks = [t for a, b in zip(out[1][:made], out[2][:made], strict=True) for t in range(a, b)]
    inside = [t for t in range(*row) if any(a <= t < b for a, b in covers) == covered]
    assert ticks == inside
    assert all(a > b for a, b in zip(out[1][1:made], out[2][: max(0, made - 1)], strict=True))  # maximal


A_FEW_TEXTS = """
import sys
import pyarrow as pa
from caesura.events.identity import LOCAL, identity
texts = pa.array([f"more than eight bytes {i}" for i in range(200)])
before = identity([texts], 200, LOCAL)
assert "numba" not in sys.modules
import numba
from caesura.kernels import Kernel, compiling
identity([texts], 200, LOCAL)
assert not compiling()  # somebody else's compiler does not make ours worth its while
Kernel._compiles = True
after = identity([texts], 200, LOCAL)
assert "caesura.kernels.cache" in sys.modules
assert all((a == b).all() for a, b in zip(before, after))
"""


def test_a_few_texts_are_hashed_without_the_compiler_as_with_it() -> None:
    done = subprocess.run([sys.executable, "-c", A_FEW_TEXTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


A_PREVIEW = """
import sys
import caesura as cz
rows = cz.from_rows([{"ts": 3, "seg": 1}], time="ts")
assert "seg" in str(rows.group_by("seg").tumbling(10).agg(n=cz.count()).preview())
rooms = ("buckets", "durable", "claims.tokens", "inspect")
unasked = {"numba", "pyarrow.parquet", "caesura.spark", "caesura.io.kafka", "caesura.io.postgres"}
unasked |= {"caesura.fixpoint.build", *(f"caesura.runtime.{room}" for room in rooms)}
assert not unasked & set(sys.modules), unasked & set(sys.modules)
"""


def test_a_preview_of_a_few_rows_enters_no_room_that_it_does_not_need() -> None:
    done = subprocess.run([sys.executable, "-c", A_PREVIEW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=32) | st.floats(-1e-300, 1e-300)


@few
@given(st.lists(DOUBLES, min_size=1, max_size=8), st.lists(DOUBLES, max_size=3))
def test_running_sums_of_the_limbs_needed_are_exact(values, before):
    limbs, base = np.zeros((1, FULL), np.int64), np.zeros(1, np.int32)
    held, ones = np.zeros(len(before), np.int64), np.ones(len(before), np.int64)
    add_floats(held, np.array(before), ones, limbs, base, held.copy())
    some, steps = np.array(values), np.tile([ENTER, GIVE], len(values))
    out, rest, row = np.empty(len(values)), np.empty((len(values), 1)), np.repeat(np.arange(len(values)), 2)
    needed = limbs_needed(limbs, some)
    part = np.ascontiguousarray(limbs[:, needed])
    odd, every = np.zeros((1, 3), np.int64), np.zeros(0, np.bool_)
    run_floats(steps, 0 * steps, row, some, some[:0], every, part, needed.start, odd, out, rest)
    for i in range(len(values)):
        exact = sum(map(Fraction, before + values[: i + 1]), Fraction(0))
        assert (out[i], rest[i, 0]) == (float(exact), float(exact - Fraction(float(exact))))
