"""How a loop behaves while it runs: it flies, guesses sparely, forgets, and touches only what changes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from fixpoint_streams import HOPS, LINKS, NODES, SOURCES
from queries import reachability, shortest

import caesura as cz
from caesura import col
from caesura.api import Stream
from caesura.events import History, Page, parse
from caesura.fixpoint.node import PROGRESS, Progress
from caesura.plan import Counters
from caesura.punctuation import INFINITY, Intent
from caesura.runtime import Query, Shuffled
from caesura.testing import assert_history, run

EDGES = pa.schema([("a", pa.int64()), ("b", pa.int64())])
STARTS = cz.input_stream("starts", pa.schema([("node", pa.int64())]))
WIRES = cz.input_stream("wires", EDGES)
every = pytest.mark.parametrize("progress", PROGRESS)


def reached(**options: object) -> Stream:
    def hop(r: Stream) -> Stream:
        return r.join(WIRES, on={"node": "a"}).select(node=col("b")).distinct()

    return cz.fixpoint(STARTS, hop, **options)  # type: ignore[call-overload, no-any-return]


def wires(*pairs: tuple[int, int], le: int = 0, re: int = INFINITY, gone: bool = False) -> Page:
    batch = pa.RecordBatch.from_pylist([{"a": a, "b": b} for a, b in pairs], EDGES)
    n = len(pairs)
    return Page.of(batch, le=[le] * n, re=[re] * n, re_new=[le] * n if gone else None)


def start(query: Query, *nodes: int) -> None:
    batch = pa.record_batch({"node": pa.array(nodes, pa.int64())})
    query.feed("starts", Page.of(batch, le=[0] * len(nodes), re=[INFINITY] * len(nodes)))
    query.run()


def head(query: Query) -> Counters:
    return next(c for name, c in query.counters().items() if name.startswith("fixpoint"))


@every
def test_a_cycle_does_not_keep_itself_alive(progress: Progress) -> None:
    drawn = """
 LE RE     | a b |
  1 20     | 1 2 | +
  1 20     | 2 3 | +
  1 20     | 3 2 | +
-- 5 --
  1 20->7  | 1 2 | -
