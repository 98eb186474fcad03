"""Claims on storage: a reader sees all views at one prefix or none, and what is wrong is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bank_oracle import Bank, bank
from depth import DEPTH
from typer.testing import CliRunner

import caesura as cz
from caesura.audit import audit
from caesura.cli.main import app
from caesura.errors import CaesuraError, StreamError

TABLE = bank.transactions(240, cancelled=0.05)


def pipe() -> cz.Pipeline:
    return bank.views(bank.read(TABLE, batch_size=30))


def written(path: Path, claims: int | None = None) -> list[cz.Claim]:
    """The pipeline in a folder, stopped after so many claims."""
    made = []
    for claim in pipe().writing(path, claims=cz.tokens(every=50)):
        made.append(claim)
        if len(made) == claims:
            break
    return made


def test_what_is_read_is_one_prefix_of_all_views(tmp_path: Path) -> None:
    claims = written(tmp_path)
    oracle = Bank(TABLE)
    for claim in claims:
        seen = cz.read_claimed(tmp_path, at=claim.number)
        wanted = oracle.views(seen.claim.prefix["read"].offsets[0])
        assert {view: seen.history(view).bag for view in seen.views} == wanted
    last = cz.read_claimed(tmp_path)
    assert last.table("total").column_names == ["LE", "RE", "total"]
    assert all(Path(p).exists() for p in last.paths("accepted"))


def test_a_pipeline_goes_on_behind_its_last_claim(tmp_path: Path) -> None:
    first = written(tmp_path, claims=2)
    rest = written(tmp_path)
    assert rest[0].number == first[-1].number + 1
    assert rest[0].follows(first[-1])
    assert written(tmp_path) == []
    wanted = Bank(TABLE).views(len(TABLE))
    seen = cz.read_claimed(tmp_path)
    assert {view: seen.history(view).bag for view in seen.views} == wanted


def test_many_restarts_leave_the_same_views(tmp_path: Path) -> None:
    while len(written(tmp_path, claims=1)):
        pass
    assert audit(tmp_path, plan="stored").right
    assert len(cz.read_claimed(tmp_path).history("accepted")) == len(
        Bank(TABLE).views(len(TABLE))["accepted"]
    )


KILLED = """
import os, sys
sys.path.insert(0, {tests!r})
import test_storage as t, caesura as cz
from pathlib import Path
from caesura.io.places.local import LocalStorage
number = [0]
real = LocalStorage.put
def dies(self, path, data, **options):
    number[0] += 1
    if number[0] == {at}:
        file = Path(path)
        file.with_name("." + file.name + ".part").write_bytes(data[: len(data) // 2])
        os._exit(9)
    real(self, path, data, **options)
LocalStorage.put = dies
t.written({path!r})
"""


@pytest.mark.parametrize("at", [19] if DEPTH == 1 else [12, 19])
def test_claims_survive_a_kill_in_the_middle_of_a_write(tmp_path: Path, at: int) -> None:
    tests = str(Path(__file__).parent)
    code = KILLED.format(tests=tests, at=at, path=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], env=_env(), capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert audit(tmp_path, plan="stored").right or not list((tmp_path / "_claims").glob("*.json"))
    written(tmp_path)
    report = audit(tmp_path, plan="stored")
    assert report.right, str(report)
    assert cz.read_claimed(tmp_path).claim.prefix["read"].offsets == {0: len(TABLE)}


def _env() -> dict[str, str]:
    import os

    root = Path(__file__).parents[2]
    return {
        **os.environ,
        "PYTHONPATH": f"{root / 'src'}:{Path(__file__).parent}:{root / 'tests' / 'support'}",
    }


def test_a_torn_manifest_leaves_the_claim_before_it(tmp_path: Path) -> None:
    claims = written(tmp_path)
    last = tmp_path / "_claims" / f"{claims[-1].number:08d}.json"
    last.write_bytes(last.read_bytes()[:-40])
    seen = cz.read_claimed(tmp_path)
    assert seen.claim.number == claims[-2].number
    assert seen.flaws == (f"the manifest '{last.name}' is torn",)
    assert not audit(tmp_path, plan="stored").right
    assert written(tmp_path)[-1].number == claims[-1].number
    assert audit(tmp_path, plan="stored").right


def test_a_torn_manifest_in_the_middle_ends_what_is_read(tmp_path: Path) -> None:
    claims = written(tmp_path)
    (tmp_path / "_claims" / f"{claims[1].number:08d}.json").write_text("{}")
    assert cz.read_claimed(tmp_path).claim.number == claims[0].number
    with pytest.raises(CaesuraError, match="no claim 3 that holds; the manifest"):
        cz.read_claimed(tmp_path, at=claims[2].number)


def test_a_reader_in_the_middle_of_a_write_sees_the_claim_before(tmp_path: Path) -> None:
    claims = written(tmp_path, claims=2)
    half = tmp_path / "total" / "claim-00000003.parquet"
    pq.write_table(cz.read_claimed(tmp_path).changes("total"), half)
    seen = cz.read_claimed(tmp_path)
    assert seen.claim.number == claims[-1].number
    assert str(half) not in seen.paths("total")


def test_a_view_changed_by_hand_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    file = Path(cz.read_claimed(tmp_path).paths("total")[0])
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    with pytest.raises(CaesuraError, match=r"'total/claim-0+1.parquet' of claim 1 was changed after it"):
        cz.read_claimed(tmp_path)
    assert any("was changed after" in flaw for flaw in audit(tmp_path, plan="stored").flaws)


def test_a_view_written_by_hand_is_said(tmp_path: Path) -> None:
    written(tmp_path)
    table = pq.read_table(cz.read_claimed(tmp_path).paths("total")[0])
    pq.write_table(table, tmp_path / "total" / "mine.parquet")
    pq.write_table(table, tmp_path / "total" / "claim-00000000.parquet")
    for name in ("mine", "claim-00000000"):
        said = f"'total/{name}.parquet' is named by no claim: it was written by hand"
        assert said in audit(tmp_path, plan="stored").flaws
    assert len(cz.read_claimed(tmp_path).history("total")) == 1


def test_a_manifest_that_takes_offsets_back_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    from caesura.consistency.store import Store

    written(tmp_path)
    store = Store(tmp_path)
    chain = store.chain()
    one, two = chain.manifests[-2:]
    (tmp_path / "_claims" / f"{two.claim.number:08d}.json").unlink()
    store.commit(
        replace(two, claim=replace(two.claim, prefix=chain.manifests[0].claim.prefix), before=one.check)
    )
    flaws = store.chain().flaws
    assert flaws and "an offset is repeated" in flaws[0]


def test_a_restart_without_its_state_is_refused(tmp_path: Path) -> None:
    written(tmp_path, claims=2)
    for file in (tmp_path / "_state").iterdir():
        file.unlink()
    with pytest.raises(CaesuraError, match="which a restart needs, is gone"):
        written(tmp_path)
    assert audit(tmp_path, plan="stored").right, "what was claimed still holds"


def test_another_pipeline_may_not_write_into_the_folder(tmp_path: Path) -> None:
    written(tmp_path, claims=1)
    other = cz.pipeline(total=bank.read(TABLE))
    with pytest.raises(CaesuraError, match="holds the views of another pipeline"):
        other.write(tmp_path, claims=cz.tokens(every=50))


def test_the_command_says_what_is_right_and_what_is_not(tmp_path: Path) -> None:
    claims = written(tmp_path)
    fine = CliRunner().invoke(app, ["audit", str(tmp_path), "--stored-plan"])
    assert fine.exit_code == 0, fine.output
    assert fine.output.strip().endswith(f"{6 * len(claims)} right, 0 not")
    file = tmp_path / "_claims" / f"{claims[-1].number:08d}.json"
    file.write_bytes(b"{")
    torn = CliRunner().invoke(app, ["audit", str(tmp_path), "--stored-plan", "--json", "--limit", "2"])
    assert torn.exit_code == 1
    said = json.loads(torn.output)
    assert not said["right"] and "is torn" in said["flaws"][0]
    assert {s["claim"] for s in said["states"]} == {1, claims[-2].number}


def test_what_the_audit_cannot_recompute_is_said_and_not_passed(tmp_path: Path) -> None:
    rows = pa.table({"t": [1, 2], "s": ["a", "b"]})
    odd = cz.from_arrow(rows, time="t").select(n=cz.col("s").rlike("a+"))
    cz.pipeline(odd=odd).write(tmp_path, claims=cz.tokens(every=1))
    report = audit(tmp_path, plan="stored")
    assert not report.right
    assert "cannot compute 's RLIKE" in str(report)


@pytest.mark.parametrize("name", ["_pipeline/pipeline.json", "_claims/00000001.json"])
def test_views_of_a_later_version_are_named_and_not_taken_for_torn(tmp_path: Path, name: str) -> None:
    written(tmp_path, claims=3)
    file = tmp_path / name
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 9}))
    with pytest.raises(StreamError, match=rf"{file.name}' has format 9; this version reads formats up to 2"):
        cz.read_claimed(tmp_path)


def test_what_a_pipeline_says_of_itself_cut_off_is_named(tmp_path: Path) -> None:
    written(tmp_path, claims=1)
    file = tmp_path / "_pipeline" / "pipeline.json"
    text = file.read_text()
    for size in (0, 1, len(text) // 2, len(text) - 1):
        file.write_text(text[:size])
        with pytest.raises(StreamError, match=r"pipeline.json' is not whole"):
            cz.read_claimed(tmp_path)
