"""The paper's examples on small streams, drawn in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
import paper_queries as paper
import pyarrow as pa

from caesura import qre
from caesura.expr import col
from caesura.ops.input import Input
from caesura.qre.engine.evaluation import evaluate
from caesura.qre.language.query import Query
from caesura.qre.reference.oracle import UNDEFINED, denote

B, M, E, D = paper.BEGIN, paper.MEASURE, paper.END, paper.DAY


def answers(query: Query, rows: list[dict[str, Any]]) -> list[Any]:
    """The values where there are any; the denotation must say the same."""
    assert query.items is not None
    schema = pa.schema([pa.field(f.name, f.type) for f in query.items.schema])
    batch = pa.RecordBatch.from_pylist(rows, schema)
    got = evaluate(query, batch)
    assert got == denote(query, batch) == evaluate(query, batch, kernel="twin")
    return [v for v in got if v is not UNDEFINED]


def patient(word: str) -> list[dict[str, Any]]:
    """`B 2 4 E D` as events; numbers are measurements."""
    marks = {"B": B, "E": E, "D": D}
    return [
        {"kind": marks[w], "value": 0.0} if w in marks else {"kind": M, "value": float(w)}
        for w in word.split()
    ]


def patients(word: str) -> list[dict[str, Any]]:
    """`1:B 1:4 D` as events of several patients."""
    out = []
    for token in word.split():
        who, _, what = token.rpartition(":")
        out.append({**patient(what)[0], "patient": int(who) if who else None})
    return out


def test_the_daily_maximum_of_the_episodes_averages() -> None:
    word = "B 2 4 E B 10 E D B 1 E D D"
    assert answers(paper.daily_maximum(paper.patient_items()), patient(word)) == [10.0, 1.0, None]


def test_patients_with_two_critical_days() -> None:
    word = "1:B 1:9 1:E 2:B 2:1 2:E D 1:B 1:8 1:E 2:B 2:9 2:E D 2:B 2:7 2:E D"
    assert answers(paper.critical_patients(paper.patients_items(), 5.0), patients(word)) == [
        {1: 8.0},
        {2: 7.0},
    ]


def test_the_average_of_the_piecewise_linear_interpolation() -> None:
    query = paper.interpolated(paper.patient_items(), col("value"))
    assert answers(query, patient("B 1 3 7 E")) == [4.0]


def test_good_and_bad_days() -> None:
    word = "1 2 D 1 9 3 D"
    assert answers(paper.good_and_bad_days(paper.patient_items(), 5.0), patient(word)) == [2.0, -7.0]


def test_the_average_after_the_last_extreme_measurement() -> None:
    query = paper.after_the_last_extreme(paper.patient_items(), 5.0)
    assert answers(query, patient("B 9 1 8 2 4 E")) == [3.0]
    assert answers(query, patient("B 1 2 E")) == []


def test_output_every_other_day() -> None:
    word = "1:1 D 1:1 2:1 D D 2:3 D"
    assert answers(paper.every_other_day(paper.patients_items()), patients(word)) == [{1: 2, 2: 1}, {2: 1}]


def test_runs_of_increasing_numbers_by_composition() -> None:
    query = paper.increasing(paper.patient_items(), "value")
    assert answers(query, patient("1 2 5 3 4")) == [1, 2, 3, 1, 2]


def test_p6_the_median_of_the_measurements_per_day() -> None:
    word = "1 1 1 D 1 D 1 1 D"
    assert answers(paper.p6(paper.patient_items()), patient(word)) == [3.0, 1.0, 2.0]


def test_p7_atypical_measurements_in_the_last_events() -> None:
    assert answers(paper.p7(paper.patient_items(), 3, 5.0), patient("9 1 9 9 1 1")) == [1, 1, 2, 2, 2, 1]


def auctions(word: str) -> list[dict[str, Any]]:
    """`I1:100 B1:5 C1` as events; the category is the item's number modulo 2."""
    kinds = {"I": paper.ITEM, "B": paper.BID, "C": paper.CLOSE, "P": paper.PERSON}
    out = []
    for token in word.split():
        item, _, price = token[1:].partition(":")
        number = int(item)
        out.append(
            {"kind": kinds[token[0]], "item": number, "price": float(price or 0), "category": number % 2}
        )
    return out


WORD = "I1:100 I2:10 P0 B1:5 B2:1 C1 I3:20 B2:2 C2 C3"


