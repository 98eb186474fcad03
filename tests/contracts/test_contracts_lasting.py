"""Every plan of the law suite, run for long: what it holds is held against its verdict and its bounds."""

from __future__ import annotations

import os
from random import Random

import pytest
from contract_streams import CASES
from lasting_streams import FIRST_TICK, FORMS, ROWS_PER_TICK, Held, Lasting, held, labels_of, variants

from caesura.contracts import Verdict, check
from caesura.contracts.bounds import SourceRate, bounds
from caesura.feedback import responder
from caesura.ops import feedback_from
from caesura.plan import Node, walk

COUNT_OF_PLANS = max(24, int(os.environ.get("CAESURA_CONTRACT_PLANS", "0")) // 4)
TICKS = min(96, int(os.environ.get("CAESURA_CONTRACT_TICKS", "24")))
BYTES = 300
"""By so many bytes a checkpoint of a plan that holds little may grow: what is counted gets longer."""
FEW_NUMBERS = "paths"
"""Its nodes are bits of a whole number, of which there are 63."""
LOOPS = ("hybrid", "probing", "high_water", "staged")
REFUSED = {
    "match a V": "a fall may go on for ever, and does not in the streams here",
    "clip-0-keys": "the input that clips may fall silent, and does not in the streams here",
    "start1-": "windows of one event are full at once, which the verdict does not look at",
    "end1-": "windows of one event are full at once, which the verdict does not look at",
    "limited-": "sessions of a longest length are over in time, also where rows never end",
    "qre maps in a partition": "keys stay in the middle of their pattern only where a pattern is left open",
    "-high_water": "what goes around a loop ends here with what it came from, as is declared of no input",
}
"""What is refused though no stream here makes it grow, and why; a name, its beginning or a part of it."""


def drawn() -> list[Lasting]:
    """So many of all variants: each case once, before any comes again in another form."""
    every = [v for v in variants({c.name: c for c in CASES}) if not v.case.name.startswith(FEW_NUMBERS)]
    Random(f"lasting {COUNT_OF_PLANS}").shuffle(every)
    times: dict[str, int] = {}
    ranked = []
    for variant in every:
        times[variant.case.name] = times.get(variant.case.name, 0) + 1
        ranked.append((times[variant.case.name], len(ranked), variant))
    return [variant for _, _, variant in sorted(ranked, key=lambda r: r[:2])][:COUNT_OF_PLANS]


def tries(variant: Lasting) -> tuple[Node, Verdict]:
    """A case's plan, and what is said of it."""
    node = variant.case.plan()
    used = labels_of(node)
    schemes = {n: s for n, s in variant.schemes().items() if n in used}
    lives = {n: s for n, s in variant.lifetimes().items() if n in used}
    return node, check(node, schemes=schemes, lifetimes=lives, advise=False)


def grows(amounts: list[int], slack: int) -> bool:
    quarter = len(amounts) // 4
    return min(amounts[-quarter:]) > max(amounts[quarter : 2 * quarter]) + slack


def beyond(variant: Lasting, node: Node, found: Held) -> list[str]:
    """The steps that held more than `bounds` allows them, of plans whose rows end and go around no loop."""
    used = labels_of(node)
    lives = {n: s for n, s in variant.lifetimes().items() if n in used}
    if set(lives) != used or any(step.closes for step in walk(node)):
        return []
    schemes = {n: s for n, s in variant.schemes().items() if n in used}
    rates = dict.fromkeys(used, SourceRate(2 * ROWS_PER_TICK, 1, variant.lag + 2))
    promised = bounds(node, rates, skew=1, schemes=schemes, lifetimes=lives)
    most = {name: max(rows.get(name, 0) for rows in found.rows) for name in found.rows[-1]}
    pairs = zip(promised, most.values(), strict=True)
    return [f"{bound}, and held {rows}" for bound, rows in pairs if rows > bound.rows]


def shown(node: Node, variant: Lasting, verdict: Verdict) -> bool:
    """Whether a stream makes an unsafe plan hold ever more: this one, or the verdict's own."""
    if grows(held(node, variant.ticks(TICKS), TICKS).totals(), 3):
        return True
    for repeat in (1, 3):
        few, many = (held(node, iter([list(verdict.witness(n, repeat=repeat))]), 1).last() for n in (16, 32))
        if many - few >= 4:
            return True
    return False


def wrong(variant: Lasting) -> str:
    """How a verdict is not what the plan does; empty where it is."""
    node, verdict = tries(variant)
    if not verdict.safe:
        merging = all(f.unmet is not None and f.unmet.lack == "merging" for f in verdict.findings)
        listed = merging or any(part in variant.case.name for part in REFUSED)
        return "" if listed or shown(node, variant, verdict) else f"nothing grows: {verdict.growth}"
    return false_safe(variant, node, TICKS) and false_safe(variant, node, 4 * TICKS)


def false_safe(variant: Lasting, node: Node, ticks: int) -> str:
    """How a plan breaks the word of its verdict; what fills up to a limit looks like growth for a while."""
    found = held(node, variant.ticks(ticks), ticks)
    if grows(found.totals(), 3):
        return f"rows grow: {found.totals()}"
    if grows(found.bytes, BYTES):
        return f"bytes grow: {found.bytes}"
    return "; ".join(beyond(variant, node, found))


@pytest.fixture
def little_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands until it is taken back is bounded by a number: let it be reached."""
    monkeypatch.setattr(responder, "MAX_PATTERNS", 8)
    monkeypatch.setattr(feedback_from, "MAX_PATTERNS", 8)


@pytest.mark.thin(2)
@pytest.mark.usefixtures("little_stands")
@pytest.mark.parametrize("part", range(6))
def test_the_plans_of_the_law_suite_hold_what_their_verdicts_say(part: int) -> None:
    for variant in drawn()[part::6]:
        said = wrong(variant)
        assert not said, (str(variant.case), sorted(variant.marked), variant.endless, variant.lag, said)


def test_a_stream_that_lasts_covers_every_form_of_promises_and_lives_with_and_without_ends() -> None:
    every = list(variants({c.name: c for c in CASES}))
    assert {v.marked for v in every} == set(FORMS) and {v.endless for v in every} == {False, True}
    assert {v.case.name for v in every} == {c.name for c in CASES} and FIRST_TICK > 0
