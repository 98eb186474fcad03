"""One raw batch may hold corrections, punctuation, inserts and rows that are no events, in every order.

A batch is written as a word: each letter is a row, a punctuation between rows, or the end of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple, get_args

import pyarrow as pa
import pytest
from bucket_plans import LEFT, OWN, PLANS, RIGHT, Scripted, inserts
from cluster import Cluster
from depth import DEPTH, examples, seed_of
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import Stream
from caesura.events import History, Item, Page, parse, violations
from caesura.io import Source, at_end
from caesura.io.ingress.shape import Shape
from caesura.plan import Raw
from caesura.punctuation import Pattern
from caesura.runtime.query.result import Output, delivered

LETTERS = "irsuplx/"
"""insert, retract, shorten, an unknown retract, punctuation up to now, punctuation up to the latest event
(which may change yet), a row that is no event, the end of a batch. Two ends make an empty batch."""
MODES = get_args(Output)
SPAN = 25
"""How long events live: longer than a letter, so that some are still open when others come."""
OTHER = parse(" LE RE | id s |\n 1 8 | 1 x | +\n 3 40 | 0 y | +\n 7 11 | 1 x | +\n 16 18 | 77 z | +", RIGHT)
Event = tuple[int, int, int, float]


class Word(NamedTuple):
    """What a word means, computed letter by letter."""

    raws: tuple[Raw, ...]
    events: list[Event]
    late: int


def read(word: str, ids: int = 2) -> Word:
    """The batches of a word, the events that are there in the end, and how many rows may not enter."""
    schema = pa.schema([*OWN, *LEFT])
    live: list[Event] = []
    rows: list[dict[str, Any]] = []
    marks: list[tuple[int, Pattern]] = []
    raws: list[Raw] = []
    promised, late, offset = -1, 0, 0

    def row(kind: str, event: Event, now: int | None = None) -> None:
        le, re, key, v = event
        rows.append({"kind": kind, "from": le, "to": re, "now": now, "id": key, "v": v})

    for at, letter in enumerate(word + "/"):
        time = 10 * at
        fresh = (time, time + SPAN, at % ids, 0.5 * at)
        last = live[-1] if live else None
        if letter == "i":
            row("+", fresh)
            live.append(fresh)
        elif letter == "x":
            row("+", (time, time, at % ids, 0.0))
            late += 1
        elif letter == "u" or (letter in "rs" and last is None):
            row("-", (time, time + 1, 77, 0.0), time)
            late += 1
        elif letter == "r" and last is not None:
            row("-", last, last[0])
            late += last[0] < promised
            live = live[:-1] if last[0] >= promised else live
        elif letter == "s" and last is not None:
            end = (last[0] + last[1]) // 2
            row("-", last, end)
            late += end < promised
            live = [*live[:-1], (last[0], end, *last[2:])] if end >= promised else live
        elif letter in "pl":
            bound = time + 1 if letter == "p" or last is None else last[0]
            marks.append((len(rows), Pattern.before(bound)))
            promised = max(promised, bound)
        elif letter == "/":
            raws.append(Raw(0, offset, pa.RecordBatch.from_pylist(rows, schema), tuple(marks)))
            offset += len(rows)
            rows, marks = [], []
    return Word(tuple(raws), live, late)


def source(raws: tuple[Raw, ...]) -> Source:
    """A source that gives these batches, and promises what lies between their rows."""
    reader = Scripted("word", pa.schema([*OWN, *LEFT]), raws, punctuates=True)
    shape = Shape.of(time="from", end="to", kind="kind", new_end="now")
    return Source(reader=reader, shape=shape, policy=at_end(), name="word")


def history(events: list[Event]) -> History:
    """What these events say."""
    starts, ends, keys, values = ([event[at] for event in events] for at in range(4))
    payload = pa.record_batch([pa.array(keys, pa.int64()), pa.array(values, pa.float64())], schema=LEFT)
    return History.of([Page.of(payload, le=starts, re=ends)], LEFT)


def plain(events: list[Event]) -> Stream:
    """A stream that says them at once."""
    rows = [dict(zip(("from", "to", "id", "v"), event, strict=True)) for event in sorted(events)]
    schema = pa.schema([("from", pa.int64()), ("to", pa.int64()), *LEFT])
    return cz.from_rows(rows, schema, time="from", end="to")


def by_steps(stream: Stream, mode: Output) -> tuple[list[Item], int]:
    query = stream.query(output=mode)
    items: list[Item] = []
    while query.step():
        items += query.take("out")
    query.run()
    return [*items, *query.take("out")], refused(query.late().values())


def at_once(stream: Stream, mode: Output) -> tuple[list[Item], int]:
    result = stream.run(output=mode)
    return result.items, refused(result.late.values())


def on_threads(stream: Stream, mode: Output) -> tuple[list[Item], int]:
    result = stream.run(output=mode, threads=2)
    return result.items, refused(result.late.values())


def in_buckets(stream: Stream, mode: Output) -> tuple[list[Item], int]:
    cluster = Cluster({"out": delivered(stream.node, mode)}, 2)
    given = [(s, raw) for s in cluster.stages.sources for raw in s.read({})]
    cluster.epoch(given, closes=True)
    return cluster.items["out"], refused(t for tables in cluster.late.values() for t in tables)


def refused(tables: Any) -> int:
    return sum(row["kind"] != "punctuation" for table in tables for row in table.to_pylist())


HOSTS = {"at once": at_once, "by steps": by_steps, "in buckets": in_buckets, "on threads": on_threads}


def words(letters: str, longest: int) -> Iterator[str]:
    for length in range(longest + 1):
        for some in product(letters, repeat=length):
            yield "".join(some)


def wrong(stream: Stream, wanted: History, late: int | None, mode: Output, host: str) -> str:
    """What is wrong with the answer of a host, in words; nothing where it is right."""
    items, told = HOSTS[host](stream, mode)
    if found := violations(items):
        return f"{found}"
    got = History.of(items, stream.node.schema)
    if got != wanted:
        return f"{got} is not {wanted}"
    return f"{told} rows are late, not {late}" if late is not None and told != late else ""


@pytest.mark.parametrize("mode", MODES)
def test_every_order_of_rows_and_punctuation_in_one_batch_means_what_it_says(mode: Output) -> None:
    count = 0
    for word in words("irsp", 3) if DEPTH == 1 else words(LETTERS, 4):
        raws, events, late = read(word)
        count += 1
        told = wrong(Stream(source(raws)), history(events), late, mode, "at once")
        assert not told, f"{word!r} {mode}: {told}"
    assert count >= 85


STEPS = {
    name: build
    for name, build in PLANS.items()
    if not name.startswith("output") and "tick" not in name  # ticks go as far as time was said to have come
}


@pytest.mark.slow
@seed(seed_of("raw batches"))
@settings(max_examples=examples(400, short=40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(LETTERS, min_size=1, max_size=9), min_size=1, max_size=2),
    st.sampled_from(sorted(STEPS)),
    st.sampled_from(MODES),
    st.sampled_from(sorted(HOSTS)),
)
def test_every_step_takes_such_batches_on_every_host(
    parts: list[str], name: str, mode: Output, host: str
) -> None:
    raws, events, _ = read("".join(parts))
    other = inserts("b", RIGHT, OTHER, [3], 5)
    made = STEPS[name](Stream(source(raws)), Stream(other))
    wanted = STEPS[name](plain(events), Stream(other)).run().history
    told = wrong(made, wanted, None, mode, host)
    assert not told, f"{''.join(parts)!r} {name} {mode} {host}: {told}"


def test_final_rows_leave_where_punctuation_splits_a_correction_from_inserts() -> None:
    """The insert behind the punctuation lies in a part of the batch that has no correction."""
    raws, events, _ = read("irpi")
    assert Stream(source(raws)).run(output="final").history == history(events)
