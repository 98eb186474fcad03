"""Random legal physical streams for Hypothesis: disorder, corrections, punctuation, paging.

Law: whatever is drawn, `violations(items) == []` and its history is the one it was drawn for.

>>> from caesura.testing.spec import InputSpec
>>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
>>> from hypothesis import find
>>> find(histories(spec), lambda rows: len(rows) == 1)
[(0, 1, {'id': 0, 'v': 0})]
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from hypothesis import strategies as st

from caesura.events import KEPT, Item
from caesura.punctuation import INFINITY, Pattern, Punctuation, cti, lt
from caesura.testing.oracles.rows import Payload, Row, Rows
from caesura.testing.spec import DOMAINS, InputSpec, PunctuationKind

EARLIEST, LATEST = -4, 20
LONGEST = 12
KINDS: tuple[PunctuationKind, ...] = ("time", "key", "both")

Change: TypeAlias = tuple[int, int, int, Payload]
"""(LE, RE, RE_new, payload); KEPT is the RE_new of an insert."""
Chain: TypeAlias = list[Change]
Promise: TypeAlias = tuple[int, PunctuationKind, int, int]
"""A wish to punctuate: the gap, the kind, which key values, how far behind the tightest time."""


def sync(change: Change) -> int:
    """The earliest time that a change touches."""
    le, re, new, _ = change
    return le if new == KEPT else min(re, new)


def payloads(spec: InputSpec) -> st.SearchStrategy[Payload]:
    """Random payloads over small domains."""
    cells = st.tuples(*(st.sampled_from(DOMAINS[kind]) for kind in spec.columns.values()))
    return cells.map(lambda values: dict(zip(spec.columns, values, strict=True)))


def starts() -> st.SearchStrategy[int]:
    """Random start times; shrinks to 0."""
    return st.integers(EARLIEST, LATEST)


def durations(spec: InputSpec) -> st.SearchStrategy[int]:
    """Random lengths; INFINITY for a row that never ends."""
    if spec.lifetimes == "points":
        return st.just(1)
    if spec.lifetimes == "finite":
        return st.integers(1, LONGEST)
    return st.integers(1, LONGEST + 4).map(lambda d: d if d <= LONGEST else INFINITY)


def _end(le: int, duration: int) -> int:
    return INFINITY if duration == INFINITY else le + duration


def histories(spec: InputSpec, max_rows: int | None = None) -> st.SearchStrategy[Rows]:
    """Random histories: bags of rows with lifetimes."""
    row = st.tuples(starts(), durations(spec), payloads(spec))
    some = st.lists(row, max_size=spec.max_rows if max_rows is None else max_rows)
    return some.map(lambda rows: [(le, _end(le, d), p) for le, d, p in rows])


def _detours(spec: InputSpec) -> st.SearchStrategy[list[int]]:
    if spec.insert_only or spec.lifetimes == "points":
        return st.just([])
    return st.just([]) | st.lists(durations(spec), max_size=3)


def _chain(row: Row, detours: Sequence[int], final: int) -> Chain:
    """An insert and the retracts that lead to the final end; an end equal to the start removes it."""
    le, re, payload = row
    ends = [_end(le, d) for d in detours] or ([re] if final == le else [])
    ends = [*ends, final]
    chain: Chain = [(le, ends[0], KEPT, payload)]
    chain += [(le, a, b, payload) for a, b in pairwise(ends) if a != b]
    return chain


@st.composite
def chains(draw: st.DrawFn, rows: Rows, spec: InputSpec) -> list[Chain]:
    """A chain of changes per row, and chains that come to nothing."""
    out = [_chain(row, draw(_detours(spec)), row[1]) for row in rows]
    if not spec.insert_only:
        spurious = st.tuples(starts(), durations(spec), payloads(spec), _detours(spec))
        for le, d, payload, detours in draw(st.lists(spurious, max_size=2)):
            out.append(_chain((le, _end(le, d), payload), detours, le))
    return out


@st.composite
def orders(draw: st.DrawFn, some: list[Chain]) -> list[Change]:
    """The changes of all chains in an order near that of time; each chain in its own order."""
    steps = [(sync(change), i) for i, chain in enumerate(some) for change in chain]
    place = sorted(range(len(steps)), key=lambda j: steps[j])
    late = draw(st.lists(st.sampled_from((0, 0, 1, 2, 5, 40)), min_size=len(steps), max_size=len(steps)))
    moved = sorted(range(len(place)), key=lambda at: (at + late[at], at))
    todo = [iter(chain) for chain in some]
    return [next(todo[steps[place[at]][1]]) for at in moved]


def promises(
    spec: InputSpec, gaps: int, kinds: Sequence[PunctuationKind]
) -> st.SearchStrategy[list[Promise]]:
    """Wishes to punctuate, at most a few; those that would be lies are dropped later."""
    keyed = len(spec.promisable)
    allowed = [kind for kind in kinds if kind == "time" or keyed]
    if not allowed:
        return st.just([])
    wish = st.tuples(
        st.integers(0, gaps),
        st.sampled_from(allowed),
        st.integers(0, max(0, keyed - 1)),
        st.sampled_from((0, 1, 4)),
    )
    return st.lists(wish, max_size=6)


def truthful(spec: InputSpec, promise: Promise, later: Sequence[Change]) -> Punctuation | None:
    """The punctuation for a wish, made true for what comes later; None where it cannot be."""
    _, kind, which, slack = promise
    if kind == "time":
        return cti(min(map(sync, later), default=LATEST) - slack)
    assert spec.key is not None
    values = spec.promisable[which]
    matching = [sync(change) for change in later if values.contains(change[3][spec.key])]
    if kind == "key":
        return None if matching else Punctuation(Pattern.of({spec.key: values}))
    until = min(matching, default=LATEST) - slack
    return Punctuation(Pattern.of({spec.key: values, "time": lt(until)}))


@st.composite
def deliveries(
    draw: st.DrawFn,
    rows: Rows,
    spec: InputSpec,
    *,
    kinds: Sequence[PunctuationKind] = KINDS,
    closed: bool = True,
) -> list[Item]:
    """A random legal physical delivery of a history; `closed` ends it with the punctuation on everything."""
    changes = draw(orders(draw(chains(rows, spec))))
    wishes = draw(promises(spec, len(changes), kinds))
    cuts = draw(st.lists(st.sampled_from((0, 1, 1, 2)), min_size=len(changes), max_size=len(changes)))
    items: list[Item] = []
    run: list[Change] = []

    def flush() -> None:
        if run:
            items.append(spec.page(run))
            run.clear()

    for gap in range(len(changes) + 1):
        for wish in wishes:
            told = truthful(spec, wish, changes[gap:]) if wish[0] == gap else None
            if told is not None:
                flush()
                items.append(told)
        if gap < len(changes):
            run.append(changes[gap])
            if cuts[gap]:
                flush()
            if cuts[gap] == 2:
                items.append(spec.page([]))
    flush()
    return [*items, Punctuation(Pattern())] if closed else items


@st.composite
def streams(
    draw: st.DrawFn,
    spec: InputSpec,
    *,
    kinds: Sequence[PunctuationKind] = KINDS,
    closed: bool = True,
) -> tuple[Rows, list[Item]]:
    """A random history and a random delivery of it."""
    rows = draw(histories(spec))
    return rows, draw(deliveries(rows, spec, kinds=kinds, closed=closed))


def interleavings(lengths: Sequence[int]) -> st.SearchStrategy[list[int]]:
    """Random orders in which several streams are fed: the numbers of the streams."""
    everyone = [i for i, n in enumerate(lengths) for _ in range(n)]
    return st.permutations(everyone) if len(lengths) > 1 else st.just(everyone)
