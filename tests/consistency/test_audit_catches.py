"""Claims that are false, made by hand: the audit says of each what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import caesura as cz
from caesura import Claim, Pattern, Prefix, Stream, col, qre
from caesura.audit import audit, audit_states
from caesura.cli.main import app
from caesura.consistency.store import Store

TABLE = pa.table({"t": range(20), "k": [i % 3 for i in range(20)], "v": range(20)})
SUMS = qre.iter1(qre.atom(op=col("v"), items=qre.items(TABLE.select(["k", "v"]).schema)), qre.sum())


def summed(stream: Stream) -> Stream:
    """Running sums, which wait for progress: what has left tells how far punctuation had come."""
    return Stream(qre.over(stream, SUMS))


def read(table: pa.Table = TABLE) -> Stream:
    return cz.from_arrow(table, time="t", punctuate=cz.delay(2), batch_size=3)


def changed(claim: Claim, **prefix: object) -> Claim:
    return replace(claim, prefix={"read": replace(claim.prefix["read"], **prefix)})  # type: ignore[arg-type]


FALSE: dict[str, tuple[Callable[[Claim], Claim], str]] = {
    "more rows than the source has": (lambda c: changed(c, offsets={0: 25}), "25 rows of lane 0 are claimed"),
    "a row too many": (lambda c: changed(c, offsets={0: c.prefix["read"].offsets[0] + 3}), "WRONG"),
    "a row too few": (
        lambda c: changed(c, offsets={0: c.prefix["read"].offsets[0] - 4}),
        "claimed of 'read'",
    ),
    "punctuation that was never given": (
        lambda c: changed(c, definite=(Pattern.before(99),)),
        "'time < 99' is claimed of 'read'",
    ),
    "punctuation that was forgotten": (lambda c: changed(c, definite=()), "WRONG"),
    "punctuation on what nobody spoke of": (
        lambda c: changed(c, definite=(Pattern(k=1),)),
        "'k = 1' is claimed of 'read'",
    ),
}


@pytest.mark.parametrize("what", FALSE)
def test_a_false_prefix_is_said(what: str) -> None:
    stream = summed(read())
    done = stream.run(claims=cz.tokens(every=6))
    claim = done.claims[1]
    state = {"out": done.at(claim)}
    (fine,) = audit_states({"out": stream.node}, [(claim, state)])
    assert fine.right, str(fine)
    make, why = FALSE[what]
    if why == "WRONG" and what == "a row too many":
        stream = read().group_by("k").totals(n=cz.count())
        done = stream.run(claims=cz.tokens(every=6))
        claim, state = done.claims[1], {"out": done.at(done.claims[1])}
    (found,) = audit_states({"out": stream.node}, [(make(claim), state)])
    assert not found.right
    assert why in str(found)


def test_prefixes_that_go_back_are_said() -> None:
    stream = read()
    done = stream.run(claims=cz.tokens(every=6))
    states = [(c, {"out": done.at(c)}) for c in (done.claims[1], done.claims[0])]
    assert "takes back part of the one before" in str(audit_states({"out": stream.node}, states)[-1])


def test_a_source_that_has_lost_rows_since_is_said(tmp_path: Path) -> None:
    data, out = tmp_path / "in.parquet", tmp_path / "out"
    pq.write_table(TABLE, data)
    stream = cz.read.parquet(data, time="t", punctuate=cz.delay(2), batch_size=5)
    cz.pipeline(rows=stream, sums=stream.group_by("k").totals(s=cz.sum("v"))).write(
        out, claims=cz.tokens(every=8)
    )
    assert audit(out, plan="stored").right
    pq.write_table(TABLE.slice(0, 15), data)
    report = audit(out, plan="stored")
    assert [f.right for f in report.findings] == [True, True] + [False] * (len(report.findings) - 2)
    assert "16 rows of lane 0 are claimed, and 'read' has 15" in str(report)


@cz.uda
def heaviest(values: list[int]) -> int:
    """Must lie in a module, so that a stored plan can name it."""
    return max(values)


@cz.udf
def twice(v: int) -> int:
    return 2 * v


def flow() -> cz.Pipeline:
    """Views with a module of the user's, a quantitative expression and sessions."""
    best = read().group_by("k").hopping(6, every=3).agg(top=heaviest(twice("v")), n=cz.count())
    return cz.pipeline(best=best, sums=summed(read()), again=read().session(2).agg(n=cz.count()))


FLOW = flow()


def test_the_command_audits_modules_and_expressions_that_lie_on_storage(tmp_path: Path) -> None:
    FLOW.write(tmp_path, claims=cz.tokens(every=6))
    for more in (["--stored-plan"], ["--flow", f"{__file__}:FLOW"]):
        done = CliRunner().invoke(app, ["audit", str(tmp_path), *more])
        assert done.exit_code == 0, done.output
        assert done.output.strip().endswith("4 claims, 12 states: 12 right, 0 not")


def test_a_view_that_cannot_be_audited_leaves_the_others(tmp_path: Path) -> None:
    odd = read().select(x=col("k").cast("string").rlike("1"))
    cz.pipeline(odd=odd, plain=read()).write(tmp_path, claims=cz.tokens(every=6))
    report = audit(tmp_path, plan="stored")
    assert not report.right
    assert {f.view for f in report.findings if f.right} == {"plain"}
    assert {f.view for f in report.findings if "not audited" in f.why} == {"odd"}


def test_a_stream_that_can_be_read_once_is_not_audited() -> None:
    stream = cz.from_arrow(TABLE.to_reader(), time="t")
    done = stream.run(claims=cz.tokens(every=6))
    found = audit_states({"out": stream.node}, [(c, {"out": done.at(c)}) for c in done.claims])
    assert found and all("read once" in f.why for f in found)


def test_a_prefix_fed_by_hand_is_not_audited() -> None:
    stream = cz.input_stream("a", pa.schema([("v", pa.int64())]))
    claim = Claim(1, cz.Level.PREFIX_CONSISTENT, {"a": Prefix(3)})
    (found,) = audit_states({"out": stream.node}, [(claim, {"out": stream.run().history})])
    assert "fed by hand" in found.why


def test_a_manifest_that_was_forged_whole_is_caught_by_recomputing(tmp_path: Path) -> None:
    """It has the right checks and names true files; only the prefix is another one."""
    cz.pipeline(sums=read().group_by("k").totals(s=cz.sum("v"))).write(tmp_path, claims=cz.tokens(every=6))
    store = Store(tmp_path)
    *before, last = store.chain().manifests
    prefix = replace(before[-1].claim.prefix["read"], rows=19, offsets={0: 19})
    forged = replace(last, claim=replace(last.claim, prefix={"read": prefix}))
    (store.path / "_claims" / f"{forged.claim.number:08d}.json").put(forged.to_bytes())
    assert cz.read_claimed(tmp_path).claim == forged.claim
    report = audit(tmp_path, plan="stored")
    assert report.flaws == []
    assert [f.claim.number for f in report.wrong] == [forged.claim.number]
