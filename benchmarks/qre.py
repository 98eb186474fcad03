"""StreamQRE: the paper's queries against hand-written kernels, DuckDB, reactivex and the twin.

``python -m benchmarks qre --json --events 5000000`` prints one JSON object per measurement. Times are CPU
times of this process, best of ``--repeat``, kernels compiled before; what is compared is run in turns. A
query is measured twice: compiled, over columns in order (``events_per_s``, the figure that ``ratio_to``
compares), and as a step of a plan in the engine (``engine``, events in order; ``engine_5%_late``).
``--full`` adds windows of 10^7, 10^7 items and 10 M keys; ``--spark`` runs N2 from Parquet on Spark;
``--jvm`` runs RxJava, Esper and Flink beside ours, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import qre_data as data
from benchmarks.qre_data import paper
from benchmarks.qre_hand import HAND
from benchmarks.qre_rivals import DUCK, RX
from caesura import qre
from caesura.events.page import Page
from caesura.ops.input import Input
from caesura.punctuation import cti
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.engine.ticks import Weaver
from caesura.qre.language.query import Query
from caesura.runtime import Query as Running

TEN_MINUTES = 600 * data.SECOND
PAGE = 1 << 18


def patient_items() -> qre.Items:
    """The schema that the generator gives."""
    return qre.items(data.patients(100).batch.schema)


QUERIES: dict[str, tuple[str, Callable[[], Query], int | None]] = {
    "Y1": ("yahoo", lambda: paper.y1(paper.ad_items()), data.SECOND),
    "Y2": ("yahoo", lambda: paper.y2_scores(paper.ad_items()), None),
    "N1": ("nexmark", lambda: paper.n1(paper.auction_items()), None),
    "N2": ("nexmark", lambda: paper.n2(paper.auction_items()), None),
    "N3": ("nexmark", lambda: paper.n3(paper.auction_items()), None),
    "N4": ("nexmark", lambda: paper.n4(paper.auction_items()), TEN_MINUTES),
    "N5": ("nexmark", lambda: paper.n5(paper.auction_items()), TEN_MINUTES),
    "P6": ("patients", lambda: paper.p6(patient_items()), None),
    "P7 w=10^4": ("patients", lambda: paper.p7(patient_items(), 10_000, 60.0), None),
}
FLOORS = {"Y1": 100e6, "N2": 100e6}


class Case(NamedTuple):
    """A query and what it reads."""

    query: Query
    of: data.Data
    ticks: Any
    every: int | None

    def run(self, kernel: Any = "generated") -> Any:
        """Everything once, by a fresh evaluator: (times, answers)."""
        return Evaluator(self.query, kernel=kernel).timed(self.of.batch, self.of.time, self.ticks)[:2]

    def head(self, events: int) -> Case:
        """The first events."""
        few = data.Data(self.of.batch.slice(0, events), self.of.time[:events])
        return case_of(self.query, few, self.every)


def case_of(query: Query, of: data.Data, every: int | None) -> Case:
    """The query over the data, with ticks up to the end of the last event's period."""
    last = int(of.time[-1])
    ticks = None if every is None else Weaver(every).due(last - last % (every or 1) + (every or 1), of.time)
    return Case(query, of, ticks, every)


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of one run."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def in_turns(works: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """The least CPU time of each, all run once in every turn."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeat):
        for name, work in works.items():
            best[name] = min(best[name], seconds(work))
    return best


def check(name: str, got: Any, wanted: Any) -> None:
    """The query and the hand-written kernel gave the same answers."""
    times, out = got
    ours = [times, *(c.to_numpy(zero_copy_only=False) for c in out.columns)]
    ours = [np.asarray(c) for c in ours]
    order, other = (np.lexsort([*columns[::-1]]) for columns in (ours, wanted))
    for a, b in zip(ours, wanted, strict=True):
        if not np.allclose(a[order], b[other]):
            raise AssertionError(f"{name}: the hand-written kernel gives other answers")


