"""The first rows of groups: larger groups than laws draw, and what users see."""

from __future__ import annotations

import random
from typing import Any

import law_cases  # noqa: F401  (registers the cases)
import pyarrow as pa
import pytest
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.events.delta import fold
from caesura.events.history import History
from caesura.events.page import NO_NEW_END, Page, concat
from caesura.ops.input import Input
from caesura.ops.top import Order, Rank, Top, physical
from caesura.plan import Operator, Properties, walk
from caesura.plan.prune import prune
from caesura.punctuation import INFINITY, Pattern, Punctuation
from caesura.testing import oracles
from caesura.testing.case import LawCase, cases
from caesura.testing.laws import check_laws

CASES = [c for c in cases() if str(c).startswith("top")]


@pytest.mark.thin(4)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_large_groups_obey_the_laws(case: LawCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups count as large from their first row on: the best rows are looked for, and more if need be."""
    monkeypatch.setattr(physical, "FEW_ROWS", 0)

    @settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check_laws(case, data, kinds=case.kinds()[-1])

    holds()


SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64())])
ODD = [None, -0.0, 0.0, float("nan"), float("inf"), -float("inf")]


def page(changes: list[tuple[int, int, int, int, float | None]]) -> Page:
    """Changes as (LE, RE, new RE or NO_NEW_END, key, value)."""
    le, re, new, k, v = zip(*changes, strict=True)
    return Page.of(pa.record_batch([k, v], schema=SCHEMA), le=le, re=re, re_new=new)


def course(seed: int, *, retracts: bool) -> tuple[list[Page], list[Any]]:
    """Pages of rows that come, lose their ends or go; and the rows that are left."""
    draw = random.Random(seed)
    live: list[tuple[int, int, int, float | None]] = []
    pages = []
    for turn in range(12):
        changes = []
        for _ in range(draw.choice((1, 10, 60))):
            if retracts and live and draw.random() < 0.4:
                le, re, k, v = live.pop(draw.randrange(len(live)))
                new = draw.choice((le, le + 1, re + 5 if re != INFINITY else le + 70))
                changes.append((le, re, new, k, v))
                live += [(le, new, k, v)] if new > le else []
                continue
            le = turn * 20 + draw.randrange(-30, 20)
            re = draw.choice((INFINITY, INFINITY, le + draw.randrange(1, 90)))
            v = draw.choice(ODD) if draw.random() < 0.2 else float(draw.randrange(300))
            live.append((le, re, draw.randrange(2), v))
            changes.append((le, re, NO_NEW_END, *live[-1][2:]))
        pages.append(page(changes))
    return pages, [(le, re, {"k": k, "v": v}) for le, re, k, v in live]


@pytest.mark.parametrize("retracts", [True, False])
@pytest.mark.parametrize("ranks", [(), ("row_number", "rank")])
def test_groups_of_hundreds_of_rows(ranks: tuple[Rank, ...], retracts: bool) -> None:
    for seed in range(examples(4)):
        pages, left = course(seed, retracts=retracts)
        source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=not retracts))
        named = tuple((kind, kind) for kind in ranks)
        node = Top(inputs=(source,), group=("k",), order=(Order(col("v")),), n=3, ranks=named)
        operator = node.operator()
        out = [item for given in pages for item in operator.page(0, given) if isinstance(item, Page)]
        found, unmatched = fold(concat(out, node.schema))
        wanted = oracles.top(left, 3, [(lambda row: row[2]["v"], True)], group=("k",), ranks=named)
        assert not unmatched.any()
        plain = [(le, re, tuple(p.values())) for le, re, p in wanted]
        assert History(found) == History.from_rows(plain, node.schema), seed


@pytest.mark.parametrize("few", [physical.FEW_ROWS, 2])
def test_the_best_rows_of_a_past_instant_are_found_behind_better_ones_that_came_later(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(physical, "FEW_ROWS", few)
    for seed in range(examples(3)):
        draw = random.Random(seed)
        rows = [(t, INFINITY, NO_NEW_END, 0, float(t // 3)) for t in range(400)]
        draw.shuffle(rows)
        source = Input(label="in", payload=SCHEMA)
        node = Top(inputs=(source,), order=(Order(col("v")),), n=3)
        operator = node.operator()
        out = [item for at in range(0, 400, 37) for item in operator.page(0, page(rows[at : at + 37]))]
        found, _ = fold(concat([item for item in out if isinstance(item, Page)], node.schema))
        left = [(le, re, {"k": k, "v": v}) for le, re, _, k, v in rows]
        wanted = oracles.top(left, 3, [(lambda row: row[2]["v"], True)])
        plain = [(le, re, tuple(p.values())) for le, re, p in wanted]
        assert History(found) == History.from_rows(plain, node.schema), seed


def beginnings(seed: int, late: float) -> tuple[list[Page], list[Any]]:
    """Pages of rows that only begin, most pages in order of time; and all rows. Some rows are alike."""
    draw = random.Random(seed)
    pages, rows = [], []
    for turn in range(25):
        early = 30 if draw.random() < late else 0
        changes = []
        for _ in range(draw.choice((1, 4, 40))):
            le = turn * 20 + draw.randrange(-early, 20)
            v = draw.choice(ODD) if draw.random() < late / 20 else float(draw.randrange(200))
            changes.append((le, INFINITY, NO_NEW_END, draw.randrange(5), v))
        changes += changes[:1] if draw.random() < late else []
        pages.append(page(changes))
        rows += [(le, re, {"k": k, "v": v}) for le, re, _, k, v in changes]
    return pages, rows


@pytest.mark.parametrize("late", [0.0, 0.2])
@pytest.mark.parametrize("ranks", [(), ("row_number",)])
def test_rows_that_only_begin_are_taken_in_one_pass_or_followed_again(
    ranks: tuple[Rank, ...], late: float
) -> None:
    named = tuple((kind, kind) for kind in ranks)
    source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=True, endless=True))
    node = Top(inputs=(source,), group=("k",), order=(Order(col("v")),), n=3, ranks=named)
    for seed in range(examples(6)):
        pages, rows = beginnings(seed, late)
        operator, saved = node.operator(), {}
        out = []
        for turn, fresh in enumerate(pages):
            out += operator.page(0, fresh)
            if turn % 3 == 2:
                operator.punctuation(0, Punctuation(Pattern.before(turn * 20 - 40)))
            if turn % 7 == 6:
                operator = restored(operator, node.operator(), saved)
        found, unmatched = fold(concat([item for item in out if isinstance(item, Page)], node.schema))
        wanted = oracles.top(rows, 3, [(lambda row: row[2]["v"], True)], group=("k",), ranks=named)
        plain = [(le, re, tuple(p.values())) for le, re, p in wanted]
        assert not unmatched.any()
        assert History(found) == History.from_rows(plain, node.schema), seed


def restored(old: Operator, new: Operator, saved: dict[str, dict[str, bytes]]) -> Operator:
    """A new operator with the state of an old one; ``saved`` has its chunks by state."""
    new.secret.become(old.secret)
    for name, state in new.states().items():
        chunks = saved.get(name, {}) | old.states()[name].snapshot()
        saved[name] = {key: data for key, data in chunks.items() if data is not None}
        state.restore(saved[name])
    new.remember(old.meta())
    new.rebuild()
    return new


def ties(seed: int, size: int) -> list[Page]:
    """Pages in order of time of rows that only begin, many of them together; values are few, or null."""
    draw = random.Random(seed)
    rows = {
        (t // 4, draw.randrange(3), draw.choice((None, 1.0, 2.0, float("nan"))), str(draw.randrange(9)))
        for t in range(400)
    }
    changes = sorted(rows, key=lambda row: (row[0], draw.random()))
    schema = SCHEMA.append(pa.field("s", pa.string()))
    pages = []
    for at in range(0, len(changes), size):
        le, k, v, s = zip(*changes[at : at + size], strict=True)
        pages.append(Page.of(pa.record_batch([k, v, s], schema=schema), le=le, re=[INFINITY] * len(le)))
    return pages


@pytest.mark.slow
@pytest.mark.thin(3)
@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize(("ranks", "n"), [((), 1), ((), 3), (("row_number",), 3)])
def test_the_pass_in_order_is_the_general_one_for_ties_and_nulls(
    size: int, n: int, ranks: tuple[Rank, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[Page | None] = []
    for seed in range(examples(2, short=1)):
        pages = ties(seed, size)
        source = Input(label="in", payload=pages[0].schema, known=Properties(insert_only=True, endless=True))
        named = tuple((kind, kind) for kind in ranks)
        node = Top(inputs=(source,), group=("k",), order=(Order(col("v")),), n=n, ranks=named)
        found = []
        for instead in (lambda *_: None, noted(physical.TopOperator._run, changes)):
            with monkeypatch.context() as patch:
                patch.setattr(physical.TopOperator, "_run", instead)
                found.append(sent_by(node, pages))
        assert found[0] == found[1], seed
    assert any(change is not None for change in changes)


def noted(run: Any, into: list[Page | None]) -> Any:
    """A pass in order, with what it gave noted: a tie with a row that is not kept is looked at again."""

    def call(*given: Any) -> Page | None:
        into.append(run(*given))
        return into[-1]

    return call


def sent_by(node: Top, pages: list[Page]) -> History:
    """What an operator sends of pages, with punctuation on the way and restarts in between."""
    operator, saved, out = node.operator(), {}, []
    for turn, fresh in enumerate(pages):
        out += operator.page(0, fresh)
        if turn % 3 == 2:
            operator.punctuation(0, Punctuation(Pattern.before(int(fresh.le[-1]) - turn % 4)))
        if turn % 5 == 4:
            operator = restored(operator, node.operator(), saved)
    return History.of(out, node.schema)


def test_what_ended_before_a_cti_is_not_kept_and_later_ends_are_kept_when_somebody_asks() -> None:
    source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=True, endless=True))
    operator = Top(inputs=(source,), order=(Order(col("v")),), n=1).operator()
    operator.page(0, page([(t, INFINITY, NO_NEW_END, 0, float(t)) for t in range(100)]))
    operator.punctuation(0, Punctuation(Pattern.before(90)))
    assert operator.measure().state_rows == 2 * 11  # nine of ten rows ended, and the one that is shown
    operator.page(0, page([(95, INFINITY, NO_NEW_END, 0, 1000.0)]))
    sent = operator.states()["sent"]
    assert sorted(sent.get("re")[sent.alive])[-2:] == [95, INFINITY]


def test_rows_in_order_are_taken_without_a_look_at_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(physical.TopOperator, "_changed")
    rows = [{"t": t, "k": t % 3, "v": t * 7919 % 1000, "s": f"text {t}"} for t in range(300)]
    stream = cz.from_rows(rows, time="t", punctuate=cz.every(50)).forever()
    found = stream.group_by("k").top(1, by="v").run(output="final").table().to_pylist()
    best = {k: max((r for r in rows if r["k"] == k), key=lambda r: r["v"])["s"] for k in range(3)}
    assert {r["k"]: r["s"] for r in found if r["RE"] is None} == best


def test_rows_that_stay_are_forgotten_unless_they_are_among_the_first() -> None:
    rows = [{"t": t, "k": t % 3, "v": float(t * 7919 % 1000)} for t in range(3000)]
    stream = cz.from_rows(rows, time="t", punctuate=cz.every(50)).set_duration(cz.INFINITY)
    query = stream.group_by("k").top(2, by="v").query()
    query.run()
    assert query.counters()["top"].state_rows < 60


def windows(seed: int) -> cz.Stream:
    """Counts in windows, of which many are equal; rows of a group begin together or not."""
    draw = random.Random(seed)
    rows = [{"t": draw.randrange(60), "id": draw.randrange(9), "n": draw.randrange(4)} for _ in range(80)]
    counts = cz.from_rows(rows, time="t", punctuate=cz.delay(60)).group_by("id").tumbling(10)
    return (
        counts.agg(n=cz.count())
        .set_duration(7 if seed % 2 else 10)
        .with_columns(w=cz.start() % (20 if seed % 3 else 60))
    )


PLACES: dict[str, tuple[Any, Any]] = {
    "rank": (col("place") == 1, lambda row: row["place"] == 1),
    "rank up to 2": (col("place") <= 2, lambda row: row["place"] <= 2),
    "rank and more": ((col("place") < 2) & (col("n") > 1), lambda row: row["place"] < 2 and row["n"] > 1),
    "dense_rank": (col("place").isin(1, 3), lambda row: row["place"] in (1, 3)),
    "row_number": (col("place") <= 2, lambda row: row["place"] <= 2),
}


@pytest.mark.parametrize("output", ["changes", "final"])
@pytest.mark.parametrize("place", PLACES)
def test_a_filter_of_ranks_leaves_what_it_leaves_of_all_of_them(place: str, output: Any) -> None:
    said, holds = PLACES[place]
    kind: Any = place.split()[0]
    for seed in range(examples(6)):
        ranked = windows(seed).group_by("w").rank(by="n", **{kind: "place"})
        wanted = [tuple(row.values()) for row in ranked.run().table().to_pylist() if holds(row)]
        found = [tuple(row.values()) for row in ranked.where(said).run(output=output).table().to_pylist()]
        assert sorted(found) == sorted(wanted), seed


def first_in(stream: cz.Stream) -> Top:
    return next(n for n in walk(*prune({"out": stream.node}).values()) if isinstance(n, Top))


def test_ranks_behind_the_greatest_that_a_filter_passes_are_not_shown() -> None:
    ranked = windows(0).group_by("w").rank(by="n", rank="place", row_number="number")
    assert first_in(ranked.where(col("place") == 1)).up_to == ("place", 1)
    assert first_in(ranked.where((col("place") < 3) & (col("n") > 1))).up_to == ("place", 2)
    assert first_in(ranked.where(col("number") <= 2)).n == 2
    for said in (
        col("place") >= 1,
        col("place").is_null() | (col("place") == 1),
        col("n") == 1,
        col("place") < 1,
    ):
        top = first_in(ranked.where(said))
        assert (top.n, top.up_to) == (None, None)
    best = ranked.where(col("place") == 1)
    assert first_in(ranked.union(best)).up_to is None, "another reads all ranks"
    assert "place up to 1" in first_in(best).describe()
