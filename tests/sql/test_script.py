"""Scripts of statements: what they declare is what the same calls make, on both hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura.errors import CaesuraError
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.sinks.by_output import SinkByOutput
from caesura.runtime.sinks.memory import MemorySink
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.sql.statements import CreateStream, statements

ROWS = pa.table({"ts": [1, 4, 12, 13, 25], "item": [7, 8, 7, 8, 7], "price": [3, 9, 5, 6, 1]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(ROWS, tmp_path / "bids.parquet")
    return tmp_path


def declared(folder: Path, more: str = "LIFETIME POINT", options: str = "TIME ts DELAY 2") -> str:
    return f"CREATE STREAM bids FROM parquet '{folder}/bids.parquet' ({options}) {more};"


WINDOWS = "FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), 10)) GROUP BY item, window_start, window_end"


def test_lifetimes_are_those_of_the_calls(folder: Path) -> None:
    read = cz.read.parquet(folder / "bids.parquet", time="ts", punctuate=cz.delay(2))
    wanted = {
        "": read.forever(),
        "LIFETIME FOREVER": read.forever(),
        "LIFETIME POINT": read,
        "LIFETIME FOR 5": read.set_duration(5),
        "KEY (item)": read.with_columns(ts=cz.start()).latest("item"),
    }
    for written, stream in wanted.items():
        made = cz.script(declared(folder, written))["bids"]
        assert str(made.run()) == str(stream.run()), written


def test_ends_in_the_data_are_lifetimes(folder: Path) -> None:
    made = cz.script(declared(folder, "", "TIME ts, END price, LATE adjust"))["bids"]
    options = {"time": "ts", "end": "price", "late": "adjust", "name": "bids"}
    assert str(made.run()) == str(cz.read.parquet(folder / "bids.parquet", **options).run())
    with pytest.raises(CaesuraError, match="lifetimes in its data"):
        cz.script(declared(folder, "LIFETIME FOREVER", "TIME ts, END price"))


def test_columns_tables_and_views(folder: Path) -> None:
    (folder / "names.csv").write_text("item,name\n7,lamp\n8,chair\n")
    (folder / "bids.json").write_text('{"ts": 1, "item": 7, "price": 2.5}\n')
    made = cz.script(
        f"""
        CREATE STREAM bids (ts BIGINT, item BIGINT, price DECIMAL(6, 2))
            FROM json '{folder}/bids.json' (TIME ts);
        CREATE TABLE names FROM csv '{folder}/names.csv';
        CREATE VIEW named AS SELECT name, price FROM bids JOIN names ON bids.item = names.item;
        CREATE VIEW total AS SELECT name, sum(price) AS total FROM named GROUP BY name
        """
    )
    assert made["bids"].schema.field("price").type == pa.decimal128(6, 2)
    assert made["total"].run().table().to_pylist()[0]["name"] == "lamp"
    assert list(made.pipeline().views) == ["named", "total"]


def test_several_inserts_are_one_query_and_go_on_after_a_stop(folder: Path) -> None:
    text = f"""
        {declared(folder, "LIFETIME FOREVER")}
        CREATE SINK every TO parquet '{folder}/every';
        CREATE SINK best TO duckdb '{folder}/best.db' (TABLE 'best') KEY (item);
        INSERT INTO every SELECT item, count(*) AS n {WINDOWS} EMIT FINAL;
        INSERT INTO best SELECT item, max(price) AS best FROM bids GROUP BY item;
        SET checkpoint = '{folder}/checkpoint';
    """
    cz.script(text).query().run()
    again = cz.script(text).query()
    again.run()
    best, every = again.table("best").to_pylist(), again.table("every").to_pylist()
    assert sorted((row["item"], row["best"]) for row in best) == [(7, 5), (8, 9)]
    assert sorted((row["item"], row["n"]) for row in every) == [(7, 1), (7, 1), (7, 1), (8, 1), (8, 1)]


class CutOff(ParquetSink):
    """A sink that fails once, before it commits."""

    fails = 1

    def commit(self, epoch: int, parts: Any) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("cut off")
        super().commit(epoch, parts)


def test_an_epoch_cut_off_between_two_sinks_comes_once_to_both(folder: Path) -> None:
    from caesura.io.places import Place
    from caesura.plan.prune import prune
    from caesura.runtime.durable.query import DurableQuery

    stream = cz.script(declared(folder))["bids"]
    first, second = ParquetSink(f"{folder}/a"), CutOff(f"{folder}/b")
    nodes = {"a": stream.node, "b": stream.where("price > 3").node}

    def query() -> DurableQuery:
        sink = SinkByOutput({"a": first, "b": second})
        return DurableQuery(prune(nodes), checkpoint=Place.of(folder / "checkpoint"), sink=sink)

    with pytest.raises(OSError, match="cut off"):
        query().run()
    assert first.last_epoch() is not None
    assert second.last_epoch() is None
    query().run()
    assert first.read_back("a").num_rows == 5
    assert second.read_back("b").num_rows == 3


def test_late_rows_come_to_one_of_several_sinks() -> None:
    rows = [{"ts": t, "v": t} for t in (1, 9, 2)]
    stream = cz.from_rows(rows, time="ts", punctuate=cz.delay(0), batch_size=1)
    found, first, second = stream.run(), MemorySink(), MemorySink()
    late = {"read": found.late["read"].to_batches()}
    outputs = {"a": stream.node, "b": stream.node}
    SinkByOutput({"a": first, "b": second}).take(Epoch(0, {"a": found.items}, late, outputs=outputs))
    assert [len(sink.epochs[0].late) for sink in (first, second)] == [1, 0]


def test_feedback_of_a_script_reaches_its_query(folder: Path) -> None:
    text = f"""
        {declared(folder)}
        CREATE SINK out TO parquet '{folder}/out';
        INSERT INTO out SELECT item, price FROM bids;
        ASSUME out WHERE item = 7;
    """
    made = cz.script(text)
    query = made.query(checkpoint=folder / "checkpoint")
    assert any("item" in one for one in query.feedback())
    made.give(query, "DEMAND out; DESIRE out WHERE item = 8")
    query.run()
    assert {row["item"] for row in query.table("out").to_pylist()} == {8}
    with pytest.raises(CaesuraError, match="ASSUME, DESIRE and DEMAND only"):
        made.give(query, "SELECT 1 FROM bids")


def test_functions_of_users(folder: Path) -> None:
    @cz.udf
    def half(price: int) -> float:
        return price / 2

    @cz.uda
    def spread(values: list[int]) -> int:
        return max(values) - min(values)

    made = cz.script(
        f"""
        {declared(folder)}
        CREATE FUNCTION root AS 'caesura.expr.functions.sqrt' LANGUAGE PYTHON;
        CREATE VIEW v AS SELECT item, root(half(spread(price)) * 2) AS r FROM costly(TABLE bids)
            GROUP BY item, TUMBLE(ts, 100)
        """,
        half=half,
        spread=spread,
        costly=lambda stream: stream.where("price > 2"),
    )
    rows = made["v"].run(output="final").table().to_pylist()
    assert [(row["item"], row["r"]) for row in rows] == [(7, 2**0.5), (8, 3**0.5)]


def test_emit_says_what_comes_out() -> None:
    bids = cz.from_rows([{"ts": 1, "v": 2}, {"ts": 3, "v": 5}], time="ts")
    query = "SELECT sum(v) AS s FROM bids GROUP BY TUMBLE(ts, 10)"
    assert str(cz.sql(f"{query} EMIT FINAL", bids=bids).run()) == str(
        cz.sql(query, bids=bids).run(output="final")
    )
    assert str(cz.sql(f"{query} EMIT CHANGES;", bids=bids).run()) == str(cz.sql(query, bids=bids).run())


def test_pace_of_a_union_drops_what_is_too_far_behind() -> None:
    left = cz.from_rows([{"ts": t, "v": t} for t in (1, 2, 30)], time="ts", punctuate=cz.delay(40))
    right = cz.from_rows([{"ts": t, "v": t} for t in (40, 41)], time="ts", punctuate=cz.delay(40))
    text = "SELECT ts, v FROM a UNION ALL SELECT ts, v FROM b WITH PACE ON ts 5"
    made = cz.sql(text, a=left, b=right)
    assert "pace" in made.explain()
    wanted = left.with_columns(ts=cz.start()).select("ts", "v")
    paced = wanted.pace(right.with_columns(ts=cz.start()).select("ts", "v"), within=5)
    assert str(made.run()) == str(paced.run())
    with pytest.raises(CaesuraError, match="not the time"):
        cz.sql(text.replace("ON ts", "ON v"), a=left, b=right)


def test_options_are_read_as_they_are_written() -> None:
    [one] = statements(
        "CREATE STREAM `my bids` (a ARRAY<STRUCT<x: INT>>, d DECIMAL(10, 2)) FROM kafka 'h:1'"
        " (TOPIC 'bids', TIME a DELAY INTERVAL '90' SECONDS, META (partition, offset), LATE_LIMIT 5)"
        " KEY (a, d)"
    )
    assert isinstance(one, CreateStream)
    assert one.name == "my bids"
    assert one.columns == (("a", "ARRAY<STRUCT<x: INT>>"), ("d", "DECIMAL(10, 2)"))
    assert dict(one.options) == {
        "topic": "bids",
        "time": "a",
        "meta": ("partition", "offset"),
        "late_limit": 5,
    }
    assert str(one.delay) == "0:01:30"
    assert one.key == ("a", "d")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CREATE STRAEM x FROM csv 'y'", "'STRAEM' is no thing to CREATE"),
        ("CREATE STREAM x FROM cvs 'y'", "'cvs' is no source"),
        ("CREATE STREAM x FROM csv 'y' (TIME ts) LIFETIME ONCE", "'ONCE' is no lifetime"),
        ("CREATE STREAM x (a) FROM csv 'y'", "the type of 'a'"),
        ("CREATE STREAM x (a WORD) FROM csv 'y' (TIME a)", "no type 'WORD'"),
        ("CREATE STREAM x FROM csv 'y'", "which column its time is"),
        ("CREATE STREAM x FROM csv 'y' (TIME ts, LAET reject)", "no option LAET"),
        ("CREATE STREAM x FROM kafka 'h:1' (TIME ts)", "which topic"),
        ("CREATE STREAM x FROM kafka 'h:1' (TOPIC 'x', TIME ts)", "which columns its records have"),
        ("CREATE FUNCTION f AS 'nowhere.f'", "no 'nowhere.f' in Python"),
        ("CREATE VIEW v AS SELECT 1 FROM w EMIT FINAL", "a view is read by other queries"),
        ("INSERT INTO s SELECT 1 FROM w", "no sink 's'"),
        ("SELECT 1 FROM w; SELECT a FROM (w", "nothing closes this '('"),
        ("SELECT a FROM w EMIT SOMETIMES", "no EMIT SOMETIMES"),
        ("SET chekpoint = 'x'", "no setting 'chekpoint'"),
        ("DROP TABLE x", "no declaration 'x'"),
        ("DROP QUERY x", "'QUERY' is no thing to DROP"),
        ("ALTER TABLE w", "'ALTER' is no statement"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    with pytest.raises(CaesuraError) as raised:
        cz.script(text, w=cz.from_rows([{"ts": 1, "a": 2}], time="ts"))
    assert problem in raised.value.problem
    assert raised.value.remedy


def test_flink_divides_whole_numbers_and_tells_columns_apart() -> None:
    values = [(7, 2), (-7, 2), (7, -2), (1, 0), (None, 3), (2**62, 3)]
    rows = cz.from_rows([{"ts": n, "a": a, "b": b} for n, (a, b) in enumerate(values)], time="ts")
    text = "SELECT a / b AS q, a / 2.0 AS d, a, a FROM t"
    found = cz.sql(text, dialect="flink", t=rows).run().table().to_pylist()
    assert [row["q"] for row in found] == [3, -3, -3, None, None, 2**62 // 3]
    assert str(found[0]["d"]) == "3.500000" and found[0]["a0"] == 7
    averages = (
        "SELECT avg(a) AS a, avg(CAST(a AS DOUBLE)) AS d FROM t WHERE b IN (2, 0) GROUP BY TUMBLE(ts, 10)"
    )
    [row] = cz.sql(averages, dialect="flink", t=rows).run().table().to_pylist()
    assert (row["a"], row["d"]) == (0, 1 / 3)
    least = cz.from_rows([{"ts": 1, "a": -(2**63), "b": -1}], time="ts")
    with pytest.raises(CaesuraError):
        cz.sql(text, dialect="flink", t=least).run()
    script = cz.script("SET dialect = 'flink'; CREATE VIEW v AS SELECT a / b AS q FROM t", t=rows)
    assert script["v"].schema.field("q").type == pa.int64()


def test_check_says_what_is_final_at_the_end_of_the_sources_only() -> None:
    rows = cz.from_rows([{"ts": 1, "k": 2}], time="ts", punctuate=cz.delay(1))
    view = cz.sql("SELECT k, count(*) AS n FROM t GROUP BY k", t=rows.forever())
    assert any("at the end of the sources" in note for note in view.check("final").notes)
    assert not any("at the end of the sources" in note for note in view.check("changes").notes)
    windows = cz.sql("SELECT k, count(*) AS n FROM t GROUP BY k, TUMBLE(ts, 10)", t=rows)
    assert not any("at the end of the sources" in note for note in windows.check("final").notes)


def test_what_is_declared_can_be_replaced_and_dropped(folder: Path) -> None:
    made = cz.script(
        f"""
        {declared(folder)}
        CREATE VIEW v AS SELECT item FROM bids;
        CREATE VIEW w AS SELECT item FROM v;
        CREATE OR REPLACE VIEW v AS SELECT price FROM bids;
        CREATE OR REPLACE SINK s TO console;
        DROP SINK s;
        DROP VIEW IF EXISTS nothing;
        """
    )
    assert made["v"].columns == ["price"] and made["w"].columns == ["item"]
    assert not made.sinks
