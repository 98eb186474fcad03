"""A checkpoint goes on with another plan: from here on, or as if it had always been so."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import DEPTH

import caesura as cz
from caesura import col
from caesura.cli.late import rejected
from caesura.console.web.sink_folder import SinkFolder
from caesura.errors import StreamError
from caesura.events import History, Page
from caesura.io.ingress.policy import Policy
from caesura.io.places import Place
from caesura.io.sinks.rows import changed_page
from caesura.io.sources.protocol import Reader
from caesura.plan.prune import prune
from caesura.punctuation import Punctuation
from caesura.runtime.durable.query import DurableQuery
from caesura.runtime.query.query import Query
from caesura.runtime.query.result import delivered
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.runtime.sinks.verify import committed_flaws


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


@pytest.mark.thin(3)
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


def final_plan(folder, plan, output):
    return delivered(PLANS[plan](folder).node, output)


def rows_of(folder, plan, output):
    """What the sink holds, and of that the rows that are marked."""
    node = final_plan(folder, plan, output)
    sink = ParquetSink(str(folder / "out"))
    sink.open({"out": node})
    rows = sink.read_back("out")
    marks = changed_page(rows, node.schema, node.time, kinds=("=",)).rows()
    return History.of([changed_page(rows, node.schema, node.time)], node.schema), Counter(map(str, marks))


def rows_wanted(folder, plan, output):
    alone = PLANS[plan](folder).query(checkpoint=f"memory://{uuid.uuid4().hex}", every="1h", output=output)
    alone.run()
    items = alone.take("out")
    marks = [row for item in items if isinstance(item, Page) and item.settled for row in item.rows()]
    return History.of(items, alone.outputs["out"].schema), Counter(map(str, marks))


@pytest.mark.thin(2)
@pytest.mark.parametrize("output", ["final", "marked"])
@pytest.mark.parametrize("plan", ["filter", "size", "two steps"])
def test_final_rows_that_would_differ_stop_the_rebuild_or_begin_a_new_generation(plan, output, tmp_path):
    for number in range(3):
        put(tmp_path, number, plan)
    query(tmp_path, "old", output=output).run()
    before = rows_of(tmp_path, "old", output)
    with pytest.raises(StreamError, match="that were final would differ") as refused:
        query(tmp_path, plan, output=output, on_change="rebuild")
    lost = [line for line in refused.value.remedy.splitlines() if line.startswith("  - (")]
    assert lost and all(line.endswith(" of 'out'") for line in lost)
    assert ("final_rows='keep'" in refused.value.remedy) == (output == "marked")
    assert rows_of(tmp_path, "old", output) == before
    query(tmp_path, plan, output=output, on_change="rebuild", final_rows="new_generation").run()
    assert rows_of(tmp_path, plan, output) == rows_wanted(tmp_path, plan, output)
    put(tmp_path, 3, plan)
    query(tmp_path, plan, output=output).run()
    assert rows_of(tmp_path, plan, output) == rows_wanted(tmp_path, plan, output)
    commit = json.loads(
        sorted((tmp_path / "out" / "_generation-2" / "_commits").glob("*.json"))[-1].read_text()
    )
    assert (commit["generation"], commit["plan"]) == (2, 2)
    assert committed_flaws(Place.of(tmp_path / "out"))[1] == []
    old = ParquetSink(str(tmp_path / "out"))
    old.open({"out": final_plan(tmp_path, "old", output)})
    old.enter(1, 1)
    assert History.of([changed_page(old.read_back("out"), SCHEMA, pa.int64())], SCHEMA) == before[0]


SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


def test_final_rows_are_kept_and_the_others_corrected(tmp_path):
    for number in range(3):
        put(tmp_path, number, 7)
    query(tmp_path, "old", output="marked").run()
    (held, marked), (given, _) = rows_of(tmp_path, "old", "marked"), rows_wanted(tmp_path, "filter", "marked")
    query(tmp_path, "filter", output="marked", on_change="rebuild", final_rows="keep").run()
    now, marks = rows_of(tmp_path, "filter", "marked")
    assert marks == marked
    covered = max(int(row.split(",")[1]) for row in marked)
    final = [row for row in held.rows() if row[1] <= covered]
    later = [row for row in given.rows() if row[1] > covered]
    assert final and later and now.rows() == sorted([*final, *later])
    put(tmp_path, 3, 7)
    query(tmp_path, "filter", output="marked").run()
    after = [row for row in rows_wanted(tmp_path, "filter", "marked")[0].rows() if row[1] > covered]
    assert rows_of(tmp_path, "filter", "marked")[0].rows() == sorted([*final, *after])


def test_rows_that_the_new_plan_may_still_change_are_not_kept(tmp_path):
    for number in range(3):
        put(tmp_path, number, 8)
    query(tmp_path, "old", output="marked").run()
    slower = read(tmp_path, 25).where(col("v") > 4).group_by("id").tumbling(10).agg(n=cz.count())
    with pytest.raises(StreamError, match="since the new plan can still change that time"):
        query(tmp_path, slower, output="marked", on_change="rebuild", final_rows="keep")


def test_rows_that_are_final_sooner_are_marked(tmp_path):
    for number in range(3):
        put(tmp_path, number, 9)
    query(tmp_path, "old", output="marked").run()
    before = rows_of(tmp_path, "old", "marked")
    sooner = read(tmp_path, 1000).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.count())
    (tmp_path / "slow").mkdir()
    slow = {"checkpoint": tmp_path / "slow" / "cp", "sink": tmp_path / "slow" / "out", "output": "marked"}
    sooner.query(every="1h", **slow).run()
    PLANS["old"](tmp_path).query(every="1h", on_change="rebuild", **slow).run()
    (tmp_path / "slow" / "in").symlink_to(tmp_path / "in")
    assert rows_of(tmp_path / "slow", "old", "marked") == before == rows_wanted(tmp_path, "old", "marked")
    assert before[1]


def test_a_plan_whose_final_rows_are_the_same_goes_on_in_its_generation(tmp_path):
    for number in range(3):
        put(tmp_path, number, 9)
    same = read(tmp_path).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.count(), m=cz.max("v"))
    query(tmp_path, "old", output="marked").run()
    query(tmp_path, same.select("id", "n"), output="marked", on_change="rebuild").run()
    assert rows_of(tmp_path, "old", "marked") == rows_wanted(tmp_path, "old", "marked")
    assert not (tmp_path / "out" / "_generation-2").exists()


@pytest.mark.parametrize("output", ["final", "marked"])
def test_changes_become_another_output_in_their_place(output, tmp_path):
    stopped(tmp_path, 3)
    query(tmp_path, "old", output=output, on_change="rebuild").run()
    put(tmp_path, 3, 3)
    query(tmp_path, "old", output=output).run()
    assert rows_of(tmp_path, "old", output) == rows_wanted(tmp_path, "old", output)


def test_other_columns_begin_a_new_generation(tmp_path):
    stopped(tmp_path, 5)
    more = (
        read(tmp_path)
        .where(col("v") > 2)
        .group_by("id")
        .tumbling(10)
        .agg(n=cz.count())
        .with_columns(twice=col("n") * 2)
    )
    with pytest.raises(StreamError, match="belongs to another plan"):
        query(tmp_path, more)
    with pytest.raises(StreamError, match="cannot be corrected: its rows had the columns"):
        query(tmp_path, more, on_change="continue")
    made = query(tmp_path, more, on_change="rebuild", final_rows="new_generation")
    made.run()
    rows = made.table().to_pylist()
    assert rows and all(row["twice"] == 2 * row["n"] for row in rows)
    assert len(rows) == len(wanted(tmp_path, "old"))


def test_late_rows_and_the_console_are_of_the_generation_that_counts(tmp_path):
    for number in range(4):
        put(tmp_path, number, 5)
    query(tmp_path, "shorter delay").run()
    folder = Place.of(tmp_path / "out")
    watched = SinkFolder(folder)
    first = rejected(folder)["in"].num_rows
    assert watched.changes("out", 99)[1].names == ["id", "n"]
    more = read(tmp_path, 1).group_by("id").tumbling(10).agg(n=cz.count(), top=cz.max("v"))
    query(tmp_path, more, on_change="rebuild", final_rows="new_generation").run()
    assert 0 < first < rejected(folder)["in"].num_rows == more.run().late["in"].num_rows
    assert watched.changes("out", 99)[1].names == ["id", "n", "top"]


def test_a_killed_new_generation_is_taken_up_again(tmp_path, monkeypatch):
    stopped(tmp_path, 5)
    more = read(tmp_path).where(col("v") > 2).group_by("id").tumbling(10).agg(k=cz.count())

    def killed(self, epoch, parts):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ParquetSink, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            query(tmp_path, more, on_change="rebuild", final_rows="new_generation")
    made = query(tmp_path, more)
    made.run()
    assert [row["k"] for row in made.table().to_pylist()]
    assert made.table().num_rows == len(wanted(tmp_path, "old"))


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
    assert "tumbling: rebuilt, '10' became '15'" in refused.value.remedy


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


@pytest.mark.thin(2)
@pytest.mark.parametrize("says", [[(4, 1)], [(0, 1)], [(9, 0), (3, 1)], [(5, 1), (6, "withdraw")]])
@pytest.mark.parametrize("plan", ["filter", "size", "no filter"])
def test_feedback_comes_again_where_it_came_first(plan, says, tmp_path):
    for number in range(3):
        put(tmp_path, number, plan)
    made = query(tmp_path, "old")
    for steps, what in says:
        for _ in range(steps):
            made.step()
        made.withdraw(1) if what == "withdraw" else made.assume(col("id") == what)
    made.run()
    again = query(tmp_path, plan, on_change="rebuild")
    assert len(again.feedback()) >= len(says) - 2 * any(what == "withdraw" for _, what in says)
    again.run()
    put(tmp_path, 3, plan)
    query(tmp_path, plan).run()
    kept, whole = held(tmp_path, plan).bag, wanted(tmp_path, plan).bag
    ids = {what for _, what in says if what != "withdraw"}
    assert not kept - whole
    lost = whole - kept
    assert lost and {row[2][0] for row in lost} <= ids
    heard = PLANS[plan](tmp_path).query(checkpoint=f"memory://{uuid.uuid4().hex}", every="1h")
    entered = query(tmp_path, plan)._entered.entries
    for entry in entered:
        while sum(heard.parts.readers["in"].offsets.values()) < entry["at"]["in"].get("0", 0):
            heard.step()
        heard.runner.take_queued()
        Query._send_feedback(heard, entry["output"], Punctuation.from_json(entry["message"]))
        heard.runner.deliver()
    heard.run()
    assert History.of(heard.take("out"), SCHEMA).bag == kept


def test_feedback_on_a_column_that_is_gone_is_not_rebuilt(tmp_path):
    stopped(tmp_path, 5)
    made = query(tmp_path, "old")
    made.assume(col("id") == 1)
    made.save()
    made.close()
    other = read(tmp_path).group_by("v").tumbling(10).agg(n=cz.count())
    with pytest.raises(StreamError, match="that speaks of id = 1, which it has not any more"):
        query(tmp_path, other, on_change="rebuild", final_rows="new_generation")


class Ticking:
    """A clock that goes on by so much whenever it is looked at."""

    def __init__(self, *, start, step):
        self.now, self.step = start, step

    def __call__(self):
        self.now += self.step
        return self.now


def clocked(folder, policy):
    return cz.read.parquet(folder / "in", time="t", punctuate=policy, name="in", batch_size=5)


@pytest.mark.thin(2)
@pytest.mark.parametrize("steps", [None, 4, 9])
@pytest.mark.parametrize("step", [2, 5, 9])
def test_the_clock_reads_again_what_it_read_first(step, steps, tmp_path, monkeypatch):
    monkeypatch.setattr(Reader, "clock", Ticking(start=0, step=step))
    policy = Policy(beat="1us", clock_lag=6, lag=4, closes=False)
    for number in range(3):
        put(tmp_path, number, step)
    plain = clocked(tmp_path, policy)
    made = query(tmp_path, plain)
    if steps is None:
        made.run()
    for _ in range(steps or 0):
        made.step()
    made.save()
    made.close()
    entered = [(le, row) for le, _, row in history_of(tmp_path, plain).rows()]
    counts = plain.group_by("id").tumbling(10).agg(n=cz.count())
    query(tmp_path, counts, on_change="rebuild", final_rows="new_generation").close()
    hoped = Counter((le // 10 * 10, row[0]) for le, row in entered)
    assert {(le, row[0]): row[1] for le, _, row in history_of(tmp_path, counts).rows()} == hoped and hoped
    put(tmp_path, 3, step)
    query(tmp_path, counts).run()
    then = history_of(tmp_path, counts)
    query(tmp_path, counts.where(col("n") > 0), on_change="rebuild").run()
    assert history_of(tmp_path, counts) == then


def test_rows_have_the_time_of_arrival_that_they_had_first(tmp_path, monkeypatch):
    monkeypatch.setattr(Reader, "clock", Ticking(start=0, step=7))
    for number in range(2):
        put(tmp_path, number, 4)
    arrival = cz.ingestion_time(every="1us")
    plain = cz.read.parquet(tmp_path / "in", time=arrival, name="in", batch_size=5).select("id", "v")
    made = query(tmp_path, plain)
    for _ in range(6):
        made.step()
    made.run()
    entered = [(le, row) for le, _, row in history_of(tmp_path, plain).rows()]
    assert len({le for le, _ in entered}) > 2
    counts = plain.group_by("id").tumbling("10us").agg(n=cz.count())
    query(tmp_path, counts, on_change="rebuild", final_rows="new_generation").close()
    hoped = Counter((le // 10 * 10, row[0]) for le, row in entered)
    assert {(le, row[0]): row[1] for le, _, row in history_of(tmp_path, counts).rows()} == hoped


def test_readings_between_which_nothing_was_read_are_one(tmp_path, monkeypatch):
    monkeypatch.setattr(Reader, "clock", Ticking(start=0, step=3))
    put(tmp_path, 0, 1)
    made = query(tmp_path, clocked(tmp_path, Policy(beat="1us", clock_lag=6, lag=4, closes=False)))
    made.run()
    reader = made.parts.readers["in"]
    for _ in range(5):
        reader.pass_over()
    places = [tuple(entry["at"]["in"].items()) for entry in made._entered.entries]
    assert len(places) == len(set(places)) > 1


def test_a_clock_that_was_not_there_is_not_rebuilt(tmp_path, monkeypatch):
    monkeypatch.setattr(Reader, "clock", Ticking(start=0, step=3))
    stopped(tmp_path, 3)
    policy = Policy(beat="1us", clock_lag=6, lag=4, closes=False)
    later = clocked(tmp_path, policy).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.count())
    with pytest.raises(StreamError, match="goes by a clock, whose readings are not kept"):
        query(tmp_path, later, on_change="rebuild")


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


def put_wider(folder, number, seed):
    """A file as `put` writes it, with a column more."""
    put(folder, number, seed)
    file = folder / "in" / f"{number}.parquet"
    table = pq.read_table(file)
    pq.write_table(table.append_column("w", pa.array(range(table.num_rows))), file)


def test_files_that_were_written_anew_with_a_column_more_are_read_by_a_rebuild(tmp_path):
    stopped(tmp_path, 3)
    for number in range(3):
        put_wider(tmp_path, number, 3)
    put_wider(tmp_path, 3, 3)
    with pytest.raises(StreamError, match="were written anew after they were read"):
        query(tmp_path, "old")
    summed = read(tmp_path).where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.sum("w"))
    query(tmp_path, summed, on_change="rebuild").run()
    alone = summed.query(checkpoint=f"memory://{uuid.uuid4().hex}", every="1h")
    alone.run()
    assert held(tmp_path, "old") == History.of(alone.take("out"), SCHEMA)


def test_an_output_more_has_the_history_of_all_input(tmp_path):
    for number in range(3):
        put(tmp_path, number, 6)
    nodes = {name: PLANS[name](tmp_path).node for name in ("old", "size")}

    def durable(*names, **options):
        place = Place.of(tmp_path / "cp").absolute()
        sink = ParquetSink(str(tmp_path / "out"))
        outputs = prune({name: nodes[name] for name in names})
        return DurableQuery(outputs, checkpoint=place, sink=sink, every=3600.0, **options)

    durable("old").run()
    with pytest.raises(StreamError, match="belongs to another plan"):
        durable("old", "size")
    durable("old", "size", on_change="rebuild").run()
    sink = ParquetSink(str(tmp_path / "out"))
    sink.open(nodes)
    for name, node in nodes.items():
        rows = changed_page(sink.read_back(name), node.schema, node.time)
        assert History.of([rows], node.schema) == wanted(tmp_path, name)


def test_a_source_more_is_read_from_its_beginning(tmp_path):
    stopped(tmp_path, 4)
    (tmp_path / "other").mkdir()
    put(tmp_path / "other", 0, 4)
    both = read(tmp_path).union(read(tmp_path / "other", name="other"))
    plan = both.where(col("v") > 2).group_by("id").tumbling(10).agg(n=cz.count())
    query(tmp_path, plan, on_change="rebuild").run()
    alone = plan.query(checkpoint=f"memory://{uuid.uuid4().hex}", every="1h")
    alone.run()
    assert held(tmp_path, "old") == History.of(alone.take("out"), SCHEMA) != wanted(tmp_path, "old")


EDGES = pa.schema([("t", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("w", pa.int64())])


def put_edges(folder, number, seed, rows=10):
    drawn = random.Random(f"{seed} edges {number}")
    (folder / "in").mkdir(exist_ok=True)
    edges = [
        {"t": 6 * number + at, "a": drawn.randrange(4), "b": drawn.randrange(4), "w": drawn.randrange(1, 5)}
        for at in range(rows)
    ]
    pq.write_table(pa.Table.from_pylist(edges, EDGES), folder / "in" / f"{number}.parquet")


def paths(folder, least=0, lasting=15, keep="distinct"):
    """Which nodes are reached from which, while the edges live; or how cheaply."""
    edges = read(folder).where(col("w") > least).set_duration(lasting)
    if keep == "distinct":
        seed = edges.select("a", "b")
        on = edges.select(b=col("a"), c=col("b"))
        return cz.fixpoint(seed, lambda r: r.join(on, on="b").select("a", b=col("c")), keep="distinct")
    on = edges.select(b=col("a"), c=col("b"), more=col("w"))
    body = lambda r: r.join(on, on="b").select("a", b=col("c"), w=col("w") + col("more"))  # noqa: E731
    return cz.fixpoint(edges.select("a", "b", "w"), body, keep=cz.least("w", per=["a", "b"]))


LOOPS = {
    "filter": (lambda f: paths(f), lambda f: paths(f, least=1)),
    "lifetime": (lambda f: paths(f), lambda f: paths(f, lasting=9)),
    "behind": (lambda f: paths(f), lambda f: paths(f).where(col("a") != col("b"))),
    "least": (lambda f: paths(f, keep="least"), lambda f: paths(f, least=2, keep="least")),
    "a loop comes": (lambda f: read(f).select("a", "b").set_duration(5), lambda f: paths(f)),
    "a loop goes": (lambda f: paths(f), lambda f: read(f).select("a", "b").set_duration(5)),
}


def history_of(folder, stream):
    sink = ParquetSink(str(folder / "out"))
    sink.open({"out": stream.node})
    return History.of([changed_page(sink.read_back("out"), stream.schema, stream.node.time)], stream.schema)


def alone_on(stream):
    alone = stream.query(checkpoint=f"memory://{uuid.uuid4().hex}", every="1h")
    alone.run()
    return History.of(alone.take("out"), stream.schema)


@pytest.mark.thin(3)
@pytest.mark.parametrize("steps", [None, 9] if DEPTH == 1 else [None, 2, 9, 23])
@pytest.mark.parametrize("change", LOOPS)
def test_a_rebuilt_loop_comes_to_rest_at_the_history_of_the_new_plan(change, steps, tmp_path):
    old, new = LOOPS[change]
    for number in range(3):
        put_edges(tmp_path, number, change)
    made = query(tmp_path, old(tmp_path))
    if steps is None:
        made.run()
    else:
        for _ in range(steps):
            made.step()
        made.save()
        made.close()
    query(tmp_path, new(tmp_path), on_change="rebuild").run()
    assert history_of(tmp_path, new(tmp_path)) == alone_on(new(tmp_path))
    put_edges(tmp_path, 3, change)
    query(tmp_path, new(tmp_path)).run()
    assert history_of(tmp_path, new(tmp_path)) == alone_on(new(tmp_path))
    assert len(history_of(tmp_path, new(tmp_path))) > 0


def test_a_loop_that_is_cut_is_not_rebuilt(tmp_path):
    put_edges(tmp_path, 0, 1)
    numbers = read(tmp_path).select("a", n=col("w"))
    loop = cz.fixpoint(numbers, lambda r: r.select("a", n=col("n") + 1), max_rounds=3)
    query(tmp_path, loop).run()
    with pytest.raises(StreamError, match="is cut after 3 rounds, and how deep a row lies"):
        query(tmp_path, loop.where(col("n") > 2).tumbling(5).agg(n=cz.count()), on_change="rebuild")
