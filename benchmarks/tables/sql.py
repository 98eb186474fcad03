"""TPC-H's queries kept as views beside DuckDB anew, and MATCH_RECOGNIZE."""

from __future__ import annotations

from benchmarks.figures import NOT_MEASURED, Results, millions, ratio, table

TWO = "2-cores"
QUERIES = [f"q{number}" for number in range(1, 23)]
PATTERNS = {
    "v": "their own row and PREV (a V)",
    "w": "the same, a W",
    "v of matched rows": "comparisons with FIRST and LAST of variables (a V)",
    "drop": "the same, a fall WITHIN a time",
    "running average": "a mean of all rows so far",
}


def views(results: Results) -> str:
    """DuckDB's query anew, over a refresh of ours."""
    mean_cpu, mean_wall = (
        results.figure(TWO, "tpch", "geometric mean", f"ratio_to.{rival}")
        for rival in ("duckdb_cpu", "duckdb")
    )
    found = {
        query: figure.median
        for query in QUERIES
        if (figure := results.figure(TWO, "tpch", query, "ratio_to.duckdb_cpu"))
    }

    def those(low: float, high: float) -> str:
        some = [query for query, times in found.items() if low <= times < high]
        return ", ".join(some) or ("none" if found else NOT_MEASURED)

    rows = [
        ["CPU time, geometric mean of 22 queries", f"{ratio(mean_cpu, 1)} times as much"],
        ["by the clock, DuckDB with its two threads", f"{ratio(mean_wall, 1)} times as much"],
        ["CPU time 10 times and more", those(10, float("inf"))],
        ["CPU time 3 to 10 times", those(3, 10)],
        ["CPU time 1 to 3 times", those(1, 3)],
        ["CPU time less: DuckDB anew is cheaper", those(0, 1)],
    ]
    return table(["DuckDB's query anew, over a refresh of ours", ""], rows)


def match(results: Results) -> str:
    """MATCH_RECOGNIZE by what its conditions look at."""
    rows = [
        [said, millions(results.figure(TWO, "match", case, "events_per_s"), thousands=True)]
        for case, said in PATTERNS.items()
    ]
    return table(["conditions look at", "rows a second of CPU"], rows)
