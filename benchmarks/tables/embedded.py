"""What runs in this process, beside DuckDB: Y1, the join, corrections, groups, small pages, memory, start."""

from __future__ import annotations

from benchmarks.figures import Results, in_units, millions, ratio, table

TWO = "2-cores"


def shown(results: Results) -> str:
    """The main cases, for the first page and for Performance."""

    def rate(case: str, bench: str = "core") -> str:
        return millions(results.figure(TWO, bench, case, "events_per_s"))

    def beside(case: str, other: str) -> str:
        return ratio(results.figure(TWO, "core", case, f"ratio_to.{other}"))

    page = in_units(results.figure(TWO, "threads", "page_1", "us"), 1, 0, " µs")
    changes = in_units(results.figure(TWO, "threads", "page_1_changes", "us"), 1, 0, " µs")
    duckdb = "times DuckDB's batch query on two threads"
    groups = f"{beside('million_groups', 'duckdb_2_threads')} {duckdb}"
    return table(
        ["case", "events a second, one thread", "beside it, in the same run"],
        [
            [
                "Yahoo's Y1: filter, look up, count",
                rate("y1"),
                f"{beside('y1', 'duckdb_2_threads')} {duckdb}",
            ],
            [
                "temporal join of intervals",
                rate("temporal_join"),
                f"{beside('temporal_join', 'duckdb_2_threads')} {duckdb}",
            ],
            [
                "Y1, 5 % late and 5 % retracted",
                rate("y1_late_and_retracted"),
                f"{beside('y1_late_and_retracted', 'y1_clean')} of the clean run's speed",
            ],
            [
                "the same, views by a text",
                rate("texts_late_and_retracted"),
                f"{beside('texts_late_and_retracted', 'clean')} of the clean run's speed",
            ],
            ["count and sum by a million keys", rate("million_groups"), groups],
            ["mean over hopping windows", rate("hopping_avg_10s_by_1s", "windows"), ""],
            ["count over snapshots", rate("snapshot_count", "windows"), ""],
            ["a page of one event, CPU", page, f'{changes} with `output="changes"`'],
            ["memory over 100 M events of Y1", _memory(results), _rows(results)],
        ],
    )


def _memory(results: Results) -> str:
    first, last = (
        in_units(results.figure(TWO, "core", "memory", name), 1, 0, " MB")
        for name in ("rss_mb_after_third", "rss_mb_at_end")
    )
    return f"{last} at the end, {first} after a third"


def _rows(results: Results) -> str:
    rows = in_units(results.figure(TWO, "core", "memory", "state_rows_at_end"))
    return f"{rows} rows of state at the end"


def start(results: Results) -> str:
    """How long a new process takes, by the clock and in CPU."""
    cases = {
        "import caesura": "`import caesura`",
        "libraries": "NumPy, Arrow and pandas alone",
        "preview": "first `preview` of 100 rows",
        "qre": "first answer of a QRE",
        "first kernels (Y1)": "compiling Y1's kernels, once on a machine",
    }
    return table(
        ["in a new process", "s by the clock", "s of CPU"],
        [
            [
                said,
                *(in_units(results.figure(TWO, "start", case, name), 1, 2) for name in ("wall_s", "cpu_s")),
            ]
            for case, said in cases.items()
        ],
    )


def skew(results: Results) -> str:
    """One key with nearly all rows, whole and spread over buckets."""

    def of(case: str, name: str, unit: float = 1) -> str:
        return in_units(results.figure(TWO, "skew", case, name), unit)

    rows = []
    for buckets in (2, 4, 8):
        whole, spread = (f"{how}_{buckets}_buckets_99%" for how in ("whole", "spread"))
        speed = ratio(results.figure(TWO, "skew", spread, "ratio_to.whole"), 1)
        even = ratio(results.figure(TWO, "skew", f"spread_{buckets}_buckets_0%", "ratio_to.whole"))
        all_of = f"{of(whole, 'all_ms')} and {of(spread, 'all_ms')}"
        rows.append([str(buckets), of(whole, "busiest_ms"), of(spread, "busiest_ms"), speed, all_of, even])
    head = ["buckets", "whole, ms", "spread, ms", "times as fast", "CPU of all buckets, ms", "even keys"]
    return table(head, rows)
