"""Tokens: where they are put, how they pass, what a restart from one finds, and two queries in a row."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.consistency import Mode
from caesura.consistency.token import is_token
from caesura.errors import CaesuraError
from caesura.events import History, Item, Page
from caesura.io import Reader
from caesura.ops.input import Input
from caesura.plan import Raw
from caesura.punctuation import Intent
from caesura.runtime import Query, Shuffled

ROWS = [{"t": i, "k": i % 3, "v": i} for i in range(60)]


def source(batch: int = 65_536, count: int = 60, name: str = "v") -> Stream:
    table = pa.table({"t": range(count), "k": [i % 3 for i in range(count)], name: range(count)})
    return cz.from_arrow(table, time="t", punctuate=cz.delay(4), batch_size=batch)


def plan(batch: int = 65_536) -> Stream:
    other = source(batch, 25, "w").set_duration(6)
    kept = source(batch).where(col("v") % 4 != 1).select("k", "v").set_duration(5)
    return kept.join(other, on="k", how="left").group_by("k").totals(n=cz.count(), s=cz.sum("v"))


def test_a_token_comes_after_every_so_many_events_and_at_the_end() -> None:
    done = source().run(claims=cz.tokens(every=25))
    assert [claim.prefix["read"].rows for claim in done.claims] == [25, 50, 60]
    assert [claim.prefix["read"].closed for claim in done.claims] == [False, False, True]
    assert done.claims[-1].prefix["read"].definite == (cz.Pattern(),)


def test_row_wise_steps_keep_pages_whole_and_carry_tokens_inside() -> None:
    steps = source().where(col("v") > 10).select("v")
    query = steps.query(claims=cz.tokens(every=7))
    query.run()
    counters = query.counters()
    assert (counters["where"].pages_in, counters["select"].pages_in) == (1, 1)
    assert [c.output["out"] for c in query.claims] == [max(0, min(60, 7 * n) - 11) for n in range(1, 10)]


def test_a_page_that_a_filter_empties_still_brings_its_tokens() -> None:
    done = source().where(col("v") < 0).run(claims=cz.tokens(every=25))
    assert [claim.prefix["read"].rows for claim in done.claims] == [25, 50, 60]
    assert len(done.history) == 0


def test_sources_that_read_less_give_tokens_too() -> None:
    query = plan(10).query(claims=cz.tokens(every=10))
    query.run()
    assert len(query.claims) >= 6
    assert all(set(c.prefix) == {"read", "read-2"} for c in query.claims)


@pytest.mark.parametrize("batch", [1, 7, 65_536])
def test_a_restart_lands_exactly_on_a_claim(batch: int) -> None:
    node = plan(batch).node
    mode = cz.tokens(every=9, saves=True, release="consistent")
    query = Query({"out": node}, claims=mode, schedule=Shuffled(2))
    whole: list[Item] = []
    kept: dict[str, bytes] = {}
    places = []
    while query.step():
        whole += query.take("out")
        for claim, chunks in query.saved():
            kept = {n: d for n, d in {**kept, **chunks}.items() if d is not None}
            places.append((claim, len([i for i in whole if not is_token(i)]), dict(kept)))
    wanted = History.of(whole, node.schema)
    assert len(places) > 4
    for claim, seen, chunks in places[:-1:2]:
        again = Query({"out": node}, claims=mode)
        again.restore(chunks)
        again.run()
        rest = again.take("out")
        assert all(later.follows(claim) for later in again.claims)
        before = [i for i in whole if not is_token(i)][:seen]
        assert History.of([*before, *rest], node.schema) == wanted
        assert again.claims[-1].prefix["read"].rows == query.claims[-1].prefix["read"].rows == 60


def test_synchronised_claims_name_the_time_that_all_sources_have_passed() -> None:
    done = plan(8).run(claims=cz.synchronised(10))
    times = [claim.time for claim in done.claims]
    assert times == sorted(set(times)) and len(times) >= 4
    for claim in done.claims:
        assert claim.level is cz.Level.SYNCHRONISED
        for prefix in claim.prefix.values():
            bounds = [p.time_bound for p in prefix.definite if p.time_bound is not None]
            assert claim.time is not None and max(bounds) >= claim.time


def test_a_stopped_source_stops_synchronised_claims_and_is_named() -> None:
    schema = pa.schema([("v", pa.int64())])
    a, b = (Stream(Input(label=n, payload=schema)) for n in "ab")
    query = a.union(b).query(claims=cz.synchronised(5))
    for t in (6, 11):
        query.feed("a", cz.cti(t))
    query.run()
    assert query.claims == []
    assert query.waiting() == "waits for 'b', which has promised nothing"
    query.feed("b", cz.cti(8))
    query.run()
    assert [c.time for c in query.claims] == [5]


def test_tokens_go_through_a_publication_into_the_next_query() -> None:
    first = Query({"out": source(10).node}, claims=cz.tokens(every=20))
    published = first.publish("out")
    totals = cz.subscribe(published).group_by("k").totals(n=cz.count())
    second = totals.query(claims=cz.tokens())
    second.run()
    assert [c.prefix["out/read"].rows for c in second.claims] == [20, 40, 60, 60]
    items = second.take("out")
    for claim in second.claims:
        place = next(i for i, x in enumerate(items) if is_token(x) and x.noted("token") == claim.number)
        state = History.of(items[:place], totals.schema)
        assert sum(row[2][1] for row in state.rows()) == claim.prefix["out/read"].rows


def test_a_source_of_the_second_query_puts_its_tokens_where_the_first_ones_come() -> None:
    first = Query({"out": source(10).node}, claims=cz.tokens(every=30))
    published = first.publish("out")
    own = source(5, 40, "w").set_duration(3)
    second = cz.subscribe(published).join(own, on="k").query(claims=cz.tokens())
    second.run()
    assert [c.prefix["out/read"].rows for c in second.claims] == [30, 60, 60]
    assert all(set(c.prefix) == {"out/read", "read"} for c in second.claims)


class Repeating(Reader):
    """A reader that gives some rows twice."""

    lanes, punctuates, key = 1, False, "repeating"
    schema = pa.schema([("t", pa.int64()), ("v", pa.int64())])

    def read(self, offsets: object) -> list[Raw]:
        batch = pa.record_batch({"t": [1, 2], "v": [1, 2]}, schema=self.schema)
        return [Raw(0, 0, batch), Raw(0, 1, batch)]

    def describe(self) -> str:
        return "repeating"


@pytest.mark.parametrize(
    "mode", [cz.tokens(every=2), cz.tokens(), cz.synchronised(1), cz.heeding(), cz.draining()], ids=str
)
def test_a_repeated_offset_is_refused(mode: Mode) -> None:
    from caesura.io.ingress.shape import Shape
    from caesura.io.sources.source import Source

    stream = Stream(Source(reader=Repeating(), shape=Shape.of(time="t")))
    with pytest.raises(CaesuraError, match="repeats offset 1; 2 were read"):
        stream.run(claims=mode)


def test_rows_are_marked_with_the_claim_that_covers_them() -> None:
    schema = pa.schema([("v", pa.int64())])
    query = Stream(Input(label="a", payload=schema)).query(claims=cz.tokens(every=2))
    page = Page.of(pa.record_batch({"v": [1, 2, 3]}), le=[1, 2, 3], re=[2, 3, 4])
    query.feed("a", page)
    query.run()
    drawn = cz.draw(query.take("out"))
    assert drawn.splitlines()[3].startswith("-- token")
    marked = source(count=5).run(claims=cz.tokens(every=2)).marked()
    assert marked.column("claim").to_pylist() == [1, 1, 2, 2, 3]


def test_a_claim_names_the_feedback_it_is_under() -> None:
    query = source().query(claims=cz.tokens(every=30))
    message = cz.Punctuation(cz.Pattern(k=1), Intent.ASSUMED)
    query.ports.send("out", message)
    query.run()
    assert all(claim.under == (message,) for claim in query.claims)
    assert "under assumed: k = 1" in str(query.claims[0])


@pytest.mark.parametrize("mode", [cz.heeding(), cz.draining(), cz.synchronised(4)], ids=str)
def test_every_mode_goes_on_from_a_snapshot_at_rest(mode: Mode) -> None:
    schema = pa.schema([("v", pa.int64())])
    plan = Stream(Input(label="a", payload=schema)).totals(n=cz.count(), s=cz.sum("v"))
    page = Page.of(pa.record_batch({"v": [1, 2]}), le=[1, 5], re=[20, 20])
    first = plan.query(claims=mode)
    for item in (page, cz.cti(5)):
        first.feed("a", item)
    first.run()
    second = plan.query(claims=mode)
    second.restore({n: d for n, d in first.snapshot().items() if d is not None})
    for item in (page.slice(1, 1), cz.cti(9)):
        second.feed("a", item)
    second.run()
    assert all(later.follows(first.claims[-1]) for later in second.claims)
    last = second.claims[-1]
    assert (last.prefix["a"].rows, last.prefix["a"].punctuations) == (3, 2)
    assert last.number > first.claims[-1].number
    came = [*first.take("out"), *second.take("out")]
    assert [row[2] for row in History.of(came, plan.schema).rows()] == [(3, 5)]
