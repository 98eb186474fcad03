"""Drawn loops: one that is not refused ends, with the result that plain iteration from scratch finds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from depth import examples
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import caesura as cz
from caesura import col
from caesura.api import Stream
from caesura.audit.evaluate import evaluate
from caesura.audit.progress import ENDED, Known
from caesura.errors import PlanError
from caesura.fixpoint.node import PROGRESS
from caesura.fixpoint.operator import FlyingFixpoint
from caesura.runtime.query.result import run
from caesura.testing.laws import as_history
from caesura.testing.oracles.rows import Rows
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))
from bucket_plans import scripted

EXAMPLES = examples(60)
MAX_PAGES = 600
"""So often a page comes around in no loop of this size."""
ROWS = InputSpec({"n": "key", "v": "key"}, max_rows=3)
LINKS = InputSpec({"a": "key", "b": "key", "w": "key"}, max_rows=4)
Step = Callable[[Stream], Stream]


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that goes on and on fails."""
    note = FlyingFixpoint._note

    def noted(self: FlyingFixpoint, sync: Any, port: int) -> None:
        note(self, sync, port)
        assert self.counters.extra["rounds"] < MAX_PAGES, "the loop does not end"

    monkeypatch.setattr(FlyingFixpoint, "_note", noted)


MAPS: dict[str, Step] = {
    "counted": lambda s: s.where(col("v") < 3).select("n", v=col("v") + 1),
    "counted down": lambda s: s.where(col("v") > 0).select("n", v=col("v") - 1),
    "moved": lambda s: s.select("n", v=col("v") + 1),
    "kept": lambda s: s.select("n", "v"),
    "small": lambda s: s.where(col("v") < 3),
    "turned": lambda s: s.select(n=col("v"), v=col("n")),
    "once": lambda s: s.distinct(),
    "later": lambda s: s.shift(1),
    "longer": lambda s: s.extend(2),
    "short": lambda s: s.set_duration(3),
    "at": lambda s: s.where(cz.start() > col("v")).select("n", v=cz.start()),
    "most": lambda s: s.group_by("n").snapshot().agg(v=cz.max("v")),
    "least": lambda s: s.group_by("n").snapshot().agg(v=cz.min("v")),
    "least counted": lambda s: MAPS["least"](MAPS["counted"](s)),
    "most counted down": lambda s: MAPS["most"](MAPS["counted down"](s)),
}
Pair = Callable[[Stream, Stream], Stream]


def _hop(how: Any = "inner", where: Any = None, **columns: Any) -> Pair:
    def hop(s: Stream, links: Stream) -> Stream:
        return s.join(links, on={"n": "a"}, how=how, where=where).select(**columns)

    return hop


HOPS: dict[str, Pair] = {
    "carried": _hop(n=col("b"), v=col("v")),
    "counted": _hop(where=col("v") < 3, n=col("b"), v=col("v") + 1),
    "growing": _hop(where=col("w") > col("v"), n=col("b"), v=col("w")),
    "perhaps": _hop("left", n=col("b"), v=col("v")),
    "growing, the least": lambda s, links: MAPS["least"](HOPS["growing"](s, links)),
    "dear": _hop(where=col("w") >= 0, n=col("b"), v=col("v") + col("w")),
    "all the way": lambda s, links: cz.fixpoint(s, lambda q: HOPS["carried"](q, links), keep="distinct"),
    "some of the way": lambda s, links: cz.fixpoint(s, lambda q: HOPS["counted"](q, links)),
    "dearer": _hop(n=col("b"), v=col("v").greatest(col("w"))),
}


def _met(how: Any, on: Any) -> Pair:
    def meet(a: Stream, b: Stream) -> Stream:
        keys = {"n": "m", "v": "u"} if on == "both" else {"n": "m"}
        test = {"grow": col("v") > col("u"), "bound": col("u") < 3, "next": col("v") == col("u") + 1}.get(on)
        made = a.join(b.rename(m="n", u="v"), on=keys, how=how, where=test)
        if on == "second" and how not in ("semi", "anti"):
            return made.select("n", v=col("u"))
        if on == "count" and how not in ("semi", "anti"):
            return made.where(col("v") < 3).select("n", v=col("u") + 1)
        return made.select("n", "v")

    return meet


PAIRS: dict[str, Pair] = {
    "within": lambda a, b: cz.fixpoint(a, lambda q: _met("semi", "n")(MAPS["counted"](q), b)),
    "within, taken away": lambda a, b: cz.fixpoint(a, lambda q: MAPS["counted"](q).difference(b)),
    "union": lambda a, b: a.union(b),
    "difference": lambda a, b: a.difference(b),
    "clip": lambda a, b: a.clip(b.rename(m="n", u="v"), on={"n": "m"}),
} | {
    f"{how} {on}": _met(how, on)
    for how in ("inner", "left", "right", "full", "semi", "anti")
    for on in ("n", "both", "grow", "next", "bound", "second", "count")
}
KEEPS: dict[str, Any] = {
    "all": "all",
    "distinct": "distinct",
    "least": cz.least("v", per="n"),
    "greatest": cz.greatest("v", per="n"),
}


def drawn(data: st.DataObject, r: Stream, seed: Stream, links: Stream, depth: int) -> Stream:
    """Some step over the loop's rows and the two streams from outside."""
    kinds = {0: ["row", "row", "outside"], 3: ["map", "hop", "pair"]}.get(
        depth, ["row", "map", "hop", "pair"]
    )
    kind = data.draw(st.sampled_from(kinds))
    if kind in ("row", "outside"):
        return r if kind == "row" else seed
    first = drawn(data, r, seed, links, depth - 1)
    if kind == "map":
        return MAPS[data.draw(st.sampled_from(sorted(MAPS)))](first)
    if kind == "hop":
        return HOPS[data.draw(st.sampled_from(sorted(HOPS)))](first, links)
    second = drawn(data, r, seed, links, depth - 1)
    return PAIRS[data.draw(st.sampled_from(sorted(PAIRS)))](first, second)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_drawn_loop_is_refused_or_ends_with_what_iteration_finds(data: st.DataObject) -> None:
    given_rows, sources = dict[str, Rows](), list[Stream]()
    for name, spec in (("seed", ROWS), ("links", LINKS)):
        given_rows[name], items = data.draw(streams(spec, kinds=("time",), closed=False))
        sources.append(Stream(scripted(name, spec.schema, items, [0], [2, 1], 60)))
    seed, links = sources
    keep = KEEPS[data.draw(st.sampled_from(sorted(KEEPS)))]
    progress = data.draw(st.sampled_from(PROGRESS))
    try:
        loop = cz.fixpoint(seed, lambda r: drawn(data, r, seed, links, 3), keep=keep, progress=progress).node
    except PlanError as refused:
        event(f"refused: {refused.problem[:24]}")
        return
    event(f"accepted: {keep}")
    wanted = evaluate({"out": loop}, lambda node: Known(given_rows[node.name], ENDED))["out"]
    assert run(loop).history == as_history(wanted, loop)
