"""Group and apply: what a function makes of every group alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream, col
from caesura.errors import PlanError
from caesura.events import History

COMES = [
    (1, "a", 3),
    (2, "b", 4),
    (5, "a", 5),
    (7, "c", 1),
    (12, "a", 9),
    (13, "b", 4),
    (14, "b", 2),
    (3, "a", 3),
]


def read() -> Stream:
    rows = [{"t": t, "k": k, "v": v} for t, k, v in COMES]
    return cz.from_rows(rows, time="t", punctuate=cz.delay(12), batch_size=2).set_duration(4)


def best_and_all(group: Stream) -> Stream:
    windows = group.tumbling(10).agg(n=cz.count(), top=cz.max("v"))
    return group.join(windows, on={"v": "top"}).select("v", "n")


FUNCTIONS: dict[str, Callable[[Stream], Stream]] = {
    "windows": lambda g: g.tumbling(10).agg(n=cz.count(), s=cz.sum("v")),
    "snapshots": lambda g: g.where(col("v") > 1).snapshot().agg(n=cz.count()),
    "totals": lambda g: g.totals(s=cz.sum("v")).select(s=col("s") + 1),
    "grouped within": lambda g: g.group_by("v").tumbling(20).agg(n=cz.count()),
    "joined with itself": best_and_all,
    "distinct": lambda g: g.select("v").distinct(),
    "first rows": lambda g: g.tumbling(10).top(1, by="v"),
    "both": lambda g: g.select("v").union(g.shift(3).select(v=col("v") * 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_group_is_what_the_function_makes_of_it_alone(name: str) -> None:
    function = FUNCTIONS[name]
    got = read().group_by("k").apply(function)
    alone = []
    for key in ("a", "b", "c"):
        rows = function(read().where(col("k") == key)).run().table().to_pylist()
        alone += [{**row, "k": key} for row in rows]
    assert got.schema.names[0] == "k"
    found = got.run().table().to_pylist()
    assert sorted(map(repr, map(sorted, (r.items() for r in found)))) == sorted(
        map(repr, map(sorted, (r.items() for r in alone)))
    )
    cluster = Cluster({"out": got.node}, 3)
    cluster.run()
    assert History.of(cluster.items["out"], got.schema) == got.run().history


def test_groups_go_around_a_loop() -> None:
    rows = [
        {"t": 1, "k": k, "a": a, "b": b}
        for k in "xy"
        for a, b in ((1, 2), (2, 3), (3, 4))
        if (k, a) != ("y", 2)
    ]
    edges = cz.from_rows(rows, time="t").set_duration(9)

    def hop(reached: Stream) -> Stream:
        both = reached.join(edges.select("k", b=col("a"), c=col("b")), on=["k", "b"])
        return both.group_by("k").apply(lambda g: g.select("a", b=col("c"))).distinct()

    found = cz.fixpoint(edges, hop).run().table().to_pylist()
    pairs = {key: sorted((r["a"], r["b"]) for r in found if r["k"] == key) for key in "xy"}
    assert pairs == {"x": [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)], "y": [(1, 2), (3, 4)]}


def test_what_cannot_be_kept_apart_is_refused() -> None:
    grouped = read().group_by("k")
    with pytest.raises(PlanError, match="cannot keep groups apart in 'select': it makes another column 'k'"):
        grouped.apply(lambda g: g.select(k=col("v")))
    with pytest.raises(PlanError, match="cannot keep groups apart in 'pace'"):
        grouped.apply(lambda g: g.pace(within=3))
    with pytest.raises(PlanError, match="one of its inputs has no groups"):
        grouped.apply(lambda g: g.union(read()))
    with pytest.raises(PlanError, match="wants a stream"):
        grouped.apply(lambda g: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(PlanError, match="not made of the group"):
        grouped.apply(lambda g: cz.from_rows([{"t": 1}], time="t"))
