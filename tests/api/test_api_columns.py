"""A column may be called like any parameter of the API: it neither vanishes nor is taken for an option."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import Stream, col, lit, qre
from caesura.api.grouped import Grouped, Windowed
from caesura.events import History
from caesura.events.types import RESERVED


def callables() -> Iterator[Any]:
    """Every public function and method of the API."""
    for home in (cz, qre):
        for name in home.__all__:
            thing = getattr(home, name)
            yield thing
            if inspect.isclass(thing):
                yield from (f for n, f in inspect.getmembers(thing, callable) if not n.startswith("_"))
    for home in (Grouped, Windowed):
        yield from (f for n, f in inspect.getmembers(home, callable) if not n.startswith("_"))


def parameters() -> list[str]:
    """The names of all their parameters."""
    found: set[str] = set()
    for thing in callables():
        try:
            found |= set(inspect.signature(thing).parameters)
        except (TypeError, ValueError):
            continue
    return sorted(found - set(RESERVED))


NAMES = parameters()
ROWS = [{"t": 1, "v": 3}, {"t": 2, "v": 5}]
TAKING: dict[str, Callable[[Stream, str], Stream]] = {
    "select": lambda s, n: s.select("v", **{n: col("v") + 1}),
    "select a mapping": lambda s, n: s.select("v", {n: "a constant"}),
    "with_columns": lambda s, n: s.with_columns(**{n: lit(1)}),
    "with_columns of a mapping": lambda s, n: s.with_columns({n: 1}),
    "rename": lambda s, n: s.with_columns(w=1).rename(**{n: "w"}),
    "rename by a mapping": lambda s, n: s.with_columns(w=1).rename({n: "w"}),
    "agg": lambda s, n: s.group_by("v").tumbling(5).agg(**{n: cz.count()}),
    "agg of a mapping": lambda s, n: s.group_by("v").tumbling(5).agg({n: cz.max("v")}, clip="none"),
    "agg of snapshots": lambda s, n: s.group_by("v").snapshot().agg(**{n: cz.count()}),
    "totals": lambda s, n: s.group_by("v").totals(**{n: cz.count()}),
    "totals of all": lambda s, n: s.totals({n: cz.count()}).with_columns(v=0).select("v", {n: col(n)}),
}


def test_the_search_knows_the_names_that_once_vanished() -> None:
    assert {"name", "clip", "stamp", "self", "op", "when", "on", "how"} <= set(NAMES)
    assert len(NAMES) > 100


@pytest.mark.parametrize("step", TAKING)
def test_a_column_may_have_the_name_of_any_parameter(step: str) -> None:
    stream = cz.from_rows(ROWS, time="t")
    for name in (n for n in NAMES if n not in ("v", "t")):
        assert TAKING[step](stream, name).columns == ["v", name]


def test_columns_of_all_these_names_go_through_a_plan_on_every_host() -> None:
    table = pa.table({"t": [1, 2, 3], **{n: [k, k + 1, k] for k, n in enumerate(NAMES) if n != "t"}})
    stream = cz.from_arrow(table, time="t").select(*(n for n in NAMES if n != "t"))
    some = {n: cz.max(n) for n in NAMES if n[0] in "nows" and n not in ("name", "clip")}
    counted = stream.group_by("name", "clip").tumbling(5).agg(**some)
    alone = counted.run().history
    cluster = Cluster({"out": counted.node}, 3)
    cluster.run()
    assert sorted(counted.columns) == sorted([*some, "name", "clip"])
    assert History.of(cluster.items["out"], counted.schema) == alone
    assert len(alone.bag) == 2


def test_the_old_name_of_a_step_still_names_it_and_says_what_to_write() -> None:
    windows = cz.from_rows(ROWS, time="t").tumbling(5)
    with pytest.warns(DeprecationWarning, match=r"\.named\('hourly'\)"):
        old = windows.agg(n=cz.count(), name="hourly")
    assert old.node.step == windows.agg(n=cz.count()).named("hourly").node.step == "hourly"
    assert old.columns == ["n"]


def test_text_for_a_column_called_name_warns_where_it_once_named_the_step() -> None:
    stream = cz.from_rows(ROWS, time="t")
    with pytest.warns(UserWarning, match="is a column"):
        assert stream.select("v", name="who").columns == ["v", "name"]


def test_registers_parts_and_cases_may_have_any_name() -> None:
    assert set(cz.arc("S", "T", True, when=1, source=2, target=3, self=4).changes) == {
        *("when", "source", "target", "self")
    }
    one = qre.atom(col("v") > 0, col("v"))
    assert qre.combine(op=one, other=one).names == ("other", "op")
    schema = pa.schema([("kind", pa.string()), ("v", pa.int64())])
    cases = qre.tagged(schema, "kind", ticks=("v",), tag=("v",), schema=("v",), time=("v",))
    assert {name for name, _ in cases.names} == {"ticks", "tag", "schema", "time"}
