"""Transactions between accounts, and six views that must always agree: the bank-transfer test.

After jamii/streaming-consistency. A sum over all balances is not always 0: an account that has only sent,
or only received, is not in `balance`. What must hold is that all views answer for one prefix.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import caesura as cz
from caesura import col

ACCOUNTS = 10
SECONDS = 60
DELAY = 10
LIVES = 1_000_000
"""How long a transaction counts, in seconds: longer than any run."""


def transactions(count: int, *, seed: int = 42, cancelled: float = 0.0) -> pa.Table:
    """Transactions in the order of their arrival, up to 10 s late; some are cancelled later on."""
    rng = np.random.default_rng(seed)
    ids = np.arange(count)
    second = SECONDS * ids // max(1, count)
    order = np.argsort(second + rng.uniform(0, DELAY, count), kind="stable")
    table = pa.table(
        {
            "id": ids,
            "from_account": rng.integers(0, ACCOUNTS, count),
            "to_account": rng.integers(0, ACCOUNTS, count),
            "amount": np.ones(count, np.int64),
            "ts": second,
        }
    ).take(pa.array(order))
    return table if not cancelled else _with_cancellations(table, cancelled, rng)


def _with_cancellations(table: pa.Table, share: float, rng: np.random.Generator) -> pa.Table:
    """Some transactions are taken back, somewhere behind their arrival and before they are settled."""
    count = len(table)
    some = np.flatnonzero(rng.random(count) < share)
    place = np.minimum(some + rng.integers(1, max(2, count // SECONDS), len(some)), count) + 0.5
    rows = np.concatenate([np.arange(count), some])
    at = np.concatenate([np.arange(count, dtype=np.float64), place])
    kind = np.concatenate([np.full(count, "+"), np.full(len(some), "-")])
    order = np.argsort(at, kind="stable")
    both = table.take(pa.array(rows[order]))
    starts = both.column("ts").to_numpy()
    both = both.append_column("end", pa.array(starts + LIVES))
    gone = np.where(kind[order] == "-", starts, 0)
    return both.append_column("kind", pa.array(kind[order])).append_column(
        "new_end", pa.array(gone, mask=kind[order] == "+")
    )


def read(table: pa.Table, *, batch_size: int = 65_536, delay: int = DELAY) -> cz.Stream:
    """The transactions as a stream; late ones are refused where they enter."""
    if "kind" in table.column_names:
        shape = {"end": "end", "kind": "kind", "new_end": "new_end"}
        return cz.from_arrow(table, time="ts", punctuate=cz.delay(delay), batch_size=batch_size, **shape)
    stream = cz.from_arrow(table, time="ts", punctuate=cz.delay(delay), batch_size=batch_size)
    return stream.set_duration(LIVES)


def views(accepted: cz.Stream) -> cz.Pipeline:
    """All views of the test, on one stream of transactions."""
    credits = accepted.group_by("to_account").totals(credits=cz.sum("amount"))
    debits = accepted.group_by("from_account").totals(debits=cz.sum("amount"))
    balance = _balance(credits, debits)
    return cz.pipeline(
        accepted=accepted,
        outer_join=accepted.join(accepted.select("id", other=col("amount")), on="id", how="left"),
        credits=credits,
        debits=debits,
        balance=balance,
        total=balance.totals(total=cz.sum("balance")),
    )


def _balance(credits: cz.Stream, debits: cz.Stream) -> cz.Stream:
    met = credits.join(debits, on={"to_account": "from_account"})
    return met.select(account=col("to_account"), balance=col("credits") - col("debits"))


def aligned_views(accepted: cz.Stream) -> cz.Pipeline:
    """The time-aligned variants: credits meet debits that are up to the same second."""
    credits = accepted.group_by("to_account").totals(credits=cz.sum("amount"), at=cz.max(cz.start()))
    debits = accepted.group_by("from_account").totals(debits=cz.sum("amount"), until=cz.max(cz.start()))
    met = credits.join(debits, on={"to_account": "from_account"}, where=col("at") == col("until"))
    balance = met.select(account=col("to_account"), at=col("at"), balance=col("credits") - col("debits"))
    return cz.pipeline(
        credits2=credits,
        debits2=debits,
        balance2=balance,
        total2=balance.group_by("at").totals(total=cz.sum("balance")),
    )
