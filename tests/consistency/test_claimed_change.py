"""A pipeline with claims goes on with another plan: each claim is the answer of the plan that it names."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import DEPTH
from typer.testing import CliRunner

import caesura as cz
from caesura import Stream, col
from caesura.audit import audit
from caesura.cli.main import app
from caesura.errors import CaesuraError, StreamError
from caesura.events import History

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])


def put(folder: Path, number: int, seed: object, name: str = "in") -> None:
    """A file of disordered rows, some of them late."""
    drawn = random.Random(f"{seed} {name} {number}")
    (folder / name).mkdir(exist_ok=True, parents=True)
    rows = [
        {"t": 10 * number + at + drawn.randrange(9), "id": drawn.randrange(2), "v": drawn.randrange(8)}
        for at in range(12)
    ]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / name / f"{number}.parquet")


def read(folder: Path, name: str = "in", lag: int = 4) -> Stream:
    return cz.read.parquet(folder / name, time="t", punctuate=cz.delay(lag), name=name, batch_size=5)


def counted(rows: Stream, size: int = 10, **more: Any) -> Stream:
    return rows.group_by("id").tumbling(size).agg(**(more or {"n": cz.count()}))


PLANS = {
    "old": lambda f: {"kept": read(f).where(col("v") > 2), "n": counted(read(f).where(col("v") > 2))},
    "filter": lambda f: {"kept": read(f).where(col("v") > 4), "n": counted(read(f).where(col("v") > 4))},
    "filter behind": lambda f: {
        "kept": read(f).where(col("v") > 2),
        "n": counted(read(f).where(col("v") > 2)).where(col("n") > 1),
    },
    "size": lambda f: {"kept": read(f).where(col("v") > 2), "n": counted(read(f).where(col("v") > 2), 15)},
    "aggregate": lambda f: {
        "kept": read(f).where(col("v") > 2),
        "n": counted(read(f).where(col("v") > 2), n=cz.sum("v")),
    },
    "delay": lambda f: {"kept": read(f, lag=1), "n": counted(read(f, lag=1))},
    "a view more": lambda f: {**PLANS["old"](f), "top": read(f).group_by("id").totals(v=cz.max("v"))},
    "a view less": lambda f: {"n": counted(read(f).where(col("v") > 2))},
    "names changed": lambda f: (
        {"n": PLANS["old"](f)["n"], "kept": PLANS["old"](f)["kept"].select("v", "id")}
        | {"kept": PLANS["filter"](f)["kept"]}
    ),
    "a source more": lambda f: {
        "kept": read(f).union(read(f, "more")),
        "n": counted(read(f).union(read(f, "more"))),
    },
}


def stopped(folder: Path, plan: str, claims: int | None = None, **options: Any) -> list[cz.Claim]:
    """The views of a plan, written until so many claims were made."""
    made = []
    mode = options.pop("mode", cz.tokens(every=7))
    writing = cz.pipeline(**PLANS[plan](folder)).writing(folder / "out", claims=mode, **options)
    for claim in writing:
        made.append(claim)
        if len(made) == claims:
            break
    writing.close()
    return made


def plans_of(folder: Path, *names: str) -> dict[int, Any]:
    return {n: cz.pipeline(**PLANS[name](folder)).nodes for n, name in enumerate(names, start=1)}


def bags(folder: Path) -> dict[str, Any]:
    seen = cz.read_claimed(folder / "out")
    return {view: seen.history(view).bag for view in seen.views}


def wanted(folder: Path, plan: str) -> dict[str, Any]:
    """The views of a plan that was never changed."""
    done = cz.pipeline(**PLANS[plan](folder)).run()
    return {view: History.of(done[view].items, node.schema).bag for view, node in _nodes(folder, plan)}


def _nodes(folder: Path, plan: str) -> Any:
    return cz.pipeline(**PLANS[plan](folder)).nodes.items()


def filled(folder: Path, seed: object) -> None:
    for number in range(4):
        put(folder, number, seed)
    put(folder, 0, seed, "more")


NEW = [name for name in PLANS if name != "old"]


def tried(stops: list[Any]) -> list[Any]:
    """Every new plan with one of the stops, each in turn; in a long search with all of them."""
    if DEPTH > 1:
        return [(plan, stop) for plan in NEW for stop in stops]
    return [(plan, stops[number % len(stops)]) for number, plan in enumerate(NEW)]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("plan", "claims"), tried([1, 3, None]))
def test_a_rebuild_ends_in_a_claim_of_the_new_plan_on_the_same_prefix(
    plan: str, claims: int | None, tmp_path: Path
) -> None:
    filled(tmp_path, plan)
    before = stopped(tmp_path, "old", claims)
    made = stopped(tmp_path, plan, on_change="rebuild")
    assert made[0].number == before[-1].number + 1
    assert (made[0].plans, made[0].generation) == ((2,), 1)
    assert made[0].prefix["in"].offsets == before[-1].prefix["in"].offsets
    assert bags(tmp_path) == wanted(tmp_path, plan)
    report = audit(
        tmp_path / "out",
        plan=plans_of(tmp_path, "old", plan)[2],
        earlier={1: plans_of(tmp_path, "old")[1]},
    )
    assert report.right, str(report)
    assert {f.claim.plan for f in report.findings} == {1, 2}
    swapped = plans_of(tmp_path, plan, "old")
    if set(swapped[1]) == set(swapped[2]):
        assert not audit(tmp_path / "out", plan=swapped[2], earlier={1: swapped[1]}).right


@pytest.mark.slow
def test_every_plan_that_there_was_is_audited_by_its_own(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    names = ["old", "size", "a view more", "filter", "old"]
    for at, name in enumerate(names):
        stopped(tmp_path, name, 2 if at < len(names) - 1 else None, on_change="rebuild")
    assert bags(tmp_path) == wanted(tmp_path, "old")
    plans = plans_of(tmp_path, *names)
    report = audit(tmp_path / "out", plan=plans[5], earlier=plans)
    assert report.right and {f.claim.plan for f in report.findings} == {1, 2, 3, 4, 5}, str(report)
    assert audit(tmp_path / "out", plan="stored").right
    less = audit(tmp_path / "out", plan=plans[5])
    assert not less.right and "by plan 1, which was not given" in str(less)


def test_another_plan_is_not_taken_unasked(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    stopped(tmp_path, "old", 2)
    for plan in ("size", "filter behind"):
        with pytest.raises(StreamError, match=r"holds the views of another pipeline \(kept, n\)"):
            stopped(tmp_path, plan)
    with pytest.raises(StreamError, match="would begin in the middle of the stream"):
        stopped(tmp_path, "size", on_change="continue")
    stopped(tmp_path, "old")
    assert bags(tmp_path) == wanted(tmp_path, "old")


def test_claims_of_a_plan_that_went_on_from_here_name_both(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    before = stopped(tmp_path, "old", 2)
    switch, *rest = stopped(tmp_path, "filter", on_change="continue")
    assert (switch.number, switch.plans, switch.prefix) == (3, (1, 2), before[-1].prefix)
    assert rest and all(claim.plans == (1, 2) for claim in rest)
    assert str(switch).endswith(", by plans 1, then 2, each on what it has read")
    assert stopped(tmp_path, "filter") == []
    report = audit(tmp_path / "out", plan="stored")
    assert not report.right
    assert {f.claim.plan for f in report.findings if f.right} == {1}
    assert all("by none alone" in f.why for f in report.findings if f.claim.plan == 2)
    stopped(tmp_path, "filter behind", on_change="rebuild")
    assert bags(tmp_path) == wanted(tmp_path, "filter behind")
    last = cz.read_claimed(tmp_path / "out").claim
    assert last.plans == (3,) and str(last).endswith(", by plan 3")


def test_other_names_make_another_plan_with_the_same_answers(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    stopped(tmp_path, "old", 2)
    rows = cz.read.parquet(
        tmp_path / "in", time="t", punctuate=cz.delay(4), name="clicks", batch_size=5
    ).where(col("v") > 2)
    renamed = cz.pipeline(kept=rows, n=counted(rows).named("tens"))
    claims = renamed.write(tmp_path / "out", claims=cz.tokens(every=7))
    assert claims[0].plans == (2,) and set(claims[-1].prefix) == {"clicks"}
    assert bags(tmp_path) == wanted(tmp_path, "old")
    report = audit(tmp_path / "out", plan="stored")
    assert report.right, str(report)


def test_other_columns_begin_a_new_generation_and_old_claims_stay(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    before = stopped(tmp_path, "old", 3)
    old = bags(tmp_path)
    PLANS["columns"] = lambda f: {"kept": read(f), "n": counted(read(f), n=cz.count(), top=cz.max("v"))}
    with pytest.raises(StreamError, match="cannot be corrected: its rows had the columns"):
        stopped(tmp_path, "columns", on_change="rebuild")
    made = stopped(tmp_path, "columns", on_change="rebuild", final_rows="new_generation")
    assert {(claim.generation, claim.plans) for claim in made} == {(2, (2,))}
    assert bags(tmp_path) == wanted(tmp_path, "columns")
    then = cz.read_claimed(tmp_path / "out", at=before[-1].number)
    assert {view: then.history(view).bag for view in then.views} == old
    assert all("_generation-2" in path for path in cz.read_claimed(tmp_path / "out").paths("n"))
    assert not any("_generation-2" in path for path in then.paths("n"))
    report = audit(tmp_path / "out", plan="stored")
    assert report.right and {f.claim.plan for f in report.findings} == {1, 2}, str(report)
    (tmp_path / "out" / "_generation-2" / "n" / "by-hand.parquet").write_bytes(b"")
    assert "named by no claim" in str(audit(tmp_path / "out", plan="stored"))


def test_a_pipeline_that_reads_a_view_gets_the_corrections(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    stopped(tmp_path, "old")
    total = cz.pipeline(total=cz.from_claimed(tmp_path / "out", "n").totals(n=cz.sum("n")))
    total.write(tmp_path / "second", claims=cz.tokens())
    stopped(tmp_path, "filter", on_change="rebuild")
    reader = cz.from_claimed(tmp_path / "out", "n")
    assert reader.run().history == cz.pipeline(**PLANS["filter"](tmp_path)).run()["n"].history
    PLANS["columns"] = lambda f: {"kept": read(f), "n": counted(read(f), n=cz.count(), top=cz.max("v"))}
    stopped(tmp_path, "columns", on_change="rebuild", final_rows="new_generation")
    with pytest.raises(StreamError, match="has begun anew in generation 2"):
        reader.run()
    assert cz.from_claimed(tmp_path / "out", "n").run().history.bag == wanted(tmp_path, "columns")["n"]


@pytest.mark.thin(4)
@pytest.mark.parametrize("at", range(12))
def test_a_switch_that_is_cut_off_leaves_the_old_plan_or_the_new(
    at: int, tmp_path: Path, monkeypatch: Any
) -> None:
    from caesura.io.places.local import LocalStorage

    filled(tmp_path, 7)
    stopped(tmp_path, "old", 3)
    before, puts = bags(tmp_path), []

    def counting(real: Any) -> Any:
        def some(self: Any, *given: Any, **options: Any) -> Any:
            puts.append(given)
            if len(puts) > at:
                raise KeyboardInterrupt
            return real(self, *given, **options)

        return some

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "put", counting(LocalStorage.put))
        with contextlib.suppress(KeyboardInterrupt):
            stopped(tmp_path, "size", 1, on_change="rebuild")
    claim = cz.read_claimed(tmp_path / "out").claim
    if claim.plan == 1:
        assert bags(tmp_path) == before
        with pytest.raises(StreamError, match="holds the views of another pipeline"):
            stopped(tmp_path, "size")
    stopped(tmp_path, "size", on_change="rebuild")
    assert bags(tmp_path) == wanted(tmp_path, "size")
    assert audit(tmp_path / "out", plan="stored").right


def test_synchronised_claims_go_on_behind_a_rebuild(tmp_path: Path) -> None:
    filled(tmp_path, 8)
    mode = cz.synchronised(5)
    stopped(tmp_path, "old", 3, mode=mode)
    stopped(tmp_path, "filter", mode=mode, on_change="rebuild")
    assert bags(tmp_path) == wanted(tmp_path, "filter")
    assert audit(tmp_path / "out", plan="stored").right


def test_what_cannot_be_read_again_is_not_rebuilt(tmp_path: Path) -> None:
    rows = cz.from_rows(
        iter([{"t": 1, "id": 1}]), pa.schema([("t", pa.int64()), ("id", pa.int64())]), time="t"
    )
    cz.pipeline(n=rows.tumbling(10).agg(n=cz.count())).write(tmp_path / "out")
    with pytest.raises(CaesuraError, match="what the pipeline has claimed cannot be rebuilt"):
        cz.pipeline(n=rows.tumbling(20).agg(n=cz.count())).write(tmp_path / "out", on_change="rebuild")


FLOW = """
import caesura as cz
from caesura import col
rows = cz.read.parquet({folder!r}, time="t", punctuate=cz.delay(4), name="in")
bank = cz.pipeline(n=rows.where(col("v") > {least}).group_by("id").tumbling(10).agg(n=cz.count()))
"""


def test_the_command_line_is_given_earlier_plans_by_their_numbers(tmp_path: Path) -> None:
    filled(tmp_path, 9)
    for least in (2, 4):
        text = FLOW.format(folder=str(tmp_path / "in"), least=least)
        (tmp_path / f"flow{least}.py").write_text(text)
    runner, flows = CliRunner(), [str(tmp_path / f"flow{least}.py:bank") for least in (2, 4)]
    from caesura.cli.load import load_pipeline

    out = str(tmp_path / "out")
    load_pipeline(flows[0]).write(out, claims=cz.tokens(every=9))
    shown = runner.invoke(app, ["upgrade", out, flows[1]])
    assert shown.exit_code == 0 and "tumbling: carried over, on other steps than before" in shown.output
    assert cz.read_claimed(out).claim.plan == 1
    done = runner.invoke(app, ["upgrade", out, flows[1], "--how", "rebuild"])
    assert done.exit_code == 0, done.output
    assert cz.read_claimed(out).claim.plan == 2
    alone = runner.invoke(app, ["audit", out, "--flow", flows[1]])
    assert alone.exit_code == 1 and "--plan-of 1=FILE.py:NAME" in alone.output
    both = runner.invoke(app, ["audit", out, "--flow", flows[1], "--plan-of", f"1={flows[0]}"])
    assert both.exit_code == 0, both.output
