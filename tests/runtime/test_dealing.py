"""Rows dealt to buckets whatever their keys: the rows, late rows and counts of one thread."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.events import History, Page
from caesura.ops.aggregate import dealt as dealt_slots
from caesura.ops.aggregate import panes
from caesura.ops.aggregate.dealt import OwnGroups, dealt_windows
from caesura.ops.aggregate.tumbling import Tumbling
from caesura.plan import walk
from caesura.plan.prune import prune
from caesura.punctuation import INFINITY, cti
from caesura.runtime.query.result import delivered
from caesura.runtime.threads import dealing
from caesura.runtime.threads.dealing import Dealer
from caesura.runtime.threads.spreading import spread

ODD = [None, float("nan"), float("inf"), -float("inf"), 1e300, 1e-300, -0.0]
EVERY = {
    "n": cz.count(),
    "some": cz.count("v"),
    "total": cz.sum("v"),
    "mean": cz.avg("v", where=col("n") > -50),
    "whole": cz.sum("n"),
    "money": cz.sum("paid"),
    "low": cz.min("v"),
    "high": cz.max("n"),
}


def clicks(seed: int, count: int = 1500) -> pa.Table:
    """Rows of few keys, some without one, some late; some values are odd."""
    random = np.random.default_rng(seed)
    keys = [None if k == 3 else int(k) for k in random.integers(0, 9, count)]
    values = random.normal(0, 1, count) * 10.0 ** random.integers(-9, 9, count)
    odd = random.integers(0, 3 * len(ODD), count)
    return pa.table(
        {
            "ts": np.sort(random.integers(0, 200, count)) + random.integers(-9, 1, count),
            "small": random.integers(0, 5, count),
            "k": pa.array(keys, pa.int32()),
            "name": pa.array([None if k is None else f"n{k}" for k in keys]),
            "f": pa.array([0.0 if k in (0, 1) else -0.0 if k == 2 else 1.5 for k in keys]),
            "v": pa.array([ODD[o] if o < len(ODD) else v for o, v in zip(odd, values, strict=True)]),
            "n": random.integers(-100, 100, count),
            "paid": pa.array([Decimal(int(n)) / 100 for n in random.integers(-999, 999, count)]),
        }
    )


def rows_of(seed: int, batch: int) -> Stream:
    return cz.from_arrow(clicks(seed), time="ts", punctuate=cz.delay(5), batch_size=batch)


BUILDS: dict[str, Any] = {
    "hopping": lambda a: a.group_by("small").hopping(30, every=10).agg(**EVERY),
    "hopping by a key that may be null": lambda a: (
        a.group_by("k").hopping(20, every=7, offset=3).agg(**EVERY)
    ),
    "hopping over more panes than fit": lambda a: a.group_by("small").hopping(9, every=2).agg(**EVERY),
    "hopping by texts": lambda a: a.group_by("name").hopping(30, every=10).agg(**EVERY),
    "hopping by doubles": lambda a: a.group_by("f").hopping(30, every=10).agg(**EVERY),
    "tumbling": lambda a: a.group_by("small").tumbling(10).agg(**EVERY),
    "tumbling by two keys": lambda a: a.group_by("name", "small").tumbling(25).agg(**EVERY),
    "behind steps that compute the key": lambda a: (
        a.where(col("n") > -90).select("v", "n", "paid", k=col("n") % 4)
        .group_by("k").tumbling(9).agg(**EVERY)
    ),
    "counted": lambda a: a.where(col("small") != 1).group_by("small").tumbling(10).agg(n=cz.count()),
    "counted, hopping": lambda a: (
        a.where(col("n") > 0).group_by("small").hopping(9, every=2).agg(n=cz.count())
    ),
    "a window behind it": lambda a: (
        a.group_by("small", "k").hopping(20, every=10).agg(t=cz.sum("v"))
        .group_by("small").tumbling(40).agg(m=cz.max("t"))
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealing, "LEAST", 16)
    monkeypatch.setattr(dealing, "MANY", 0)
    monkeypatch.setattr(panes, "PLACED", 32)
    monkeypatch.setattr(dealt_slots, "BLOCK", 48)


@pytest.fixture
def dealt(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether rows were dealt, round by round."""
    noted: list[bool] = []
    deals = Dealer.deals

    def note(self: Dealer, items: Any) -> bool:
        noted.append(deals(self, items))
        return noted[-1]

    monkeypatch.setattr(Dealer, "deals", note)
    return noted


def late_rows(late: dict[str, pa.Table]) -> Counter[str]:
    return Counter(f"{name} {row}" for name, table in late.items() for row in table.to_pylist())


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.thin(3)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", BUILDS)
def test_rows_in_any_bucket_give_what_one_thread_gives(name: str, threads: int, dealt: list[bool]) -> None:
    for seed, batch in enumerate((700, 1500)):
        stream = BUILDS[name](rows_of(seed, batch))
        one = stream.run(output="final")
        query = stream.query(output="final", threads=threads)
        while query.step():
            pass
        assert in_order(query.table()) == in_order(one.table())
        assert late_rows(query.late()) == late_rows(one.late)
        for step, counters in one.counters.items():
            other = query.counters()[step]
            assert (counters.rows_in, counters.rows_out) == (other.rows_in, other.rows_out)
            assert counters.state_rows == other.state_rows
    assert any(dealt)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hopping", "tumbling", "hopping by texts"])
def test_rounds_that_are_dealt_and_rounds_by_key_give_one_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = iter(range(10**6))
    monkeypatch.setattr(Dealer, "deals", lambda self, items: next(turn) % 3 != 1)
    for seed in range(3):
        stream = BUILDS[name](rows_of(seed, 100))
        query = stream.query(output="final", threads=2)
        while query.step():
            pass
        assert in_order(query.table()) == in_order(stream.run(output="final").table())


