"""A checkpoint goes on with another plan: from here on, or as if it had always been so."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import col
from caesura.errors import StreamError
from caesura.events import History
from caesura.io.sinks.rows import changed_page
from caesura.runtime.sinks.parquet import ParquetSink


def read(folder, lag=4, name="in"):
    return cz.read.parquet(folder / "in", time="t", punctuate=cz.delay(lag), name=name, batch_size=5)


PLANS = {
    "old": lambda f: read(f).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.count()),
    "filter": lambda f: read(f).where(col("v") > 4).group_by("id").tumbling(10).agg(n=cz.count()),
    "no filter": lambda f: read(f).group_by("id").tumbling(10).agg(n=cz.count()),
    "size": lambda f: read(f).where(col("v") > 2).group_by("id").tumbling(15).agg(n=cz.count()),
    "sum": lambda f: read(f).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.sum("v")),
    "shorter delay": lambda f: read(f, 2).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.count()),
    "two steps": lambda f: (
        read(f).group_by("id").tumbling(10).agg(n=cz.count()).group_by("id").tumbling(20).agg(n=cz.sum("n"))
    ),
}


def put(folder, number, seed):
    drawn = random.Random(f"{seed} {number}")
    (folder / "in").mkdir(exist_ok=True)
    rows = [
        {"t": 10 * number + at + drawn.randrange(3), "id": drawn.randrange(2), "v": drawn.randrange(8)}
        for at in range(12)
    ]
    schema = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "in" / f"{number}.parquet")


def query(folder, plan, **options):
    stream = PLANS[plan](folder) if isinstance(plan, str) else plan
    return stream.query(checkpoint=folder / "cp", sink=folder / "out", every="1h", **options)


def held(folder, plan):
    node = PLANS[plan](folder).node
    sink = ParquetSink(str(folder / "out"))
    sink.open({"out": node})
    return History.of([changed_page(sink.read_back("out"), node.schema, node.time)], node.schema)


def wanted(folder, plan):
    """The history of a plan on all input, read at once by a query that was never stopped."""
    alone = PLANS[plan](folder).query(checkpoint=f"memory://{uuid.uuid4().hex}", every="1h")
    alone.run()
    return History.of(alone.take("out"), alone.outputs["out"].schema)


def stopped(folder, seed, steps=None):
    """The old plan, stopped at the end of its input or after so many steps."""
    for number in range(3):
        put(folder, number, seed)
    made = query(folder, "old")
    if steps is None:
        made.run()
        return
    for at in range(steps):
        made.step()
        if at % 5 == 4:
            made.save()
    made.save()
    made.close()


@pytest.mark.parametrize("plan", [name for name in PLANS if name != "old"])
@pytest.mark.parametrize("steps", [None, 3, 11])
def test_a_rebuilt_history_is_that_of_the_new_plan_on_all_input(plan, steps, tmp_path):
    stopped(tmp_path, plan, steps)
    query(tmp_path, plan, on_change="rebuild").run()
    assert held(tmp_path, plan) == wanted(tmp_path, plan)
    put(tmp_path, 3, plan)
    query(tmp_path, plan).run()
    assert held(tmp_path, plan) == wanted(tmp_path, plan)
    query(tmp_path, "old", on_change="rebuild").run()
    assert held(tmp_path, "old") == wanted(tmp_path, "old")


@pytest.mark.parametrize("output", ["final", "marked"])
def test_output_that_says_what_is_final_is_not_corrected(output, tmp_path):
    put(tmp_path, 0, 1)
    query(tmp_path, "old", output=output).run()
    with pytest.raises(StreamError, match="its output says which rows are final"):
        query(tmp_path, "size", output=output, on_change="rebuild")


def test_a_killed_switch_begins_again(tmp_path, monkeypatch):
    stopped(tmp_path, 2, 3)
    from caesura.runtime.durable.manifest import Manifests

    def killed(self, made):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Manifests, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            query(tmp_path, "size", on_change="rebuild")
    assert held(tmp_path, "old") is not None
    with pytest.raises(StreamError, match="belongs to another plan"):
        query(tmp_path, "size")
    query(tmp_path, "size", on_change="rebuild").run()
    assert held(tmp_path, "size") == wanted(tmp_path, "size")


def test_a_changed_filter_holds_from_here_on(tmp_path):
    stopped(tmp_path, 3)
    before = held(tmp_path, "old")
    with pytest.raises(StreamError, match="belongs to another plan") as refused:
        query(tmp_path, "filter")
    assert "tumbling: carried over, on other steps than before" in refused.value.remedy
    assert "where: changed, '> 2' became '> 4'" in refused.value.remedy or "became" in refused.value.remedy
    query(tmp_path, "filter", on_change="continue").run()
    assert held(tmp_path, "old") == before
    put(tmp_path, 3, 3)
    query(tmp_path, "filter").run()
    old_rows = pq.read_table([str(tmp_path / "in" / f"{n}.parquet") for n in range(3)]).to_pylist()
    new_rows = pq.read_table(str(tmp_path / "in" / "3.parquet")).to_pylist()
    mixed = [r for r in old_rows if r["v"] > 2] + [r for r in new_rows if r["v"] > 4]
    (tmp_path / "mixed" / "in").mkdir(parents=True)
    schema = pq.read_schema(tmp_path / "in" / "0.parquet")
    pq.write_table(pa.Table.from_pylist(mixed, schema), tmp_path / "mixed" / "in" / "0.parquet")
    assert held(tmp_path, "old") == wanted(tmp_path / "mixed", "no filter")


def test_a_step_that_would_begin_in_the_middle_is_no_way_on(tmp_path):
    stopped(tmp_path, 3)
    with pytest.raises(StreamError, match="would begin in the middle of the stream") as refused:
        query(tmp_path, "size", on_change="continue")
    assert "tumbling: rebuilt, '10;' became '15;'" in refused.value.remedy


def test_a_renamed_step_goes_on_without_being_asked(tmp_path):
    stopped(tmp_path, 4)
    put(tmp_path, 3, 4)
    renamed = (
        read(tmp_path, name="clicks")
        .where(col("v") > 2)
        .group_by("id")
        .tumbling(10)
        .agg(n=cz.count())
        .named("tens")
    )
    made = query(tmp_path, renamed)
    assert str(made.change.steps[0]) == "clicks: carried over from in"
    made.run()
    assert held(tmp_path, "old") == wanted(tmp_path, "old")
    put(tmp_path, 4, 4)
    query(tmp_path, renamed).run()
    assert held(tmp_path, "old") == wanted(tmp_path, "old")


def test_rows_that_are_gone_are_not_rebuilt_from(tmp_path):
    stopped(tmp_path, 5)
    before = held(tmp_path, "old")
    (tmp_path / "in" / "2.parquet").unlink()
    with pytest.raises(StreamError, match="'in' was read up to row 36, and has 24 rows now"):
        query(tmp_path, "size", on_change="rebuild")
    assert held(tmp_path, "old") == before


def test_other_columns_and_feedback_are_not_rebuilt(tmp_path):
    stopped(tmp_path, 5)
    other = read(tmp_path).group_by("id").tumbling(10).agg(n=cz.count(), m=cz.max("v"))
    with pytest.raises(
        StreamError, match=r"had the columns \(id int64, n int64\), and would have \(id int64, n int64, m"
    ):
        query(tmp_path, other, on_change="rebuild")
    made = query(tmp_path, "old")
    made.assume(col("id") == 1)
    made.save()
    with pytest.raises(StreamError, match="feedback has kept rows from it"):
        query(tmp_path, "size", on_change="rebuild")


def test_items_that_wait_between_steps_go_to_no_other_steps(tmp_path):
    stopped(tmp_path, 6, 2)
    less = read(tmp_path).group_by("id").tumbling(10).agg(n=cz.count())
    with pytest.raises(StreamError, match="rows wait between the steps"):
        query(tmp_path, less, on_change="continue")


def test_a_step_less_in_front_of_the_state_holds_from_here_on(tmp_path):
    stopped(tmp_path, 6)
    before = held(tmp_path, "old")
    query(tmp_path, "no filter", on_change="continue").run()
    assert held(tmp_path, "old") == before


def test_what_cannot_be_read_again_is_not_rebuilt(tmp_path: Path):
    rows = cz.from_rows(
        iter([{"t": 1, "id": 1}]), pa.schema([("t", pa.int64()), ("id", pa.int64())]), time="t"
    )
    query(tmp_path, rows.tumbling(10).agg(n=cz.count())).run()
    with pytest.raises(StreamError, match="cannot be rebuilt"):
        query(tmp_path, rows.tumbling(20).agg(n=cz.count()), on_change="rebuild")
