"""`check` on plans as users write them: verdicts, reasons, remedies that were checked, bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import col, qre
from caesura.contracts import ContractError, Scheme, UnboundedWarning, adequate, check, require_safe
from caesura.contracts.analysis import Analysis, Assumptions
from caesura.contracts.orders import orders
from caesura.errors import PlanError
from caesura.events import Page
from caesura.io import Source
from caesura.ops.aggregate import Aggregate, Totals
from caesura.ops.deliver import Deliver
from caesura.ops.impute import Impute
from caesura.ops.input import Input
from caesura.ops.instrument import Instrument
from caesura.ops.join import Join
from caesura.ops.layers import Layers
from caesura.ops.windows.bucket import Bucket
from caesura.plan import Node, Properties
from caesura.testing import assert_history, run

GOLDEN = Path(__file__).parent / "golden_verdicts.txt"


def readings(**more):
    """Points with an id and a value, five ticks of disorder."""
    rows = [{"ts": 1, "id": 7, "v": 1.0}]
    return cz.from_rows(rows, time="ts", punctuate=more.pop("punctuate", cz.delay(5)), **more)


def spans(**more):
    """Intervals with an id and a weight."""
    rows = [{"ts": 1, "te": 5, "id": 7, "w": 2.0}]
    return cz.from_rows(rows, time="ts", end="te", punctuate=cz.delay(5), **more)


def fed(label: str, *names: str, known: Properties | None = None) -> Input:
    schema = pa.schema([(name, pa.int64()) for name in names])
    return Input(label=label, payload=schema, known=known or Properties(), place="flow.py:1")


def placed(node: Node, line: int) -> Node:
    return replace(node, place=f"flow.py:{line}")


def natural(left: Node, right: Node, line: int = 9) -> Join:
    keys = [name for name in left.schema.names if name in right.schema.names]
    return Join(inputs=(left, right), on=tuple((k, k) for k in keys), place=f"flow.py:{line}")


def test_what_lives_forever_is_never_let_go_by_time_alone():
    assert check(readings().join(spans(), on="id").node).safe
    assert not check(readings().join(spans().forever(), on="id").node).safe
    assert not check(readings().join(spans().set_duration(cz.INFINITY), on="id").node).safe


def test_a_windowed_count_over_a_source_with_a_delay_is_safe_and_shows_its_contracts():
    verdict = check(readings().where(col("v") > 0).group_by("id").tumbling(10).agg(n=cz.count()).node)
    assert verdict.safe and bool(verdict)
    told = "Feedback.In=any, Feedback.Out=none"
    assert str(verdict.contracts["r2"]) == (
        f"<In={{[[time:+, id:-, v:-]]}}, Out={{[[time:+, id:-, n:-]]}}, {told}>"
    )
    assert "promises progress on 'time'; keeps open windows" in str(verdict)


def verdicts() -> dict[str, str]:
    """Every kind of diagnostic, by what it is about."""
    endless, points = fed("s", "id", "w"), fed("r", "id", "v", known=Properties(points=True, max_duration=1))
    groups = placed(readings().group_by("id").totals(n=cz.count()).node, 3)
    join = Join(inputs=(points, endless), on=(("id", "id"),), place="flow.py:4")
    hidden = {"r": "{[[v:#]]}", "s": "{[[w:#]]}"}
    return {
        "groups over all time": str(check(groups)),
        "final output of such groups": str(check(Deliver(inputs=(groups,), mode="final", place="flow.py:5"))),
        "a join that holds what never ends": str(check(join)),
        "a join whose key nobody punctuates": str(check(join, schemes=hidden)),
        "a source that says nothing for sure": str(
            check(placed(Layers(inputs=(undeclared(),), count="distinct"), 2))
        ),
        "keys of a query": str(check(placed(per_key(), 3))),
        "a fold of a query": str(check(placed(qre.over(readings(), qre.iter1(V, qre.median())), 3))),
        "rows that wait to be filled": str(check(placed(waiting(), 3))),
        "guards that never go": str(check(guarded(), schemes={"read": "{[[v:#]]}"})),
        "join order": str(check(*wrong_order(), schemes=ORDERED)),
        "safe": str(check(Layers(inputs=(points,), count="distinct", place="flow.py:6"))),
    }


V = qre.atom(op=col("v"))


def per_key() -> Node:
    return qre.over(readings(), qre.partition(qre.split(V, V, op=col("_0") + col("_1")), by="id"))


def waiting() -> Node:
    missing = col("v").is_null()
    return Impute(inputs=(placed(readings().node, 1),), value="v", by=list, missing=missing, budget=2)


def guarded() -> Node:
    """After every second row its id is said to be of no more interest."""
    schema = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("v", pa.int64()), ("punct", pa.string())])
    source = cz.from_arrow(pa.Table.from_pylist([], schema), time="ts", punctuate=cz.in_data("punct"))
    return Instrument(inputs=(placed(source.node, 1),), every=2, columns=("id",), place="flow.py:2")


def undeclared() -> Node:
    rows = [{"ts": 1, "id": 7, "punct": None}]
    schema = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("punct", pa.string())])
    table = pa.Table.from_pylist(rows, schema)
    return placed(cz.from_arrow(table, time="ts", punctuate=cz.in_data("punct")).node, 7)


def wrong_order() -> tuple[Node]:
    """r ⋈ (s ⋈ t): chapter 8's example as it should be, with b a key of all three."""
    r, s, t = fed("r", "a", "b"), fed("s", "b", "c", "d"), fed("t", "b", "c")
    return (natural(r, natural(s, t, 8), 9),)