def operators(stream: Stream) -> tuple[Any, Any]:
    node = next(n for n in walk(stream.node) if isinstance(n, Tumbling))
    made = node.operator(), node.operator()
    for one in made:
        one.keep_pace("watermark")
    return made


@pytest.mark.parametrize("name", ["hopping", "tumbling", "hopping by texts"])
def test_windows_of_several_pages_are_taken_over_at_once(name: str) -> None:
    one, other = operators(BUILDS[name](rows_of(0, 500)))
    table = clicks(1)
    le = table.column("ts").to_numpy()
    batch = table.combine_chunks().to_batches()[0].select(one.node.inputs[0].schema.names)
    pages = [Page(le, le + 1, batch).slice(start, 300) for start in (0, 300, 600, 900)]
    windows = dealt_windows(other)
    assert windows is not None
    for some in (pages[:3], pages[3:]):
        windows.clear()
        windows.swap()
        for page in some:
            assert [*one.page(0, page), *other.page(0, page)] == []
        windows.swap()
        windows.take_over(windows, np.arange(windows.keys().num_rows))
    left = [History.of(some.punctuation(0, cti(INFINITY)), one.schema) for some in (one, other)]
    assert len(left[0]) > 0 and left[0] == left[1]


@pytest.mark.parametrize("kind", ["whole", "text"])
def test_keys_that_go_and_come_back_find_their_groups_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dealt_slots, "FEW", 4)
    numbered: set[tuple[int, int]] = set()
    learn = OwnGroups.learn

    def note(self: OwnGroups, keys: Any) -> None:
        learn(self, keys)
        numbered.add(self._numbering)

    monkeypatch.setattr(OwnGroups, "learn", note)
    random = np.random.default_rng(8)
    ts = np.arange(4000)
    key = random.integers(0, np.where(ts // 400 % 2, 2, 60))  # many, few, many
    keys = pa.array(key) if kind == "whole" else pa.array([f"k{k}" for k in key])
    table = pa.table({"ts": ts, "k": keys, "v": random.random(4000)})
    rows = cz.from_arrow(table, time="ts", punctuate=cz.delay(5), batch_size=200)
    stream = rows.group_by("k").hopping(100, every=50).agg(m=cz.avg("v"), n=cz.count())
    query, one = stream.query(output="final", threads=2), stream.query(output="final")
    while query.step():
        one.step()
        assert query.state_rows == one.state_rows
    one.run()
    assert in_order(query.table()) == in_order(one.table())
    assert all(len({pair[n] for pair in numbered}) > 2 for n in (0, 1))  # anew, here and there


def is_dealt(stream: Stream, *, final: bool = True) -> bool:
    plan = spread(prune({"out": delivered(stream.node, "final")}), 2, final=final)
    return plan is not None and plan.dealt is not None


def test_rows_come_by_their_keys_where_windows_do_not_merge() -> None:
    rows = rows_of(0, 500)
    keyed = rows.group_by("small")
    assert is_dealt(keyed.tumbling(5).agg(n=cz.count()))
    assert not is_dealt(keyed.tumbling(5).agg(n=cz.count()), final=False)
    assert not is_dealt(keyed.tumbling(5).agg(m=cz.median("v")))
    assert not is_dealt(keyed.totals(n=cz.count()))
    intervals = cz.from_rows([{"a": 1, "b": None, "k": 1}], time="a", end="b")
    assert not is_dealt(intervals.group_by("k").tumbling(5).agg(n=cz.count()))


@pytest.mark.parametrize("keys", [8, 3000])
def test_rows_are_dealt_only_where_keys_are_few(
    keys: int, monkeypatch: pytest.MonkeyPatch, dealt: list[bool]
) -> None:
    monkeypatch.setattr(dealing, "MANY", 12)
    random = np.random.default_rng(2)
    table = pa.table({"ts": range(6000), "k": random.integers(0, keys, 6000), "v": random.random(6000)})
    rows = cz.from_arrow(table, time="ts", batch_size=2000)
    stream = rows.group_by("k").hopping(4000, every=2000).agg(m=cz.avg("v"))
    query = stream.query(output="final", threads=2)
    while query.step():
        pass
    assert dealt[0] is (keys == 8)
    assert in_order(query.table()) == in_order(stream.run(output="final").table())


def test_blocks_whose_keys_and_panes_are_new_begin_the_page_again() -> None:
    one, other = operators(BUILDS["hopping"](rows_of(0, 500)))
    windows = dealt_windows(other)
    assert windows is not None
    random = np.random.default_rng(7)
    schema = one.node.inputs[0].schema
    rows = clicks(1, 600).combine_chunks().to_batches()[0].select(schema.names)
    for small, le in (
        (np.repeat(np.arange(6), 100), np.arange(600) // 20),  # new keys in every other block
        (random.integers(0, 6, 600), np.arange(600)),  # panes, for which room is made
        (random.integers(0, 3000, 600), np.sort(random.integers(600, 640, 600))),
    ):
        at = schema.get_field_index("small")
        page = Page(le, le + 1, rows.set_column(at, "small", pa.array(small)))
        windows.clear()
        windows.swap()
        assert [*one.page(0, page), *other.page(0, page)] == []
        windows.swap()
        windows.take_over(windows, np.arange(windows.keys().num_rows))
    left = [History.of(some.punctuation(0, cti(INFINITY)), one.schema) for some in (one, other)]
    assert len(left[0]) > 0 and left[0] == left[1]
