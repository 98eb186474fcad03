"""CPU for one unit of work by size, and speed by threads: tables and lines."""

from __future__ import annotations

from benchmarks.figures import Results, ratio, short, table
from benchmarks.tables.drawing import Line, lines

TWO, WIDE = "2-cores", "16-cores"
GROWING = {
    "y1": "events: Y1",
    "q5": "events: hopping counts of q5",
    "keys": "keys: a count",
    "windows": "windows a row: a sum",
}
SIZES = [10**power for power in range(1, 9)]
CASES = {
    "groups": "count and sum by a million keys",
    "y1": "Yahoo's Y1",
    "hopping": "mean over hopping windows, 10 K keys",
}
THREADS = (2, 4, 16)


def growth_plot(results: Results) -> str:
    drawn = []
    for case, said in GROWING.items():
        seen = ((size, results.figure(TWO, "growth", f"{case} {size:,}", "ns_each")) for size in SIZES)
        drawn.append(Line(said, [(size, figure.median) for size, figure in seen if figure]))
    return lines("CPU nanoseconds an event, by size", drawn)


def threads(results: Results) -> str:
    """How much faster than one thread, by the clock."""
    head = ["times one thread, by the clock", "2 of 2 cores", *(f"{n} of 16" for n in THREADS)]
    rows = []
    for case, said in CASES.items():
        cells = [ratio(results.figure(TWO, "threads", case, "ratio_to.one_thread", "--only"))]
        for n in THREADS:
            cells.append(
                short(results.figure(WIDE, "threads", case, "ratio_to.one_thread", f"--threads {n}"))
            )
        rows.append([said, *(cell or "not measured" for cell in cells)])
    return table(head, rows)


def threads_plot(results: Results) -> str:
    drawn = []
    for case, said in CASES.items():
        seen = (
            (n, results.figure(WIDE, "threads", case, "ratio_to.one_thread", f"--threads {n}"))
            for n in THREADS
        )
        points = [(n, figure.median) for n, figure in seen if figure]
        drawn.append(Line(said, [(1, 1.0), *points] if points else []))
    seen_too = (
        (n, results.figure(WIDE, "nexmark", f"mean {n} threads", "ratio_to.duckdb", "--threads"))
        for n in (1, 4, 16)
    )
    drawn.append(Line("NEXMark against DuckDB", [(n, figure.median) for n, figure in seen_too if figure]))
    return lines(
        "Speed by threads: against one thread, NEXMark against DuckDB with as many", drawn, (1, *THREADS)
    )
