"""A checkpoint goes on with a plan that changes nothing it holds, and refuses one that does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from bucket_plans import sources
from cluster import Cluster

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError
from caesura.events import History
from caesura.events.identity import Secret
from caesura.io.places import Place
from caesura.plan import Node, Raw
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.spark.host.carry import carried_names
from caesura.spark.host.checkpoint import changed, plan_change, plan_now, save_plan
from caesura.spark.worker.carried import CarriedState

Outputs = dict[str, Node]


def counted(size: int = 10) -> Stream:
    a, _ = sources()
    return Stream(a).group_by("id").tumbling(size).agg(n=cz.count())


def kept(folder: Path, buckets: int = 2, **outputs: Stream) -> None:
    save_plan(Place.of(folder), cut(prune({name: stream.node for name, stream in outputs.items()})), buckets)


def test_the_same_plan_and_more_outputs_without_state_go_on(tmp_path: Path) -> None:
    kept(tmp_path, out=counted())
    kept(tmp_path, out=counted())
    kept(tmp_path, first=counted().where(col("n") > 2).select("n"), out=counted())
    kept(tmp_path, first=counted().where(col("n") > 2).select("n"))


def test_a_changed_step_is_named_next_to_what_it_was(tmp_path: Path) -> None:
    kept(tmp_path, out=counted())
    with pytest.raises(StreamError, match="belongs to another plan") as refused:
        kept(tmp_path, out=counted(20))
    assert "tumbling: rebuilt, '10' became '20'" in refused.value.remedy


def test_what_becomes_of_each_step_is_told_without_the_same_text_twice(tmp_path: Path) -> None:
    def change(stream: Stream) -> list[str]:
        return list(map(str, plan_change(Place.of(tmp_path), {"out": stream.node}).steps))

    kept(tmp_path, out=counted())
    assert all(text.endswith(": kept") for text in change(counted()))
    assert change(counted(20)) == ["a: kept", "tumbling: rebuilt, '10' became '20'"]


def test_a_filter_that_changed_in_front_of_a_step_is_told_as_that(tmp_path: Path) -> None:
    def filtered(least: int) -> Stream:
        a, _ = sources()
        return Stream(a).where(col("id") > least).group_by("id").tumbling(10).agg(n=cz.count())

    kept(tmp_path, out=filtered(0))
    change = plan_change(Place.of(tmp_path), {"out": filtered(1).node})
    assert "tumbling: carried over, on other steps than before" in map(str, change.steps)
    with pytest.raises(StreamError, match="belongs to another plan"):
        kept(tmp_path, out=filtered(1))


def test_a_new_step_with_state_is_refused(tmp_path: Path) -> None:
    kept(tmp_path, out=counted())
    with pytest.raises(StreamError, match="belongs to another plan"):
        kept(tmp_path, out=counted().distinct())


def test_another_stage_is_refused(tmp_path: Path) -> None:
    kept(tmp_path, out=counted())
    with pytest.raises(StreamError, match="belongs to another plan") as refused:
        kept(tmp_path, out=counted().group_by("n").tumbling(10).agg(m=cz.count()))
    assert "tumbling-2: rebuilt, 'nothing' became 'tumbling by n" in refused.value.remedy


def test_another_source_is_refused(tmp_path: Path) -> None:
    kept(tmp_path, out=counted())
    _, b = sources()
    with pytest.raises(StreamError, match="belongs to another plan"):
        kept(tmp_path, out=counted(), more=Stream(b).where(col("id") > 1))


def test_other_buckets_are_refused(tmp_path: Path) -> None:
    kept(tmp_path, out=counted())
    with pytest.raises(StreamError, match="made with 2 buckets; this session has 3"):
        kept(tmp_path, 3, out=counted())


def test_sources_stay_in_the_order_in_which_the_checkpoint_counts_them(tmp_path: Path) -> None:
    a, b = sources()
    one, two = Stream(a).group_by("id").totals(n=cz.count()), Stream(b).group_by("id").totals(n=cz.count())
    first = cut(prune({"one": one.node, "two": two.node}))
    second = cut(prune({"two": two.node, "one": one.node}))
    save_plan(Place.of(tmp_path), first, 2)
    assert second.sources != first.sources
    assert save_plan(Place.of(tmp_path), second, 2).sources == first.sources


def test_state_goes_on_under_a_plan_with_an_output_more() -> None:
    a, _ = sources()
    raws = list(a.read({}))
    plan = Stream(a).group_by("id").tumbling(10).agg(n=cz.count())
    whole = Cluster({"out": plan.node}, 2)
    first = Cluster({"out": plan.node}, 2)
    second = Cluster({"big": plan.where(col("n") >= 1).node, "out": plan.node}, 2)
    for place, raw in enumerate(raws):
        whole.epoch([(a, raw)], closes=place == len(raws) - 1)
    for raw in raws[:2]:
        first.epoch([(a, raw)])
    second.restore({n: d for n, d in first.snapshot().items() if d is not None})
    for place, raw in enumerate(raws[2:], 2):
        second.epoch([(a, raw)], closes=place == len(raws) - 1)
    got = History.of([*first.items["out"], *second.items["out"]], plan.node.schema)
    assert got == History.of(whole.items["out"], plan.node.schema)


def filtered(source: Node, least: int) -> Outputs:
    stream = Stream(source).where(col("id") >= least).group_by("id").tumbling(10).agg(n=cz.count())
    return {"out": stream.group_by("n").tumbling(20).agg(most=cz.sum("id")).node}


def hidden(raw: Raw) -> Raw:
    """The same rows, of which those with id 1 pass no filter."""
    place = raw.batch.schema.get_field_index("id")
    ids = pa.array([0 if number == 1 else number for number in raw.batch.column(place).to_pylist()])
    return dataclasses.replace(raw, batch=raw.batch.set_column(place, raw.batch.schema.field(place), ids))


@pytest.mark.parametrize("byte", [b"a", b"{"], ids=["a secret", "a secret that begins as notes do"])
def test_state_is_carried_over_to_a_plan_with_another_filter(byte: bytes) -> None:
    a, _ = sources()
    raws = list(a.read({}))
    old, new = filtered(a, 1), filtered(a, 2)
    then, now = (plan_now(cut(prune(plan), 2), 2, 2, prune(plan)) for plan in (old, new))
    carried = CarriedState(((2, carried_names(then, now, changed(then, now))),))
    secret = Secret(byte + bytes(range(0x80, 0x80 + Secret.SIZE - 1)))
    first, second, mixed, alone = (Cluster(plan, 2, secret=secret) for plan in (old, new, old, new))
    for raw in raws[:3]:
        first.epoch([(a, raw)])
    chunks, moved = carried.over({name: data for name, data in first.snapshot().items() if data is not None})
    assert chunks is not None
    assert None in moved.values()
    assert carried.over(chunks) == (chunks, {})
    second.restore(chunks)
    for place, raw in enumerate(raws):
        closes = place == len(raws) - 1
        mixed.epoch([(a, raw if place < 3 else hidden(raw))], closes=closes)
        alone.epoch([(a, raw)], closes=closes)
        if place >= 3:
            second.epoch([(a, raw)], closes=closes)
    schema = old["out"].schema
    got = History.of([*first.items["out"], *second.items["out"]], schema)
    assert got == History.of(mixed.items["out"], schema)
    assert got != History.of(alone.items["out"], schema)


def test_state_in_other_stages_or_of_other_sources_is_not_carried_over() -> None:
    a, b = sources()
    one = Stream(a).group_by("id").tumbling(10).agg(n=cz.count())
    both = {"one": one.node, "two": Stream(b).group_by("id").tumbling(10).agg(n=cz.count()).node}
    plans = [{"one": one.node}, {"one": one.group_by("n").tumbling(20).agg(m=cz.count()).node}, both]
    then, stages, more = (plan_now(cut(prune(plan), 2), 2, 2, prune(plan)) for plan in plans)
    with pytest.raises(StreamError, match="the plan had 1 stages, and has 2"):
        carried_names(then, stages, changed(then, stages))
    with pytest.raises(StreamError, match="the plan reads other sources"):
        carried_names(more, then, changed(more, then))
