"""Random legal physical streams for Hypothesis: disorder, corrections, punctuation, paging.

Everything about a row (its detours, how late each change comes, what is promised behind it) is drawn
next to it, so that a failing stream shrinks row by row.

Law: whatever is drawn, `violations(items) == []` and its history is the one it was drawn for.

>>> from caesura.testing.spec import InputSpec
>>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
>>> from hypothesis import find
>>> find(histories(spec), lambda rows: len(rows) == 1)
[(0, 1, {'id': 0, 'v': 0})]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from hypothesis import strategies as st

from caesura.events import NO_NEW_END, Item
from caesura.punctuation import INFINITY, MIN_TIME, Pattern, Punctuation, cti, lt
from caesura.testing.oracles.rows import Payload, Row, Rows
from caesura.testing.spec import DOMAINS, InputSpec, PunctuationKind

EARLIEST, LATEST = -4, 20
LONGEST = 12
FINEST = 4
"""How fine pages are cut, at most."""
KINDS: tuple[PunctuationKind, ...] = ("time", "key", "both")

Punctuate: TypeAlias = tuple[PunctuationKind, int, int]
"""A punctuation to try: the kind, which key values, how far behind the tightest time."""


P = ParamSpec("P")
S = TypeVar("S")


def built_once(made: Callable[P, S]) -> Callable[P, S]:
    """A strategy that is built and checked by Hypothesis once for a spec, not at every draw."""
    return cast("Callable[P, S]", lru_cache(maxsize=4096)(made))


class Touch(NamedTuple):
    """How one change comes: how many places late, how likely its page ends, what is said behind it."""

    late: int
    cut: int
    punctuate: Punctuate | None


class Route(NamedTuple):
    """Ends (as durations, 0 for a row that is gone for a while) that a row has before its final one."""

    detours: list[tuple[int, Touch]]
    last: Touch
    together: int
    """So many of the last changes come at one place, in one page."""


class Style(NamedTuple):
    """What is drawn once for a stream: what is said before its first row, how long its pages are."""

    first: Punctuate | None
    coarse: int


class Change(NamedTuple):
    """An insert (`new` is NO_NEW_END) or a retract, and how it comes."""

    le: int
    re: int
    new: int
    payload: Payload
    touch: Touch

    @property
    def sync(self) -> int:
        return self.le if self.new == NO_NEW_END else min(self.re, self.new)


@built_once
def payloads(spec: InputSpec) -> st.SearchStrategy[Payload]:
    """Random payloads over small domains."""
    cells = st.tuples(*(st.sampled_from(DOMAINS[kind]) for kind in spec.columns.values()))
    return cells.map(lambda values: dict(zip(spec.columns, values, strict=True)))


@built_once
def starts(spec: InputSpec) -> st.SearchStrategy[int]:
    """Random start times; shrinks to the spec's origin."""
    return st.integers(EARLIEST, LATEST).map(lambda t: t + spec.origin)


@built_once
def durations(spec: InputSpec) -> st.SearchStrategy[int]:
    """Random lengths; INFINITY for a row that never ends."""
    if spec.lifetimes == "points":
        return st.just(1)
    if spec.lifetimes == "finite":
        return st.integers(1, LONGEST)
    if spec.lifetimes == "endless":
        return st.just(INFINITY)
    return st.integers(1, LONGEST + 4).map(lambda d: d if d <= LONGEST else INFINITY)


@built_once
def rows(spec: InputSpec) -> st.SearchStrategy[Row]:
    """Random rows of a history."""
    parts = st.tuples(starts(spec), durations(spec), payloads(spec))
    return parts.map(lambda part: (part[0], _end(part[0], part[1]), part[2]))


def histories(spec: InputSpec, max_rows: int | None = None) -> st.SearchStrategy[Rows]:
    """Random histories, for Hypothesis: rows with lifetimes.

    Parameters
    ----------
    spec
        The columns and lifetimes that rows may have.
    max_rows
        How many rows at most; as the spec says without it.

    Returns
    -------
    SearchStrategy
        A strategy of lists of rows: a start, an end, and the values by name.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from caesura.testing.spec import InputSpec
    >>> from caesura.testing.strategies import histories
    >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
    >>> @settings(max_examples=5, deadline=None)
    ... @given(histories(spec))
    ... def lifetimes_are_not_empty(rows):
    ...     assert all(start < end for start, end, _ in rows)
    >>> lifetimes_are_not_empty()
    """
    return st.lists(rows(spec), max_size=spec.max_rows if max_rows is None else max_rows)


@built_once
def punctuations(spec: InputSpec, kinds: Sequence[PunctuationKind]) -> st.SearchStrategy[Punctuate | None]:
    """Random punctuations to try, or none; those that would be lies are dropped later."""
    allowed = [kind for kind in kinds if kind == "time" or spec.promisable]
    if not allowed:
        return st.none()
    which = st.integers(0, max(0, len(spec.promisable) - 1))
    return st.none() | st.tuples(st.sampled_from(allowed), which, st.sampled_from((0, 1, 4)))


