"""The thesis' contracts CT1 to CT21, its general forms GCF1 to GCF9, and section 5.1's query."""

from __future__ import annotations

import pytest
from thesis_rules import count, join, project, select, window

from caesura.contracts import ANY_SCHEME, NONE, Contract, Scheme, Template, covered, derive, mounted
from caesura.contracts.derive import realizable
from caesura.contracts.forms import FORMS, GCF1, GCF2, GCF3, GCF4, GCF5, GCF6, GCF7, GCF8, GCF9
from caesura.punctuation import Pattern, Promises, le
from caesura.punctuation.template import template_of

A, AB, ABC, BC, BCD = ["a"], ["a", "b"], ["a", "b", "c"], ["b", "c"], ["b", "c", "d"]
LINEAR, HASH = "[[a:+,b:-,c:-]]", "[[a:-,b:#,c:-]]"

REALIZABLE = {
    "CT1": (select(ABC), f"<In={{{LINEAR}}}, Out={{{LINEAR}}}>"),
    "CT2": (select(ABC), f"<In={{{LINEAR}, {HASH}}}, Out={{{LINEAR}, {HASH}}}>"),
    "CT3": (select(ABC), f"<In={{{LINEAR}, {HASH}}}, Out={{{LINEAR}}}>"),
    "CT4": (select(ABC), f"<In={{{LINEAR}, {HASH}}}, Out={{[[a:+,b:#,c:-]]}}>"),
    "CT5": (join(AB, BC, ["b"]), "<In1={[[a:-,b:+]]}, In2={[[b:+,c:-]]}, Out={[[a:-,b:+,c:-]]}>"),
    "CT7": (select(AB), "<In={[[a:-, b:+]]}, Out={[[a:-, b:+]]}>"),
    "CT8": (select(BC), "<In={[[b:+, c:-]]}, Out={[[b:+, c:-]]}>"),
    "CT9": (project(AB, A), "<In={[[a:+, b:-]]}, Out={[[a:+]]}>"),
    "CT10": (join(AB, BC, ["b"]), "<In1={[[a:-,b:+]]}, In2={[[b:+,c:-]]}, Out={[[a:-,b:+,c:-]]}>"),
    "CT11": (join(AB, BC, ["b"]), "<In1={[[a:-,b:#]]}, In2={[[b:#,c:-]]}, Out={[[a:-,b:#,c:-]]}>"),
    "CT13": (join(AB, BC, ["b"]), "<In1={[[a:-,b:+]]}, In2={[[b:+,c:-]]}, Out={[[a:-,b:+,c:-]]}>"),
    "CT14": (join(AB, BC, ["b"]), "<In1={[[a:-,b:#]]}, In2={[[b:#,c:-]]}, Out={[[a:-,b:#,c:-]]}>"),
    "CT15": (
        join(ABC, BCD, BC),
        "<In1={[[a:-, b:+, c:-]]}, In2={[[b:-, c:+, d:-]]}, Out={[[a:-, b:+, c:+, d:-]]}>",
    ),
    "CT16": (window(AB, "b"), "<In={[[a:-, b:+]]}, Out={[[WID:+, a:-, b:-]]}>"),
    "CT17": (count(AB, A), "<In={[[a:+, b:-]]}, Out={[[a:#, COUNT(R):-]]}>"),
    "CT18": (count(AB, A), "<In={[[a:#, b:-]]}, Out={[[a:#, COUNT(R):-]]}>"),
    "CT19": (count(AB, A), "<In={[[a:+, b:-]], [[a:#, b:-]]}, Out={[[a:#, COUNT(R):-]]}>"),
}

REFUSED = {
    "CT6": (
        select(ABC),
        f"<In={{{LINEAR}}}, Out={{{HASH}}}>",
        "[[a:-, b:#, c:-]] does not follow from {[[a:+, b:-, c:-]]}",
    ),
    "CT12": (
        join(AB, BC, ["b"]),
        "<In1={[[a:#,b:-]]}, In2={[[b:-,c:#]]}, Out={[[a:#,b:-,c:#]]}>",
        "left rows never go: input 2 promises nothing on b",
    ),
}


