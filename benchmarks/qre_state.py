"""What StreamQRE queries hold: sketches and windows, short-lived keys, Theorem 7; small calls, typing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import qre_data as data
from benchmarks.qre_data import paper
from caesura import qre
from caesura.expr import col
from caesura.qre.engine.choice import Kernel
from caesura.qre.engine.evaluation import Evaluator
from caesura.qre.language.query import Query

Row = dict[str, Any]


def all_of(*, full: bool) -> Iterator[Row]:
    """Everything here, at full size or in a minute."""
    yield from memory(10_000_000 if full else 1_000_000)
    yield from small_calls()
    yield many_keys(10_000_000 if full else 500_000)
    yield saved("a pattern", 1_000_000, "table")
    yield saved("the interpreter", 100_000, "twin")
    yield from theorem_7(7 if full else 6)
    yield typing(300)


def memory(most: int) -> Iterator[Row]:
    """The paper's Table 1: exact and approximate P6 and P7, with the bytes that they hold."""
    of = data.patients(max(5_000_000, most + most // 4))
    items = qre.items(of.batch.schema)
    sizes = [w for w in (10**3, 10**4, 10**5, 10**6, 10**7) if w <= most]
    for epsilon in (None, 0.01):
        kind = "exact" if epsilon is None else f"approximate {epsilon}"
        yield _held(f"P6 {kind}", paper.p6(items, epsilon=epsilon), of)
        for size in sizes:
            yield _held(f"P7 w={size} {kind}", paper.p7(items, size, 60.0, epsilon=epsilon), of)


def _held(name: str, query: Query, of: data.Data) -> Row:
    Evaluator(query, kernel="generated").run(of.batch.slice(0, 1000))
    running = Evaluator(query, kernel="generated")
    begin = time.process_time()
    size = 1 << 18
    for at in range(0, len(of.time), size):
        running.run(of.batch.slice(at, size))
    rate = len(of.time) / (time.process_time() - begin)
    return {"bench": "qre", "case": name, "events_per_s": round(rate), "state_bytes": running.nbytes}


def small_calls() -> Iterator[Row]:
    """N2 fed in small pieces: throughput and the 99th percentile of a call."""
    of = data.nexmark(400_000)
    for size in (1, 16, 256, 4096):
        running = Evaluator(paper.n2(paper.auction_items()), kernel="generated")
        running.run(of.batch.slice(0, 20_000))
        pieces = [of.batch.slice(20_000 + at * size, size) for at in range(min(380_000 // size, 3000))]
        took = []
        for piece in pieces:
            begin = time.perf_counter()
            running.run(piece)
            took.append(time.perf_counter() - begin)
        yield {
            "bench": "qre",
            "case": f"N2, {size} events a call",
            "events_per_s": round(len(pieces) * size / sum(took)),
            "p50_us": round(float(np.quantile(took, 0.5)) * 1e6, 1),
            "p99_us": round(float(np.quantile(took, 0.99)) * 1e6, 1),
        }


def lives(first: int, count: int, *, at_once: int = 1000, events: int = 20) -> pa.RecordBatch:
    """Keys that each live for some events, so many open at once."""
    shape = (count // at_once, at_once, events)
    item = np.repeat(np.arange(first, first + count), events).reshape(shape).transpose(0, 2, 1).reshape(-1)
    kind = np.full((count // at_once, events, at_once), paper.BID, np.int8)
    kind[:, 0], kind[:, events - 1] = paper.ITEM, paper.CLOSE
    zeros = np.zeros(len(item), np.int32)
    columns = [pa.array(kind.reshape(-1)), pa.array(item), pa.array(np.ones(len(item))), pa.array(zeros)]
    return pa.RecordBatch.from_arrays(columns, schema=paper.auction_items().schema)


def many_keys(keys: int) -> Row:
    """Keys that each live for 20 events, a thousand open at once: the state at its most."""
    price = paper.auction(paper.auction_items(), col("start").field("p") + col("b"))
    evaluator = Evaluator(qre.partition(price, by="item"), kernel="generated")
    most, spent = 0, 0.0
    for first in range(0, keys, 50_000):
        page = lives(first, min(50_000, keys - first))
        begin = time.process_time()
        evaluator.run(page.slice(0, page.num_rows - 10_000))
        most = max(most, evaluator.nbytes)
        evaluator.run(page.slice(page.num_rows - 10_000))
        spent += time.process_time() - begin
    return {
        "bench": "qre",
        "case": f"{keys} keys of 20 events",
        "events_per_s": round(keys * 20 / spent),
        "state_bytes_most": most,
        "keys_held": evaluator.keys,
    }


def saved(name: str, keys: int, kernel: Kernel) -> Row:
    """State written and read again: one open auction for each key."""
    price = paper.auction(paper.auction_items(), col("start").field("p") + col("b"))
    query = qre.partition(price, by="item")
    running, again = Evaluator(query, kernel=kernel), Evaluator(query, kernel=kernel)
    page = lives(0, keys, at_once=keys, events=2).slice(0, keys)
    running.run(page.take(pa.array(np.random.default_rng(7).permutation(keys))))
    again.load(running.save())
    begin = time.process_time()
    state = running.save()
    written = time.process_time()
    again.load(state)
    return {
        "bench": "qre",
        "case": f"state of {name}, {keys} keys",
        "saved_ms": round(1e3 * (written - begin), 1),
        "read_ms": round(1e3 * (time.process_time() - written), 1),
        "saved_bytes": len(state),
        "keys_held": again.keys,
    }


def theorem_7(exponent: int) -> Iterator[Row]:
    """Bytes held and operations per item, counted, after (nine tenths of) 10^3, 10^5 and more items."""
    for name, query, of in _eternal(10**exponent):
        seen = []
        for power in sorted({3, 5, exponent}):
            running = Evaluator(query, kernel="table")
            work = counted(running, of.slice(0, 10**power * 9 // 10))
            seen.append((running.nbytes, work))
        alike = len({s for s, _ in seen}) == 1 and len({w for _, w in seen}) == 1
        yield {
            "bench": "qre",
            "case": f"Theorem 7: {name}",
            "state_bytes": [s for s, _ in seen],
            "operations_per_item_at_most": [w for _, w in seen],
            "equal": alike,
        }


def _eternal(events: int) -> Iterator[tuple[str, Query, pa.RecordBatch]]:
    of = data.patients(events).batch
    items = qre.items(of.schema)
    yield "daily maximum", paper.daily_maximum(items), of
    plain = of.filter((pc.field("kind") == paper.MEASURE) | (pc.field("kind") == paper.DAY))
    yield "good and bad days", paper.good_and_bad_days(items, 60.0), plain
    yield "P7, w=1000", paper.p7(items, 1000, 60.0), of


def counted(running: Evaluator, batch: pa.RecordBatch, page: int = 50_000) -> int:
    """Feeds a word and gives the most instructions that any one item took."""
    most = 0
    for at in range(0, batch.num_rows, page):
        running.run(batch.slice(at, page))
        most = max(most, running.operations)
    return most


def typing(atoms: int) -> Row:
    """Checking queries of many atoms."""
    of = qre.items(pa.schema([("v", pa.int64())]))
    some = [qre.atom(col("v") == i) for i in range(atoms)]
    begin = time.process_time()
    qre.split(*some, op=col("_0").field("v")).on(of)
    one = time.process_time() - begin
    begin = time.process_time()
    qre.iter(qre.or_(*some), 0, col("acc") + 1).on(of)
    two = time.process_time() - begin
    return {
        "bench": "qre",
        "case": f"typing {atoms} atoms",
        "split_s": round(one, 3),
        "iter_or_s": round(two, 3),
    }