@built_once
def touches(spec: InputSpec, kinds: Sequence[PunctuationKind]) -> st.SearchStrategy[Touch]:
    """Random ways for a change to come."""
    late, cut = st.sampled_from((0, 0, 1, 2, 5, 40)), st.integers(0, FINEST)
    return st.builds(Touch, late, cut, punctuations(spec, kinds))


@built_once
def routes(spec: InputSpec, kinds: Sequence[PunctuationKind], detours: int = 0) -> st.SearchStrategy[Route]:
    """Random ways to a final row, with at least so many detours."""
    touch = touches(spec, kinds)
    most = detours if spec.insert_only else 3
    detour = st.tuples(durations(spec) | st.just(0), touch)
    some = st.lists(detour, min_size=detours, max_size=most)
    return st.builds(Route, some, touch, st.integers(0, 3 if most else 0))


def _end(le: int, duration: int) -> int:
    return INFINITY if duration == INFINITY else min(INFINITY, le + duration)


def _chain(row: Row, route: Route) -> list[Change]:
    """An insert and the retracts that lead to the final end; an end equal to the start removes it."""
    le, final, payload = row
    ends = [(_end(le, d), touch) for d, touch in route.detours] + [(final, route.last)]
    chain: list[Change] = []
    was = le
    for end, touch in ends:
        if was == le < end:
            chain.append(Change(le, end, NO_NEW_END, payload, touch))
        elif was != end:
            chain.append(Change(le, was, end, payload, touch))
        was = end
    quiet = [c._replace(touch=c.touch._replace(cut=0, punctuate=None)) for c in chain]
    tail = max(0, len(chain) - route.together)
    return chain[:tail] + quiet[tail:-1] + chain[max(tail, len(chain) - 1) :]


def _ordered(chains: list[list[Change]], together: list[int]) -> list[Change]:
    """All changes in the order of time, but for the late ones; each chain in its own order."""
    steps = sorted((c.sync, i, c.touch.late) for i, chain in enumerate(chains) for c in chain)
    slots: list[list[tuple[int, int]]] = [[] for _ in chains]
    for at, (_, i, late) in enumerate(steps):
        slots[i].append((at + late, at))
    placed = []
    for i, (chain, own, some) in enumerate(zip(chains, map(sorted, slots), together, strict=True)):
        tail = len(chain) - some
        placed += [(own[-1 if j >= tail else j], i, j) for j in range(len(chain))]
    return [chains[i][j] for _, i, j in sorted(placed)]


def truthful(spec: InputSpec, punctuate: Punctuate, later: Iterable[Change]) -> Punctuation | None:
    """The punctuation to try, made true for what comes later; None where it cannot be."""
    kind, which, slack = punctuate
    if kind == "time":
        return cti(_behind(min((c.sync for c in later), default=LATEST + spec.origin), slack))
    assert spec.key is not None
    values = spec.promisable[which]
    matching = [c.sync for c in later if values.contains(c.payload[spec.key])]
    if kind == "key":
        return None if matching else Punctuation(Pattern.of({spec.key: values}))
    until = _behind(min(matching, default=LATEST + spec.origin), slack)
    return Punctuation(Pattern.of({spec.key: values, "time": lt(until)}))


def _behind(t: int, slack: int) -> int:
    return max(MIN_TIME + 1, t - slack)


def _paged(spec: InputSpec, changes: list[Change], style: Style, closed: bool) -> list[Item]:
    items: list[Item] = []
    run: list[Change] = []
    for gap in range(len(changes) + 1):
        punctuate = changes[gap - 1].touch.punctuate if gap else style.first
        promise = truthful(spec, punctuate, changes[gap:]) if punctuate else None
        cut = changes[gap - 1].touch.cut if gap else 0
        if run and (promise is not None or cut > style.coarse or gap == len(changes)):
            items.append(spec.page((c.le, c.re, c.new, c.payload) for c in run))
            run = []
        if cut == FINEST:
            items.append(spec.page([]))
        if promise is not None:
            items.append(promise)
        run += changes[gap : gap + 1]
    return [*items, Punctuation(Pattern())] if closed else items


_Spurious: TypeAlias = tuple[int, Payload, Route]


@built_once
def spurious(spec: InputSpec, kinds: Sequence[PunctuationKind]) -> st.SearchStrategy[list[_Spurious]]:
    """Random rows that come to nothing: inserted, and taken away again."""
    if spec.insert_only:
        return st.just([])
    return st.lists(st.tuples(starts(spec), payloads(spec), routes(spec, kinds, detours=1)), max_size=2)


