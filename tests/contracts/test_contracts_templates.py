"""Templates and schemes: the thesis' section 5.3.1, its obeyed and broken streams, and bad input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caesura.contracts import ContractError, Scheme, Template, Watch, obeys, template_of
from caesura.errors import StreamError
from caesura.events import parse
from caesura.punctuation import Pattern, between, definite, le, lt, one_of

PS1 = Scheme.parse("{[[a:+, b:#, c:-]]}")
PS2 = Scheme.parse("{[[a:+, b:-, c:-]], [[a:-, b:#, c:-]]}")


def events(*lines: str) -> list:
    """A stream over a, b, c, drawn as rows `a b c` and punctuations."""
    schema = None
    text = [" LE RE | a b c |"]
    for number, line in enumerate(lines):
        text.append(line if line.startswith("--") else f" {number} {number + 1} | {line} | +")
    return parse("\n".join(text), schema)


@pytest.mark.parametrize(
    ("pattern", "conforms"),
    [
        (Pattern(a=le("11:30 p.m."), b=26), True),
        (Pattern(b=26), False),
        (Pattern(a="11:30 p.m.", b=lt(26)), False),
        (Pattern(a=le("11:30 p.m."), b=26, c=3), False),
        (Pattern(a=le("11:30 p.m."), b=one_of([26, None])), True),
        (Pattern(a=le("11:30 p.m."), b=between(1.5, 2.5)), False),
    ],
)
def test_a_punctuation_conforms_to_a_template_if_each_component_has_its_mark(pattern, conforms):
    assert Template.parse("[[a:+, b:#, c:-]]").conforms(pattern) == conforms


def test_templates_and_schemes_are_printed_as_they_are_read():
    for text in ("{[[a:+, b:#, c:-]]}", "{[[a:+, b:-, c:-]], [[a:-, b:#, c:-]]}", "any", "none"):
        assert str(Scheme.parse(text)) == text
    assert Scheme.parse("∅") == Scheme.parse("none") and Scheme.parse("↻") == Scheme.parse("any")


def test_the_first_substream_obeys_ps1():
    stream = events("945 1 7", "-- definite: a < 1000, b = 1 --", "-- definite: a < 1000, b = 2 --")
    assert obeys(stream, PS1).obeyed


def test_the_second_substream_breaks_ps1_three_times():
    stream = events(
        "945 1 7",
        "-- definite: a < 1000 --",
        "-- definite: b = 2 --",
        "-- definite: a < 1005, b < 1 --",
    )
    watch = obeys(stream, PS1)
    assert not watch.obeyed and len(watch.strangers) == 3


PS2_STREAM = (
    "1016 2 23",
    "1017 1 13",
    "1017 3 31",
    "-- definite: a < 1020 --",
    "1021 1 11",
    "-- definite: b = 1 --",
    "1021 2 21",
    "1021 3 31",
    "-- definite: a < 1025 --",
    "-- definite: b = 2 --",
    "1027 3 30",
    "-- definite: a < 1030 --",
)


def test_the_third_substream_obeys_condition_1_of_ps2_but_not_condition_2():
    watch = obeys(events(*PS2_STREAM), PS2)
    assert watch.strangers == []
    assert watch.report() == (
        "3 events are not covered by [[a:-, b:#, c:-]], for example (time 2, a 1017, b 3, c 31)"
    )


def test_the_third_substream_obeys_ps2_once_b_3_is_punctuated():
    assert obeys(events(*PS2_STREAM, "-- definite: b = 3 --"), PS2).obeyed


def test_in_the_implied_reading_a_punctuation_that_says_more_covers_what_one_that_says_less_would():
    stream = events("945 1 7", "-- definite: a < 1000 --")
    assert obeys(stream, Scheme.parse("{[[a:+, b:-, c:-]]}"), "implied").obeyed
    joint = Watch(PS1, "implied")
    joint.see(events("945 1 7", "-- definite: a < 1000, b = 1 --", "-- definite: a < 1000, b = 1, c = 4 --"))
    assert joint.obeyed


def test_the_end_of_input_covers_everything_before_it():
    assert obeys(events("945 1 7", "-- definite: * --"), PS2).obeyed


def test_a_source_that_breaks_its_declared_scheme_is_named_while_it_runs():
    watch = Watch(Scheme.parse("{[[time:+, id:-]]}"))
    watch.see(parse(" LE RE | id |\n 1 2 | 7 | +\n-- 5 --"))
    watch.refuse("clicks")
    watch.append(definite(id=7))
    with pytest.raises(StreamError, match=r"the source 'clicks' declares .*, but gave 'id = 7'"):
        watch.refuse("clicks")


def test_a_source_that_never_covers_an_event_is_named_at_its_end():
    watch = Watch(Scheme.parse("{[[time:-, id:#]]}"))
    watch.see(parse(" LE RE | id |\n 1 2 | 7 | +\n 2 3 | 8 | +\n-- definite: id = 8 --"))
    with pytest.raises(StreamError, match=r"1 event is not covered by .* for example .time 1, id 7"):
        watch.close("clicks")


def test_a_template_that_a_pattern_conforms_to_is_found_from_the_pattern():
    assert (
        str(template_of(Pattern(time=lt(5), b=one_of([1, 2])), ["time", "b", "c"])) == "[[time:+, b:#, c:-]]"
    )
    assert template_of(Pattern(b=between(1.0, 2.0)), ["time", "b"]) is None


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        ("[[a:+, x:#]]", ["a", "b"], "marks 'x', which is not there"),
        ("[[a:+, a:#]]", None, "names 'a' twice"),
        ("[[a:*]]", None, "is no column with a mark"),
        ("a:+", None, "is no template"),
        ("[[time:#]]", None, "no source closes instants one by one"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused_with_a_remedy(text, names, said):
    with pytest.raises(ContractError, match=said) as caught:
        Template.parse(text, names)
    assert caught.value.remedy


def test_the_templates_of_a_scheme_speak_of_the_same_attributes():
    with pytest.raises(ContractError, match="different attributes"):
        Scheme.parse("{[[a:+, b:-]], [[a:+]]}")


NAMES = ("time", "a", "b", "none", "two words")
MARKED = st.dictionaries(st.sampled_from(NAMES), st.sampled_from("+#"), min_size=1).filter(
    lambda marks: marks.get("time") != "#"
)


@given(MARKED)
def test_a_template_is_read_from_the_columns_that_it_is_shown_with(marks):
    template = Template.of(NAMES, marks)
    assert Scheme.parse(template.brief, NAMES) == Scheme.of(template)


def test_a_scheme_is_written_as_the_columns_that_punctuation_speaks_of():
    assert Scheme.parse("time; a, b <", ["time", "a", "b"]) == Scheme.parse(
        "{[[time:+, a:-, b:-]], [[time:-, a:#, b:+]]}"
    )
    assert Scheme.parse("a ; b") == Scheme.parse("{[[a:#, b:-]], [[a:-, b:#]]}")
    for wrong in ("a;", "; a", "a b", "a <<", "a = 3", ""):
        with pytest.raises(ContractError, match="no scheme"):
            Scheme.parse(wrong)
    with pytest.raises(ContractError, match="marks 'c', which is not there"):
        Scheme.parse("c", ["a", "b"])
