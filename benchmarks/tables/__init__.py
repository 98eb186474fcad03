"""What each table and plot of the documentation says, by the name that stands in its place."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures import Results
from benchmarks.tables import embedded, growth, machines, missed, nexmark, papers, spark, sql

TABLES: dict[str, Callable[[Results], str]] = {
    "machines": machines.machines,
    "embedded": embedded.shown,
    "start": embedded.start,
    "skew": embedded.skew,
    "nexmark": nexmark.means,
    "nexmark-behind": nexmark.behind,
    "nexmark-threads": nexmark.by_threads,
    "nexmark-on-spark": nexmark.on_spark,
    "threads": growth.threads,
    "spark": spark.costs,
    "spark-in-short": spark.in_short,
    "spark-wide": spark.wide,
    "epoch-model": spark.epoch_model,
    "epoch-simulated": spark.epoch_simulated,
    "paging": spark.paging,
    "patterns": papers.patterns,
    "quantiles": papers.quantiles,
    "pattern-state": papers.pattern_state,
    "small-calls": papers.small_calls,
    "claims": papers.claims,
    "bank": papers.bank,
    "feedback-aware": papers.feedback_aware,
    "feedback-sent": papers.feedback_sent,
    "feedback-saves": papers.feedback_saves,
    "pace": papers.pace,
    "how-far": papers.how_far,
    "loops": papers.loops,
    "views": sql.views,
    "match": sql.match,
    "missed": missed.missed,
    "failed": machines.failed,
}
PLOTS: dict[str, Callable[[Results], str]] = {
    "growth.svg": growth.growth_plot,
    "threads.svg": growth.threads_plot,
    "nexmark.svg": nexmark.plot,
}
