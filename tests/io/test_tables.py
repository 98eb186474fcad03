"""Tables: rows that hold over all time, looked up and as streams, from wherever they come."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster

import caesura as cz
from caesura import col
from caesura.events import History
from caesura.ops.held import HeldTable, shipped
from caesura.ops.look_up import LookUp
from caesura.plan.cut import cut
from caesura.plan.node import walk
from caesura.plan.prune import prune
from caesura.runtime.query.result import run
from caesura.testing import assert_history

NAMES = [{"id": 3, "name": "Ada"}, {"id": 4, "name": "Bob"}]


def visits(*ids: int | None) -> cz.Stream:
    rows = [{"ts": n + 1, "id": key} for n, key in enumerate(ids)]
    return cz.from_rows(rows, pa.schema([("ts", pa.int64()), ("id", pa.int64())]), time="ts")


def kinds(folder: Path) -> dict[str, Any]:
    """The same table in every form."""
    table = pa.Table.from_pylist(NAMES)
    (folder / "csv").mkdir()
    (folder / "csv" / "a.csv").write_text("id,name\n3,Ada\n")
    (folder / "csv" / "b.csv").write_text("id,name\n4,Bob\n")
    (folder / "names.json").write_text('{"id": 3, "name": "Ada"}\n{"id": 4, "name": "Bob"}\n')
    pq.write_table(table, folder / "names.parquet")
    return {
        "rows": NAMES,
        "generator": (row for row in NAMES),
        "arrow": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "pandas": pd.DataFrame(NAMES),
        "folder": folder / "csv",
        "file": str(folder / "names.json"),
        "parquet": folder / "names.parquet",
    }


def test_a_table_of_any_kind_joins_alike(tmp_path: Path) -> None:
    for name, data in kinds(tmp_path).items():
        joined = visits(4, 5).join(cz.table(data), on="id", how="left").run()
        assert [row[2] for row in joined.history.rows()] == [(4, "Bob"), (5, None)], name


def test_a_join_with_a_table_is_row_wise_in_stage_0_and_safe() -> None:
    for how in ("inner", "left", "semi", "anti"):
        plan = visits(3).join(cz.table(NAMES).where(col("id") > 3), on="id", how=how)
        stages = cut(prune({"out": plan.node}), 4)
        assert [type(node).__name__ for node in stages.stages[0].nodes][-1] == "LookUp"
        assert len(stages.stages) == 2
        assert plan.check().safe


def test_all_buckets_of_a_process_hold_one_copy() -> None:
    plan = (
        visits(3, 4, 4, 9, None).join(cz.table(NAMES), on="id").group_by("name").tumbling(9).agg(n=cz.count())
    )
    behind = plan.join(cz.table([{"name": "Bob", "town": "Bonn"}]), on="name")
    cluster = Cluster({"out": behind.node}, 3)
    cluster.run()
    assert History.of(cluster.items["out"], behind.schema) == run(behind.node).history
    found = {
        id(cell.operator._table)
        for fragments in cluster.fragments
        for fragment in fragments
        for cell in fragment.query.graph.cells
        if isinstance(cell.node, LookUp) and cell.operator._table is not None
    }
    assert len(found) == 1


def test_columns_of_a_table_that_nobody_wants_are_not_read() -> None:
    plan = visits(3).join(cz.table([{"id": 3, "name": "Ada", "town": "Bonn"}]), on="id").select("id", "name")
    (node,) = [n for n in walk(*prune({"out": plan.node}).values()) if isinstance(n, LookUp)]
    assert node.table.batch().schema.names == ["id", "name"]


def test_a_filter_on_the_streams_columns_goes_below_the_look_up() -> None:
    plan = visits(3, 4).join(cz.table(NAMES), on="id").where(col("id") == 3)
    kinds = [type(node).__name__ for node in walk(*prune({"out": plan.node}).values())]
    assert kinds == ["Source", "Where", "LookUp"]
    assert_history(plan.run().history, " LE  RE | id name |\n  1  2  | 3  Ada  | +")


def test_a_table_counts_time_as_the_stream_that_it_meets() -> None:
    stream = cz.from_rows([{"ts": pd.Timestamp("2024-01-01"), "id": 3}], time="ts")
    names = cz.table(NAMES)
    assert stream.join(names, on="id", how="full").node.time == stream.node.time
    assert names.select("id").union(stream).node.time == stream.node.time


def test_a_table_as_a_stream_ends_at_once_and_never_ends() -> None:
    assert_history(
        cz.table(NAMES).join(visits(3), on="id", how="semi").run().history,
        " LE  RE | id name |\n  1  2  | 3  Ada  | +",
    )
    assert "-inf" in str(cz.table(NAMES).run())


def test_a_table_that_is_sent_ahead_does_not_travel_with_the_plan() -> None:
    import pickle

    held = HeldTable.of(cz.table(NAMES * 1000).node)
    whole = pickle.dumps(held)
    with shipped({held.key: NAMES_BATCH}):
        small = pickle.dumps(held)
    assert len(small) < len(whole) / 4
    sent = pickle.loads(small)
    assert sent.key == held.key
    assert sent.batch().num_rows == 2
    assert replace(sent, node=None).loaded(("id",)).find([pa.array([4, 5])], 2)[0].tolist() == [0]


def NAMES_BATCH() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(NAMES)


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_an_empty_table_matches_nothing(how: Any) -> None:
    empty = cz.table(pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())}))
    rows = visits(3, None).join(empty, on="id", how=how).run().history.rows()
    assert len(rows) == (2 if how in ("left", "anti") else 0)
