"""A new plan reads beside the query that runs; the switch reads the rest, and ends as if it had read all."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from depth import DEPTH, examples
from test_change import (
    LOOPS,
    PLANS,
    SCHEMA,
    Ticking,
    clocked,
    held,
    history_of,
    put,
    put_edges,
    query,
    rows_of,
    rows_wanted,
    wanted,
)

import caesura as cz
from caesura import col
from caesura.cli.late import rejected
from caesura.errors import StreamError
from caesura.events import History
from caesura.events.chunks import json_chunk
from caesura.io.ingress.policy import Policy
from caesura.io.places import Place
from caesura.io.places.lease import Lease, _began
from caesura.io.places.local import LocalStorage
from caesura.io.sources.protocol import Reader
from caesura.io.sources.source import Source
from caesura.plan.prune import prune
from caesura.runtime.durable.manifest import Manifests
from caesura.runtime.durable.prepared import PreparedFolder
from caesura.runtime.durable.preparing import prepare
from caesura.runtime.query.pipelines import StateLog


def prepared(folder, stream, **options):
    return stream.prepare_upgrade(folder / "cp", **options)


def run_beside(folder, old, new, drawn, *, speak=lambda query: None, to_end=False, **options):
    """The old query runs, is saved and stops at drawn places; the new plan reads beside it, once or twice."""
    made = query(folder, old, **options)
    at = sorted(drawn.sample(range(1, 14), drawn.choice([1, 2])))
    for step in range(drawn.randrange(at[-1] + 1, 17)):
        made.step()
        if drawn.random() < 0.4:
            speak(made)
        if step in at or drawn.random() < 0.3:
            made.save()
        if step in at:
            prepared(folder, new, **options)
    if to_end:
        made.run()
    made.save()
    made.close()


def switched_both_ways(folder, new, **options):
    """What the sink holds after the switch with what was prepared, and without."""
    for name in ("cp", "out"):
        shutil.copytree(folder / name, folder / "apart" / name)
    (folder / "apart" / "in").symlink_to(folder / "in")
    shutil.rmtree(folder / "apart" / "cp" / "prepared")
    query(folder, new(folder), on_change="rebuild", **options).close()
    query(folder / "apart", new(folder), on_change="rebuild", **options).close()
    assert not (folder / "cp" / "prepared").exists()
    return history_of(folder, new(folder)), history_of(folder / "apart", new(folder))


@pytest.mark.thin(2)
@pytest.mark.parametrize("seed", range(examples(6, short=2)))
@pytest.mark.parametrize("plan", [name for name in PLANS if name != "old"])
def test_a_prepared_switch_ends_as_one_that_reads_all(plan, seed, tmp_path):
    drawn = random.Random(f"{plan} {seed}")
    for number in range(4):
        put(tmp_path, number, f"{plan} {seed}")
    run_beside(tmp_path, "old", PLANS[plan](tmp_path), drawn)
    one, other = switched_both_ways(tmp_path, PLANS[plan])
    assert one == other
    query(tmp_path, plan).run()
    assert held(tmp_path, plan) == wanted(tmp_path, plan)
    put(tmp_path, 4, plan)
    query(tmp_path, plan).run()
    assert held(tmp_path, plan) == wanted(tmp_path, plan)


@pytest.mark.parametrize("seed", range(examples(2, short=1)))
@pytest.mark.parametrize("change", LOOPS)
def test_a_prepared_loop_comes_to_the_same_rest(change, seed, tmp_path):
    old, new = LOOPS[change]
    for number in range(4):
        put_edges(tmp_path, number, f"{change} {seed}")
    run_beside(tmp_path, old(tmp_path), new(tmp_path), random.Random(f"{change} {seed}"))
    one, other = switched_both_ways(tmp_path, new)
    assert one == other and len(one)


@pytest.mark.parametrize("seed", [0, 2, 5] if DEPTH == 1 else range(8 * DEPTH))  # a plan each
def test_feedback_comes_again_behind_what_was_prepared(seed, tmp_path):
    drawn = random.Random(f"said {seed}")
    for number in range(4):
        put(tmp_path, number, f"said {seed}")

    def speak(made):
        said = [line for line in made.feedback() if line.startswith("#")]
        if said and drawn.random() < 0.5:
            made.withdraw(int(said[0][1:].split(" ")[0]))
        else:
            made.assume(col("id") == drawn.randrange(2))

    plan = drawn.choice(["filter", "size", "no filter"])
    run_beside(tmp_path, "old", PLANS[plan](tmp_path), drawn, speak=speak)
    from_another_process(tmp_path)
    one, other = switched_both_ways(tmp_path, PLANS[plan])
    assert one == other
    new = PLANS[plan](tmp_path)
    stands = [query(place, new).feedback() for place in (tmp_path, tmp_path / "apart")]
    assert stands[0] == stands[1]
    assert stands[0] or DEPTH > 1  # in a long run there are seeds whose feedback is over, or was withdrawn


def from_another_process(folder):
    """What was prepared, as if its outputs had had other fingerprints there."""
    file = folder / "cp" / "prepared" / "prepared.json"
    told = json.loads(file.read_text())
    log = StateLog(Place.of(file.parent / "state"), {})
    if "readers" in log.load(told["state"]):
        log.begin_anew({**log.whole, "readers": json_chunk([["out", "elsewhere"]])})
        file.write_text(json.dumps({**told, "state": log.save(99, {})}))


def test_a_reading_that_is_replaced_later_is_let_in_as_it_became(tmp_path, monkeypatch):
    monkeypatch.setattr(Reader, "clock", Ticking(start=0, step=7))
    policy = Policy(beat="1us", clock_lag=6, lag=40, closes=False)
    put(tmp_path, 0, 1)
    plain = clocked(tmp_path, policy)
    made = query(tmp_path, plain.group_by("id").tumbling(10).agg(n=cz.count()))
    while sum(made.parts.readers["in"].offsets.values()) < 12:
        made.step()
    for _ in range(2):
        made.parts.readers["in"].pass_over()
        made.save()
        prepared(tmp_path, plain.group_by("id").tumbling(15).agg(n=cz.count()))
    made.close()
    put(tmp_path, 2, 1)
    query(tmp_path, plain.group_by("id").tumbling(10).agg(n=cz.count())).run()
    one, other = switched_both_ways(
        tmp_path, lambda f: clocked(f, policy).group_by("id").tumbling(15).agg(n=cz.count())
    )
    assert one == other
    assert rejected(Place.of(tmp_path / "out"))["in"].num_rows > 0


@pytest.mark.parametrize("seed", [0, 2, 11] if DEPTH == 1 else range(8 * DEPTH))  # a step of the clock each
def test_readings_of_the_clock_come_again_behind_what_was_prepared(seed, tmp_path, monkeypatch):
    drawn = random.Random(f"clock {seed}")
    monkeypatch.setattr(Reader, "clock", Ticking(start=0, step=drawn.choice([2, 5, 9])))
    policy = Policy(beat="1us", clock_lag=6, lag=4, closes=False)
    for number in range(4):
        put(tmp_path, number, f"clock {seed}")
    plain = clocked(tmp_path, policy)
    old = plain.group_by("id").tumbling(10).agg(n=cz.count())
    run_beside(tmp_path, old, plain.group_by("id").tumbling(15).agg(n=cz.count()), drawn)
    one, other = switched_both_ways(
        tmp_path, lambda f: clocked(f, policy).group_by("id").tumbling(15).agg(n=cz.count())
    )
    assert one == other and len(one)


@pytest.mark.parametrize(
    ("plan", "final_rows"),
    [*((plan, "new_generation") for plan in ("filter", "size", "two steps")), ("filter", "keep")],
)
def test_final_rows_are_as_after_a_switch_that_reads_all(plan, final_rows, tmp_path):
    for number in range(4):
        put(tmp_path, number, plan)
    run_beside(tmp_path, "old", PLANS[plan](tmp_path), random.Random(plan), to_end=True, output="marked")
    with pytest.raises(StreamError, match="that were final would differ"):
        query(tmp_path, plan, output="marked", on_change="rebuild")
    assert 0 < prepared(tmp_path, PLANS[plan](tmp_path), output="marked").rows < 48
    options = {"output": "marked", "final_rows": final_rows}
    one, other = switched_both_ways(tmp_path, PLANS[plan], **options)
    apart = rows_of(tmp_path / "apart", plan, "marked")
    assert one == other and rows_of(tmp_path, plan, "marked") == apart and apart[1]
    assert Counter(rejected_of(tmp_path)) == Counter(rejected_of(tmp_path / "apart"))
    if final_rows == "new_generation":
        query(tmp_path, plan, output="marked").run()
        assert rows_of(tmp_path, plan, "marked") == rows_wanted(tmp_path, plan, "marked")


def rejected_of(folder):
    return [str(row) for table in rejected(Place.of(folder / "out")).values() for row in table.to_pylist()]


def test_late_rows_of_a_new_generation_are_those_of_the_new_plan(tmp_path):
    for number in range(4):
        put(tmp_path, number, 5)
    made = query(tmp_path, "shorter delay")
    more = PLANS["shorter delay"](tmp_path).with_columns(twice=col("n") * 2)
    for _ in range(9):
        made.step()
    made.save()
    assert prepared(tmp_path, more).rows
    made.run()
    query(tmp_path, more, on_change="rebuild", final_rows="new_generation").run()
    assert rejected(Place.of(tmp_path / "out"))["in"].num_rows == more.run().late["in"].num_rows > 0


def test_no_row_is_read_twice(tmp_path, monkeypatch):
    for number in range(3):
        put(tmp_path, number, 1)
    made, read = query(tmp_path, "old"), []
    real = Source.read_between

    def counted(self, start, end=None):
        for raw in real(self, start, end):
            read.append((raw.offset, raw.end))
            yield raw

    monkeypatch.setattr(Source, "read_between", counted)
    for steps in (4, 7):
        for _ in range(steps):
            made.step()
        made.save()
        before = len(read)
        rows = prepared(tmp_path, PLANS["size"](tmp_path)).rows
        assert rows == sum(end - start for start, end in read[before:]) > 0
    made.run()
    query(tmp_path, "size", on_change="rebuild").close()
    assert [row for start, end in read for row in range(start, end)] == list(range(36))


def test_what_was_read_is_saved_as_it_goes_and_not_read_again(tmp_path):
    for number in range(3):
        put(tmp_path, number, 2)
    query(tmp_path, "old").run()
    place, outputs = Place.of(tmp_path / "cp").absolute(), prune({"out": PLANS["size"](tmp_path).node})
    ticks = iter(range(1000))

    def cut_off():
        if (now := next(ticks)) == 7:
            raise KeyboardInterrupt
        return float(now)

    with pytest.raises(KeyboardInterrupt):
        prepare(outputs, place, every=2.0, now=cut_off)
    done = PreparedFolder(place).read()
    assert done is not None and done.number == 2
    rest = prepare(outputs, place)
    assert 0 < rest.rows < rest.rows_in_all == 36
    query(tmp_path, "size", on_change="rebuild").run()
    assert held(tmp_path, "size") == wanted(tmp_path, "size")


def test_a_query_that_saves_and_sweeps_meanwhile_is_seen_at_one_moment(tmp_path, monkeypatch):
    for number in range(3):
        put(tmp_path, number, 3)
    made = query(tmp_path, "old")
    made.step()
    made.save()
    real, went_on = Manifests.last, []

    def overtaken(self):
        found = real(self)
        if not went_on:
            went_on.append(found.number)
            for _ in range(80):  # so that the files that this manifest names are replaced and removed
                made.step()
                made._entered.clock({"in": {"0": made._last.number}}, 1)
                made.save()
            assert not (tmp_path / "cp" / "state" / found.state[0]).exists()
        return found

    monkeypatch.setattr(Manifests, "last", overtaken)
    last, chunks = Manifests(Place.of(tmp_path / "cp")).saved()
    assert last.number > went_on[0] + 70
    assert all("/" not in name for name in chunks) and "offsets" in chunks


def in_the_middle(folder, seed, rows=3):
    """The old query, which has read some of its input and runs on."""
    for number in range(rows):
        put(folder, number, seed)
    made = query(folder, "old")
    for _ in range(15):
        made.step()
    made.save()
    return made


def test_whatever_is_cut_off_the_old_query_goes_on_and_preparing_too(tmp_path, monkeypatch):
    made = in_the_middle(tmp_path, 7)
    read = sum(made.parts.readers["in"].offsets.values())
    before = {file: file.read_bytes() for file in checkpoint_files(tmp_path)}
    writes = ("put", "update", "remove")
    real, left = {name: getattr(LocalStorage, name) for name in writes}, [-1]
    own = threading.get_ident()  # another thread beats for leases

    def cut_off(name):
        def write(*args, **options):
            left[0] -= threading.get_ident() == own
            if left[0] == 0 and threading.get_ident() == own:
                raise KeyboardInterrupt
            return real[name](*args, **options)

        return write

    for name in writes:
        monkeypatch.setattr(LocalStorage, name, cut_off(name))
    monkeypatch.setattr(Lease, "release", lambda self: None)
    folder, histories, whole = PreparedFolder(Place.of(tmp_path / "cp")), [], False
    while not whole:
        shutil.rmtree(tmp_path / "cp" / "prepared", ignore_errors=True)
        left[0] = 1 + len(histories)
        with suppress(KeyboardInterrupt):
            prepared(tmp_path, PLANS["size"](tmp_path), every="0s")
            whole = True
        left[0] = -1
        assert prepared(tmp_path, PLANS["size"](tmp_path)).rows_in_all == read
        histories.append(History.of(folder.history(folder.read())["out"], SCHEMA))
    monkeypatch.undo()
    assert len(histories) > 8 and all(one == histories[-1] for one in histories)
    assert {file: file.read_bytes() for file in checkpoint_files(tmp_path)} == before
    made.run()
    assert held(tmp_path, "old") == wanted(tmp_path, "old")
    query(tmp_path, "size", on_change="rebuild").run()
    assert held(tmp_path, "size") == wanted(tmp_path, "size")


def checkpoint_files(folder):
    """The files of the checkpoint and the output, but for those that change with time alone."""
    kept = ("prepared", "lease.json", "status.json")
    files = [file for part in ("cp", "out") for file in (folder / part).rglob("*") if file.is_file()]
    return [file for file in files if not any(name in str(file.relative_to(folder)) for name in kept)]


def test_a_process_that_is_killed_while_it_prepares_harms_nothing(tmp_path):
    made = in_the_middle(tmp_path, 8)
    script = Path(__file__).with_name("killed_preparing.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script, tmp_path, "5"], env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found = PreparedFolder(Place.of(tmp_path / "cp")).read()
    assert found is not None and found.number == 1
    made.run()
    rest = prepared(tmp_path, PLANS["size"](tmp_path))
    assert 0 < rest.rows < rest.rows_in_all
    assert held(tmp_path, "old") == wanted(tmp_path, "old")
    query(tmp_path, "size", on_change="rebuild").run()
    assert held(tmp_path, "size") == wanted(tmp_path, "size")


def test_another_plan_is_read_from_the_beginning_and_that_is_said(tmp_path, caplog):
    for number in range(3):
        put(tmp_path, number, 4)
    query(tmp_path, "old").run()
    prepared(tmp_path, PLANS["filter"](tmp_path))
    with caplog.at_level(logging.WARNING, "caesura.epochs"):
        query(tmp_path, "size", on_change="rebuild").run()
    assert "is not used, since it is of another plan: reading from the beginning" in caplog.text
    assert held(tmp_path, "size") == wanted(tmp_path, "size")
    assert not (tmp_path / "cp" / "prepared").exists()


def test_a_checkpoint_that_was_put_back_has_read_less(tmp_path, caplog):
    for number in range(3):
        put(tmp_path, number, 4)
    made = query(tmp_path, "old")
    for _ in range(4):
        made.step()
    made.save()
    shutil.copytree(tmp_path / "cp", tmp_path / "then")
    made.run()
    prepared(tmp_path, PLANS["size"](tmp_path))
    shutil.copytree(tmp_path / "cp" / "prepared", tmp_path / "then" / "prepared")
    node = PLANS["size"](tmp_path).node
    with caplog.at_level(logging.WARNING, "caesura.epochs"):
        assert prepare(prune({"out": node}), Place.of(tmp_path / "then").absolute()).rows_in_all < 36
    assert "since it has read more of 'in' than the query" in caplog.text


def test_a_damaged_preparation_stops_by_name_and_the_old_plan_goes_on(tmp_path):
    for number in range(3):
        put(tmp_path, number, 4)
    query(tmp_path, "old").run()
    prepared(tmp_path, PLANS["size"](tmp_path))
    for file in sorted((tmp_path / "cp" / "prepared").rglob("*.*")):
        if not file.is_file() or file.name.endswith("lease.json") or file.name.startswith("."):
            continue
        whole = file.read_bytes()
        for broken in (whole[: len(whole) // 2], None):
            file.unlink()
            if broken is not None:
                file.write_bytes(broken)
            elif file.name == "prepared.json":
                continue  # nothing is prepared then
            with pytest.raises(StreamError, match=file.name):
                query(tmp_path, "size", on_change="rebuild")
        file.write_bytes(whole)
    query(tmp_path, "old").close()
    assert held(tmp_path, "old") == wanted(tmp_path, "old")
    query(tmp_path, "size", on_change="rebuild").run()
    assert held(tmp_path, "size") == wanted(tmp_path, "size")


def test_a_preparation_of_a_later_version_stops_by_name(tmp_path):
    put(tmp_path, 0, 4)
    query(tmp_path, "old").run()
    prepared(tmp_path, PLANS["size"](tmp_path))
    file = tmp_path / "cp" / "prepared" / "prepared.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 9}))
    with pytest.raises(StreamError, match="has format 9; this version reads formats up to 1"):
        query(tmp_path, "size", on_change="rebuild")


def test_a_switch_that_was_made_by_another_is_not_prepared_for(tmp_path):
    for number in range(3):
        put(tmp_path, number, 6)
    query(tmp_path, "old").run()
    prepared(tmp_path, PLANS["size"](tmp_path))
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / "cp" / "prepared", kept)
    query(tmp_path, "size", on_change="rebuild").run()
    shutil.copytree(kept, tmp_path / "cp" / "prepared")  # as if the switch was cut off before it removed it
    query(tmp_path, "size").close()
    assert not (tmp_path / "cp" / "prepared").exists()


def test_a_plan_that_is_prepared_while_the_query_goes_over_to_another_stops(tmp_path):
    for number in range(3):
        put(tmp_path, number, 6)
    query(tmp_path, "old").run()
    place, outputs = Place.of(tmp_path / "cp").absolute(), prune({"out": PLANS["size"](tmp_path).node})
    ticks = iter(range(1000))

    def meanwhile():
        if next(ticks) == 3:
            PreparedFolder(place).clear()
            query(tmp_path, "filter", on_change="rebuild").close()
        return 0.0

    with pytest.raises(StreamError, match="has gone over to another plan while this one was prepared"):
        prepare(outputs, place, now=meanwhile)
    assert not (tmp_path / "cp" / "prepared").exists()
    assert held(tmp_path, "filter") == wanted(tmp_path, "filter")


def test_the_lease_of_the_query_is_neither_needed_nor_touched(tmp_path):
    put(tmp_path, 0, 1)
    made = query(tmp_path, "old")
    made.step()
    made.save()
    lease = tmp_path / "cp" / "lease.json"
    before = json.loads(lease.read_text())
    prepared(tmp_path, PLANS["size"](tmp_path))
    assert json.loads(lease.read_text())["number"] == before["number"] == made.starts
    made.run()
    assert held(tmp_path, "old") == wanted(tmp_path, "old")


def test_two_do_not_prepare_at_once(tmp_path):
    put(tmp_path, 0, 1)
    query(tmp_path, "old").run()
    Lease.take(Place.of(tmp_path / "cp" / "prepared")).release()
    file = tmp_path / "cp" / "prepared" / "lease.json"
    held_by = {**json.loads(file.read_text()), "released": False, "process": 1, "began": _began(1)}
    file.write_text(json.dumps(held_by))
    for start in (
        lambda **more: prepared(tmp_path, PLANS["size"](tmp_path), **more),
        lambda **more: query(tmp_path, "size", on_change="rebuild", **more),
    ):
        with pytest.raises(StreamError, match=r"prepared' is in use by process 1"):
            start()
    prepared(tmp_path, PLANS["size"](tmp_path), take_over=True)
    query(tmp_path, "size", on_change="rebuild").run()
    assert held(tmp_path, "size") == wanted(tmp_path, "size")


def test_what_need_not_or_cannot_be_prepared_is_refused(tmp_path):
    with pytest.raises(StreamError, match="no query has saved anything"):
        prepared(tmp_path, read_rows := cz.from_rows([{"t": 1, "id": 1}], time="t"))
    put(tmp_path, 0, 1)
    query(tmp_path, "old").run()
    with pytest.raises(StreamError, match="there is nothing to prepare"):
        prepared(tmp_path, PLANS["old"](tmp_path))
    with pytest.raises(StreamError, match="cannot be rebuilt"):
        prepared(tmp_path, cz.input_stream("by hand", read_rows.schema))
    assert not (tmp_path / "cp" / "prepared").exists()