@pytest.mark.parametrize("name", REALIZABLE)
def test_a_contract_that_the_thesis_calls_realizable_is(name):
    rule, text = REALIZABLE[name]
    contract = Contract.parse(text)
    assert realizable(rule, contract) == ""
    assert Contract.parse(str(contract)) == contract


@pytest.mark.parametrize("name", REFUSED)
def test_a_contract_that_the_thesis_calls_unrealizable_is_refused(name):
    rule, text, why = REFUSED[name]
    assert realizable(rule, Contract.parse(text)) == why


def test_ct3_says_that_it_drops_hash_punctuation():
    assert str(Contract.parse(REALIZABLE["CT3"][1]).drops[0]) == "{[[a:-, b:#, c:-]]}"
    assert Contract.parse(REALIZABLE["CT2"][1]).drops == (NONE,)


def test_ct20_takes_feedback_that_its_punctuation_covers_and_sends_it_on():
    ct20 = Contract.parse(
        "<In = {[a:-, b:+, c:-]} Out = {[a:-, b:+]}, "
        "Feedback.In = {[a:-, b:+]}, Feedback.Out = {[a:-, b:+, c:-]}>"
    )
    assert ct20.well_formed
    assert ct20.feedback_out == (Scheme.parse("{[[a:-, b:+, c:-]]}"),)


def test_ct21_takes_any_feedback_but_mounts_only_what_is_covered():
    ct21 = Contract.parse("<In={[a:-, b:+]} Out={[a:-, b:+]}, Feedback.In=↻, Feedback.Out=∅>")
    assert ct21.feedback_in == (ANY_SCHEME,) and ct21.feedback_out == (NONE,)
    assert mounted(ct21, Template.parse("[[a:-, b:+]]"))
    assert not mounted(ct21, Template.parse("[[a:#, b:-]]"))


def test_a_feedback_punctuation_is_covered_if_each_of_its_marks_is_given():
    inputs = [Scheme.parse("{[[a:+, b:-]]}")]
    assert covered(Template.parse("[[a:+, b:-]]"), inputs)
    assert not covered(Template.parse("[[a:-, b:+]]"), inputs)


def test_a_covered_guard_goes_whatever_values_it_names():
    guard = Pattern(a=le(2), b=3)
    form = template_of(guard, ["a", "b"])
    assert form is not None and covered(form, [Scheme.parse("{[[a:+, b:-]]}")])
    assert Promises([Pattern(a=le(5))]).covers(guard)


def test_a_guard_on_a_range_does_not_go_by_promises_on_single_values_of_another_attribute():
    guard = Pattern(a=le(2))
    form = template_of(guard, ["a", "b"])
    assert form is not None and not covered(form, [Scheme.parse("{[[a:+, b:#]]}")])
    assert not Promises([Pattern(a=le(5), b=b) for b in range(100)]).covers(guard)


def test_a_contract_whose_feedback_nothing_covers_is_not_well_formed():
    text = "<In={[[a:+, b:-]]}, Out={[[a:+, b:-]]}, Feedback.In={[[a:-, b:#]]}, Feedback.Out=none>"
    assert not Contract.parse(text).well_formed


def test_the_general_forms_print_with_their_variables():
    assert [str(form) for form in FORMS[:2]] == ["GCF1 = <In=PS, Out=PS>", "GCF2 = <In=PSI, Out=PSI[X]>"]
    assert str(GCF8) == "GCF8 = <In={[[G:+, R:-]], [[G:#, R:-]]}, Out={[[G:#, COUNT(R):-]]}>"


