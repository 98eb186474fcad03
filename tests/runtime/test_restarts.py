"""A source whose content changed between two starts: all its rows come once, or the query refuses by name."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from depth import examples, seed_of
from restart_worlds import KINDS, SCHEMA, Files, Logs, Topic, World

import caesura as cz
from caesura.errors import CaesuraError, PlanError, StreamError

EXAMPLES = examples(20, short=1)
GROWN = "grown"


def read_on(world: World, folder: Path, steps: int | None = None) -> list[int]:
    """What the sink holds when the query was started again; where it stops after some steps, by then."""
    with world.broker.served() if isinstance(world, Topic) else nullcontext():
        query = world.stream().query(checkpoint=folder / "checkpoint", sink=folder / "sink")
        try:
            if steps is None:
                query.run()
            for _ in range(steps or 0):
                query.step()
            query.save()
            return sorted(query.table()["id"].to_pylist())
        finally:
            query.close()


def check(world: World, fate: str, folder: Path, steps: int | None) -> str:
    """Starts, lets the fate happen, and starts again; what came of it."""
    before = read_on(world, folder, steps)
    world.fates[fate]()
    try:
        after = read_on(world, folder)
    except CaesuraError as error:
        assert fate not in world.must_read_on, f"it could have read on: {error}"
        assert "rows" in str(error), f"it does not say which source it is: {error}"
        assert error.remedy, f"it does not say what to do: {error}"
        return "refused"
    assert after == sorted({*before, *world.rows}), "rows are lost, or come twice"
    assert world.forgets or {*before} <= {*world.rows}, "rows that were read are gone, and nothing is said"
    assert world.unread <= {*before}, "rows are gone that nobody has read, and nothing is said"
    return "read on"


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_restart_all_rows_of_a_source_come_once_or_it_is_said_why_not(
    kind: str, tmp_path: Path
) -> None:
    seed, seen = seed_of("restarts", kind), dict[str, set[str]]()
    for example in range(EXAMPLES):
        names = KINDS[kind](tmp_path / f"names-{example}", Random(0)).fates
        for number, fate in enumerate(names):
            folder = tmp_path / f"{example}-{number}"
            folder.mkdir()
            world = KINDS[kind](folder / "in", Random(seed + example))
            steps = None if (example + number) % 2 else world.least_steps + example % 3
            try:
                seen.setdefault(fate, set()).add(check(world, fate, folder, steps))
            except AssertionError as wrong:
                raise AssertionError(f"{kind}, {fate}, after {steps} steps, seed {seed + example}") from wrong
    assert any("refused" in answers for answers in seen.values()), "nothing was ever refused"
    assert "read on" in seen["nothing"]


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_a_folder_without_a_policy_is_heard_at_every_start(form: str, tmp_path: Path) -> None:
    world, held = KINDS[form](tmp_path / "in", Random(3)), []
    for _ in range(3):
        held.append((read_on(world, tmp_path), sorted(world.rows)))
        world.grow()
    assert all(found == there for found, there in held)


def test_claimed_views_of_a_folder_are_heard_at_every_start(tmp_path: Path) -> None:
    world, held = KINDS["csv"](tmp_path / "in", Random(3)), []
    for _ in range(3):
        cz.pipeline(rows=world.stream()).write(tmp_path / "views")
        table = cz.read_claimed(tmp_path / "views").table("rows")
        held.append((sorted(table["id"].to_pylist()), sorted(world.rows)))
        world.grow()
    assert all(found == there for found, there in held)


def test_final_rows_that_never_come_are_refused(tmp_path: Path) -> None:
    stream = KINDS["csv"](tmp_path / "in", Random(3)).stream()
    with pytest.raises(PlanError, match="no row ever becomes final: 'rows' promises nothing"):
        stream.query(checkpoint=tmp_path / "checkpoint", sink=tmp_path / "sink", output="final")
    assert len(stream.run(output="final").table()), "what is read once ends"


def test_what_comes_behind_an_end_that_was_promised_is_refused_by_name(tmp_path: Path) -> None:
    world = KINDS["arrow"](tmp_path / "in", Random(3))
    read_on(world, tmp_path)
    world.grow()
    with pytest.raises(StreamError, match=r"step 'rows' .*rows have come behind its end"):
        read_on(world, tmp_path)


def test_a_checkpoint_that_knows_names_only_is_read_and_compared_from_then_on(tmp_path: Path) -> None:
    world = Files("csv", tmp_path / "in", Random(3))
    reader = world.stream().node.reader
    rows = len(world.rows)
    assert sum(raw.batch.num_rows for raw in reader.read({})) == rows
    now = reader.passed({0: rows})
    then = {name: at for name, at in now.items() if name in ("files", "names")}
    world.rewrite(world.fresh(9))
    assert reader.displaced(then) == ""
    assert "was written anew after it was read" in reader.displaced(now)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_log_that_grew_is_read_on_once_its_user_says_that_it_may(form: str, tmp_path: Path) -> None:
    world = Files(form, tmp_path / "in", Random(3))
    read_on(world, tmp_path)
    logs = Logs(form, tmp_path / "other", Random(3))
    logs.folder, logs.parts, logs.written = world.folder, world.parts, world.written
    logs.lengthen()
    with pytest.raises(StreamError, match=r"was written anew(.|\n)*appended=True"):
        read_on(world, tmp_path)
    assert read_on(logs, tmp_path) == sorted(logs.rows)


def test_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    log, read = tmp_path / "log.csv", []
    for text in ("t,id\n1,10", "\n2,2", "0\n", "3,30\n4,40\n", ""):
        log.write_text((log.read_text() if log.exists() else "") + text)
        stream = cz.read.csv(log, schema=SCHEMA, time="t", appended=True, name="rows")
        with stream.query(checkpoint=tmp_path / "checkpoint", sink=tmp_path / "sink") as query:
            query.run()
            read.append(sorted(query.table()["id"].to_pylist()))
    assert read == [[], [10], [10, 20], [10, 20, 30, 40], [10, 20, 30, 40]]


def test_a_log_of_many_blocks_is_read_as_if_it_ended_where_it_was_listed(tmp_path: Path) -> None:
    log, rows = tmp_path / "log.csv", 40_000
    log.write_text("t,id\n" + "".join(f"{n},{n}\n" for n in range(rows)) + "7" * 100_000)
    reader = cz.read.csv(log, schema=SCHEMA, time="t", appended=True).node.reader
    assert sum(raw.batch.num_rows for raw in reader.read({})) == rows
    known = reader.passed({0: rows})
    log.write_text(log.read_text() + "\n")
    assert reader.displaced(known) == ""
    log.write_text(log.read_text().replace("39999,39999", "39999,39998"))
    assert "does not begin any more with what was read of it" in reader.displaced(known)
