"""Steps in front of tumbling windows done as one pass: what leaves is what would leave without it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import caesura as cz
from caesura import col
from caesura.events import NO_NEW_END, Page
from caesura.kernels.placing import AGAIN, NO_ROWS, UNFIT, Places, pick_rows, place_rows
from caesura.runtime.graph.fused import FusedSteps
from caesura.runtime.graph.row_ranges import RowRange

SHOPS = pa.table(
    {"since": [-50, -50, -50, 40], "until": [500, 500, 500, 500], "shop": [0, 1, 2, 3], "city": list("aabc")}
)


def clicks(seed: int, count: int = 400) -> pa.Table:
    random = np.random.default_rng(seed)
    ts = np.sort(random.integers(0, 100, count)) + random.integers(-3, 1, count)
    return pa.table(
        {
            "ts": ts,
            "shop": random.integers(0, 4 if seed % 2 else 3, count),
            "kind": random.integers(0, 3, count, np.int8),
            "price": random.normal(0, 1e9, count),
            "count": random.integers(0, 100, count),
        }
    )


def counted(rows: cz.Stream) -> cz.Stream:
    return rows.where(col("kind") == 0).group_by("shop").tumbling(10).agg(n=cz.count())


def summed(rows: cz.Stream) -> cz.Stream:
    aggregates: dict[str, Any] = {
        "s": cz.sum("price"),
        "m": cz.max("count"),
        "a": cz.avg("count"),
        "n": cz.count(),
    }
    return rows.where(col("kind") != 1).group_by("shop").tumbling(10).agg(**aggregates)


def joined(rows: cz.Stream) -> cz.Stream:
    shops = cz.from_arrow(SHOPS, time="since", end="until")
    priced = rows.where(col("kind") == 0).select("shop", p=col("price"))
    named = priced.join(shops, on="shop").select("city", v=col("p"))
    return named.group_by("city").tumbling(10).agg(n=cz.count(), s=cz.sum("v"))


def narrowed(rows: cz.Stream) -> cz.Stream:
    """The filter's column goes no further, and nothing stands between it and the look-up."""
    shops = cz.from_arrow(SHOPS, time="since", end="until")
    return rows.where(col("kind") == 0).join(shops, on="shop").group_by("city").tumbling(10).agg(n=cz.count())


def unfiltered(rows: cz.Stream) -> cz.Stream:
    return rows.group_by("shop").tumbling(10, offset=3).agg(n=cz.count(), least=cz.min("price"))


def drawn(stream: cz.Stream, output: Any) -> tuple[str, dict[str, tuple[int, int, int]]]:
    result = stream.run(output=output)
    counters = {k: (c.pages_in, c.rows_in, c.rows_out) for k, c in result.counters.items()}
    return result.draw(), counters