@built_once
def styles(spec: InputSpec, kinds: Sequence[PunctuationKind]) -> st.SearchStrategy[Style]:
    """Random ways to begin and to page a stream: from a page for nearly every row to long pages."""
    return st.builds(Style, punctuations(spec, kinds), st.integers(0, FINEST - 1))


def _delivered(
    spec: InputSpec,
    routed: Iterable[tuple[Row, Route]],
    extra: Iterable[_Spurious],
    style: Style,
    closed: bool,
) -> list[Item]:
    ways = [*routed, *(((le, le, payload), route) for le, payload, route in extra)]
    chains = [_chain(row, route) for row, route in ways]
    return _paged(spec, _ordered(chains, [route.together for _, route in ways]), style, closed)


def deliveries(
    history: Rows, spec: InputSpec, *, kinds: Sequence[PunctuationKind] = KINDS, closed: bool = True
) -> st.SearchStrategy[list[Item]]:
    """Random legal deliveries of a history, for Hypothesis.

    Parameters
    ----------
    history
        What they mean: rows as `histories` gives them.
    spec
        The columns and lifetimes that rows may have.
    kinds
        What punctuation speaks of: ``"time"``, ``"key"``, ``"both"``.
    closed
        Whether the last item promises that nothing more comes.

    Returns
    -------
    SearchStrategy
        A strategy of lists of pages and punctuation that mean the history: out of order, corrected, cut
        into pages.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from caesura.testing.spec import InputSpec
    >>> from caesura import History
    >>> from caesura.testing.strategies import deliveries
    >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
    >>> rows = [(1, 5, {"id": 1, "v": 2})]
    >>> @settings(max_examples=5, deadline=None)
    ... @given(deliveries(rows, spec))
    ... def all_mean_the_same(items):
    ...     assert History.of(items, spec.schema).rows() == [(1, 5, (1, 2))]
    >>> all_mean_the_same()
    """
    kinds = tuple(kinds)
    ways = st.tuples(*(routes(spec, kinds) for _ in history))
    parts = st.tuples(ways, spurious(spec, kinds), styles(spec, kinds))
    return parts.map(
        lambda part: _delivered(spec, zip(history, part[0], strict=True), part[1], part[2], closed)
    )


def streams(
    spec: InputSpec, *, kinds: Sequence[PunctuationKind] = KINDS, closed: bool = True
) -> st.SearchStrategy[tuple[Rows, list[Item]]]:
    """Random histories, each with a random delivery of it, for Hypothesis.

    Parameters
    ----------
    spec
        The columns and lifetimes that rows may have.
    kinds
        What punctuation speaks of: ``"time"``, ``"key"``, ``"both"``.
    closed
        Whether the last item promises that nothing more comes.

    Returns
    -------
    SearchStrategy
        A strategy of pairs: the rows, and pages and punctuation that mean them. Some rows come twice,
        each in its own way.

    See Also
    --------
    check_all : the laws that an operator must hold.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from caesura.testing.spec import InputSpec
    >>> import caesura as cz
    >>> from caesura.testing.strategies import streams
    >>> spec = InputSpec({"id": "key", "v": "int"}, key="id")
    >>> @settings(max_examples=5, deadline=None)
    ... @given(streams(spec))
    ... def every_row_comes_out(drawn):
    ...     rows, items = drawn
    ...     assert len(cz.from_items(items, spec.schema).run().history) == len(rows)
    >>> every_row_comes_out()
    """
    return _streams(spec, tuple(kinds), closed)


@built_once
def _streams(
    spec: InputSpec, kinds: Sequence[PunctuationKind], closed: bool
) -> st.SearchStrategy[tuple[Rows, list[Item]]]:
    way = routes(spec, kinds)
    copies = st.sampled_from((1, 1, 1, 2))
    routed = st.lists(st.tuples(rows(spec), st.tuples(way, way), copies), max_size=spec.max_rows).map(
        lambda some: [(row, route) for row, ways, n in some for route in ways[:n]][: spec.max_rows]
    )
    parts = st.tuples(routed, spurious(spec, kinds), styles(spec, kinds))
    return parts.map(
        lambda part: ([row for row, _ in part[0]], _delivered(spec, part[0], part[1], part[2], closed))
    )


def interleaved(lengths: Sequence[int], seed: int) -> list[int]:
    """An order in which several streams are fed: one after the other, in turn, or at random by seed.

    >>> interleaved([2, 3], 0), interleaved([2, 3], 1)
    ([0, 0, 1, 1, 1], [0, 1, 0, 1, 1])
    """
    places = [(turn, number) for number, n in enumerate(lengths) for turn in range(n)]
    if seed == 1:
        places.sort()
    elif seed:
        Random(seed).shuffle(places)
    return [number for _, number in places]
