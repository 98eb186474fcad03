"""NEXMark in memory by the clock, with as many threads for us as for DuckDB."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.nexmark import Bench
    from benchmarks.report import Report


def by_threads(
    report: Report, bench: Bench, names: Sequence[str], threads: Sequence[int], times: int
) -> None:
    """Wall seconds with output ``final``, medians of alternating runs; the last rows are geometric means."""
    from benchmarks.nexmark import Run, alternating

    ratios: dict[int, list[float]] = {count: [] for count in threads}
    for name in names:
        for count in threads:
            runs = {
                "ours": Run(lambda name=name, count=count: bench.answer(name, "final", threads=count)),
                "duckdb": Run(bench.duckdb(name, count)),
            }
            _, wall = alternating(runs, times)
            ratios[count].append(wall["duckdb"] / wall["ours"])
            report.add(
                f"{name} {count} threads",
                bench.events / wall["ours"],
                {"duckdb": ratios[count][-1]},
                ms=round(1e3 * wall["ours"], 1),
                duckdb_ms=round(1e3 * wall["duckdb"], 1),
            )
    for count, some in ratios.items():
        report.add(
            f"mean {count} threads", None, {"duckdb": statistics.geometric_mean(some)}, queries=len(some)
        )