ORDERED = {"r": "{[[b:+]]}", "s": "{[[b:+]]}", "t": "{[[c:+]]}"}


def test_every_diagnostic_reads_as_it_is_kept():
    got = "\n\n".join(f"== {name} ==\n{text}" for name, text in verdicts().items()) + "\n"
    assert got == GOLDEN.read_text()


def test_a_remedy_on_punctuation_makes_the_plan_safe_when_it_is_followed():
    plan = readings().group_by("id").totals(n=cz.count()).node
    (answer,) = adequate(plan)
    assert {name: str(s) for name, s in answer.items()} == {"read": "{[[time:-, id:#, v:-]]}"}
    source = undeclared()
    again = cz.Stream(source).group_by("id").totals(n=cz.count()).node
    assert check(again, schemes={"read": "{[[id:#]]}"}).safe


def test_a_column_with_punctuation_is_proposed_to_group_by():
    totals = cz.Stream(fed("r", "id", "day")).group_by("id").totals(n=cz.count()).node
    verdict = check(totals, schemes={"r": "{[[day:#]]}"})
    assert any(str(r).startswith("group by 'day' too in 'totals'") for r in verdict.remedies)
    both = cz.Stream(fed("r", "id", "day")).group_by("id", "day").totals(n=cz.count()).node
    assert check(both, schemes={"r": "{[[day:#]]}"}).safe


def test_the_least_punctuation_for_a_join_is_found_side_by_side():
    plan = natural(fed("r", "a", "b"), fed("s", "b", "c"))
    nothing = {"r": "none", "s": "none"}
    answers = adequate(plan, schemes=nothing, lifetimes={"r": 5, "s": 5})
    shown = [{n: str(s.least()) for n, s in answer.items()} for answer in answers]
    assert {"r": "{[[time:+, a:-, b:-]]}", "s": "{[[time:+, b:-, c:-]]}"} in shown
    assert {"r": "{[[time:-, a:-, b:#]]}", "s": "{[[time:-, b:#, c:-]]}"} in shown
    assert all(len(answer) == 2 for answer in answers)
    assert adequate(plan, lifetimes={"r": 5, "s": 5}) == [{}]


