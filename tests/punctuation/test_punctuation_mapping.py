"""Translations through a schema mapping against the rows themselves."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from punctuation_domains import POINTS, patterns

from caesura.punctuation import Image, Pattern, SchemaMapping, between, lt

few = settings(max_examples=80, deadline=None)


@st.composite
def images(draw: st.DrawFn, named: tuple[str, ...] = ("u", "v", "w")) -> SchemaMapping:
    found = {}
    for output in named:
        attribute = draw(st.sampled_from(["id", "name", "time", None]))
        if attribute is not None:
            found[output] = Image(attribute, 0 if attribute == "name" else draw(st.integers(-2, 2)))
    time = draw(st.one_of(st.none(), st.integers(-2, 2).map(lambda by: Image("time", by))))
    return SchemaMapping(found, time=time)


def through(mapping: SchemaMapping, row: dict[str, Any]) -> dict[str, Any]:
    """A row's image, by hand; None stays None."""
    shown = {}
    for output, image in mapping.images:
        item = row[image.attribute]
        shown[output] = item + image.shift if isinstance(item, int) else item
    return shown


@few
@given(images(), patterns)
def test_a_row_matches_if_and_only_if_its_image_matches_the_translation(m: SchemaMapping, p: Pattern) -> None:
    translated = m.down(p)
    assert (translated is None) == any(not m.outputs(name) for name in p.attributes)
    if translated is not None:
        for row in POINTS:
            assert p.matches_row(row) == translated.matches_row(through(m, row))
        assert m.up(translated) == p


@few
@given(images(("id", "name", "other")), patterns)
def test_a_row_matches_what_comes_up_if_and_only_if_its_image_matched(m: SchemaMapping, p: Pattern) -> None:
    kinds = {"id": {"id", "time"}, "name": {"name"}, "time": {"time"}}
    if any((i := m.image(n)) is not None and i.attribute not in kinds[n] for n in p.attributes):
        return  # an integer compared with names: no operator has such a schema
    translated = m.up(p)
    assert (translated is None) == any(m.image(name) is None for name in p.attributes)
    if translated is not None:
        for row in POINTS:
            assert translated.matches_row(row) == p.matches_row(through(m, row))


@few
@given(images(), patterns)
def test_a_mapping_survives_pickling_and_identity_changes_nothing(m: SchemaMapping, p: Pattern) -> None:
    assert pickle.loads(pickle.dumps(m)) == m
    assert SchemaMapping.identity(["id", "name"]).down(p) == p


def test_a_shift_moves_time_and_a_renamed_column_keeps_its_values() -> None:
    mapping = SchemaMapping({"sensor": Image("id"), "twin": Image("id")}, time=Image("time", 60))
    assert mapping.down(Pattern(time=lt(20), id=4)) == Pattern(time=lt(80), sensor=4)
    assert mapping.up(Pattern(sensor=lt(5), twin=between(3, 9))) == Pattern(id=between(3, 4))


def test_what_an_operator_computes_has_no_translation() -> None:
    mapping = SchemaMapping({"id": Image("id")}, time=None)
    assert mapping.up(Pattern(total=4)) is None
    assert mapping.down(Pattern(speed=4)) is None
    assert mapping.down(Pattern.before(20)) is None
    assert mapping.down(Pattern()) == Pattern()
