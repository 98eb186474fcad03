"""MATCH_RECOGNIZE over a stock ticker: rows a second of V and W shapes, drops and running averages.

``python -m benchmarks match --json --rows 200000`` prints one JSON object per pattern. Times are CPU times of
this process, best of ``--repeat``, kernels compiled before. Conditions of ``v`` and ``w`` look at rows alone;
those of the others depend on what is matched so far, and are measured over ``--dependent`` rows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

import caesura as cz
from benchmarks.report import Report

UP_AND_DOWN = "DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)"
ROW_PATTERNS = {
    "v": f"""MEASURES STRT.ts AS b, LAST(DOWN.ts) AS bottom, LAST(UP.ts) AS e
        AFTER MATCH SKIP TO LAST UP PATTERN (STRT DOWN+ UP+) {UP_AND_DOWN}""",
    "w": f"MEASURES STRT.ts AS b, LAST(UP.ts) AS e PATTERN (STRT DOWN+ UP+ DOWN+ UP+) {UP_AND_DOWN}",
}
DEPENDENT_PATTERNS = {
    "v of matched rows": """MEASURES S.ts AS b, LAST(D.ts) AS bottom, LAST(U.ts) AS e
        AFTER MATCH SKIP TO LAST U PATTERN (S D+ U+)
        DEFINE D AS price < COALESCE(LAST(D.price, 1), S.price),
            U AS price > COALESCE(LAST(U.price, 1), LAST(D.price))""",
    "drop": """MEASURES C.ts AS at, A.price - C.price AS fell PATTERN (A B* C) WITHIN 600
        DEFINE B AS B.price > A.price - 10, C AS C.price <= A.price - 10""",
    "running average": """MEASURES FIRST(A.ts) AS b, AVG(A.price) AS mean PATTERN (A+ B)
        DEFINE A AS AVG(A.price) < 1010, B AS B.price > FIRST(A.price) + 5""",
}


def ticker(rows: int, symbols: int = 10) -> cz.Stream:
    """Prices that walk at random, of some symbols in turns."""
    random = np.random.default_rng(7)
    steps = random.integers(-3, 4, rows).reshape(-1, symbols)
    prices = 1000 + np.cumsum(steps, axis=0).ravel()
    table = pa.table({"ts": np.arange(rows), "symbol": np.arange(rows) % symbols, "price": prices})
    return cz.from_arrow(table, time="ts", punctuate=cz.delay(0))


def measure(report: Report, name: str, clauses: str, rows: int, repeat: int) -> None:
    """One pattern: CPU seconds, rows a second, matches."""
    text = f"SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {clauses})"
    cz.sql(text, ticker=ticker(500)).run()
    stream, best, matches = ticker(rows), float("inf"), 0
    for _ in range(repeat):
        query = cz.sql(text, ticker=stream)
        begun = time.process_time()
        matches = query.run(output="final").table().num_rows
        best = min(best, time.process_time() - begun)
    report.add(name, rows / best, rows=rows, cpu_s=round(best, 3), matches=matches)


def main(given: list[str]) -> None:
    """Measures all patterns."""
    parser = argparse.ArgumentParser(prog="benchmarks match", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dependent", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args(given)
    report = Report("match", options.json)
    sizes = [(ROW_PATTERNS, options.rows), (DEPENDENT_PATTERNS, options.dependent)]
    for patterns, rows in sizes:
        for name, clauses in patterns.items():
            measure(report, name, clauses, rows, options.repeat)