def engine_rate(name: str, of: data.Data, late: bool) -> float:
    """Events a second of the query as a step of a running plan, page by page."""
    _, make, every = QUERIES[name]
    come = data.disordered(of) if late else of
    lag = 4001 if late else 1
    node = qre.over(Input(label="in", payload=of.batch.schema), make(), ticks_every=every, kernel="generated")

    def work(count: int) -> None:
        running = Running({"out": node})
        for at in range(0, count, PAGE):
            times = come.time[at : at + PAGE]
            running.feed("in", Page(times, times + 1, come.batch.slice(at, PAGE)))
            running.feed("in", cti(int(of.time[max(0, min(at + PAGE, len(of.time)) - lag)])))
            running.run()
            running.take("out")

    work(PAGE)
    return len(of.time) / seconds(lambda: work(len(of.time)))


def measure(name: str, events: int, repeat: int) -> dict[str, Any]:
    """Everything about one query."""
    kind, make, every = QUERIES[name]
    case = case_of(make(), getattr(data, kind)(events), every)
    case.head(20_000).run()
    works: dict[str, Callable[[], Any]] = {"": case.run, "hand": HAND[name](case.of)}
    check(name, case.run(), works["hand"]())
    best = in_turns(works, repeat)
    rates = {other: events / s for other, s in best.items()}
    if name in DUCK:
        batch = DUCK[name](case.of)
        rates["duckdb"] = events / min(seconds(batch) for _ in range(2))
    few = case.head(min(events, 100_000))
    if name in RX:
        rates["reactivex"] = len(few.of.time) / min(seconds(RX[name](few.of)) for _ in range(2))
    tiny = case.head(20_000)
    rates["twin"] = 20_000 / seconds(lambda: tiny.run("twin"))
    rates["table kernel"] = events / seconds(lambda: case.run("table"))
    evaluator = Evaluator(case.query, kernel="generated")
    evaluator.timed(case.of.batch, case.of.time, case.ticks)
    speed = rates.pop("")
    result: dict[str, Any] = {"bench": "qre", "case": name, "events": events, "events_per_s": round(speed)}
    result["ratio_to"] = {other: round(speed / r, 2) for other, r in rates.items()}
    result["engine"] = round(engine_rate(name, case.of, late=False))
    result["engine_5%_late"] = round(engine_rate(name, case.of, late=True))
    result["state_bytes"], result["runs_on"] = evaluator.nbytes, evaluator.explain()
    if name in FLOORS:
        result["floor"] = "met" if speed >= FLOORS[name] and speed >= 0.5 * rates["hand"] else "missed"
    return result


def main(argv: list[str]) -> None:
    """Runs the benchmark; ``--only N2`` picks one query, ``--only state`` all but the queries."""
    from benchmarks import qre_jvm, qre_spark, qre_state

    parser = argparse.ArgumentParser(prog="qre")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--jvm", action="store_true")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="")
    given = parser.parse_args(argv)
    if given.jvm:
        for result in qre_jvm.beside(given.events, given.repeat):
            _show(result, given.json)
        return
    names = [n for n in QUERIES if given.only in ("", n)]
    results: list[Iterable[dict[str, Any]]] = []
    for name in names:
        _show(measure(name, given.events, given.repeat), given.json)
    if given.only in ("", "state"):
        results = [qre_state.all_of(full=given.full)]
    if given.spark:
        results.append(qre_spark.n2(given.events))
    for some in results:
        for result in some:
            _show(result, given.json)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result), flush=True)
        return
    rest = ", ".join(f"{k}={v}" for k, v in result.items() if k not in ("bench", "case", "events_per_s"))
    rate = f"{result['events_per_s'] / 1e6:8.2f} M events/s" if "events_per_s" in result else " " * 19
    print(f"{result['case']:28} {rate}   {rest}", flush=True)


__all__ = ["Case", "case_of", "main", "seconds"]
