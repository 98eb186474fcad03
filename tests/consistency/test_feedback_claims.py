"""Claims under feedback: the state may lack what the feedback lets go, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claim_laws import states

import caesura as cz
from caesura import col
from caesura.audit import audit_states
from caesura.consistency import Mode
from caesura.consistency.token import is_token
from caesura.errors import CaesuraError
from caesura.events import History, Item
from caesura.plan import Node


def plan() -> cz.Stream:
    rows = pa.table({"t": range(80), "k": [i % 4 for i in range(80)], "v": range(80)})
    read = cz.from_arrow(rows, time="t", punctuate=cz.delay(2), batch_size=5).set_duration(9)
    other = cz.from_arrow(rows.select(["t", "k"]), time="t", batch_size=9).set_duration(3)
    return read.join(other, on="k").group_by("k").tumbling(10).agg(n=cz.count(), s=cz.sum("v"))


def ran(mode: Mode, after: int) -> tuple[Node, list[cz.Claim], list[Item]]:
    """A run in which its consumer wants no more of key 1 after some claims."""
    stream = plan()
    query = stream.query(claims=mode)
    spoken = False
    while query.step():
        if len(query.claims) >= after and not spoken:
            query.assume(col("k") == 1)
            spoken = True
    return stream.node, query.claims, query.take("out")


@pytest.mark.parametrize("after", [0, 2])
def test_a_claim_under_feedback_lies_between_all_and_all_but_what_is_let_go(after: int) -> None:
    node, claims, items = ran(cz.tokens(every=10), after)
    assert any(claim.under for claim in claims)
    came = states(items)
    judged = [(claim, {"out": History.of(came[claim.number], node.schema)}) for claim in claims]
    findings = audit_states({"out": node}, judged)
    assert [str(f) for f in findings if not f.right] == []
    bare = [(replace(claim, under=()), state) for claim, state in judged]
    missed = [f for f in audit_states({"out": node}, bare) if not f.right]
    assert after or missed, "the feedback has let nothing go"


def test_what_feedback_does_not_cover_is_missed() -> None:
    node, claims, items = ran(cz.tokens(every=10), 0)
    kept = [item for item in items if not is_token(item)]
    state = History.of(kept, node.schema)
    less = History(state.page.filter(state.page.payload.column("k").to_numpy() != 2))
    (found,) = audit_states({"out": node}, [(claims[-1], {"out": less})])
    assert found.missing and all(row[2][0] == 2 for row in found.missing)


def test_heeding_does_not_go_with_feedback() -> None:
    with pytest.raises(CaesuraError, match="cannot tell which rows it leaves out"):
        ran(cz.heeding(), 1)


@pytest.mark.parametrize("mode", [cz.tokens(every=7), cz.draining()], ids=str)
def test_rows_that_feedback_lets_a_source_skip_count_as_read(mode: Mode, tmp_path: Path) -> None:
    table = pa.table({"t": range(60), "k": [i // 10 for i in range(60)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=5)
    read = cz.read.parquet(tmp_path / "rows.parquet", time="t", punctuate=cz.delay(100), batch_size=5)
    query = read.query(claims=mode)
    while query.step():
        if len(query.claims) == 1:
            query.assume(col("k") == 4)
    came = states(query.take("out"))
    judged = [(c, {"out": History.of(came[c.number], read.schema)}) for c in query.claims]
    assert [str(f) for f in audit_states({"out": read.node}, judged) if not f.right] == []
    assert query.counters()["read"].rows_in < 60, "nothing was skipped"