def test_the_physical_join_accepts_ct15_and_refuses_ct12_as_the_thesis_does():
    plan = natural(fed("l", "a", "b", "c"), fed("r", "b", "c", "d"))
    accepted = check(plan, schemes={"l": "{[[b:+]]}", "r": "{[[c:+]]}"})
    assert accepted.safe and str(accepted.output) == "{[[time:-, a:-, b:+, c:+, d:-]]}"
    refused = check(plan, schemes={"l": "{[[a:#]]}", "r": "{[[d:#]]}"})
    assert [finding.unmet.hold.what for finding in refused.findings] == ["left rows", "right rows"]


def test_a_bucket_turns_progress_on_its_attribute_into_progress_on_the_window_number_as_ct16_does():
    plan = Bucket(inputs=(fed("s", "a", "b"),), attr="b", size=10, slide=10)
    verdict = check(plan, schemes={"s": "{[[b:+]]}"})
    assert verdict.safe and Scheme.parse("{[[wid:+]]}", ["time", "a", "b", "wid"]).templates <= set(
        verdict.output
    )


def test_a_bucket_of_starts_turns_progress_of_time_into_progress_on_the_window_number():
    fixed = Input(label="s", payload=pa.schema([("a", pa.int64())]), known=Properties(points=True))
    plan = Totals(
        inputs=(Bucket(inputs=(fixed,), attr="LE", size=10, slide=10),),
        group=("wid",),
        aggregates=(("n", Aggregate("count")),),
    )
    assert check(plan).safe
    loose = replace(fixed, known=Properties())
    assert not check(replace(plan, inputs=(replace(plan.inputs[0], inputs=(loose,)),))).safe


def test_adequate_punctuation_may_speak_of_several_columns_at_once():
    plan = natural(fed("l", "a", "b", "c"), fed("r", "b", "c", "d"))
    (answer,) = adequate(plan)
    assert {name: str(scheme) for name, scheme in answer.items()} == {
        "l": "{[[time:-, a:-, b:#, c:#]]}",
        "r": "{[[time:-, b:#, c:#, d:-]]}",
    }
    assert check(plan, schemes={name: str(scheme) for name, scheme in answer.items()}).safe


def test_another_join_order_is_offered_only_after_it_was_checked():
    (plan,) = wrong_order()
    verdict = check(plan, schemes=ORDERED)
    assert not verdict.safe
    assert "join in another order: ((r ⋈ s) ⋈ t)" in map(str, verdict.remedies)
    right = natural(natural(plan.inputs[0], plan.inputs[1].inputs[0]), plan.inputs[1].inputs[1])
    assert check(right, schemes=ORDERED).safe


def test_chapter_8_s_own_streams_are_unsafe_in_either_order():
    r, s, t = fed("r", "a", "b"), fed("s", "b", "c", "d"), fed("t", "c", "d")
    given = {"r": "{[[b:+]]}", "s": "{[[b:+]]}", "t": "{[[c:+]]}"}
    first, second = natural(natural(r, s), t), natural(r, natural(s, t))
    assert not check(first, schemes=given).safe and not check(second, schemes=given).safe
    tried = [Analysis(plan).run(Assumptions(given)) for plan, _ in orders(first)]
    assert tried and all(any(step.derived.unmet for step in steps) for steps in tried)


def test_events_that_never_end_are_freed_by_their_key_or_by_an_end():
    endless = cz.Stream(fed("spans", "id", "w"))
    plan = readings().join(endless, on="id").node
    assert not check(plan).safe
    assert check(plan, lifetimes={"spans": 60}).safe
    assert check(readings().join(endless.set_duration(9), on="id").node).safe
    assert check(plan, lifetimes={"spans": "finite"}).safe


def test_events_that_carry_their_own_end_are_freed_by_it_and_that_is_noted():
    verdict = check(readings().join(spans(), on="id").node)
    assert verdict.safe
    assert "Events of 'read-2' end where their column 'te' says" in str(verdict)
    assert check(spans().group_by("id").snapshot().agg(n=cz.count()).node).safe


def test_a_file_that_is_read_to_its_end_is_a_side_table(tmp_path):
    pq.write_table(pa.table({"t": [0], "e": pa.array([None], pa.int64()), "id": [7]}), tmp_path / "a.parquet")
    side = cz.read.parquet(tmp_path / "a.parquet", time="t", end="e")
    folder = cz.read.parquet(tmp_path, time="t", end="e")
    assert check(readings().join(side, on="id").node).safe
    assert not check(readings().join(folder, on="id").node).safe  # files may be added to it


