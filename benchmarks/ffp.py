"""Loops: the W query cyclic and native, the strategies under disorder, rate and lulls, graphs that change.

Figures of the paper (their machine, 2009): W query 30 K events/s cyclic, 150 K native, window 30.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import caesura as cz
from benchmarks.ffp_plots import write
from benchmarks.ffp_trace import Figures, Mark, figures
from benchmarks.report import Report
from caesura import col, lit
from caesura.api import Stream
from caesura.events import Item, Page
from caesura.fixpoint.node import Progress
from caesura.ops.input import Input
from caesura.plan import Properties
from caesura.punctuation import INFINITY, cti
from caesura.runtime import Query

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "fixpoint"))
from queries import W_ARCS

WINDOW = 30
HOPS = 200
"""Of a loop that goes around often for every event."""
EVERY = 10
"""Events between punctuations in the experiments: average lag can be no better than half of it."""
STRATEGIES: tuple[Progress, ...] = ("high_water", "probing", "hybrid", "staged")
STATES = {name: n for n, name in enumerate(dict.fromkeys(s for a in W_ARCS for s in (a[0], a[2])))}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench ffp")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--only", default="", help="comma-separated: w, disorder, rate, lulls, free, graph, memory, spark"
    )
    parser.add_argument("--plots", type=Path, help="a folder for the paper's figures as HTML")
    options = parser.parse_args(arguments)
    report = Report("ffp", options.json)
    cases: dict[str, Callable[[Report, bool], None]] = {
        "w": w,
        "disorder": disorder,
        "rate": rate,
        "lulls": lulls,
        "free": free,
        "graph": graph,
        "memory": memory,
        "spark": on_spark,
    }
    for name in options.only.split(",") if options.only else list(cases):
        gc.collect()
        cases[name](report, options.quick)
    if options.plots is not None:
        write(report.rows, options.plots)


# The W query.


def ticks_input() -> Stream:
    known = Properties(insert_only=True, aligned=True, max_duration=WINDOW)
    return Stream(
        Input(label="ticks", payload=pa.schema([("seq", pa.int64()), ("up", pa.int64())]), known=known)
    )


def w_cyclic(ticks: Stream, progress: Progress = "hybrid") -> Stream:
    """The W on a cyclic plan, states and symbols as numbers."""
    seed = ticks.select(begin=col("seq"), at=col("seq") - 1, state=lit(0, "bigint"), m=lit(0, "bigint"))
    schema = pa.schema([(n, pa.int64()) for n in ("state", "up", "next", "least", "change")])
    arcs = Stream(Input(label="arcs", payload=schema, known=Properties(insert_only=True)))

    def follow(match: Stream) -> Stream:
        ahead = match.select("begin", "state", "m", wanted=col("at") + 1)
        met = ahead.join(ticks, on={"wanted": "seq"}).join(arcs, on=["state", "up"])
        alive = met.where(col("m") >= col("least"))
        return alive.select("begin", at=col("wanted"), state=col("next"), m=col("m") + col("change"))

    return cz.fixpoint(seed, follow, progress=progress)


def arcs_page() -> Page:
    rows = [
        {
            "state": STATES[a],
            "up": int(s == "U"),
            "next": STATES[b],
            "least": -WINDOW if m is None else m,
            "change": d,
        }
        for a, s, b, m, d in W_ARCS
    ]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(n, pa.int64()) for n in rows[0]]))
    return Page.of(batch, le=[0] * len(rows), re=[INFINITY] * len(rows))


def complete(matches: Stream) -> Stream:
    return matches.where((col("state") == STATES["up2"]) & (col("m") == 0))


def w_native(ticks: Stream) -> Stream:
    moves = []
    for state, symbol, following, least, change in W_ARCS:
        when = col("up") == int(symbol == "U")
        test = when if least is None else when & (col("m") >= least)
        moves.append(cz.arc(state, following, test, m=col("m") + change))
    return ticks.match(cz.automaton(moves, {"m": 0}, WINDOW, accept={"up2": col("m") == 0}))


def tosses(count: int) -> np.ndarray:  # type: ignore[type-arg]
    return (np.random.default_rng(1).random(count) < 0.5).astype(np.int64)


def pages_of(up: np.ndarray, size: int) -> list[Page]:  # type: ignore[type-arg]
    out = []
    for at in range(0, len(up), size):
        seq = np.arange(at, min(at + size, len(up)))
        out.append(Page.of(pa.record_batch({"seq": seq, "up": up[seq]}), le=seq, re=seq + WINDOW))
    return out


def timed(query: Query, pages: list[Page]) -> tuple[float, int]:
    """CPU seconds to feed pages with a punctuation behind each, and the rows that came out."""
    began, rows = time.process_time(), 0
    for page in pages:
        query.feed("ticks", page)
        query.feed("ticks", cti(int(page.le[-1]) + 1))
        query.run()
        rows += sum(len(item) for item in query.take("out") if isinstance(item, Page))
    return time.process_time() - began, rows


def w(report: Report, quick: bool) -> None:
    """Fair coin tosses, window 30: all partial matches circulate, the complete ones come out."""
    n = 200_000 if quick else 1_000_000
    cyclic, native = complete(w_cyclic(ticks_input())), w_native(ticks_input())
    found = {}
    for name, plan, size, count in (("cyclic", cyclic, 1 << 18, n), ("native", native, 1 << 20, 16 * n)):
        pages = pages_of(tosses(count), size)
        best = float("inf")
        for _ in range(3):
            query = Query({"out": plan.node})
            if name == "cyclic":
                query.feed("arcs", arcs_page())
                query.feed("arcs", cti(INFINITY))
                query.run()
            taken, rows = timed(query, pages)
            best, found[name] = min(best, taken), rows / count
        paper = {"cyclic": 30_000, "native": 150_000}[name]
        report.add(
            f"W query {name}",
            count / best,
            {"the paper": count / best / paper},
            matches_per_event=round(found[name], 4),
        )


# The strategies.


def experiment(
    progress: Progress, arrivals: list[tuple[int, list[int], int | None]], up: np.ndarray
) -> Figures:  # type: ignore[type-arg]
    """Runs the W query on events that arrive at system times; a loop works while input waits."""
    query = Query({"out": w_cyclic(ticks_input(), progress).node})
    query.feed("arcs", arcs_page())
    query.feed("arcs", cti(INFINITY))
    query.run()
    query.take("out")
    trace: list[Mark] = []
    for at, some, promise in arrivals:
        if some:
            seq = np.array(some)
            query.feed(
                "ticks", Page.of(pa.record_batch({"seq": seq, "up": up[seq]}), le=seq, re=seq + WINDOW)
            )
        if promise is not None:
            query.feed("ticks", cti(promise))
        query.run()
        trace += _seen(query, at)
    return figures(trace)


def _seen(query: Query, at: int) -> Iterator[Mark]:
    for item in query.take("out"):
        if isinstance(item, Page):
            yield from (Mark(at, "event", int(t)) for t in np.unique(item.sync))
        elif item.pattern.time_bound is not None:
            yield Mark(at, "definite", item.pattern.time_bound)
    counted = next(c for name, c in query.counters().items() if name.startswith("fixpoint"))
    yield Mark(at, "guesses", counted.extra["guesses"])
    yield Mark(at, "state", counted.extra["loop_state"])


def shuffled(count: int, early: int) -> list[tuple[int, list[int], int | None]]:
    """Every hundredth event comes some punctuations before its turn."""
    place = {n: (n - early * EVERY if n % 100 == 99 else n) for n in range(count)}
    order = sorted(range(count), key=lambda n: (place[n], n))
    arrivals: list[tuple[int, list[int], int | None]] = []
    left = set(range(count))
    for at, n in enumerate(order):
        left.discard(n)
        promise = min(left, default=count) if at % EVERY == EVERY - 1 else None
        arrivals.append((at, [n], promise))
    return arrivals


def told(report: Report, case: str, progress: str, got: Figures) -> None:
    report.add(
        f"{case} {progress}",
        lag=round(got.lag, 2),
        lag_by_bound=round(got.lag / (EVERY / 2), 2),
        definite=got.definite,
        guesses=got.guesses,
        state=round(got.state, 1),
        silence=got.silence,
    )


def disorder(report: Report, quick: bool) -> None:
    """Figures 6, 8, 10: state, output punctuations and lag against disorder."""
    n = 400 if quick else 2000
    for early in (0, 5) if quick else (0, 2, 5, 10, 20):
        for progress in STRATEGIES:
            told(report, f"disorder {early}", progress, experiment(progress, shuffled(n, early), tosses(n)))
        report.add(f"disorder {early} unpunctuated", **unpunctuated(shuffled(n, early), tosses(n)))


Row = tuple[int, int, tuple[object, ...]]


def unpunctuated(arrivals: list[tuple[int, list[int], int | None]], up: np.ndarray) -> dict[str, float]:  # type: ignore[type-arg]
    """The same loop without any punctuation, run: eventual consistency, and state that nothing frees.

    After each arrival it is asked for the present, the latest event that has come: which matches are alive
    then. An answer is wrong if it is another one in the end.
    """
    query = Query({"out": w_cyclic(ticks_input()).node})
    query.feed("arcs", arcs_page())
    query.feed("arcs", cti(INFINITY))
    alive: Counter[Row] = Counter()
    answers: list[tuple[int, Counter[Row]]] = []
    latest = -1
    for _, some, _ in arrivals:
        seq = np.array(some)
        query.feed("ticks", Page.of(pa.record_batch({"seq": seq, "up": up[seq]}), le=seq, re=seq + WINDOW))
        query.run()
        for item in query.take("out"):
            _fold(alive, item)
        latest = max(latest, *some)
        answers.append((latest, _at(alive, latest)))
    wrong = sum(_known(answer) != _known(_at(alive, t)) for t, answer in answers)
    counted = next(c for name, c in query.counters().items() if name.startswith("fixpoint"))
    return {"wrong_answers": round(wrong / len(answers), 3), "state": counted.extra["loop_state"]}


def _fold(alive: Counter[Row], item: Item) -> None:
    """Takes the changes of a page into the rows that there are."""
    if not isinstance(item, Page):
        return
    news = item.re_new if item.re_new is not None else item.re
    retracts = item.retracts if item.retracts is not None else np.zeros(len(item), np.bool_)
    rows = item.payload.to_pylist()
    for n, (le, re, new, gone) in enumerate(zip(item.le, item.re, news, retracts, strict=True)):
        values = tuple(rows[n].values())
        if gone:
            alive[int(le), int(re), values] -= 1
        if not gone or new > le:
            alive[int(le), int(new if gone else re), values] += 1


def _at(alive: Counter[Row], t: int) -> Counter[Row]:
    return Counter({row: n for row, n in alive.items() if n and row[0] <= t < row[1]})


def _known(answer: Counter[Row]) -> dict[tuple[object, ...], int]:
    """An answer by its values; ends that are yet to come do not count."""
    found: dict[tuple[object, ...], int] = {}
    for (_, _, values), n in answer.items():
        found[values] = found.get(values, 0) + n
    return found


def rate(report: Report, quick: bool) -> None:
    """Figure 7: guesses against inactivity: a hundred events at once, then a pause."""
    n = 400 if quick else 2000
    for pause in (1, 50) if quick else (1, 20, 50, 200):
        for progress in STRATEGIES:
            arrivals: list[tuple[int, list[int], int | None]] = []
            clock = 0
            for at in range(0, n, EVERY):
                clock += pause if at % 100 == 0 else 1
                arrivals.append((clock, list(range(at, at + EVERY)), at + EVERY))
            told(report, f"pause {pause}", progress, experiment(progress, arrivals, tosses(n)))


def lulls(report: Report, quick: bool) -> None:
    """Figures 9 and 11: guesses and silence against lulls: punctuations without events between them."""
    n = 400 if quick else 2000
    chance = np.random.default_rng(3)
    for likely in (0.0, 0.8) if quick else (0.0, 0.2, 0.5, 0.8, 0.9):
        gone = [bool(chance.random() < likely) for _ in range(n // EVERY)]
        for progress in STRATEGIES:
            arrivals: list[tuple[int, list[int], int | None]] = [
                (EVERY * k, [] if gone[k] else list(range(EVERY * k, EVERY * k + EVERY)), EVERY * k + EVERY)
                for k in range(n // EVERY)
            ]
            told(report, f"lulls {likely}", progress, experiment(progress, arrivals, tosses(n)))


def free(report: Report, quick: bool) -> None:
    """Sections 1 and 3.4: input that comes while the loop works waits, staged, until it is at rest."""
    from benchmarks.ffp_free import Arriving, measured

    def begin(query: Query) -> None:
        query.feed("arcs", arcs_page())
        query.feed("arcs", cti(INFINITY))

    def walk(ticks: Stream, progress: Progress) -> Stream:
        first = cz.when(col("seq") % 20 == 0, lit(0, "bigint")).otherwise(lit(HOPS - 1, "bigint"))
        seed = ticks.select("seq", hop=first)
        hops = lambda r: r.where(col("hop") < HOPS).select("seq", hop=col("hop") + 1)  # noqa: E731
        return cz.fixpoint(seed, hops, progress=progress)

    n = 200 if quick else 1000
    plans: dict[str, tuple[Callable[[Stream, Progress], Stream], tuple[int, ...]]] = {
        "W": (w_cyclic, (30, 45, 100)),
        f"a walk, the 20th of {HOPS} hops": (walk, (30, 60, 120)),
    }
    for name, (plan, gaps) in plans.items():
        for gap in gaps:
            for progress in ("hybrid", "staged"):
                reader = Arriving(tosses(n), WINDOW, gap)
                loop = partial(plan, progress=progress)
                report.add(
                    f"{name}, an event every {gap} steps, {progress}",
                    **measured(loop, begin if name == "W" else lambda query: None, reader),
                )


# Graphs that change.

EDGES = pa.schema([(n, pa.int64()) for n in ("a", "b", "w")])


def graph_plans() -> dict[str, Stream]:
    links = Stream(Input(label="links", payload=EDGES))
    starts = Stream(Input(label="starts", payload=pa.schema([("node", pa.int64())])))
    sound = links.where(col("w") >= 0)

    def hop(r: Stream) -> Stream:
        return r.join(links, on={"node": "a"}).select(node=col("b")).distinct()

    def drive(r: Stream) -> Stream:
        return r.join(sound, on={"node": "a"}).select(node=col("b"), dist=col("dist") + col("w"))

    near = cz.fixpoint(starts.select("node", dist=lit(0, "bigint")), drive, keep=cz.least("dist", per="node"))
    return {"reachability": cz.fixpoint(starts, hop), "shortest paths": near}


def edges_page(edges: np.ndarray, at: np.ndarray, *, gone: bool = False) -> Page:  # type: ignore[type-arg]
    some, zero = edges[at], np.zeros(len(at), np.int64)
    batch = pa.record_batch({n: some[:, k].copy() for k, n in enumerate(EDGES.names)})
    return Page.of(batch, le=zero, re=zero + INFINITY, re_new=zero if gone else None)


def graph(report: Report, quick: bool) -> None:
    """Time per update of a random graph, beside computing everything anew in the same run."""
    count = 20_000 if quick else 100_000
    rng = np.random.default_rng(2)
    edges = np.column_stack([rng.integers(0, count // 2, (count, 2)), rng.integers(1, 10, count)])
    for name, plan in graph_plans().items():
        query = Query({"out": plan.node})
        start = pa.record_batch({"node": pa.array([0], pa.int64())})
        query.feed("starts", Page.of(start, le=[0], re=[INFINITY]))
        query.feed("links", edges_page(edges, np.arange(count)))
        began = time.process_time()
        query.run()
        load = time.process_time() - began
        rivals = recomputed(edges, name)
        for size in (1, 100):
            taken = []
            for _ in range(10 if quick else 30):
                at = rng.choice(count, size, replace=False)
                for gone in (True, False):
                    began = time.process_time()
                    query.feed("links", edges_page(edges, at, gone=gone))
                    query.run()
                    taken.append(time.process_time() - began)
            mean = float(np.mean(taken))
            report.add(
                f"{name}, {size} edges",
                ratio_to={rival: spent / mean for rival, spent in rivals.items()},
                ms_per_update=round(1e3 * mean, 3),
                median_ms=round(1e3 * float(np.median(taken)), 3),
                load_s=round(load, 2),
                rows=query.state_rows,
            )


def recomputed(edges: np.ndarray, name: str) -> dict[str, float]:  # type: ignore[type-arg]
    """CPU seconds that others take to compute the whole answer from scratch."""
    taken: dict[str, float] = {}
    try:
        import networkx as nx
    except ImportError:
        pass
    else:
        made = nx.DiGraph()
        made.add_weighted_edges_from(edges.tolist())
        began = time.process_time()
        if name == "reachability":
            len(nx.descendants(made, 0))
        else:
            len(nx.single_source_dijkstra_path_length(made, 0))
        taken["networkx from scratch"] = time.process_time() - began
    if name == "reachability":
        import duckdb

        table = pa.table({n: edges[:, k].copy() for k, n in enumerate(EDGES.names)})
        con = duckdb.connect()
        con.register("edges", table)
        con.execute("set threads to 1")
        began = time.process_time()
        con.execute(
            "with recursive r(node) as (select 0::bigint union select b from r join edges on node = a)"
            " select count(*) from r"
        ).fetchall()
        taken["DuckDB recursive from scratch"] = time.process_time() - began
    return taken


def memory(report: Report, quick: bool) -> None:
    """A sliding window of edges: what the loop holds after each tenth of the stream."""
    count, size, life = (4_000, 200, 800) if quick else (30_000, 1_000, 3_000)
    rng = np.random.default_rng(4)
    ends = rng.integers(0, life // 2, (count, 2))
    query = Query({"out": graph_plans()["reachability"].node})
    start = pa.record_batch({"node": pa.array([0], pa.int64())})
    query.feed("starts", Page.of(start, le=[0], re=[INFINITY]))
    query.feed("starts", cti(INFINITY))
    held = []
    began = time.process_time()
    for at in range(0, count, size):
        le = np.arange(at, at + size)
        batch = pa.record_batch({"a": ends[le, 0], "b": ends[le, 1], "w": np.ones(size, np.int64)})
        query.feed("links", Page.of(batch, le=le, re=le + life))
        query.feed("links", cti(int(le[-1])))
        query.run()
        query.take("out")
        if at % (count // 10) == 0:
            held.append(query.state_rows)
    report.add("sliding window of edges", count / (time.process_time() - began), rows_held=held)


def on_spark(report: Report, quick: bool) -> None:
    """Rounds a second across buckets on Spark, and how many stay inside."""
    from benchmarks.ffp_spark import rounds

    for row in rounds(10 if quick else 30):
        report.add(row.pop("case"), **row)
