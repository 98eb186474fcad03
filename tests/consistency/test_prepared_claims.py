"""A new plan of a pipeline reads beside the one that claims; the switch claims what one without does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_claimed_change import PLANS, bags, filled, plans_of, stopped, tried, wanted
from typer.testing import CliRunner

import caesura as cz
from caesura.audit import audit
from caesura.cli import app
from caesura.cli.load import load_pipeline
from caesura.errors import StreamError
from caesura.io.sources.source import Source
from caesura.plan import Raw


def prepared(folder: Path, plan: str) -> Any:
    return cz.pipeline(**PLANS[plan](folder)).prepare_upgrade(folder / "out")


def written_beside(folder: Path, plan: str, at: list[int], last: int | None) -> None:
    """The old pipeline writes claims until the last; behind some of them the new plan reads beside it."""
    writing = cz.pipeline(**PLANS["old"](folder)).writing(folder / "out", claims=cz.tokens(every=7))
    for number, _ in enumerate(writing, start=1):
        if number in at:
            prepared(folder, plan)
        if number == last:
            break
    writing.close()


def uncounted(claims: list[cz.Claim]) -> list[cz.Claim]:
    """Claims without how often their sources have promised: where it was read in two, that is once more."""
    return [
        replace(claim, prefix={n: replace(one, punctuations=0) for n, one in claim.prefix.items()})
        for claim in claims
    ]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("plan", "stop"), tried([([1, 3], 4), ([2], None), ([2], 2)]))
def test_a_prepared_switch_claims_what_one_without_does(
    plan: str, stop: tuple[list[int], int | None], tmp_path: Path
) -> None:
    filled(tmp_path, plan)
    written_beside(tmp_path, plan, *stop)
    shutil.copytree(tmp_path / "out", tmp_path / "apart")
    shutil.rmtree(tmp_path / "apart" / "_prepared")
    made = stopped(tmp_path, plan, on_change="rebuild")
    pipeline = cz.pipeline(**PLANS[plan](tmp_path))
    apart = pipeline.write(tmp_path / "apart", on_change="rebuild", claims=cz.tokens(every=7))
    assert uncounted(made) == uncounted(apart) and made[0].plans == (2,)
    assert not (tmp_path / "out" / "_prepared").exists()
    assert bags(tmp_path) == wanted(tmp_path, plan)
    old, new = plans_of(tmp_path, "old", plan).values()
    report = audit(tmp_path / "out", plan=new, earlier={1: old})
    assert report.right, str(report)


def test_no_row_of_a_pipeline_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, 3)
    read: list[tuple[int, int]] = []
    real = Source.read_between

    def counted(source: Source, start: Any, end: Any = None) -> Iterator[Raw]:
        for raw in real(source, start, end):
            read.append((raw.offset, raw.end))
            yield raw

    monkeypatch.setattr(Source, "read_between", counted)
    written_beside(tmp_path, "size", [1, 3], 5)
    assert prepared(tmp_path, "size").rows == 14
    assert prepared(tmp_path, "size").rows == 0
    stopped(tmp_path, "size", on_change="rebuild")
    assert [row for start, end in read for row in range(start, end)] == list(range(35))


def test_whatever_is_damaged_stops_the_switch_by_name(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    written_beside(tmp_path, "size", [2], 3)
    for name in ("prepared.json", "*.chunks", "*.packets"):
        for file in (tmp_path / "out" / "_prepared").rglob(name):
            whole = file.read_bytes()
            file.write_bytes(whole[: len(whole) // 2])
            with pytest.raises(StreamError, match=file.name):
                stopped(tmp_path, "size", on_change="rebuild")
            file.write_bytes(whole)
    stopped(tmp_path, "old", 2)
    stopped(tmp_path, "size", on_change="rebuild")
    assert bags(tmp_path) == wanted(tmp_path, "size")


def test_what_need_not_be_prepared_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    with pytest.raises(StreamError, match="no query has saved anything"):
        prepared(tmp_path, "size")
    stopped(tmp_path, "old", 2)
    with pytest.raises(StreamError, match="there is nothing to prepare"):
        prepared(tmp_path, "old")
    assert not (tmp_path / "out" / "_prepared").exists()


FLOW = """
import caesura as cz
rows = cz.read.parquet({folder!r}, time="t", punctuate=cz.delay(4), name="in")
pipeline = cz.pipeline(n=rows.group_by("id").tumbling({size}).agg(n=cz.count()))
"""


def test_the_command_line_prepares_a_pipeline_and_goes_over_to_it(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW.format(folder=str(tmp_path / "in"), size=10))
    assert CliRunner().invoke(app, ["upgrade", str(tmp_path / "out"), str(flow), "--prepare"]).exit_code == 1
    load_pipeline(str(flow)).write(tmp_path / "out")
    flow.write_text(FLOW.format(folder=str(tmp_path / "in"), size=20))
    shown = CliRunner().invoke(app, ["upgrade", str(tmp_path / "out"), str(flow), "--prepare"])
    assert shown.output.endswith("prepared: 48 rows read now, 48 in all\n"), shown.output
    shown = CliRunner().invoke(app, ["upgrade", str(tmp_path / "out"), str(flow), "--how", "rebuild"])
    assert shown.exit_code == 0 and cz.read_claimed(tmp_path / "out").claim.plans == (2,), shown.output
