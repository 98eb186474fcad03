"""Names at the edges: payload columns renamed where they are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster

import caesura as cz
from caesura import col
from caesura.errors import PlanError
from caesura.testing import assert_history

ROWS = [{"ts": 1, "time": 5, "LE": "a"}, {"ts": 2, "time": 7, "LE": "b"}]
NAMES = {"time": "clock", "LE": "left"}
DRAWN = " LE RE | clock left |\n 1 2 | 5 a | +\n 2 3 | 7 b | +"


def test_a_column_with_a_name_of_the_engine_is_renamed_where_it_is_read() -> None:
    assert_history(cz.from_rows(ROWS, time="ts", rename=NAMES).run().history, DRAWN)


def test_every_way_of_reading_takes_other_names(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("ts,time,LE\n1,5,a\n2,7,b\n")
    for stream in (
        cz.from_arrow(table, time="ts", rename=NAMES),
        cz.from_pandas(table.to_pandas(), time="ts", rename=NAMES),
        cz.read.parquet(tmp_path / "rows.parquet", time="ts", rename=NAMES),
        cz.read.csv(tmp_path / "rows.csv", time="ts", rename=NAMES),
    ):
        assert_history(stream.run().history, DRAWN)


def test_columns_that_nobody_wants_are_left_out_under_their_new_names(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    stream = cz.read.parquet(tmp_path / "rows.parquet", time="ts", rename=NAMES).select("left")
    assert_history(stream.run().history, " LE RE | left |\n 1 2 | a | +\n 2 3 | b | +")


def test_late_rows_show_the_new_names_on_every_host(tmp_path: Path) -> None:
    rows = [*ROWS, {"ts": 30, "time": 9, "LE": "c"}, {"ts": 3, "time": 8, "LE": "late"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    read = cz.read.parquet(tmp_path / "rows.parquet", time="ts", rename=NAMES, punctuate=cz.delay(5))
    counted = read.group_by("left").tumbling(10).agg(n=cz.sum("clock"))
    assert counted.run().late["read"].column("left").to_pylist() == ["late"]
    cluster = Cluster({"out": counted.node}, 2)
    cluster.run()
    assert cluster.late["read"][0].column("left").to_pylist() == ["late"]


def test_late_rows_behind_a_rename_keep_the_names_of_the_source() -> None:
    rows = [{"ts": 30, "id": 1, "v": 0.5}, {"ts": 3, "id": 2, "v": 1.5}]
    table = pa.Table.from_pylist(rows)
    stream = cz.from_arrow(table, time="ts", punctuate=cz.delay(5)).select(key=col("id"), w=col("v") * 2)
    cluster = Cluster({"out": stream.group_by("key").tumbling(10).agg(n=cz.sum("w")).node}, 2)
    cluster.run()
    [late] = cluster.late["read"]
    shown = late.select(["reason", "LE", "id", "v"]).to_pylist()
    assert shown == [{"reason": "time 3 came after its lane had passed 25", "LE": 3, "id": 2, "v": None}]


def test_punctuation_in_the_data_speaks_of_the_new_names() -> None:
    rows = [
        {"ts": 1, "time": 5, "punct": None},
        {"ts": None, "time": None, "punct": "clock = 5"},
        {"ts": 2, "time": 5, "punct": None},
    ]
    stream = cz.from_rows(rows, time="ts", rename={"time": "clock"}, punctuate=cz.in_data("punct"))
    result = stream.run()
    assert result.late["read"].column("reason").to_pylist() == ["came after definite: clock = 5"]


@pytest.mark.parametrize("rename", [{"tim": "x"}, {"ts": "x"}, {"time": "left", "LE": "left"}, {"time": ""}])
def test_names_that_cannot_be_are_refused(rename: dict[str, str]) -> None:
    with pytest.raises(PlanError):
        cz.from_rows(ROWS, time="ts", rename={**NAMES, **rename})


def test_sources_with_other_names_are_other_sources() -> None:
    one, two = (cz.from_rows(ROWS, time="ts", rename={**NAMES, "LE": name}) for name in ("l", "m"))
    assert one.node.fingerprint != two.node.fingerprint


def test_a_room_does_not_hide_the_function_of_its_name() -> None:
    import caesura.fixpoint.node

    assert caesura.fixpoint.__name__ == "fixpoint"
    assert callable(cz.fixpoint)


def test_entering_a_room_does_not_hide_the_function_of_its_name() -> None:
    from caesura.fixpoint import build
    from caesura.udm import registry

    assert cz.fixpoint is not build.fixpoint and callable(cz.fixpoint)
    assert cz.udm.__wrapped__ is registry.find  # with its arguments looked at
