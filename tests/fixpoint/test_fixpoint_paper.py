"""What the paper says comes out, tuple by tuple."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fixpoint_streams import AB_STAR_A, ABBA, HOPS, LINKS, NODES, SOURCES, SYMBOLS, TRANSITIONS
from queries import nfa, reachability

from caesura.events import History, Item, Page
from caesura.fixpoint.node import PROGRESS, Progress
from caesura.fixpoint.progress import Guessing
from caesura.plan.ring import Ring
from caesura.punctuation import INFINITY, Intent, Pattern, Promises, Punctuation
from caesura.testing import assert_history, run

every = pytest.mark.parametrize("progress", PROGRESS)


def bits(items: list[Item], query: object) -> set[tuple[int, str, str, str]]:
    """Rows as the paper writes them: (start, from, to, bit vector)."""
    rows = History.of(items, query.schema).rows()  # type: ignore[attr-defined]
    names = {"n1": 8, "n2": 4, "n3": 2, "n4": 1}
    return {(le, p[0], p[1], f"{sum(names[n] for n in p[2].split('/')):04b}") for le, _, p in rows}


@every
def test_reachability_gives_the_tuples_of_section_2(progress: Progress) -> None:
    query = reachability(SOURCES, LINKS, progress=progress)
    assert bits(run(query, {"sources": NODES, "links": HOPS}), query) == {
        (2, "n3", "n1", "1010"),
        (3, "n3", "n2", "1110"),
        (3, "n2", "n3", "0110"),
        (3, "n2", "n1", "1110"),
        (4, "n3", "n4", "0011"),
        (4, "n2", "n4", "0111"),
    }


@every
def test_lifetimes_of_all_that_a_path_is_made_of_intersect(progress: Progress) -> None:
    out = run(
        reachability(SOURCES, LINKS, progress=progress),
        {
            "sources": " LE RE | node |\n 1 6 | n3   | +\n-- 20 --",
            "links": " LE RE | a b  |\n 2 8 | n3 n1 | +\n 3 10 | n1 n2 | +\n-- 20 --",
        },
    )
    assert_history(out, " LE RE | src node path |\n 2 6 | n3 n1 n3/n1 | +\n 3 6 | n3 n2 n3/n1/n2 | +")
    told = [str(item) for item in out if not isinstance(item, Page)]
    assert told[-1] == ("definite: time < 4" if progress == "high_water" else "definite: time < 20")


@every
def test_retracting_a_link_takes_away_what_was_derived_from_it_and_nothing_else(progress: Progress) -> None:
    query = reachability(SOURCES, LINKS, progress=progress)
    gone = " 2 inf->2 | n3 n1 | -\n"
    after = HOPS.replace("-- 3 --\n", "").replace("-- 4 --\n", "").replace("-- 5 --\n", gone)
    before = bits(run(query, {"sources": NODES, "links": HOPS}), query)
    now = bits(run(query, {"sources": NODES, "links": after}), query)
    assert before - now == {(2, "n3", "n1", "1010"), (3, "n3", "n2", "1110"), (3, "n2", "n1", "1110")}
    assert now < before


@every
def test_the_nfa_of_section_4_finds_every_partial_match_of_abba(progress: Progress) -> None:
    out = run(nfa(SYMBOLS, TRANSITIONS, progress=progress), {"transitions": AB_STAR_A, "symbols": ABBA})
    found = {(p[0], p[1], p[2]) for _, _, p in History.of(out, nfa(SYMBOLS, TRANSITIONS).schema).rows()}
    seeds = {(n, n - 1, "S") for n in (1, 2, 3, 4)}
    assert found - seeds == {(1, 1, "B"), (1, 2, "B"), (1, 3, "B"), (1, 4, "F"), (4, 4, "B")}
    assert seeds < found


def test_a_transition_that_comes_and_goes_changes_matches_while_the_query_runs() -> None:
    changing = AB_STAR_A + "  0 inf->0 | B B B | -\n"
    out = run(nfa(SYMBOLS, TRANSITIONS), {"transitions": changing, "symbols": ABBA})
    found = {p for _, _, p in History.of(out, nfa(SYMBOLS, TRANSITIONS).schema).rows() if p[2] != "S"}
    assert found == {(1, 1, "B"), (4, 4, "B")}


def test_the_high_water_guess_of_section_3_5() -> None:
    """The guess sp(3) lodges, comes back after events before it, goes again, and is proved."""
    ffp, join = Guessing("high_water", ["links"]), Ring("w", "join", (0,), (1,), lambda _, p: p)
    links = [Promises(), Promises([Pattern.before(3)])]
    ffp.saw(3, 3)
    assert ffp.wants() == 4  # sp(3)
    ffp.launch(4)
    ffp.saw(3, 3)  # (3, n2, n3, 0110)
    guess = Punctuation(Pattern.before(4), Intent.SPECULATIVE, (("loop", "w"), ("lodge", True)))
    assert join.guess(0, guess, links) == []  # dp(2) is all that links has given
    ffp.saw(4, 4)
    links[1].add(Pattern.before(5))  # dp(4)
    assert [str(g.pattern) for g in join.release(links)] == ["time < 4"]
    assert ffp.returned(4) is None
    assert ffp.wants() == 4  # the same again
    ffp.launch(4)
    ffp.saw(4, 4)
    assert ffp.returned(4) == 4  # dp(3)
    assert ffp.wants() == 5  # sp(4)


def test_the_probing_guess_of_section_3_5() -> None:
    """The guess sp(+inf) is lowered to 5 by the union and to 2 by the join, which proves dp(2)."""
    ffp = Guessing("probing", ["nodes", "links"])
    union, join = (Ring("w", name, (0,), (1,), lambda _, p: p) for name in ("union", "join"))
    ffp.saw(3, 3)
    assert ffp.wants() == INFINITY
    ffp.launch(INFINITY)
    ffp.saw(3, 3)  # (3, n2, n3, 0110)
    guess = Punctuation(Pattern.before(INFINITY), Intent.SPECULATIVE, (("loop", "w"),))
    (lowered,) = union.guess(0, guess, [Promises(), Promises([Pattern.before(6)])])
    (again,) = join.guess(0, lowered, [Promises(), Promises([Pattern.before(3)])])
    assert (str(lowered.pattern), str(again.pattern)) == ("time < 6", "time < 3")
    assert ffp.returned(3) == 3  # dp(2)
    ffp.launch(INFINITY)
    assert ffp.returned(3) is None  # dp(2) was given


def test_a_way_of_a_hundred_hops_is_found_to_its_end() -> None:
    """No set is ever full, and n1 is not taken for visited because n10 is."""
    nodes = [f"n{number}" for number in range(100, -1, -1)]
    links = "".join(f" 1 9 | {a} {b} | +\n" for a, b in pairwise(nodes))
    query = reachability(SOURCES, LINKS)
    given = {"sources": " LE RE | node |\n 1 9 | n100 | +", "links": " LE RE | a b |\n" + links}
    found = [p[1] for _, _, p in History.of(run(query, given), query.schema).rows()]
    assert sorted(found) == sorted(nodes[1:])
