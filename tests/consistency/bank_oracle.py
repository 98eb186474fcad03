"""The bank's views by DuckDB, from the raw rows of a prefix: lateness, corrections and joins in SQL."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from caesura.events import History

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "bank"))

import pipeline as bank

TABLES = """
create or replace temp table judged as
  select *, ts < max(ts) over (order by place rows between unbounded preceding and 1 preceding) - {delay}
    as late
  from given where place < {rows};
create or replace temp table tx as
  select id, from_account, to_account, amount, ts, ts + {lives} as till from judged
  where not coalesce(late, false) and kind = '+'
    and id not in (select id from judged where kind = '-' and not coalesce(late, false));
"""
VIEWS = {
    "accepted": "select ts, till, id, from_account, to_account, amount from tx",
    "outer_join": "select a.ts, a.till, a.id, a.from_account, a.to_account, a.amount, b.amount"
    " from tx a left join tx b on a.id = b.id",
    "credits": "select min(ts), max(till), to_account, sum(amount)::bigint from tx group by to_account",
    "debits": "select min(ts), max(till), from_account, sum(amount)::bigint from tx group by from_account",
    "balance": "select greatest(c.le, d.le), least(c.re, d.re), c.a, c.s - d.s from "
    "(select to_account a, min(ts) le, max(till) re, sum(amount)::bigint s from tx group by 1) c join "
    "(select from_account a, min(ts) le, max(till) re, sum(amount)::bigint s from tx group by 1) d"
    " on c.a = d.a",
    "total": "select min(le), max(re), sum(s)::bigint from "
    "(select greatest(c.le, d.le) le, least(c.re, d.re) re, c.s - d.s s from "
    "(select to_account a, min(ts) le, max(till) re, sum(amount)::bigint s from tx group by 1) c join "
    "(select from_account a, min(ts) le, max(till) re, sum(amount)::bigint s from tx group by 1) d"
    " on c.a = d.a) having count(*) > 0",
}

SIDE = "(select {0} a, min(ts) le, max(till) re, sum(amount)::bigint s, max(ts) last from tx group by 1)"
MET = (
    "(select greatest(c.le, d.le) le, least(c.re, d.re) re, c.a account, c.last last, c.s - d.s s"
    f" from {SIDE.format('to_account')} c join {SIDE.format('from_account')} d"
    " on c.a = d.a and c.last = d.last)"
)
ALIGNED = {
    "credits2": f"select le, re, a, s, last from {SIDE.format('to_account')}",
    "debits2": f"select le, re, a, s, last from {SIDE.format('from_account')}",
    "balance2": f"select le, re, account, last, s from {MET}",
    "total2": f"select min(le), max(re), last, sum(s)::bigint from {MET} group by last",
}


class Bank:
    """The transactions in DuckDB."""

    def __init__(self, table: pa.Table, delay: int = bank.DELAY) -> None:
        self.delay = delay
        given = table.append_column("place", pa.array(np.arange(len(table))))
        if "kind" not in given.column_names:
            given = given.append_column("kind", pa.array(["+"] * len(given)))
        self.db = duckdb.connect()
        self.db.register("raw", given)
        self.db.execute("create temp table given as select * from raw")

    def prefix(self, rows: int) -> None:
        """Lets the views be those of the first rows."""
        self.db.execute(TABLES.format(rows=rows, delay=self.delay, lives=bank.LIVES))

    def differences(self, rows: int, states: Mapping[str, History]) -> dict[str, int]:
        """Per view how many rows its state and the query on the first rows do not share."""
        self.prefix(rows)
        found = {}
        for name, sql in {**VIEWS, **ALIGNED}.items():
            if name not in states:
                continue
            state = states[name].table()
            self.db.register("state", state.rename_columns([f"c{i}" for i in range(state.num_columns)]))
            both = [f"(({sql}) except all (from state))", f"((from state) except all ({sql}))"]
            found[name] = sum(self.db.execute(f"select count(*) from {one}").fetchall()[0][0] for one in both)
        return found

    def views(self, rows: int) -> dict[str, Counter[Any]]:
        """Every view on the first rows."""
        self.prefix(rows)
        found = {name: self.db.execute(sql).fetchall() for name, sql in VIEWS.items()}
        return {name: Counter((r[0], r[1], tuple(r[2:])) for r in some) for name, some in found.items()}
