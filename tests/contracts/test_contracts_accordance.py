"""Accordances: Figures 5.4 to 5.6 and 5.8 to 5.9, Table 5.1, DAGs, loops, many offerings."""

from __future__ import annotations

import importlib
from collections import Counter
from itertools import product
from random import Random

import pytest

from caesura.contracts import Contract, ContractError, Link, Scheme, Template, accordance, consistent, match
from caesura.contracts import reduce_tree as reduced

solving = importlib.import_module("caesura.contracts.accordance")
semijoin = solving._semijoin
LINEAR = Contract.parse("<In={[[a:+, b:-]]}, Out={[[a:+, b:-]]}>")
VALUED = Contract.parse("<In={[[a:#, b:-]]}, Out={[[a:#, b:-]]}>")
EITHER = Contract.parse("<In={[[a:+, b:-]], [[a:#, b:-]]}, Out={[[a:+, b:-]], [[a:#, b:-]]}>")
OFFERED = {"C": [EITHER, LINEAR, VALUED], "A": [LINEAR, VALUED], "B": [LINEAR]}
CHAIN = [Link("C", "A"), Link("A", "B")]


def test_the_full_reduction_of_figure_5_4_is_figure_5_5():
    assert reduced(OFFERED, CHAIN) == {"C": [LINEAR], "A": [LINEAR], "B": [LINEAR]}


def test_the_consistent_accordance_of_figure_5_6_is_found():
    found = accordance(OFFERED, CHAIN)
    assert found is not None
    assert found.chosen == {"C": LINEAR, "A": LINEAR, "B": LINEAR}


def test_of_the_two_accordances_of_section_5_5_the_first_is_consistent():
    assert consistent({"A": LINEAR, "B": LINEAR}, [Link("A", "B")])
    assert not consistent({"A": VALUED, "B": LINEAR}, [Link("A", "B")])


def test_there_is_no_accordance_where_no_two_ends_say_the_same():
    assert accordance({"A": [VALUED], "B": [LINEAR]}, [Link("A", "B")]) is None
    assert reduced({"A": [VALUED], "B": [LINEAR]}, [Link("A", "B")]) == {"A": [], "B": []}


S, OTHER = "{[[a:+]]}", "{[[a:#]]}"
TABLE_5_1 = [
    ("none", "none", True),
    ("none", "any", False),
    ("none", S, False),
    ("any", "none", True),
    ("any", "any", True),
    ("any", S, True),
    (S, "none", True),
    (S, "any", False),
    (S, S, True),
    (S, OTHER, False),
]


@pytest.mark.parametrize(("antecedent", "subsequent", "result"), TABLE_5_1)
def test_the_match_operator_is_that_of_table_5_1(antecedent, subsequent, result):
    assert match(Scheme.parse(antecedent), Scheme.parse(subsequent)) is result


T = "{[time:+, id:-, speed:-]}"
FIGURE_5_9 = {
    "DUPLICATE": f"<In={T}, Out1={T}, Out2={T}, Feedback.In1=any, Feedback.In2=any, Feedback.Out=none>",
    "SELECT1": f"<In={T}, Out={T}, Feedback.In=any, Feedback.Out=none>",
    "SELECT2": f"<In={T}, Out={T}, Feedback.In=any, Feedback.Out=none>",
    "IMPUTE": f"<In={T}, Out={T}, Feedback.In={T}, Feedback.Out=none>",
    "PACE": f"<In1={T}, In2={T}, Out={T}, Feedback.In=none, Feedback.Out={T}>",
}
FIGURE_5_8 = [
    Link("DUPLICATE", "SELECT1", out=0),
    Link("DUPLICATE", "SELECT2", out=1),
    Link("SELECT2", "IMPUTE"),
    Link("SELECT1", "PACE", port=0),
    Link("IMPUTE", "PACE", port=1),
]