def test_a_filter_on_a_value_is_closed_by_punctuation_on_that_value():
    rows = [{"ts": 1, "id": 7, "p": None}]
    told = cz.from_rows(rows, time="ts", punctuate=cz.in_data("p", gives="{[[id:#]]}"))
    assert not check(told.totals(n=cz.count()).node).safe
    assert check(told.where(col("id") == 7).totals(n=cz.count()).node).safe
    assert check(told.where(col("id").isin([7, 8])).totals(n=cz.count()).node).safe
    assert check(told.where((col("id") > 3) & (col("id") < 7)).totals(n=cz.count()).node).safe
    assert not check(told.where(col("id") < 7).totals(n=cz.count()).node).safe


def test_a_session_without_a_longest_length_may_go_on_for_ever():
    busy = readings().group_by("id").session(3)
    verdict = check(busy.agg(n=cz.count()).node)
    assert "a session goes on for as long as events come within its gap" in verdict.growth
    assert any("longest=" in str(remedy) for remedy in verdict.remedies)
    assert check(readings().group_by("id").session(3, longest=9).agg(n=cz.count()).node).safe


def test_final_rows_of_a_value_that_is_always_alive_never_come():
    distinct = readings().select("id").distinct().node
    verdict = check(Deliver(inputs=(distinct,), mode="final"))
    assert "a row goes on for as long as events with its values follow each other" in verdict.growth
    assert any("chop(...)" in str(remedy) for remedy in verdict.remedies)
    assert check(distinct).safe


def test_a_bound_that_nothing_moves_strikes_nothing():
    filled = readings().impute("v", lambda batch: [1.0] * batch.num_rows, budget=1)
    assert not check(filled.pace(within=5).node).safe
    assert check(readings().where(col("v") < 0).pace(filled, within=5).node).safe


def test_a_stream_clipped_by_itself_holds_one_row_per_key():
    edges = cz.Stream(fed("spans", "id", "w"))
    plan = readings().join(edges.clip(edges, on="id"), on="id").node
    assert not check(plan).safe
    assert check(plan, bounded_columns={"spans": ["id"]}).safe


def test_the_latest_rows_are_as_many_as_there_are_keys():
    prices = cz.from_rows([{"ts": 1, "id": 7, "w": 2}], time="ts", punctuate=cz.delay(5), name="prices")
    for plan in (prices.latest("id").node, readings().join(prices.latest("id"), on="id").node):
        assert not check(plan).safe
        assert check(plan, bounded_columns={"prices": ["id"]}).safe


def test_a_table_frees_what_waits_for_it_when_it_has_been_read():
    table = cz.from_rows([{"ts": 0, "id": 7, "w": 1.0}], time="ts")
    verdict = check(readings().join(table, on="id").node)
    assert verdict.safe and "'read-2' is a table" in str(verdict)


def test_rows_of_a_table_that_never_end_stay_but_do_not_grow():
    table = cz.from_rows([{"ts": 0, "te": None, "id": 7, "w": 1.0}], time="ts", end="te")
    assert check(readings().join(table, on="id").node).safe


def test_a_source_of_edges_says_what_it_keeps_itself():
    rows = [{"ts": 1, "te": None, "kind": "start", "id": 7}]
    schema = pa.schema([("ts", pa.int64()), ("te", pa.int64()), ("kind", pa.string()), ("id", pa.int64())])
    table = pa.Table.from_pylist(rows, schema)
    edges = cz.from_arrow(table, time="ts", end="te", kind="kind", punctuate=cz.delay(5)).node
    verdict = check(edges)
    assert "events that may be retracted are never freed, because events may never end" in verdict.growth
    assert [str(r) for r in verdict.remedies][
        -1
    ] == "say that their events end, with lifetimes={'read': 'finite'}"
    assert check(edges, lifetimes={"read": "finite"}).safe


