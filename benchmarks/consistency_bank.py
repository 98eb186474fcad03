"""The bank-transfer test at any size: every claimed state of six views against SQL on the claimed prefix.

A state of ten million rows is compared by its count and the sum of its rows' hashes, both kept up to date
from the changes that leave; DuckDB hashes both sides. A sum that is equal by chance is one in 2^64.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import caesura as cz
from benchmarks.report import Report
from benchmarks.spark import durations
from caesura.consistency.token import is_token, number_of
from caesura.events import Item, Page
from caesura.events.page import NO_NEW_END
from caesura.kernels.hashing import I64, Mask

State = tuple[int, int]
"""How many rows, and the sum of their hashes."""


def names(count: int) -> str:
    return ", ".join(f"c{i}" for i in range(count))


@dataclass
class Folded:
    """The states of all views, from their changes, at each claim."""

    db: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    now: dict[str, State] = field(default_factory=dict)
    at: dict[int, dict[str, State]] = field(default_factory=dict)

    def take(self, view: str, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Page):
                if not item.settled:
                    self._change(view, item)
            elif is_token(item):
                self.at.setdefault(number_of(item), {})[view] = self.now.get(view, (0, 0))

    def _change(self, view: str, page: Page) -> None:
        """Inserts count; a retract takes its row away and puts the shorter one in its place."""
        new = np.full(len(page), NO_NEW_END) if page.re_new is None else page.re_new
        self._add(view, page.le, page.re, page.payload, new == NO_NEW_END, 1)
        if page.re_new is not None:
            self._add(view, page.le, page.re, page.payload, new != NO_NEW_END, -1)
            self._add(view, page.le, new, page.payload, (new != NO_NEW_END) & (new > page.le), 1)

    def _add(self, view: str, le: I64, re: I64, payload: pa.RecordBatch, mask: Mask, sign: int) -> None:
        columns = [pa.array(le), pa.array(re), *payload.columns]
        rows = pa.Table.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
        self.db.register("changes", rows.filter(pa.array(mask)))
        count, total = self.now.get(view, (0, 0))
        more = summed(self.db, "changes", len(columns))
        self.now[view] = (count + sign * more[0], total + sign * more[1])


def summed(db: duckdb.DuckDBPyConnection, relation: str, columns: int) -> State:
    """Count and sum of hashes of a relation."""
    query = f"select count(*), coalesce(sum(hash({names(columns)})::hugeint), 0) from {relation}"
    count, total = db.execute(query).fetchall()[0]
    return int(count), int(total)


def from_scratch(oracle: Any, sql: dict[str, str], rows: int) -> dict[str, State]:
    """Every view on the first rows, by SQL."""
    oracle.prefix(rows)
    found = {}
    for name, query in sql.items():
        width = len(oracle.db.execute(f"select * from ({query}) limit 0").description)
        found[name] = summed(oracle.db, f"({query}) state({names(width)})", width)
    return found


def imported() -> Any:
    """The oracle of the tests, with the example that it speaks of."""
    root = Path(__file__).parents[1]
    sys.path[:0] = [str(root / "examples" / "bank"), str(root / "tests" / "consistency")]
    return importlib.import_module("bank_oracle")


def bank(report: Report, count: int) -> None:
    """All views of the bank-transfer test; every claim against the query from scratch, by DuckDB."""
    oracles = imported()
    given = oracles.bank.transactions(count, cancelled=0.02)
    pipe = oracles.bank.views(oracles.bank.read(given))
    query = pipe.query(claims=cz.tokens(every=max(1, count // 5)))
    folded, spent, going = Folded(), 0.0, True
    while going:
        begun = time.process_time()
        for _ in range(64):
            going = query.step()
        spent += time.process_time() - begun
        for view in pipe.views:
            folded.take(view, query.take(view))
    claims = list(query.claims)
    del query
    gc.collect()
    oracle, wrong = oracles.Bank(given), 0
    for claim in claims:
        wanted = from_scratch(oracle, oracles.VIEWS, claim.prefix["read"].offsets.get(0, 0))
        wrong += sum(folded.at[claim.number][view] != wanted[view] for view in wanted)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    case = f"bank, {count} transactions, 6 views"
    rows = sum(state[0] for state in folded.now.values())
    states = len(claims) * len(pipe.views)
    more = {"claims": len(claims), "states": states, "wrong_states": wrong, "rows_in_the_end": rows}
    report.add(case, len(given) / spent, **more, peak_mb=round(memory))
    small = oracles.bank.views(oracles.bank.read(oracles.bank.transactions(150), batch_size=1))
    seen = small.eager()
    report.add("bank without claims", states=seen.states, wrong_states=seen.wrong)


def bank_on_spark(report: Report, count: int, epochs: int = 8) -> None:
    """The same views as one streaming query on Spark; each epoch's claim against SQL on its prefix."""
    oracles = imported()
    given = oracles.bank.transactions(count, cancelled=0.02)
    size = -(-len(given) // epochs)
    spark = cz.session("caesura-bench", master="local[2]", buckets=2, spark_driver_memory="4g")
    with tempfile.TemporaryDirectory(prefix="caesura-bench-") as path:
        folder = Path(path)
        (folder / "in").mkdir()
        for number in range(epochs):
            file = folder / "in" / f"{number:03d}.parquet"
            pq.write_table(given.slice(number * size, size), file)
            os.utime(file, (1_700_000_000 + number,) * 2)
        shape = {"end": "end", "kind": "kind", "new_end": "new_end"}
        read = cz.read.parquet(folder / "in", time="ts", punctuate=cz.delay(oracles.bank.DELAY), **shape)
        query = oracles.bank.views(read).start(
            spark,
            path=folder / "out",
            checkpoint=folder / "checkpoint",
            trigger="available",
            files_per_epoch=1,
            allow_unbounded=True,
        )
        query.wait()
        took = durations(query.query)
        spark.stop()
        oracle, wrong, states = oracles.Bank(given), 0, 0
        claims = [m.claim for m in cz.read_claimed(folder / "out").manifests]
        for claim in claims:
            seen = cz.read_claimed(folder / "out", at=claim.number)
            rows = min(len(given), size * claim.prefix["read"].offsets.get(0, 0))
            found = oracle.differences(rows, {view: seen.history(view) for view in seen.views})
            states, wrong = states + len(found), wrong + sum(map(bool, found.values()))
    more = {"claims": len(claims), "states": states, "wrong_states": wrong}
    report.add(f"bank on Spark, {count} transactions, 6 views", size / median(took[2:]), **more)
