"""A pipeline in two queries, joined by storage: claims of the second name prefixes of the first's sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from bank_oracle import Bank, bank
from depth import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.audit import audit
from caesura.consistency.store import Store

EXAMPLES = examples(2, short=1)
TABLE = bank.transactions(300, cancelled=0.05)
SMALL = bank.transactions(90, cancelled=0.1)


def second(path: Path) -> cz.Pipeline:
    """Balance and total over the stored credits and debits."""
    credits, debits = (cz.from_claimed(path, view) for view in ("credits", "debits"))
    met = credits.join(debits, on={"to_account": "from_account"})
    balance = met.select(account=col("to_account"), balance=col("credits") - col("debits"))
    return cz.pipeline(balance=balance, total=balance.totals(total=cz.sum("balance")))


def test_the_second_pipeline_answers_for_the_first_ones_sources(tmp_path: Path) -> None:
    first = bank.views(bank.read(TABLE, batch_size=40)).write(tmp_path, claims=cz.tokens(every=70))
    done = second(tmp_path).run(claims=cz.tokens(every=3))
    oracle = Bank(TABLE)
    behind = [c.prefix["credits/read"] for c in done.claims]
    assert behind[: len(first)] == [c.prefix["read"] for c in first]
    for claim in done.claims[: len(first)]:
        assert claim.prefix["credits/read"] == claim.prefix["debits/read"]
        wanted = oracle.views(claim.prefix["credits/read"].offsets[0])
        assert done["balance"].at(claim).bag == wanted["balance"]
        assert done["total"].at(claim).bag == wanted["total"]


def test_the_second_pipeline_can_be_written_and_audited_too(tmp_path: Path) -> None:
    bank.views(bank.read(TABLE, batch_size=40)).write(tmp_path / "one", claims=cz.tokens(every=100))
    written = second(tmp_path / "one").writing(tmp_path / "two")
    next(written)
    next(written)
    written.close()
    second(tmp_path / "one").write(tmp_path / "two")
    report = audit(tmp_path / "two", plan="stored")
    assert report.right, str(report)


def stopped(made: Iterator[cz.Claim], after: int) -> list[cz.Claim]:
    """The first claims of a pipeline, which then is gone."""
    found = [claim for claim, _ in zip(made, range(after), strict=False)]
    made.close()  # type: ignore[attr-defined]
    return found


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@example([1], [2], 7, True)
@given(
    st.lists(st.integers(1, 3), max_size=4),
    st.lists(st.integers(1, 3), max_size=3),
    st.integers(7, 40),
    st.booleans(),
)
def test_claims_are_true_wherever_both_pipelines_are_stopped(
    stops: list[int], later: list[int], every: int, growing: bool
) -> None:
    """The first is stopped again and again, and so is the second; perhaps the first goes on meanwhile."""
    # A pipeline that was left open may give its lease back while the folder goes.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        first = bank.views(bank.read(SMALL, batch_size=20))
        for after in stops:
            stopped(first.writing(one, claims=cz.tokens(every=every)), after)
        if not growing or not stops:
            first.write(one, claims=cz.tokens(every=every))
        for after in later:
            stopped(second(one).writing(two), after)
            stopped(first.writing(one, claims=cz.tokens(every=every)), 1)
        second(one).write(two)
        assert audit(one, plan="stored").right, str(audit(one, plan="stored"))
        _check(two, one)


def _check(two: Path, one: Path) -> None:
    """Each claim of the second pipeline is true of the prefix that it names of the first one's source."""
    report, oracle = audit(two, plan="stored"), Bank(SMALL)
    assert report.right, str(report)
    for number in range(1, cz.read_claimed(two).claim.number + 1):
        seen = cz.read_claimed(two, at=number)
        behind = {name: p for name, p in seen.claim.prefix.items() if "/" in name}
        assert behind["credits/read"] == behind["debits/read"]
        wanted = oracle.views(behind["credits/read"].offsets.get(0, 0))
        assert {view: seen.history(view).bag for view in seen.views} == {v: wanted[v] for v in seen.views}


def test_the_audit_sees_a_claim_that_counts_the_rows_of_one_process_only(tmp_path: Path) -> None:
    pipe = bank.views(bank.read(SMALL, batch_size=20))
    pipe.write(tmp_path, claims=cz.tokens(every=40))
    store = Store(tmp_path)
    *_, before, last = store.chain().manifests
    wrong = replace(last, claim=last.claim.at({**last.claim.output, "accepted": 3}), before=before.check)
    (store.path / "_claims" / f"{last.claim.number:08d}.json").put(wrong.to_bytes())
    said = f"claim {last.claim.number} says that 'accepted' has given 3 rows; its files hold"
    assert any(said in flaw for flaw in audit(tmp_path, plan="stored").flaws)
