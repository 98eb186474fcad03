"""NEXMark: by query and as means, beside DuckDB and Polars, and by threads."""

from __future__ import annotations

import statistics

from benchmarks.figures import NOT_MEASURED, Figure, Results, ratio, short, table, with_unit
from benchmarks.tables.drawing import bars

TWO, WIDE = "2-cores", "16-cores"
QUERIES = [f"q{number}" for number in range(23)]
MEMORY, FILES = ("--memory --timing", "--threads"), ("--timing", "--memory --threads --on-spark")
"""Words of the call that a run was measured by, and words that it lacks."""
THREADS = (1, 4, 16)


def means(results: Results) -> str:
    """Geometric means over all queries."""
    asked = [
        ("Arrow tables in memory, CPU, DuckDB on one thread", "duckdb 1 cpu", MEMORY),
        ("the same by the clock, DuckDB on two threads", "duckdb 2 wall", MEMORY),
        ("Polars, CPU (its query q12 is not there)", "polars cpu", MEMORY),
        ("Parquet files, CPU, DuckDB on one thread", "duckdb 1 cpu", FILES),
    ]
    rows = [
        [
            said,
            *(
                ratio(results.figure(TWO, "nexmark", f"mean {output}", f"ratio_to.{rival}", *how))
                for output in ("final", "changes")
            ),
        ]
        for said, rival, how in asked
    ]
    return table(["theirs over ours", "`final`", "`changes`"], rows)


def behind(results: Results) -> str:
    """The queries that take over twice what a rival takes."""
    rows = []
    for said, rival, output in (
        ("DuckDB, `final`", "duckdb 1", "final"),
        ("DuckDB, `changes`", "duckdb 1", "changes"),
        ("Polars, `final`", "polars", "final"),
    ):
        found = {
            query: figure.median
            for query in QUERIES
            if (
                figure := results.figure(
                    TWO, "nexmark", f"{query} {output}", f"ratio_to.{rival} cpu", *MEMORY
                )
            )
        }
        below = sorted((value, query) for query, value in found.items() if value < 0.5)
        text = ", ".join(f"{query} ({value:.2f})" for value, query in below) or "none"
        rows.append([said, text if found else NOT_MEASURED])
    return table(["theirs over ours", "below 0.5"], rows)


def least(results: Results, output: str = "final") -> float | None:
    """The least ratio to DuckDB of any query."""
    found = (
        results.figure(TWO, "nexmark", f"{query} {output}", "ratio_to.duckdb 1 cpu", *MEMORY)
        for query in QUERIES
    )
    return min((figure.median for figure in found if figure), default=None)


def by_threads(results: Results) -> str:
    """As many threads for us as for DuckDB, by the clock: means, and queries that gain and lose most."""
    mean = [
        ratio(results.figure(WIDE, "nexmark", f"mean {n} threads", "ratio_to.duckdb", "--threads"))
        for n in THREADS
    ]
    rows = [["DuckDB's time over ours, geometric mean", *mean]]
    times = {query: [_ms(results, query, n) for n in THREADS] for query in QUERIES}
    for said, name in (("ours, geometric mean, ms", "ms"), ("DuckDB's", "duckdb_ms")):
        every = [[_ms(results, query, n, name) for query in QUERIES] for n in THREADS]
        means = [statistics.geometric_mean(known) for some in every if (known := [ms for ms in some if ms])]
        rows.append([said, *(f"{ms:,.0f}" for ms in means)])
    slower = sorted((one / most, query) for query, (one, *_, most) in times.items() if one and most)
    for _, query in [*slower[:2], *slower[-2:]]:
        rows.append([f"{query}, ms", *(f"{ms:,.0f}" if ms else "" for ms in times[query])])
    return table(["threads", *map(str, THREADS)], rows)


def _ms(results: Results, query: str, threads: int, name: str = "ms") -> float | None:
    figure = results.figure(WIDE, "nexmark", f"{query} {threads} threads", name, "--threads")
    return figure.median if figure else None


def _on_spark(results: Results, query: str, name: str) -> Figure | None:
    return results.figure(TWO, "nexmark", f"{query} on spark", name, "--on-spark")


def on_spark_median(results: Results) -> Figure | None:
    """The median of all queries that were measured on Spark."""
    found = [_on_spark(results, query, "ratio_to.spark_own") for query in QUERIES]
    known = [figure.median for figure in found if figure]
    return Figure(statistics.median(known), min(known), max(known)) if known else None


def on_spark(results: Results) -> str:
    """The queries that Spark's own streaming has."""
    rows = []
    for query in QUERIES:
        names = ("ratio_to.spark_own", "epoch_s", "spark_own_epoch_s")
        cells = [short(_on_spark(results, query, name)) for name in names]
        if any(cells):
            rows.append([query, *cells])
    rows.append(["**median**", short(on_spark_median(results)), "", ""])
    return table(["", "times Spark's own", "our epoch, s", "Spark's own, s"], rows)


def spark_in_short(results: Results) -> str:
    """How many queries are ahead of Spark's own, and the median."""
    found = [_on_spark(results, query, "ratio_to.spark_own") for query in QUERIES]
    known = [figure.median for figure in found if figure]
    ahead = f"; {sum(one > 1 for one in known)} of {len(known)} ahead"
    return with_unit(ratio(on_spark_median(results)), f" times, the median{ahead}")


def plot(results: Results) -> str:
    """By query, DuckDB's CPU on one thread over ours."""
    found = (
        (query, results.figure(TWO, "nexmark", f"{query} final", "ratio_to.duckdb 1 cpu", *MEMORY))
        for query in QUERIES
    )
    drawn = [(query, figure.median) for query, figure in found if figure]
    return bars("NEXMark: DuckDB's CPU on one thread over ours, output final", drawn)
