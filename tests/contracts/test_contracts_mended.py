"""A plan that is shown mended, and bounds in bytes, on streams and in the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura import Stream
from caesura.cli import app
from caesura.contracts import check
from caesura.contracts.orders import orders
from caesura.errors import CaesuraError
from caesura.events import Page
from caesura.ops.aggregate import Aggregate, Totals
from caesura.ops.input import Input
from caesura.ops.join import Join
from caesura.plan import Node
from caesura.punctuation import Pattern, Punctuation
from caesura.runtime import Query


def sessions() -> Stream:
    rows = [{"ts": t, "id": t % 3} for t in range(50)]
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(5)).group_by("id").session(4).agg(n=cz.count())


def test_an_unsafe_plan_is_shown_mended_and_the_mended_plan_is_safe_and_runs() -> None:
    verdict = sessions().check(fix=True)
    assert not verdict.safe and verdict.mended is not None and verdict.mended.safe
    assert "Mended (cut sessions" in str(verdict) and "r1 := session" in str(verdict)
    mended = Stream(verdict.mended.plan)
    assert mended.check().safe and len(mended.run().history) > 0
    assert sessions().check().mended is None


def test_bounds_count_bytes_where_the_width_of_every_column_is_known() -> None:
    rows = [{"ts": t, "id": t % 3, "name": "x"} for t in range(5)]
    read = cz.from_rows(rows, time="ts", punctuate=cz.delay(5))
    rates = {"read": (10, 5, 5)}
    bound = read.select("id").distinct().bounds(rates)[-1]
    assert bound.bytes == bound.rows * (64 + 8)
    assert read.distinct().bounds(rates)[-1].bytes is None
    wide = read.distinct().bounds(rates, widths={"name": 20})[-1]
    assert wide.bytes == wide.rows * (64 + 28)


def test_what_a_query_holds_stays_below_its_bounds() -> None:
    rows = [{"ts": t // 10, "id": t % 7} for t in range(2000)]
    stream = (
        cz.from_rows(rows, time="ts", punctuate=cz.delay(2), batch_size=10).tumbling(20).agg(n=cz.count())
    )
    rows_held = [bound.rows for bound in stream.bounds({"read": (10, 1, 4)})]
    query = stream.query(speculate="watermark")
    most = 0
    while query.step():
        most = max(most, query.state_rows)
    assert 0 < most <= sum(rows_held)


def test_the_command_line_takes_rates_and_shows_the_mended_plan(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(
        "import caesura as cz\n"
        "rows = [{'ts': t, 'id': t % 3} for t in range(50)]\n"
        "read = cz.from_rows(rows, time='ts', punctuate=cz.delay(5))\n"
        "fine = read.tumbling(10).agg(n=cz.count())\n"
        "grows = read.session(4).agg(n=cz.count())\n"
    )
    fine = CliRunner().invoke(app, ["check", f"{flow}:fine", "--rate", "read=1000/5/5"])
    assert fine.exit_code == 0 and "r1 tumbling: holds at most 24000 rows, about 2 MiB" in fine.output
    grows = CliRunner().invoke(app, ["check", f"{flow}:grows", "--fix"])
    assert grows.exit_code == 1 and "Mended (cut sessions" in grows.output
    wrong = CliRunner().invoke(app, ["check", f"{flow}:fine", "--rate", "read=often"])
    assert wrong.exit_code != 0 and "'read=often' is no rate of a source" in wrong.output


BY_ROW = {"l": "{[[a:#]], [[b:#]]}", "r": "{[[b:#]]}"}


def counted_by_a_left_column() -> Node:
    left, right = (
        Input(label=label, payload=pa.schema([(n, pa.int64()) for n in names]))
        for label, names in (("l", "ab"), ("r", "bc"))
    )
    pairs = Join(inputs=(left, right), on=(("b", "b"),))
    return Totals(inputs=(pairs,), group=("a",), aggregates=(("n", Aggregate("count")),))


def test_a_join_that_delays_closes_what_one_side_has_closed_and_is_chosen_as_a_remedy() -> None:
    verdict = check(counted_by_a_left_column(), schemes=BY_ROW, fix=True)
    assert not verdict.safe and verdict.mended is not None and verdict.mended.safe
    assert "inner on b; delays promises" in str(verdict)
    query = Query({"out": verdict.mended.plan})
    for label, items in DELAYED:
        for item in items:
            query.feed(label, item)
            query.run()
    closed = [item.pattern for item in query.take("out") if not isinstance(item, Page)]
    assert closed == [Pattern(a=7)]
    query.feed("l", Punctuation(Pattern(b=3)))
    query.run()
    assert query.state_rows == 0


def test_a_plain_join_gives_no_promise_on_one_side_s_column() -> None:
    query = Query({"out": counted_by_a_left_column()})
    for label, items in DELAYED:
        for item in items:
            query.feed(label, item)
    query.run()
    assert not any(p.pattern.attributes == {"a"} for p in query.take("out") if not isinstance(p, Page))


def one(**values: int) -> Page:
    rows = pa.RecordBatch.from_pylist([values])
    return Page.of(rows, le=[1], re=[100])


DELAYED: list[tuple[str, list[Page | Punctuation]]] = [
    ("l", [one(a=7, b=3), Punctuation(Pattern(a=7))]),
    ("r", [one(b=3, c=1), Punctuation(Pattern(b=3))]),
]


def test_joins_in_another_order_keep_the_order_of_columns() -> None:
    r, s, t = (
        Input(label=label, payload=pa.schema([(n, pa.int64()) for n in names]))
        for label, names in (("r", "ab"), ("s", "bc"), ("t", "bcd"))
    )
    late = Join(inputs=(r, t), on=(("b", "b"),))
    plan = Join(inputs=(late, s), on=(("b", "b"), ("c", "c")))
    found = [other for other, _ in orders(plan)]
    assert found and all(other.schema.names == plan.schema.names for other in found)


def test_a_join_that_delays_is_a_plain_inner_one() -> None:
    read = cz.from_rows([{"ts": 1, "id": 2}], time="ts")
    with pytest.raises(CaesuraError, match="a plain inner one"):
        read.join(read.select("id", w=cz.col("id") + 1), on="id", how="left", delays=True)


def test_the_command_line_takes_longest_lifetimes(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(
        "import caesura as cz\n"
        "rows = [{'ts': 1, 'until': 9, 'id': 3}]\n"
        "read = cz.from_rows(rows, time='ts', end='until', punctuate=cz.delay(5))\n"
        "spans = read.distinct()\n"
    )
    given = ["check", f"{flow}:spans", "--rate", "read=10/5/5"]
    unknown = CliRunner().invoke(app, given)
    assert unknown.exit_code != 0 and "nothing bounds the lifetimes of 'read'" in unknown.output
    known = CliRunner().invoke(app, [*given, "--lifetime", "read=8"])
    assert known.exit_code == 0 and "r1 distinct: holds at most" in known.output
    wrong = CliRunner().invoke(app, [*given, "--lifetime", "read"])
    assert wrong.exit_code != 0 and "'read' is no longest lifetime of a source" in wrong.output


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(CaesuraError, match="describes no stream"):
        sessions().bounds({"read": (0, 5, 5)})
