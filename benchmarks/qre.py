"""StreamQRE: the paper's queries against hand-written kernels, DuckDB, reactivex and the twin.

``python -m benchmarks qre --json --events 5000000`` prints one JSON object per measurement. Times are CPU
times of this process, best of ``--repeat``, kernels compiled before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import qre_data as data
from benchmarks.qre_hand import HAND
from benchmarks.qre_rivals import DUCK, RX
from caesura import qre
from caesura.events.page import Page
from caesura.ops.input import Input
from caesura.punctuation import cti
from caesura.qre import paper
from caesura.qre.evaluation import Evaluator
from caesura.qre.query import Query
from caesura.qre.weaving import Weaver, woven
from caesura.runtime import Query as Running

TEN_MINUTES = 600 * data.SECOND
QUERIES: dict[str, tuple[str, Callable[[], Query], int | None]] = {
    "Y1": ("yahoo", lambda: paper.y1(paper.ad_items()), data.SECOND),
    "Y2": ("yahoo", lambda: paper.y2_scores(paper.ad_items()), None),
    "N1": ("nexmark", lambda: paper.n1(paper.auction_items()), None),
    "N2": ("nexmark", lambda: paper.n2(paper.auction_items()), None),
    "N3": ("nexmark", lambda: paper.n3(paper.auction_items()), None),
    "N4": ("nexmark", lambda: paper.n4(paper.auction_items()), TEN_MINUTES),
    "N5": ("nexmark", lambda: paper.n5(paper.auction_items()), TEN_MINUTES),
    "P6": ("patients", lambda: paper.p6(patient_items()), None),
    "P6 approximate": ("patients", lambda: paper.p6(patient_items(), epsilon=0.01), None),
    "P7 w=10^4": ("patients", lambda: paper.p7(patient_items(), 10_000, 60.0), None),
    "P7 w=10^4 approximate": (
        "patients",
        lambda: paper.p7(patient_items(), 10_000, 60.0, epsilon=0.01),
        None,
    ),
    "P7 w=10^7": ("patients", lambda: paper.p7(patient_items(), 10_000_000, 60.0), None),
    "P7 w=10^7 approximate": (
        "patients",
        lambda: paper.p7(patient_items(), 10_000_000, 60.0, epsilon=0.01),
        None,
    ),
}
FEWER = {"N5": 1_000_000}
"""N5 holds a ring of 144 counts per item; with 5 M events that is 345 MB."""


def patient_items() -> qre.Items:
    """The schema that the generator gives."""
    return qre.items(data.patients(100).batch.schema)


def timed(work: Callable[[], Any], repeat: int) -> float:
    """The least CPU time of some runs."""
    best = float("inf")
    for _ in range(repeat):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def prepared(name: str, of: data.Data) -> tuple[Query, pa.RecordBatch]:
    """A query and the events that it reads, ticks woven in."""
    _, make, every = QUERIES[name]
    query = make()
    if every is None:
        return query, of.batch
    batch, _ = woven(of.batch, of.time, Weaver(every).due(int(of.time[-1]) + every, of.time))
    return query, batch


def rate(name: str, of: data.Data, repeat: int) -> tuple[float, Evaluator]:
    """Events a second of the compiled query on events in order, and the evaluator after it."""
    query, batch = prepared(name, of)
    Evaluator(query, kernel="generated").run(batch.slice(0, 20_000))
    fresh = [Evaluator(query, kernel="generated") for _ in range(repeat)]
    waiting = iter(fresh)
    seconds = timed(lambda: next(waiting).run(batch), repeat)
    return len(of.time) / seconds, fresh[-1]


def disordered_rate(name: str, of: data.Data) -> float:
    """The same through a running plan, 5 % of the events late."""
    _, make, every = QUERIES[name]
    late = data.disordered(of)
    node = qre.over(Input(label="in", payload=of.batch.schema), make(), ticks_every=every, kernel="generated")
    running = Running({"out": node})
    size = 1 << 18
    begin = time.process_time()
    for at in range(0, len(late.time), size):
        times = late.time[at : at + size]
        running.feed("in", Page(times, times + 1, late.batch.slice(at, size)))
        bound = int(of.time[max(0, min(at + size, len(of.time)) - 4001)])
        running.feed("in", cti(bound))
        running.run()
        running.take("out")
    return len(of.time) / (time.process_time() - begin)


def twin_rate(name: str, of: data.Data, events: int = 20_000) -> float:
    """Events a second of the plain-Python evaluator."""
    query, batch = prepared(name, data.Data(of.batch.slice(0, events), of.time[:events]))
    running = Evaluator(query, kernel="twin")
    return events / timed(lambda: running.run(batch), 1)


def measure(name: str, events: int, repeat: int) -> dict[str, Any]:
    """Everything about one query."""
    kind = QUERIES[name][0]
    count = min(events, FEWER.get(name, events))
    of: data.Data = getattr(data, kind)(count)
    speed, running = rate(name, of, repeat)
    others: dict[str, float] = {"twin": twin_rate(name, of)}
    for label, table in (("hand", HAND), ("duckdb", DUCK)):
        if name in table:
            work = table[name](of)
            work()
            others[label] = count / timed(work, repeat)
    if name in RX and RX[name] is not None:
        small = data.Data(of.batch.slice(0, 100_000), of.time[:100_000])
        others["reactivex"] = 100_000 / timed(RX[name](small), 1)
    result: dict[str, Any] = {"bench": "qre", "case": name, "events": count, "events_per_s": round(speed)}
    result["ratio_to"] = {other: round(speed / r, 2) for other, r in others.items()}
    result["state_bytes"] = running.nbytes
    result["runs_on"] = running.explain()
    if name in ("Y1", "N1", "N2", "N3", "P6"):
        result["events_per_s_5%_late"] = round(disordered_rate(name, of))
    return result


def batches(events: int) -> list[dict[str, Any]]:
    """N2 fed in small pieces: throughput and the 99th percentile of a call."""
    out = []
    of = data.nexmark(min(events, 400_000))
    for size in (1, 16, 256, 4096):
        running = Evaluator(paper.n2(paper.auction_items()), kernel="generated")
        calls = min(len(of.time) // size, 3000)
        running.run(of.batch.slice(0, size))
        took = []
        for at in range(calls):
            begin = time.perf_counter()
            running.run(of.batch.slice(at * size, size))
            took.append(time.perf_counter() - begin)
        speed = calls * size / sum(took)
        p99 = float(np.quantile(took, 0.99)) * 1e6
        out.append(
            {
                "bench": "qre",
                "case": f"N2, {size} events a call",
                "events_per_s": round(speed),
                "p99_us": round(p99, 1),
            }
        )
    return out


def many_keys(keys: int) -> dict[str, Any]:
    """Keys that each live for 20 events, a thousand open at once: the state at its most."""
    of = paper.auction_items()
    query = qre.partition(paper.auction(of, paper.col("start").field("p") + paper.col("b")), by="item")
    evaluator = Evaluator(query, kernel="generated")
    most, begin = 0, time.process_time()
    for first in range(0, keys, 50_000):
        count = min(50_000, keys - first)
        item = (
            np.repeat(np.arange(first, first + count), 20)
            .reshape(-1, 1000, 20)
            .transpose(0, 2, 1)
            .reshape(-1)
        )
        kind = np.full((count // 1000, 20, 1000), paper.BID, np.int8)
        kind[:, 0], kind[:, 19] = paper.ITEM, paper.CLOSE
        columns = [
            pa.array(kind.reshape(-1)),
            pa.array(item),
            pa.array(np.ones(len(item))),
            pa.array(np.zeros(len(item), np.int32)),
        ]
        evaluator.run(pa.RecordBatch.from_arrays(columns, schema=of.schema))
        most = max(most, evaluator.nbytes)
    speed = keys * 20 / (time.process_time() - begin)
    case = f"{keys} keys of 20 events"
    return {
        "bench": "qre",
        "case": case,
        "events_per_s": round(speed),
        "state_bytes_most": most,
        "left": evaluator.left,
    }


def main(argv: list[str]) -> None:
    """Runs the benchmark; ``--only N2`` picks one query."""
    parser = argparse.ArgumentParser(prog="qre")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    given = parser.parse_args(argv)
    names = [n for n in QUERIES if given.only in ("", n)]
    results = (measure(name, given.events, given.repeat) for name in names)
    for result in results:
        _show(result, given.json)
    if not given.only:
        for result in [*batches(given.events), many_keys(given.keys)]:
            _show(result, given.json)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result), flush=True)
        return
    rest = ", ".join(f"{k}={v}" for k, v in result.items() if k not in ("bench", "case", "events_per_s"))
    print(f"{result['case']:24} {result['events_per_s'] / 1e6:8.2f} M events/s   {rest}", flush=True)