@pytest.mark.parametrize(
    ("form", "groups", "contract"),
    [
        (GCF3, {"L": A, "J": ["b"], "R": ["c"]}, "CT13"),
        (GCF4, {"L": A, "J": ["b"], "R": ["c"]}, "CT14"),
        (GCF5, {"W": ["b"], "X": A}, "CT16"),
        (GCF6, {"G": A, "R": ["b"]}, "CT17"),
        (GCF7, {"G": A, "R": ["b"]}, "CT18"),
        (GCF8, {"G": A, "R": ["b"]}, "CT19"),
    ],
)
def test_a_general_form_gives_the_contract_that_the_thesis_derives_from_it(form, groups, contract):
    wanted = Contract.parse(REALIZABLE[contract][1])
    got = form.bind(**groups)
    plain = {Scheme.of(*(Template.of(sorted(t.names), dict(t.marked)) for t in s)) for s in got.ins}
    assert plain == {
        Scheme.of(*(Template.of(sorted(t.names), dict(t.marked)) for t in s)) for s in wanted.ins
    }
    assert {frozenset(t.marked.items()) for t in got.outs[0]} == {
        frozenset(t.marked.items()) for t in wanted.outs[0]
    }


def test_gcf1_is_bound_to_the_scheme_it_is_given_without_listing_schemes():
    wide = Scheme.parse("{[[" + ", ".join(f"x{i}:{'#' if i % 2 else '+'}" for i in range(40)) + "]]}")
    assert GCF1.on(wide) == Contract((wide,), (wide,))


def test_gcf2_gives_ct9_and_refuses_punctuation_on_what_is_projected_out():
    assert GCF2.on(Scheme.parse("{[[a:+, b:-]]}"), X=A) == Contract.parse(REALIZABLE["CT9"][1])
    assert GCF2.on(Scheme.parse("{[[a:+, b:#]]}"), X=A) is None


def test_gcf9_closes_the_one_attribute_it_groups_by():
    contract = GCF9.bind(g=["w"], R=["b"])
    assert str(contract) == "<In={[[w:+, b:-]]}, Out={[[w:+, COUNT(R):-]]}>"
    assert realizable(count(["w", "b"], ["w"]), contract) == ""


def test_a_form_offers_nothing_on_a_scheme_that_it_does_not_speak_of():
    given = Scheme.parse("{[[a:-, b:+]]}"), Scheme.parse("{[[b:#, c:-]]}")
    assert GCF3.on(*given, L=A, J=["b"], R=["c"]) is None


MESSAGES = ["timestamp", "sourceID", "destinationID"]


@pytest.mark.parametrize(
    ("scheme", "leaves"),
    [
        ("{[[timestamp:+, sourceID:-, destinationID:-]]}", "{[[WID:+, sourceID:-, destinationID:-, n:-]]}"),
        ("{[[timestamp:-, sourceID:#, destinationID:-]]}", "{[[WID:-, sourceID:#, destinationID:-, n:-]]}"),
    ],
)
def test_both_notions_of_progress_of_section_5_1_pass_window_project_and_count(scheme, leaves):
    windowed = derive(window(MESSAGES, "timestamp"), [Scheme.parse(scheme)])
    kept = ["WID", "sourceID", "destinationID"]
    projected = derive(project(["WID", *MESSAGES], kept), windowed.contract.outs)
    counted = derive(count(kept, kept, "n"), projected.contract.outs)
    assert windowed.sound and projected.sound and counted.sound
    assert str(counted.contract.outs[0]) == leaves


def test_section_5_1_joins_the_two_counts_and_closes_what_both_have_closed():
    names = ["WID", "sourceID", "destinationID"]
    both = Scheme.parse("{[[WID:+, sourceID:-, destinationID:-, n:-]]}")
    other = Scheme.parse("{[[WID:+, sourceID:-, destinationID:-, m:-]]}")
    result = derive(join([*names, "n"], [*names, "m"], names), [both, other])
    assert result.sound
    assert str(result.contract.outs[0]) == "{[[WID:+, sourceID:-, destinationID:-, n:-, m:-]]}"


def test_chapter_8_s_plan_is_not_safe_by_the_thesis_own_ct12():
    r, s, t = Scheme.parse("{[[a:-, b:+]]}"), Scheme.parse("{[[b:+,c:-,d:-]]}"), Scheme.parse("{[[c:+,d:-]]}")
    first = derive(join(AB, BCD, ["b"]), [r, s])
    second = derive(join([*ABC, "d"], ["c", "d"], ["c", "d"]), [first.contract.outs[0], t])
    assert first.sound
    assert [u.hold.what for u in second.unmet] == ["right rows"]
