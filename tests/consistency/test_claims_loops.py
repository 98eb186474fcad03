"""Plans with loops: tokens are refused, and claims come from the loop's own punctuation."""

from __future__ import annotations

import pytest

import caesura as cz
from caesura import col
from caesura.audit import audit_states
from caesura.consistency import Level
from caesura.errors import CaesuraError
from caesura.events import History

LINKS = [(1, "a", "b"), (2, "b", "c"), (5, "c", "a"), (8, "c", "d"), (12, "x", "y"), (15, "d", "x")]
LIVES = 9


def reachable() -> cz.Stream:
    rows = [{"t": t, "a": a, "b": b} for t, a, b in LINKS]
    links = cz.from_rows(rows, time="t", punctuate=cz.delay(0), batch_size=1).set_duration(LIVES)
    again = links.select(a2=col("a"), b2=col("b"))

    def onwards(paths: cz.Stream) -> cz.Stream:
        return paths.join(again, on={"b": "a2"}).select("a", b=col("b2")).distinct()

    return cz.fixpoint(links, onwards)


def oracle(rows: int, t: int) -> set[tuple[int, str, str]]:
    """Who reaches whom at each instant before t, from the first links."""
    found = set()
    for now in range(t):
        alive = {(a, b) for s, a, b in LINKS[:rows] if s <= now < s + LIVES}
        while True:
            more = {(a, d) for a, b in alive for c, d in alive if b == c} - alive
            if not more:
                break
            alive |= more
        found |= {(now, a, b) for a, b in alive}
    return found


def instants(state: History, t: int) -> set[tuple[int, str, str]]:
    return {(now, *row[2]) for row in state.rows() for now in range(row[0], min(row[1], t))}


def test_a_loop_is_claimed_before_the_time_that_it_has_promised() -> None:
    done = reachable().run(claims=cz.synchronised(3))
    assert len(done.claims) >= 3
    for claim in done.claims:
        assert (claim.level, claim.covers) == (Level.SYNCHRONISED, "before")
        assert claim.time is not None
        t = min(claim.time, 40)
        assert instants(done.at(claim), t) == oracle(claim.prefix["read"].rows, t), str(claim)


def test_tokens_around_a_loop_are_refused_with_what_to_do() -> None:
    with pytest.raises(CaesuraError, match="tokens cannot be aligned around a loop"):
        reachable().run(claims=cz.tokens(every=2))


def test_the_audit_goes_around_the_loop_by_itself() -> None:
    stream = reachable()
    done = stream.run(claims=cz.synchronised(3))
    judged = [(claim, {"out": done.at(claim)}) for claim in done.claims]
    findings = audit_states({"out": stream.node}, judged)
    assert len(findings) >= 3
    assert [str(f) for f in findings if not f.right] == []
    claim, views = judged[-1]
    less = History(views["out"].page.slice(1, len(views["out"]) - 1))
    (found,) = audit_states({"out": stream.node}, [(claim, {"out": less})])
    assert len(found.missing) == 1