MESSAGES = pa.schema([("source", pa.int64()), ("target", pa.int64())])


def message_ratio() -> Node:
    """Section 5.1: messages per minute and pair, of one processing unit joined with the other's."""
    sent, got = (
        cz.input_stream(label, MESSAGES, points=True)
        .group_by("source", "target")
        .tumbling(60)
        .agg(**{count: cz.count()})
        for label, count in (("msg1", "n"), ("msg2", "m"))
    )
    return sent.join(got, on={"source": "target", "target": "source"}).node


@pytest.mark.parametrize(
    ("first", "second", "leaves"),
    [
        ("{[[time:+]]}", "{[[time:+]]}", "{[[time:+, source:-, target:-, n:-, m:-]]}"),
        ("{[[source:#]]}", "{[[target:#]]}", "{[[time:-, source:#, target:-, n:-, m:-]]}"),
        ("{[[source:#]]}", "{[[time:+]]}", "{[[time:+, source:#, target:-, n:-, m:-]]}"),
    ],
)
def test_section_5_1_s_query_is_safe_under_either_notion_of_progress(first, second, leaves):
    verdict = check(message_ratio(), schemes={"msg1": first, "msg2": second})
    assert verdict.safe and str(verdict.output) == leaves


def test_section_5_1_s_query_closes_a_process_when_both_sides_have_closed_it():
    out = run(
        message_ratio(),
        {
            "msg1": " LE RE | source target |\n 35970 35971 | 1 2 | +\n 35985 35986 | 1 3 | +\n"
            "-- definite: source = 1 --",
            "msg2": " LE RE | source target |\n 35980 35981 | 2 1 | +\n-- definite: target = 1 --",
        },
    )
    assert_history(out, " LE RE | source target n m |\n 35940 36000 | 1 2 1 1 | +")
    assert [str(item.pattern) for item in out if not isinstance(item, Page)] == ["source = 1"]


def test_a_shared_sub_plan_is_read_once_and_exactly():
    base = readings()
    plan = base.union(base.where(col("id") > 0)).group_by("id").tumbling(5).agg(n=cz.count()).node
    verdict = check(plan)
    assert verdict.safe and len(verdict.steps) == 4


def loop(progress: str = "hybrid") -> Node:
    """What is reached from some nodes over links."""
    links = cz.input_stream("links", pa.schema([("a", pa.int64()), ("b", pa.int64())]), points=True)
    nodes = cz.input_stream("nodes", pa.schema([("n", pa.int64())]), points=True)

    def hop(r):
        return r.join(links, on={"n": "a"}).select(n=col("b"))

    return cz.fixpoint(nodes, hop, keep="distinct", progress=progress).node


def test_what_goes_around_a_loop_promises_what_its_seed_and_every_round_keep():
    assert check(loop()).safe
    verdict = check(loop(), schemes={"nodes": "{[[n:#]]}", "links": "{[[time:+]]}"})
    steps = {finding.step.node.kind for finding in verdict.findings}
    assert "join" in steps and all("'recursive'" not in str(r) for r in verdict.remedies)
    assert "let 'nodes' also give punctuation on time" in map(str, verdict.remedies)


def test_the_columns_that_a_loop_hides_are_not_shown():
    assert "\x00" not in str(check(loop())) and "\x00" not in check(loop())._repr_html_()


def test_a_loop_that_knows_its_time_by_its_latest_row_only_is_not_called_safe():
    verdict = check(loop("high_water"))
    assert "a loop knows its time only up to the latest row in it" in verdict.growth
    assert any(str(r).startswith("take progress='hybrid' in 'fixpoint'") for r in verdict.remedies)


def test_a_query_per_key_is_freed_by_its_keys_or_if_they_are_few():
    plan = per_key()
    verdict = check(plan)
    assert "keys in the middle of their pattern are never freed" in verdict.growth
    assert [str(r) for r in verdict.remedies] == [
        "let 'read' also give punctuation on 'id', with punctuate=in_data(..., gives='id')",
        "if 'id' has few different values, say so with bounded_columns={'read': ['id']}",
    ]
    assert check(plan, bounded_columns={"read": ["id"]}).safe
    assert check(qre.over(readings(), qre.iter1(V, qre.sum()))).safe