-- 30 --
"""
    out = run(
        reached(progress=progress), {"starts": " LE RE | node |\n 1 20 | 1 | +\n-- 30 --", "wires": drawn}
    )
    assert_history(out, " LE RE | node |\n 1 20 | 1 | +\n 1 7 | 2 | +\n 1 7 | 3 | +")


def test_self_loops_and_double_edges_change_nothing() -> None:
    drawn = (
        " LE RE | a b |\n 1 9 | 1 1 | +\n 1 9 | 1 2 | +\n 1 9 | 1 2 | +\n 1 9->4 | 1 2 | -\n 3 9 | 2 2 | +"
    )
    out = run(reached(), {"starts": " LE RE | node |\n 1 9 | 1 | +", "wires": drawn})
    assert_history(out, " LE RE | node |\n 1 9 | 1 | +\n 1 9 | 2 | +")


@every
def test_output_and_definite_punctuation_come_while_input_never_pauses(progress: Progress) -> None:
    """Flying: input is fed while a guess circulates, and the queues are never empty."""
    query = Query({"out": reachability(SOURCES, LINKS, progress=progress).node}, schedule=Shuffled(5))
    for item in parse(NODES, SOURCES.schema):
        query.feed("sources", item)
    seen, definite, busy = 0, [], 0
    for t in range(1, 60):
        page = pa.RecordBatch.from_pylist([{"a": "n2", "b": f"m{t}"}], LINKS.schema)
        query.feed("links", Page.of(page, le=[t], re=[t + 3]))
        query.feed("links", cz.cti(t))
        for _ in range(12):
            query.step()
        busy += any(edge.items for edge in query.graph.edges)
        for item in query.take("out"):
            if isinstance(item, Page):
                seen += len(item)
            elif item.intent is Intent.DEFINITE:
                definite.append(item.pattern.time_bound)
    assert busy == 59
    assert seen > 10
    assert len(definite) > 3 and definite == sorted(set(definite))


@every
def test_no_guess_circulates_when_nothing_progresses(progress: Progress) -> None:
    query = Query({"out": reached(progress=progress).node})
    start(query, 1)
    query.feed("wires", wires((1, 2), (2, 3), le=5))
    for label in ("starts", "wires"):
        query.feed(label, cz.cti(9))
    query.run()
    before = head(query).extra["guesses"]
    for _ in range(5):
        query.feed("wires", cz.cti(9))
        query.run()
    assert head(query).extra["guesses"] == before


def test_hybrid_guesses_less_than_probing_and_is_as_far() -> None:
    guesses = {}
    for progress in ("hybrid", "probing"):
        query = Query({"out": reachability(SOURCES, LINKS, progress=progress).node})  # type: ignore[arg-type]
        for item in parse(NODES, SOURCES.schema):
            query.feed("sources", item)
        lone = [item for item in parse(HOPS, LINKS.schema) if isinstance(item, Page)]
        for item in lone:
            query.feed("links", item)
            query.run()
        query.feed("links", cz.cti(5))
        query.run()
        told = [i.pattern.time_bound for i in query.take("out") if not isinstance(i, Page)]
        assert told[-1] == 5
        guesses[progress] = head(query).extra["guesses"]
    assert guesses["hybrid"] < guesses["probing"]


def test_the_rows_that_a_deletion_touches_are_those_that_it_affects() -> None:
    """A long chain, and a leaf cut off at its end: the chain is not touched."""
    query = Query({"out": reached().node})
    start(query, 0)
    query.feed("wires", wires(*((n, n + 1) for n in range(500)), (3, 2000), (2000, 2001)))
    query.run()
    before = head(query).extra["touched"]
    query.feed("wires", wires((3, 2000), gone=True))
    query.run()
    affected = 2  # the two leaves, each with one derivation
    assert head(query).extra["touched"] - before <= 4 * affected
    gone = [p.rows() for p in query.take("out") if isinstance(p, Page)][-1]
    assert {row[3] for row in gone} == {(2000,), (2001,)}


def test_a_row_with_another_way_to_it_stays_without_being_touched_further() -> None:
    """A diamond: one of two ways of the same length is cut, and what lies behind is left alone."""
    query = Query({"out": reached().node})
    start(query, 0)
    query.feed("wires", wires((0, 1), (0, 2), (1, 3), (2, 3), *((n, n + 1) for n in range(3, 300))))
    query.run()
    query.take("out")
    before = head(query).extra["touched"]
    query.feed("wires", wires((1, 3), gone=True))
    query.run()
    assert head(query).extra["touched"] - before <= 2
    assert not [p for p in query.take("out") if isinstance(p, Page)]


def test_touched_rows_are_bounded_by_changed_derivations_on_random_graphs() -> None:
    chance = random.Random(3)
    edges = {(chance.randrange(60), chance.randrange(60)) for _ in range(150)}
    query = Query({"out": reached().node})
    start(query, 0)
    query.feed("wires", wires(*edges))
    query.run()
    for edge in sorted(edges)[:40]:
        counted = head(query)
        before = counted.extra["touched"], counted.rows_in
        query.feed("wires", wires(edge, gone=True))
        query.run()
        counted = head(query)
        came = counted.rows_in - before[1]  # derivations that were lost or found
        assert counted.extra["touched"] - before[0] <= 3 * came


def test_after_the_last_punctuation_nothing_is_kept() -> None:
    query = Query({"out": shortest(STARTS, cz.input_stream("roads", _roads())).node})
    start(query, 1)
    page = pa.RecordBatch.from_pylist(
        [{"a": n % 7, "b": (3 * n) % 7, "length": n} for n in range(20)], _roads()
    )
    query.feed("roads", Page.of(page, le=list(range(20)), re=[n + 9 for n in range(20)]))
    query.run()
    assert query.state_rows > 0
    for label in ("starts", "roads"):
        query.feed(label, cz.cti(INFINITY))
    query.run()
    assert query.state_rows == 0


def _roads() -> pa.Schema:
    return pa.schema([("a", pa.int64()), ("b", pa.int64()), ("length", pa.int64())])


def test_a_loop_that_is_cut_says_so_in_its_output() -> None:
    def count(r: Stream) -> Stream:
        return r.select(node=col("node") * 2)

    out = cz.fixpoint(STARTS, count, max_rounds=3)
    items = run(out, {"starts": " LE RE | node |\n 1 9 | 5 | +\n-- 20 --"})
    wanted = " LE RE | node cut |\n 1 9 | 5 false | +\n 1 9 | 10 false | +\n 1 9 | 20 false | +\n"
    assert_history(items, wanted + " 1 9 | 40 false | +\n 1 9 | 80 true | +")
    gone = run(out, {"starts": " LE RE | node |\n 1 9 | 5 | +\n 1 9->1 | 5 | -"})
    assert len(History.of(gone, out.schema)) == 0


def test_a_running_loop_shows_how_it_is_doing() -> None:
    query = Query({"out": reached().node})
    start(query, 1)
    query.feed("wires", wires((1, 2), (2, 3), le=5))
    query.run()
    assert "no progress at" in head(query).held_by
    for label in ("starts", "wires"):
        query.feed(label, cz.cti(4))
    query.run()
    counted = head(query)
    assert counted.held_by == "no progress at seed"
    assert counted.extra["definite"] == 1
    assert counted.extra["lag"] == 1
    assert counted.extra["loop_state"] > 0
    assert {"guesses", "rounds", "silence", "waves", "touched"} <= set(counted.extra)
