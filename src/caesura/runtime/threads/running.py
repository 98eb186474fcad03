"""Runs a plan on several threads where that is possible, and on one where it is not."""

from __future__ import annotations

from typing import Any

from caesura.consistency import Mode
from caesura.errors import PlanError
from caesura.misuse import shown
from caesura.plan import Node, Speculate
from caesura.plan.prune import prune
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.query.query import Query
from caesura.runtime.query.result import Output, Result, delivered, enlarge, for_one_run, pace_of, query_of
from caesura.runtime.threads.query import ThreadedQuery
from caesura.runtime.threads.round_size import MOST_ROWS
from caesura.runtime.threads.spreading import spread

MAX_THREADS = 256


def check_threads(threads: Any) -> int:
    """The number of threads, if it is one."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MAX_THREADS:
        raise PlanError(
            f"threads= is a whole number from 1 to {MAX_THREADS}; got {shown(threads)}.",
            remedy="Write threads=2, at most as many as there are cores.",
        )
    return threads


def run_on_threads(
    node: Node,
    threads: int,
    *,
    output: Output,
    speculate: Speculate | None,
    schedule: Schedule | ScheduleName | None,
) -> Result:
    """Runs a plan until every source is at its end."""
    plan = for_one_run(node)
    query = query_on_threads(plan, threads, output=output, speculate=speculate, schedule=schedule)
    if isinstance(query, ThreadedQuery):
        enlarge(query.reading, MOST_ROWS)
    else:
        enlarge(query)
    query.run()
    return Result(query.take("out"), node, query.late(), query.counters())


def query_on_threads(
    node: Node,
    threads: int,
    *,
    output: Output,
    speculate: Speculate | None,
    schedule: Schedule | ScheduleName | None,
    claims: Mode | None = None,
) -> Query | ThreadedQuery:
    """A plan as a query on threads; on one where it can be no other."""
    pace = pace_of(output, speculate)
    final = pace == "watermark"
    plan = (
        None if claims is not None else spread(prune({"out": delivered(node, output)}), threads, final=final)
    )
    if plan is not None:
        made = ThreadedQuery(plan, threads, speculate=pace, schedule=schedule)
        if not made.works_to_budgets:
            return made
    return query_of(node, output, speculate, schedule, claims)