@pytest.mark.parametrize("output", ["changes", "final"])
@pytest.mark.parametrize("query", [counted, summed, joined, narrowed, unfiltered])
def test_one_pass_gives_the_items_and_counters_of_the_steps(
    query: Any, output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    took, done = FusedSteps.took, []

    def noted(self: FusedSteps, page: Any) -> bool:
        done.append(took(self, page))
        return done[-1]

    for seed in range(4):
        stream = query(cz.from_arrow(clicks(seed), time="ts", punctuate=cz.delay(5), batch_size=64))
        monkeypatch.setattr(FusedSteps, "took", noted)
        fused = drawn(stream, output)
        monkeypatch.setattr(FusedSteps, "took", lambda self, page: False)
        assert fused == drawn(stream, output)
    assert any(done)


def taken_back(seed: int) -> pa.Table:
    """Clicks of which some are taken back later, some of those in part, and some come a second time."""
    random = np.random.default_rng(seed)
    table = clicks(seed)
    ts = table["ts"].to_numpy() // 2 * 2  # no lifetime crosses a window
    table = table.set_column(0, "ts", pa.array(ts))
    gone = np.flatnonzero(random.random(len(ts)) < 0.2)
    rows = np.concatenate([np.arange(len(ts)), gone, gone[::2]])
    sign = np.repeat(["+", "-", "+"], [len(ts), len(gone), len(gone[::2])])
    arrival = np.concatenate([np.arange(len(ts)), gone + 5.0, gone[::2] + 9.0])
    order = np.argsort(arrival, kind="stable")
    le = ts[rows]
    some = 0.2 if seed % 3 == 0 else 0.0
    half = np.concatenate([np.zeros(len(ts), bool), random.random(len(gone)) < some, gone[::2] < 0])
    columns = {"end": le + 2, "new_end": np.where(half, le + 1, le), "sign": sign}
    made = table.take(pa.array(rows))
    for name, column in columns.items():
        made = made.append_column(name, pa.array(column))
    return made.take(pa.array(order))


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("output", ["changes", "final"])
@pytest.mark.parametrize("query", [counted, summed, joined, narrowed])
def test_inserts_and_retracts_of_a_page_in_one_pass_give_the_same(
    query: Any, output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    took, stepped, done, singly = FusedSteps.took, FusedSteps._step_by_step, [], []

    def noted(self: FusedSteps, page: Any) -> bool:
        taken = took(self, page)
        done.append(taken and page.re_new is not None)
        return taken

    def followed(self: FusedSteps, page: Any) -> None:
        singly.append(page)
        stepped(self, page)

    monkeypatch.setattr(FusedSteps, "_step_by_step", followed)
    changes: dict[str, Any] = {"kind": "sign", "end": "end", "new_end": "new_end"}
    for seed in range(7):
        rows = taken_back(seed)
        stream = query(cz.from_arrow(rows, time="ts", punctuate=cz.delay(8), batch_size=64, **changes))
        monkeypatch.setattr(FusedSteps, "took", noted)
        fused = drawn(stream, output)
        monkeypatch.setattr(FusedSteps, "took", lambda self, page: False)
        assert fused == drawn(stream, output)
    assert any(done)
    assert 0 < len(singly) < sum(done) if output == "final" else not singly


def test_a_lifetime_across_windows_goes_its_usual_way() -> None:
    rows = [{"ts": t, "shop": 1} for t in (3, 8, 12)]
    stream = cz.from_rows(rows, time="ts").set_duration(4).group_by("shop").tumbling(10).agg(n=cz.count())
    assert [row[3] for row in stream.run(output="final").history.page.rows()] == [(1, 2), (1, 2)]


def test_feedback_makes_rows_go_their_usual_way() -> None:
    stream = counted(cz.from_arrow(clicks(1), time="ts", punctuate=cz.delay(5), batch_size=64))
    query = stream.query(output="final")
    query.assume(col("shop") == 1)
    query.run()
    assert 1 not in query.table()["shop"].to_pylist()


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_of_a_range_all_rows_that_pass_are_picked_or_the_inserts_among_them(
    seed: int, filtered: bool
) -> None:
    random = np.random.default_rng(seed)
    le, gone = random.integers(0, 9, 200), random.random(200) < 0.3
    news = np.where(gone, le + random.integers(0, 2, 200), NO_NEW_END)
    page = Page.of(pa.record_batch({"v": random.random(200)}), le=le, re=le + 5, re_new=news)
    passed = page.payload["v"].to_numpy() < (0.4 if filtered else 2)
    one = RowRange()
    test = (lambda part: part.payload["v"].to_numpy() < 0.4) if filtered else None
    part = slice(30, 170)
    one.pick(page, 30, 170, test, inserts=True)
    assert one.positions.tolist() == (30 + np.flatnonzero((passed & ~gone)[part])).tolist()
    one.pick(page, 30, 170, test, inserts=False)
    assert one.positions.tolist() == (30 + np.flatnonzero(passed[part])).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_kernels_and_their_twins_place_rows_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    keys, le = random.integers(0, 30, 200), np.sort(random.integers(0, 99, 200))
    mask = random.random(200) < 0.4
    out, other = np.empty(201, np.int64), np.empty(201, np.int64)
    count = pick_rows.compiled()(mask, out)
    assert count == pick_rows.twin(mask, other) == mask.sum()
    assert out[:count].tolist() == other[:count].tolist() == np.flatnonzero(mask).tolist()
    found = []
    news = np.where(random.random(200) < 0.3, le, NO_NEW_END)
    for run, ends in (
        (run, ends) for ends in (NO_ROWS, news) for run in (place_rows.compiled(), place_rows.twin)
    ):
        groups = np.where(np.arange(40) % 7 == 6, -1, np.arange(40) % 7)
        arrays = [np.zeros(n, np.int64) for n in (16, 96, 96, 200, 2, count)]
        windows, counts, used, unknown, seen, cells = arrays
        got = run(
            out[:count], False, keys, le, NO_ROWS, 0, 10,
            groups, 6, windows, counts, used, unknown, seen, cells, ends,
        )  # fmt: skip
        found.append([got, groups.tolist(), *(array.tolist() for array in arrays)])
    assert found[0] == found[1] and found[2] == found[3]


@pytest.mark.parametrize("run", [place_rows.compiled(), place_rows.twin])
def test_rows_that_join_others_are_placed_as_all_at_once(run: Any) -> None:
    random = np.random.default_rng(4)
    keys, le = random.integers(0, 6, 200), np.sort(random.integers(0, 99, 200))

    def placed(*ends: int) -> list[list[int]]:
        windows, counts, used, unknown, seen, cells = (
            np.zeros(n, np.int64) for n in (16, 96, 96, 200, 2, 200)
        )
        for a, b in pairwise((0, *ends)):
            part = keys[a:b], le[a:b], NO_ROWS, 0, 10, np.arange(6), 6
            got = run(NO_ROWS, True, *part, windows, counts, used, unknown, seen, cells[a:b], NO_ROWS)
            assert got == 0
        return [some.tolist() for some in (windows, counts, used, seen, cells)]

    assert placed(200) == placed(1, 70, 70, 200)


def test_room_that_is_made_has_what_was_placed_before_placed_again() -> None:
    places = Places()
    keys, le = np.zeros(60, np.int64), np.arange(60)
    places.learn(np.array([0]), np.array([0]), 1)
    assert places.place(None, keys[:20], le[:20], NO_ROWS, 0, 10, NO_ROWS) == 0
    got = [places.place(None, keys[20:], le[20:] * 10, NO_ROWS, 0, 10, NO_ROWS, more=True)]
    while got[-1] == AGAIN:
        assert places.place(None, keys[:20], le[:20], NO_ROWS, 0, 10, NO_ROWS) == 0
        got.append(places.place(None, keys[20:], le[20:] * 10, NO_ROWS, 0, 10, NO_ROWS, more=True))
    assert got[0] == AGAIN and got[-1] == 0
    assert places.found()[2].tolist() == [10, 10, *[1] * 40]


def test_a_page_over_too_many_windows_does_not_fit() -> None:
    places = Places()
    le = np.arange(1000)
    assert places.place(None, np.zeros(1000, np.int64), le, NO_ROWS, 0, 1, NO_ROWS) == UNFIT


@pytest.mark.parametrize("span", [3, 60, 127])
def test_room_for_windows_is_made_when_they_come(span: int) -> None:
    places, random = Places(), np.random.default_rng(span)
    for windows in (2, span, 5):
        keys, le = random.integers(0, 9, 4000), np.sort(random.integers(0, 10 * windows, 4000))
        if places.place(None, keys, le, NO_ROWS, 0, 10, NO_ROWS):
            unknown = keys[places.unknown]
            places.learn(unknown, places.groups + np.arange(len(unknown)), places.groups + len(unknown))
            key_of = dict(enumerate(unknown.tolist()))
            assert places.place(None, keys, le, NO_ROWS, 0, 10, NO_ROWS) == 0
        found = {(key_of[g], w): n for g, w, n in zip(*(a.tolist() for a in places.found()), strict=True)}
        assert found == Counter(zip(keys.tolist(), (le // 10).tolist(), strict=True))


def test_keys_of_a_page_that_did_not_fit_are_not_taken_for_known() -> None:
    places, keys = Places(), np.array([7, 8])
    assert places.place(None, keys, np.array([1, 2]), np.array([2, 99]), 0, 10, NO_ROWS) == UNFIT
    assert places.place(None, keys, np.array([1, 2]), np.array([2, 3]), 0, 10, NO_ROWS) == 2
