"""Whatever is drawn is legal, and says what it was drawn for."""

from __future__ import annotations

import os

import pytest
from depth import examples
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from oracle_tables import bag

from caesura.events import Page, violations
from caesura.punctuation import INFINITY, Pattern
from caesura.testing.spec import InputSpec, PunctuationKind, plain_rows
from caesura.testing.strategies import KINDS, deliveries, streams

QUICK = settings(phases=(Phase.generate,), max_examples=2000, database=None)
WHOLE = settings(phases=tuple(Phase), derandomize=True, database=None)
MIXED = InputSpec({"id": "key", "v": "float", "s": "str"}, key="id")
SPECS = {
    "any": MIXED,
    "finite": InputSpec({"name": "name", "n": "int"}, key="name", lifetimes="finite"),
    "points": InputSpec({"id": "key"}, key="id", lifetimes="points"),
    "insert-only": InputSpec({"id": "key"}, key="id", insert_only=True),
    "float key": InputSpec({"x": "float"}, key="x"),
    "no key": InputSpec({"x": "int"}),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_a_delivery_is_legal_and_has_the_history_it_was_drawn_for(name: str, data: st.DataObject) -> None:
    spec = SPECS[name]
    kinds = data.draw(st.sets(st.sampled_from(KINDS)).map(sorted))
    rows, items = data.draw(streams(spec, kinds=kinds))
    assert violations(items) == []
    assert bag(plain_rows(items, spec.schema.names)) == bag(rows)
    last = items[-1]
    assert not isinstance(last, Page) and last.pattern == Pattern()


@pytest.mark.parametrize("kinds", [["time", "key"], ("time",), []])
def test_kinds_of_punctuation_are_given_in_any_sequence(kinds: list[PunctuationKind]) -> None:
    history = [(1, 5, {"id": 1, "v": 2.0, "s": "a"})]
    items = find(deliveries(history, MIXED, kinds=kinds), lambda _: True, settings=WHOLE)
    assert violations(items) == []
    assert bag(plain_rows(items, MIXED.schema.names)) == bag(history)


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_a_spec_is_kept_by_what_is_delivered(data: st.DataObject) -> None:
    _, points = data.draw(streams(SPECS["points"]))
    _, inserts = data.draw(streams(SPECS["insert-only"]))
    _, finite = data.draw(streams(SPECS["finite"]))
    assert all(re == le + 1 for p in points if isinstance(p, Page) for le, re, _, _ in p.rows())
    assert all(p.retracts is None for p in inserts if isinstance(p, Page))
    assert all(re < INFINITY for p in finite if isinstance(p, Page) for _, re, _, _ in p.rows())


def _promises(item: object, *names: str) -> bool:
    return not isinstance(item, Page) and set(names) == set(item.pattern.attributes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("names", [("time",), ("id",), ("id", "time")])
def test_every_kind_of_punctuation_comes_between_rows(names: tuple[str, ...]) -> None:
    def amid(drawn: tuple[object, list[object]]) -> bool:
        pages = [i for i, item in enumerate(drawn[1]) if isinstance(item, Page) and len(item)]
        return any(
            _promises(drawn[1][i], *names) for i in range(min(pages, default=0), max(pages, default=0))
        )

    find(streams(MIXED), amid, settings=QUICK)


@pytest.mark.slow
def test_corrections_of_every_sort_are_drawn() -> None:
    def has(test: object) -> None:
        find(
            streams(MIXED),
            lambda d: any(test(*r) for p in d[1] if isinstance(p, Page) for r in p.rows()),
            settings=QUICK,
        )  # type: ignore[operator]

    has(lambda le, re, new, _: new == le)
    has(lambda le, re, new, _: new is not None and new > re)
    has(lambda le, re, new, _: new is not None and le < new < re == INFINITY)
    has(lambda le, re, new, _: new == INFINITY)


def _corrections(page: Page) -> list[tuple[int, int, int | None]]:
    """The changes of the page's first event."""
    rows = page.rows()
    return [(le, re, new) for le, re, new, p in rows if (le, repr(p)) == (rows[0][0], repr(rows[0][3]))]


@pytest.mark.slow
def test_chains_of_corrections_come_within_a_page() -> None:
    def has(test: object) -> None:
        find(
            streams(MIXED),
            lambda d: any(test(_corrections(p)) for p in d[1] if isinstance(p, Page) and len(p)),  # type: ignore[operator]
            settings=QUICK,
        )

    has(lambda c: len(c) > 2 and c[0][2] is None)
    has(lambda c: len(c) > 1 and None not in (c[0][2], c[1][2]))
    has(lambda c: len(c) > 1 and c[0][2] == c[0][0] and c[1][2] is None)


@pytest.mark.skipif(not os.environ.get("CAESURA_SEARCH"), reason="a long search, for make soak")
def test_a_stream_shrinks_to_little_more_than_the_row_that_matters() -> None:
    spec = InputSpec({"id": "key", "v": "int"}, key="id")
    rows, items = find(
        streams(spec), lambda drawn: any(re == INFINITY for _, re, _ in drawn[0]), settings=WHOLE
    )
    assert len(rows) <= 2
    assert len(items) <= 3