def test_the_pace_and_impute_plan_has_a_consistent_accordance_with_all_its_feedback():
    offered = {name: [Contract.parse(text)] for name, text in FIGURE_5_9.items()}
    found = accordance(offered, FIGURE_5_8, feedback="required")
    assert found is not None and found.stopped == ()
    assert all(contract.well_formed for contract in found.chosen.values())


def test_feedback_that_impute_does_not_take_stops_there_and_the_plan_is_safe_all_the_same():
    texts = FIGURE_5_9 | {"IMPUTE": f"<In={T}, Out={T}, Feedback.In=none, Feedback.Out=none>"}
    offered = {name: [Contract.parse(text)] for name, text in texts.items()}
    assert accordance(offered, FIGURE_5_8, feedback="required") is None
    found = accordance(offered, FIGURE_5_8)
    assert found is not None and found.stopped == (Link("IMPUTE", "PACE", port=1),)


def test_accept_any_lets_no_feedback_pass_whose_guard_nothing_would_remove():
    sends = "<In={[[a:+, b:-]]}, Out={[[a:+, b:-]]}, Feedback.In=none, Feedback.Out={[[a:-, b:#]]}>"
    takes = "<In={[[a:+, b:-]]}, Out={[[a:+, b:-]]}, Feedback.In=any, Feedback.Out=none>"
    found = accordance({"A": [Contract.parse(takes)], "B": [Contract.parse(sends)]}, [Link("A", "B")])
    assert found is not None and found.stopped == (Link("A", "B"),)


def test_an_accordance_with_feedback_is_taken_before_one_without():
    deaf = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}>")
    hears = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}, Feedback.In={[[a:+]]}, Feedback.Out=none>")
    sends = Contract.parse("<In={[[a:+]]}, Out={[[a:+]]}, Feedback.In=none, Feedback.Out={[[a:+]]}>")
    found = accordance({"A": [deaf, hears], "B": [sends]}, [Link("A", "B")])
    assert found is not None and found["A"] == hears and found.stopped == ()


def scheme(mark: str) -> Scheme:
    return Scheme.of(Template.over(["a"], a=mark))


def steps(*pairs: str) -> list[Contract]:
    """Contracts from `+#` (in, out) texts."""
    return [Contract((scheme(p[0]),), (scheme(p[1]),)) for p in pairs]


def diamond(wanted: tuple[str, str]) -> tuple[dict[str, list[Contract]], list[Link]]:
    """A splits to B and C, which meet in D: B keeps the mark, C turns it, D wants these two."""
    meets = Contract((scheme(wanted[0]), scheme(wanted[1])), (scheme("+"),))
    swapped = Contract((scheme(wanted[1]), scheme(wanted[0])), (scheme("+"),))
    offered = {"A": steps("++", "##"), "B": steps("++", "##"), "C": steps("+#", "#+"), "D": [meets, swapped]}
    return offered, [Link("A", "B"), Link("A", "C"), Link("B", "D"), Link("C", "D", port=1)]


def test_where_paths_meet_again_the_search_finds_what_fits_along_both():
    found = accordance(*diamond(("+", "#")))
    assert found is not None and consistent(found.chosen, diamond(("+", "#"))[1])


def test_on_a_dag_semi_joins_leave_offerings_although_no_accordance_exists():
    offered, links = diamond(("+", "+"))
    offered["D"] = [Contract((scheme(m), scheme(m)), (scheme("+"),)) for m in "+#"]
    arcs = [(link, [a.outs[link.out] for a in offered[link.source]]) for link in links]
    assert all({c.ins[link.port] for c in offered[link.target]} <= set(outs) for link, outs in arcs)
    assert accordance(offered, links) is None
    with pytest.raises(ContractError, match="no tree"):
        reduced(offered, links)


def test_a_loop_has_an_accordance_only_if_what_returns_is_what_left():
    keeps, turns = steps("++", "##"), steps("+#", "#+")
    around = [Link("A", "B"), Link("B", "A")]
    assert accordance({"A": keeps, "B": keeps}, around) is not None
    assert accordance({"A": keeps, "B": turns}, around) is None
    assert accordance({"A": turns, "B": turns}, around) is not None
    assert accordance({"A": turns}, [Link("A", "A")]) is None
    assert accordance({"A": keeps}, [Link("A", "A")]) is not None