def test_start_refuses_an_unsafe_plan_unless_it_is_told_to_let_it_grow():
    plan = readings().group_by("id").totals(n=cz.count()).node
    with pytest.raises(PlanError, match="the plan is unsafe") as caught:
        require_safe(plan)
    assert "allow_unbounded=True" in caught.value.remedy
    with pytest.warns(UnboundedWarning, match="open groups are held for ever"):
        grows = require_safe(plan, allow_unbounded=True)
    assert "open groups are held for ever" in grows.growth


def test_start_takes_what_the_plan_cannot_know():
    more = cz.Stream(fed("more", "id", "w")).select("id", u=col("w"))
    plan = cz.Stream(fed("spans", "id", "w")).join(more, on="id").node
    with pytest.raises(PlanError, match="the plan is unsafe"):
        require_safe(plan)
    assert require_safe(plan, lifetimes={"spans": 10, "more": 10}).safe


def test_a_step_that_does_not_say_what_it_keeps_is_not_called_safe():
    class Silent(Layers):
        def holds(self):
            return None

    verdict = check(Silent(inputs=(fed("r", "id"),), count="distinct"))
    assert not verdict.safe and "does not say what it keeps" in str(verdict)


def test_a_verdict_is_rendered_with_a_badge_on_each_edge():
    html = check(readings().group_by("id").totals(n=cz.count()).node)._repr_html_()
    assert html.count("[[time:+, id:-, v:-]]") == 1 and "unsafe" in html and "What grows" in html
    safe = check(readings().join(spans().set_duration(3), on="id").node)._repr_html_()
    assert ">safe<" in safe and safe.count("[[time:+, id:-, w:-]]") == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schemes": {"s": "{[[idd:#]]}"}}, "marks 'idd', which is not there"),
        ({"schemes": {"nobody": "{[[id:#]]}"}}, "no source 'nobody'"),
        ({"schemes": {"s": "any"}}, "promises nothing"),
        ({"schemes": {"s": "{[[ok:+]]}"}}, "cannot move on without end"),
        ({"schemes": {"s": "{[[at:#]]}"}}, "no punctuation speaks of columns of type struct"),
        ({"lifetimes": {"s": 0}}, "cannot live at most 0"),
        ({"bounded_columns": {"s": ["idd"]}}, "has no column 'idd'"),
    ],
)
def test_what_makes_no_sense_about_a_source_is_refused_with_a_remedy(given, said):
    place = pa.struct([("x", pa.int64())])
    schema = pa.schema([("id", pa.int64()), ("ok", pa.bool_()), ("at", place)])
    plan = Layers(inputs=(Input(label="s", payload=schema),), count="distinct")
    with pytest.raises(ContractError, match=said) as caught:
        check(plan, **given)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("stream", "scheme", "said"),
    [
        (readings(), "{[[id:#]]}", "its policy gives time only"),
        (readings(), "none", "gives time, but its scheme"),
        (readings(punctuate=cz.at_end()), "{[[time:+]]}", "gives no time, but its scheme"),
    ],
)
def test_a_scheme_that_contradicts_a_source_s_policy_is_refused(stream, scheme, said):
    assert isinstance(stream.node, Source)
    with pytest.raises(ContractError, match=said):
        check(stream.node, schemes={"read": scheme})


def test_a_source_s_policy_declares_its_scheme_by_itself():
    steps = check(readings().node).steps
    assert steps[0].scheme == Scheme.parse("{[[time:+, id:-, v:-]]}") and steps[0].origin == "declared"


def test_a_plan_with_a_table_look_up_and_a_finding_says_what_grows():
    names = cz.table([{"id": 7, "name": "a"}])
    verdict = readings().join(names, on="id").group_by("name").totals(n=cz.count()).check()
    assert not verdict.safe and "open groups are held for ever" in str(verdict)
