"""A pipeline in two queries, joined by storage: claims of the second name prefixes of the first's sources."""

from __future__ import annotations

from pathlib import Path

from bank_oracle import Bank, bank

import caesura as cz
from caesura import col
from caesura.audit import audit

TABLE = bank.transactions(300, cancelled=0.05)


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
    report = audit(tmp_path / "two")
    assert report.right, str(report)