def every(offered: dict[str, list[Contract]], links: list[Link]) -> bool:
    """Whether any choice at all is consistent, tried one by one."""
    names = list(offered)
    return any(consistent(dict(zip(names, pick, strict=True)), links) for pick in product(*offered.values()))


@pytest.mark.parametrize("seed", range(40))
def test_on_random_graphs_the_answer_is_that_of_trying_every_choice(seed):
    random = Random(seed)
    names = "ABCDE"
    marks = [scheme("+"), scheme("#"), Scheme.of(*scheme("+"), *scheme("#"))]
    links = []
    for i, target in enumerate(names):
        for port in range(2 if i > 1 else i):
            links.append(Link(random.choice(names[: i or 1]), target, port=port))
    if seed % 4 == 0:
        links.append(Link("E", "A"))
    offered = {
        name: [
            Contract((random.choice(marks), random.choice(marks)), (random.choice(marks),))
            for _ in range(random.randint(1, 4))
        ]
        for name in names
    }
    found = accordance(offered, links)
    assert (found is not None) == every(offered, links)
    assert found is None or consistent(found.chosen, links)


@pytest.mark.parametrize("seed", range(20))
def test_on_random_trees_the_full_reduction_keeps_exactly_what_some_accordance_uses(seed):
    random = Random(seed)
    names = "ABCDE"
    marks = [scheme("+"), scheme("#")]
    links, ports = [], Counter()
    for i, name in enumerate(names[1:], 1):
        other = random.choice(names[:i])
        a, b = (name, other) if random.random() < 0.5 else (other, name)
        links.append(Link(a, b, port=ports[b]))
        ports[b] += 1
    offered = {
        name: [
            Contract(tuple(random.choice(marks) for _ in range(4)), (random.choice(marks),))
            for _ in range(random.randint(1, 3))
        ]
        for name in names
    }
    picks = [dict(zip(offered, pick, strict=True)) for pick in product(*offered.values())]
    used = [pick for pick in picks if consistent(pick, links)]
    wanted = {name: [c for c in offered[name] if any(p[name] is c for p in used)] for name in names}
    assert reduced(offered, links) == wanted


def two_hundred(seed: int) -> tuple[dict[str, list[Contract]], list[Link]]:
    """Operators with ten contracts each, whose two inputs come from those just before them."""
    random = Random(seed)
    marks = [
        Scheme.of(Template.over(["a", "b"], **dict(zip("ab", pair, strict=True))))
        for pair in product("+#-", repeat=2)
    ]
    offered, links = {}, []
    for i in range(200):
        some = [Contract((m, m), (m,)) for m in random.sample(marks, 8)]
        some.append(Contract((marks[0], marks[0]), (marks[0],)))
        some.append(Contract((random.choice(marks), random.choice(marks)), (random.choice(marks),)))
        offered[f"op{i}"] = some
        links += [Link(f"op{random.randrange(max(0, i - 5), i)}", f"op{i}", port=p) for p in (0, 1) if i]
    return offered, links


@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_operators_with_ten_offerings_each_are_settled_by_few_semi_joins(seed, monkeypatch):
    offered, links = two_hundred(seed)
    made = Counter()

    def counted(*args, **options):
        made["semi-joins"] += 1
        return semijoin(*args, **options)

    monkeypatch.setattr(solving, "_semijoin", counted)
    found = accordance(offered, links)
    assert found is not None and consistent(found.chosen, links)
    assert made["semi-joins"] < 20 * len(links)


def test_an_edge_to_an_operator_that_offers_nothing_is_refused():
    with pytest.raises(ContractError, match="'Z', which offers nothing"):
        accordance({"A": [LINEAR]}, [Link("A", "Z")])
    with pytest.raises(ContractError, match="input 2 of 'A'"):
        accordance({"A": [LINEAR]}, [Link("A", "A", port=1)])
