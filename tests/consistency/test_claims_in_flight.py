"""What is in flight: rows that wait, vanish or are asked for early never make a claim false."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pytest
from claim_laws import states

import caesura as cz
from caesura import Stream, col
from caesura.audit import audit_states
from caesura.consistency import Mode
from caesura.errors import CaesuraError
from caesura.events import History, Page
from caesura.io import Reader
from caesura.io.ingress.shape import Shape
from caesura.io.sources.source import Source
from caesura.ops.archive import Archive
from caesura.ops.deliver import Deliver
from caesura.plan import Raw
from caesura.runtime import Query, Shuffled

MODES = [cz.tokens(every=4), cz.tokens(every=5, saves=True), cz.synchronised(3), cz.heeding(), cz.draining()]
EVERY_WAY = pytest.mark.parametrize("mode", MODES, ids=str)
TABLE = pa.table(
    {
        "t": [1, 3, 2, 6, 9, 8, 12, 7, 15, 16, 20, 18],
        "k": [i % 3 for i in range(12)],
        "v": pa.array([None, None, 2, None, None, None, 6, None, None, 9, None, None], pa.int64()),
    }
)
ARCHIVE = Archive(pa.table({"k": [0, 1, 2], "v": [10, 11, 12]}), ("k",), "v")


def read(batch: int = 6) -> Stream:
    return cz.from_arrow(TABLE, time="t", punctuate=cz.delay(3), batch_size=batch)


def wrong(stream: Stream, mode: Mode) -> tuple[int, list[str]]:
    """How many claims a run makes, and what the audit finds wrong with them."""
    done = stream.run(claims=mode, schedule=Shuffled(1))
    findings = audit_states({"out": stream.node}, [(c, {"out": done.at(c)}) for c in done.claims])
    return len(findings), [str(f) for f in findings if not f.right]


@pytest.mark.thin(2)
@EVERY_WAY
@pytest.mark.parametrize("per", ["item", "epoch"])
@pytest.mark.parametrize("batch", [1, 6])
def test_rows_that_wait_for_their_turn_are_in_flight(mode: Mode, per: str, batch: int) -> None:
    filled = read(batch).impute("v", by=ARCHIVE, budget=1, per=per)  # type: ignore[arg-type]
    for stream in (filled, filled.union(read(batch)).group_by("k").totals(n=cz.count(), s=cz.sum("v"))):
        claims, flaws = wrong(stream, mode)
        assert claims and flaws == []


def test_a_restart_finds_no_row_that_waited_in_front_of_the_token() -> None:
    node = read().impute("v", by=ARCHIVE, budget=1).node
    query = Query({"out": node}, claims=cz.tokens(every=4, saves=True, release="consistent"))
    kept: dict[str, bytes | None] = {}
    while query.step():
        for claim, chunks in query.saved():
            kept |= chunks
            again = Query({"out": node}, claims=cz.tokens(every=4, saves=True))
            again.restore({n: d for n, d in kept.items() if d is not None})
            assert again.counters()["impute"].state_rows == 0, str(claim)


STEPS: dict[str, Callable[[], Stream]] = {
    "pace": lambda: read().pace(read().shift(1), within=1),
    "instrument": lambda: read().where(col("k") >= 0).instrument(every=2, columns=["k"]),
    "feedback_from": lambda: read().feedback_from(read().where(col("v") > 2), on="k"),
}


@EVERY_WAY
@pytest.mark.parametrize("step", STEPS)
def test_what_goes_by_arrival_is_never_claimed(step: str, mode: Mode) -> None:
    with pytest.raises(CaesuraError, match=f"what '{step}' lets go depends on when rows arrive"):
        STEPS[step]().run(claims=mode)


def test_wishes_that_let_nothing_go_are_claimed_as_usual() -> None:
    wanted = read().feedback_from(read().where(col("v") > 2), "desired", on="k")
    late = read().group_by("k").tumbling(4).agg(n=cz.count()).deadline(2)
    for stream in (wanted, late):
        assert wrong(stream, cz.tokens(every=4))[1] == []
    with pytest.raises(CaesuraError, match="what 'deadline' demands is shown before it is final"):
        late.run(output="final", claims=cz.tokens(every=4))


@pytest.mark.parametrize("output", ["changes", "final"])
def test_a_claim_names_what_was_demanded_before_its_time(output: str) -> None:
    stream = read().group_by("k").tumbling(4).agg(n=cz.count())
    query = stream.query(output=output, claims=cz.tokens(every=4))  # type: ignore[arg-type]
    while query.step():
        if len(query.claims) == 1:
            query.demand(col("k") == 1)
    node = stream.node if output == "changes" else Deliver(inputs=(stream.node,), mode="final")
    came = states(query.take("out"))
    judged = [(c, {"out": History.of(came[c.number], node.schema)}) for c in query.claims]
    assert [str(f) for f in audit_states({"out": node}, judged) if not f.right] == []
    assert [bool(c.under) for c in query.claims[1:]] == [output == "final"] * 3
    assert output == "changes" or "under demanded: k = 1" in str(query.claims[-1])


def test_events_that_a_filter_drops_end_in_a_claim_too() -> None:
    query = read(1).where(col("k") > 7).query(claims=cz.heeding())
    query.run()
    assert query.claims[-1].prefix["read"].offsets == {0: 12}
    assert len(query.claims) > 5 and query.claims[-1].output == {"out": 0}


@pytest.mark.parametrize("seed", range(3))
def test_the_naive_scan_claims_what_the_multisets_claim(seed: int) -> None:
    def claims(mode: Mode) -> list[cz.Claim]:
        left = read(2).where(col("k") != 1).join(read(3).select("k", w=col("v")), on="k", how="left")
        plan = left.union(read(1).select("k", "v", w=col("v")))
        return plan.run(claims=mode, schedule=Shuffled(seed)).claims

    assert claims(cz.heeding(scan="naive")) == claims(cz.heeding())


@EVERY_WAY
def test_output_held_back_is_that_of_claims_in_every_mode(mode: Mode) -> None:
    from dataclasses import replace

    stream = read(2).join(read(3).select("k", w=col("v")), on="k", how="left")
    query = stream.query(claims=replace(mode, release="consistent"))
    seen = 0
    while query.step():
        seen += sum(len(i) for i in query.take("out") if isinstance(i, Page))
        assert seen == (query.claims[-1].output["out"] if query.claims else 0)
    assert seen > 12


class Watched(Reader):
    """A reader that knows how far it was read."""

    lanes, punctuates, key, schema = 1, False, "watched", TABLE.schema
    given = 0

    def read(self, offsets: Mapping[int, int]) -> Iterator[Raw]:
        for at in range(offsets.get(0, 0), len(TABLE), 2):
            self.given = at + 2
            yield Raw(0, at, TABLE.slice(at, 2).to_batches()[0])

    def describe(self) -> str:
        return "watched"


@EVERY_WAY
def test_claims_are_monotone_and_never_ahead_of_what_was_read(mode: Mode) -> None:
    reader = Watched()
    read_from = Source(reader=reader, shape=Shape.of(time="t"), policy=cz.delay(3))
    query = Stream(read_from).group_by("k").totals(n=cz.count()).query(claims=mode)
    while query.step():
        assert all(c.prefix["read"].offsets.get(0, 0) <= reader.given for c in query.claims)
        assert not query.claims or query.claims[-1].prefix["read"].rows <= reader.given
    assert all(b.follows(a) for a, b in zip(query.claims, query.claims[1:], strict=False))
    assert query.claims[-1].prefix["read"].offsets == {0: 12}


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.now


def test_tokens_by_the_clock_come_from_idle_sources_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("caesura.runtime.claims.token_places.time", clock)
    a, b = (cz.input_stream(n, pa.schema([("v", pa.int64())])) for n in "ab")
    query = a.join(b.select(w=col("v")), on={"v": "w"}, how="left").query(claims=cz.tokens(every="2s"))
    page = Page.of(pa.record_batch({"v": [1]}), le=[1], re=[9])
    for _ in range(3):
        query.feed("a", page)
        query.run()
    assert query.claims == []
    clock.now = 2.5
    query.feed("a", page)
    query.run()
    assert [(c.prefix["a"].rows, c.prefix["b"].rows) for c in query.claims] == [(4, 0)]
    clock.now = 3.0
    query.feed("b", page)
    query.run()
    clock.now = 4.6
    query.run()
    assert [(c.prefix["a"].rows, c.prefix["b"].rows) for c in query.claims] == [(4, 0), (4, 1)]
