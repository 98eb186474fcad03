"""Tables with keys: what epochs put and delete makes what the history says; a second row of a key stops."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from cluster import Cluster
from depth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import CaesuraError, StreamError, col
from caesura.events import Page, parse
from caesura.events.identity import Secret
from caesura.io.sinks.current import TableLayout, for_current_tables, layout_of, net_change, net_items
from caesura.ops.input import Input
from caesura.ops.latest import Latest
from caesura.ops.lifetimes import Lifetime
from caesura.ops.upserts import Upserts
from caesura.plan import Properties
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.query.query import Query
from caesura.testing import oracles
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

LOG = InputSpec({"id": "key", "n": "int", "s": "str"}, key="id")


def plan(key: tuple[str, ...]) -> Upserts:
    rows = Input(label="a", payload=LOG.schema, known=LOG.known)
    rows = Lifetime(inputs=(rows,), rule="forever")
    return Upserts(inputs=(Latest(inputs=(rows,), group=("id",)),), key=key)


def epochs(node: Upserts, items: list[Any], random: Random) -> list[Epoch]:
    """The output of a plan, cut into epochs anywhere."""
    query = Query({"out": node})
    cut, some = [], []
    for item in items:
        query.feed("a", item)
        query.run()
        some += query.take("out")
        if random.random() < 0.4:
            cut.append(some)
            some = []
    return [Epoch(number, {"out": out}, {}, outputs={"out": node}) for number, out in enumerate([*cut, some])]


def text(rows: Any) -> list[str]:
    return sorted(str(sorted(row.items(), key=str)) for row in rows)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(streams(LOG), st.integers(0, 99), st.sampled_from((("id",), ("id", "LE"))))
def test_what_is_put_and_deleted_makes_the_table_that_the_history_says(stream, seed, key):
    rows, items = stream
    table: dict[tuple[Any, ...], dict[str, Any]] = {}
    node = plan(key)
    for epoch in epochs(node, items, Random(seed)):
        change = epoch.change()
        layout = layout_of(node)
        own, less = layout.key, net_change(net_items(epoch.items["out"], layout), layout)
        assert text(less.put.to_pylist()) == text(change.put.to_pylist())
        assert text(less.delete.to_pylist()) == text(change.delete.to_pylist())
        assert sum(less.fresh) == sum(change.fresh)
        assert all((tuple(k.values()) in table) != new for k, new in _known(change, own))
        for gone in change.delete.to_pylist():
            del table[tuple(gone[name] for name in own)]
        for row in change.put.to_pylist():
            table[tuple(row[name] for name in own)] = row
    expected = oracles.current(oracles.latest(oracles.forever(rows), ["id"], ()), key)
    assert text(table.values()) == text(expected)


def _known(change, key):
    return zip(change.put.select(list(key)).to_pylist(), change.fresh.tolist(), strict=True)


ONLY = InputSpec({"id": "key", "n": "int", "s": "str"}, key="id", insert_only=True)


@pytest.mark.parametrize("buckets", [1, 3])
@settings(max_examples=examples(15), deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=40)
)
def test_rows_that_others_replaced_need_not_reach_a_table(buckets, rows):
    plain = [{"t": at + late, "id": key, "v": v} for at, (late, key, v) in enumerate(rows)]
    stream = cz.from_rows(plain, time="t", punctuate=cz.delay(5), name="r", batch_size=7).latest("id")
    whole = {"out": stream.upserts("id").node}
    less = for_current_tables(whole)
    tables, late = [], []
    for outputs in (whole, less):
        layout = {"out:out": layout_of(outputs["out"])}
        cluster = Cluster(outputs, buckets, netted=layout, secret=Secret(bytes(Secret.SIZE)))
        source, table = cluster.stages.sources[0], {}
        for raw in source.read_between({}):
            cluster.epoch([(source, raw)])
            came, cluster.items["out"] = cluster.items["out"], []
            change = net_change(came, layout["out:out"])
            table = {k: row for k, row in table.items() if {"id": k} not in change.delete.to_pylist()}
            table |= {row["id"]: row for row in change.put.to_pylist()}
            tables.append(dict(table))
        late.append(sorted(str(b.to_pylist()) for some in cluster.late.values() for b in some))
    assert tables[: len(tables) // 2] == tables[len(tables) // 2 :] and late[0] == late[1]


def test_rows_that_others_replaced_go_on_where_somebody_reads_them():
    rows = Lifetime(inputs=(Input(label="a", payload=ONLY.schema, known=ONLY.known),), rule="forever")
    latest = Latest(inputs=(rows,), group=("id",))
    now, history = (Upserts(inputs=(latest,), key=key) for key in (("id",), ("id", "LE")))

    def wanted(outputs):
        steps = for_current_tables(outputs).values()
        return [node.inputs[0].wanted for node in steps if isinstance(node, Upserts)]

    assert wanted({"a": now}) == ["current"]
    assert wanted({"a": now, "b": Upserts(inputs=(latest,), key=("id", "n"))}) == ["current", "current"]
    assert wanted({"a": now, "b": history}) == ["history", "history"]
    assert wanted({"a": now, "b": latest}) == ["history"]
    assert wanted({"a": plan(("id",))}) == ["history"], "rows that may be taken back bring others to light"


def test_pages_that_wait_are_one_before_current_rows_are_taken_from_them():
    items = parse("""
     LE  RE  | id v |
     1   2   | 7  5 | +
    -- definite: time < 2 --
     2   3   | 7  6 | +
     3   4   | 8  6 | +
     """)
    page, promise, later = items
    rows = Input(label="a", payload=page.schema, known=Properties(insert_only=True))
    rows = Upserts(inputs=(Latest(inputs=(rows,), group=("id",)),), key=("id",))
    query = Query(for_current_tables({"out": rows}))
    for item in (page, page, promise, later.slice(0, 1), later.slice(1, 1)):
        query.feed("a", item)
    query.run()
    assert query.counters()["latest"].pages_in == 2
    assert net_change(query.take("out"), BY_ID).put.to_pylist() == [{"id": 7, "v": 6}, {"id": 8, "v": 6}]


KINDS = ("duckdb", "delta", "delta by n", "iceberg", "iceberg by s", "parquet", "parquet by s")


def sink_of(kind: str, path):
    by = kind.partition(" by ")[2] or ()
    match kind.split()[0]:
        case "duckdb":
            return cz.duckdb(path, 'now "x"')
        case "delta":
            return cz.delta(path, partition_by=by)
        case "parquet":
            return cz.parquet(path, partition_by=by)
    path.mkdir(exist_ok=True)
    about = {"type": "sql", "uri": f"sqlite:///{path}/c.db", "warehouse": f"file://{path}/w"}
    return cz.iceberg("db.now", catalog=about, partition_by=by)


def opened(path, node, query: str = "q", kind: str = "duckdb"):
    sink = sink_of(kind, path)
    sink.open({"out": node})
    sink.attach(query)
    return sink


def rows_of(sink, names: list[str]) -> list[dict[str, Any]]:
    found = sink.read_back()
    if isinstance(found, pa.Table):
        return found.to_pylist()
    return [dict(zip(names, row, strict=True)) for row in found]


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(2), deadline=None, suppress_health_check=list(HealthCheck))
@given(streams(LOG), st.integers(0, 99), st.sampled_from((("id",), ("id", "LE"))))
def test_a_table_is_what_the_history_says_whatever_runs_again(tmp_path_factory, kind, stream, seed, key):
    rows, items = stream
    random, node = Random(seed), plan(key)
    path = tmp_path_factory.mktemp("table") / "now.db"
    sink = opened(path, node, kind=kind)
    for epoch in epochs(node, items, random):
        assert sink.pending(epoch.number, ["out"])
        sink.take(epoch)
        if random.random() < 0.3:  # a start that runs its last epoch again
            sink = opened(path, node, kind=kind)
            assert not sink.pending(epoch.number, ["out"])
    expected = oracles.current(oracles.latest(oracles.forever(rows), ["id"], ()), key)
    assert text(rows_of(sink, layout_of(node).schema.names)) == text(expected)


TWO = parse("""
 LE  RE  | id v |
 1   inf | 7  5 | +
 2   inf | 7  6 | +