def test_n1_open_auctions() -> None:
    assert answers(paper.n1(paper.auction_items()), auctions(WORD)) == [1, 2, 1, 2, 1, 0]


def test_n2_the_average_closing_price() -> None:
    assert answers(paper.n2(paper.auction_items()), auctions(WORD)) == [
        105.0,
        59.0,
        (105.0 + 13.0 + 20.0) / 3,
    ]


def test_n3_the_average_closing_price_per_category() -> None:
    assert answers(paper.n3(paper.auction_items()), auctions(WORD)) == [105.0, 13.0, 62.5]


def ticked(rows: list[dict[str, Any]], at: set[int]) -> list[dict[str, Any]]:
    tick = {**dict.fromkeys(rows[0]), "tick": True}
    out = []
    for i, row in enumerate(rows):
        out += [{**row, "tick": False}] + ([tick] if i + 1 in at else [])
    return out


def test_n4_the_highest_current_bid_of_each_period() -> None:
    rows = ticked(auctions("I1:100 I2:10 B2:1 B2:2 B1:3"), {3, 4, 5})
    assert answers(paper.n4(paper.auction_items()), rows) == [100.0, 13.0, 103.0]


def test_n5_the_item_with_the_most_bids_in_the_last_periods() -> None:
    rows = ticked(auctions("I1:1 B1:1 B1:1 I2:1 B2:1 B2:1 B1:1 B2:1"), {3, 6, 8})
    got = answers(paper.n5(paper.auction_items(), 2), rows)
    assert got == [{"key": 1, "value": 2}, {"key": 1, "value": 2}, {"key": 2, "value": 3}]


def ads(word: str) -> list[dict[str, Any]]:
    """`V:ad:user` and `P:ad:user`; an ad's campaign is ad // 10."""
    kinds = {"V": paper.VIEW, "K": paper.CLICK, "P": paper.PURCHASE}
    parts = [token.split(":") for token in word.split()]
    return [{"kind": kinds[k], "ad": int(a), "campaign": int(a) // 10, "user": int(u)} for k, a, u in parts]


def test_y1_views_per_campaign_and_second() -> None:
    rows = ticked(ads("V:1:1 V:12:1 V:2:1 K:2:1 V:11:2"), {4, 5})
    got = answers(paper.y1(paper.ad_items()), rows)
    assert got == [{0: {"views": 2}, 1: {"views": 1}}, {1: {"views": 1}}]


def test_y2_users_who_purchase_after_viewing_count_once() -> None:
    word = "P:1:1 V:1:1 P:1:1 P:1:1 V:2:1 P:2:1 V:2:2 P:2:2"
    got = answers(paper.y2_scores(paper.ad_items()), ads(word))
    assert got == [{"ad": 1, "score": 1}, {"ad": 1, "score": 1}, {"ad": 2, "score": 2}]
    source = Input(label="in", payload=paper.ad_items().schema)
    scores = qre.over(source, paper.y2_scores(paper.ad_items()))
    best = qre.over(
        scores, paper.latest_per_key(qre.items(scores.schema), "campaign", "ad", "score"), ticks_every=10
    )
    assert best.schema.names == ["campaign", "ad", "score"]


def test_built_in_folds_agree_with_numpy() -> None:
    of = qre.items(pa.schema([("x", pa.float64()), ("y", pa.float64())]))
    x, y = np.arange(6.0), np.array([1.0, 3.0, 2.0, 5.0, 7.0, 6.0])
    batch = pa.record_batch({"x": x, "y": y})

    def last(fold: qre.Fold, op: Any) -> Any:
        return evaluate(qre.iter1(qre.atom(op=op, items=of), fold), batch)[-1]

    both = {"x": col("x"), "y": col("y")}
    slope, intercept = np.polyfit(x, y, 1)
    line = last(qre.linreg("x", "y"), both)
    assert np.allclose([line["slope"], line["intercept"]], [slope, intercept])
    assert np.isclose(last(qre.stddev(), col("y")), y.std()) and np.isclose(
        last(qre.avg(), col("y")), y.mean()
    )
    assert np.isclose(last(qre.discounted(0.5), col("y")), (y * 0.5 ** np.arange(6)).sum())
    area = np.trapezoid(y, x) / (x[-1] - x[0])
    assert np.isclose(last(qre.interpolated_avg("x", "y"), both), area)