""")
ONE, OTHER = parse("""
 LE  RE  | id v |
 1   inf | 7  5 | +
-- definite: time < 2 --
 2   inf | 7  6 | +
""")[::2]
BY_ID = TableLayout(TWO[0].schema, pa.int64(), ("id",), history=False)


def test_two_rows_of_a_key_in_an_epoch_are_refused_with_the_rows():
    with pytest.raises(StreamError, match=r"two rows have one key \(id\).*id 7, v 5; id 7, v 6"):
        net_change(TWO, BY_ID)


@pytest.mark.parametrize("kind", ["duckdb", "delta", "iceberg", "parquet"])
def test_a_row_whose_key_is_in_the_table_already_stops_the_epoch(tmp_path, kind):
    node = Upserts(inputs=(Input(label="a", payload=TWO[0].schema),), key=("id",))
    sink = opened(tmp_path / "now.db", node, kind=kind)
    sink.take(Epoch(0, {"out": [ONE]}, {}, outputs={"out": node}))
    with pytest.raises(StreamError, match=r"two rows have one key \(id\).*v 5"):
        sink.take(Epoch(1, {"out": [OTHER]}, {}, outputs={"out": node}))
    assert sink.last_epoch() == 0 and rows_of(sink, ["id", "v"]) == [{"id": 7, "v": 5}]


@pytest.mark.parametrize("kind", ["duckdb", "delta", "iceberg", "parquet"])
def test_a_start_that_was_taken_over_from_and_another_query_are_refused(tmp_path, kind):
    node = Upserts(inputs=(Input(label="a", payload=TWO[0].schema),), key=("id",))
    first = opened(tmp_path / "now.db", node, kind=kind)
    opened(tmp_path / "now.db", node, kind=kind)
    with pytest.raises(StreamError, match="another start of this query"):
        first.take(Epoch(0, {"out": [ONE]}, {}, outputs={"out": node}))
    assert rows_of(first, []) == []
    with pytest.raises(StreamError, match="another checkpoint"):
        opened(tmp_path / "now.db", node, query="other", kind=kind)


def test_an_empty_text_that_delta_would_take_for_null_stops_the_epoch(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    node = Upserts(inputs=(Input(label="a", payload=schema),), key=("id",))
    sink = cz.delta(tmp_path / "now", partition_by="s")
    sink.open({"out": node})
    sink.attach("q")
    page = Page.of(pa.RecordBatch.from_pylist([{"id": 1, "s": ""}], schema), le=[1], re=[cz.INFINITY])
    with pytest.raises(StreamError, match="empty text in 's'"):
        sink.take(Epoch(0, {"out": [page]}, {}, outputs={"out": node}))


def test_late_rows_are_kept_beside_the_table(tmp_path):
    node = Upserts(inputs=(Input(label="a", payload=TWO[0].schema),), key=("id",))
    sink = opened(tmp_path / "now.db", node)
    late = pa.RecordBatch.from_pylist([{"id": 3, "reason": "too late"}])
    sink.take(Epoch(4, {"out": []}, {"a": [late]}, outputs={"out": node}))
    with duckdb.connect(str(tmp_path / "now.db")) as connection:
        rows = connection.execute("SELECT epoch, source, content FROM caesura_late").fetchall()
    assert rows == [(4, "a", '{"id": 3, "reason": "too late"}')]


READINGS = [{"t": 1, "id": 7, "v": 5.0, "tags": ["a"]}]


def test_keys_that_tables_cannot_hold_are_refused_when_the_plan_is_made():
    rows = cz.from_rows(READINGS, time="t", punctuate=cz.delay(2))
    kept = rows.forever()
    for wrong, message in (
        (lambda: rows.upserts("id"), "end by themselves"),
        (lambda: kept.upserts([]), "without a key"),
        (lambda: kept.upserts("idd"), "Did you mean 'id'"),
        (lambda: kept.upserts("v"), "is double"),
        (lambda: kept.upserts("tags"), "is list"),
    ):
        with pytest.raises(CaesuraError, match=message):
            wrong()
    assert rows.upserts(["id", "LE"]).node.history
    assert kept.where(col("v") > 1).upserts("id").node.key == ("id",)


def test_a_plan_without_a_key_is_refused_by_a_table(tmp_path):
    node = cz.from_rows(READINGS, time="t", punctuate=cz.delay(2)).node
    with pytest.raises(CaesuraError, match="needs a key"):
        cz.duckdb(tmp_path / "now.db").open({"out": node})


def test_a_query_with_a_checkpoint_keeps_a_table(tmp_path):
    log = [{"t": t, "id": t % 3, "v": t} for t in range(9)]
    for known in (log[:5], log):
        rows = cz.from_rows(known, time="t", punctuate=cz.delay(0, closes=False), name="log", batch_size=2)
        query = (
            rows.latest(key="id")
            .upserts(key="id")
            .query(checkpoint=tmp_path / "cp", sink=cz.duckdb(tmp_path / "now.db", "now"))
        )
        query.run()
        query.close()
        with duckdb.connect(str(tmp_path / "now.db")) as found:
            now = dict(found.execute("SELECT id, v FROM now").fetchall())
        assert now == {row["id"]: row["v"] for row in known}
