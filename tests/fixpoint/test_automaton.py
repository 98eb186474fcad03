"""Automata with registers: equal to a slow run of them, and to the cyclic plan that does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import examples
from fixpoint_streams import SYMBOLS
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from queries import W_ARCS, complete, w_native, w_query

import caesura as cz
from caesura import col, lit
from caesura.api import Stream
from caesura.audit.evaluate import evaluate
from caesura.audit.progress import ENDED, Known
from caesura.errors import PlanError
from caesura.events import History
from caesura.testing import oracles, run
from caesura.testing.case import LawCase
from caesura.testing.laws import as_history, check_laws
from caesura.testing.spec import InputSpec

EXAMPLES = examples(3)
STATES = ("S", "A", "B")
WITHIN = 6
ITEMS = InputSpec({"v": "key"}, key="v", max_rows=6)
ARC_COLUMNS = pa.schema(
    [
        ("state", pa.string()),
        ("v", pa.int64()),
        ("next", pa.string()),
        ("low", pa.int64()),
        ("add", pa.int64()),
    ]
)
arcs = st.lists(
    st.tuples(
        st.sampled_from(STATES),
        st.integers(0, 2),
        st.sampled_from(STATES),
        st.integers(-2, 1),
        st.integers(-1, 1),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda a: a[:3],
).filter(lambda some: any(a[0] == "S" for a in some))
quickly = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def automaton(made: list[tuple[str, int, str, int, int]]) -> Any:
    moves = [
        cz.arc(state, to, (col("v") == v) & (col("m") >= low), m=col("m") + add)
        for state, v, to, low, add in made
    ]
    return cz.automaton(moves, {"m": 0}, WITHIN)


def slow(
    made: list[tuple[str, int, str, int, int]], rows: oracles.Rows, within: int = WITHIN
) -> oracles.Rows:
    """Every run, one item at a time."""
    items = sorted(rows, key=lambda r: (r[0], r[2]["v"] is None, r[2]["v"] or 0))
    out: oracles.Rows = []
    for first, (begin, _, _) in enumerate(items):
        runs = [("S", 0)]
        for length, (le, _, payload) in enumerate(items[first:], 1):
            if le >= begin + within:
                break
            runs = [
                (to, m + add)
                for state, m in runs
                for source, v, to, low, add in made
                if source == state and v == payload["v"] and m >= low
            ]
            out += [
                (le, begin + within, {"begin": begin, "length": length, "state": s, "m": m}) for s, m in runs
            ]
    return out


@quickly
@given(arcs, st.data())
def test_random_automata_obey_every_law(
    made: list[tuple[str, int, str, int, int]], data: st.DataObject
) -> None:
    case = LawCase(
        "automaton",
        build=lambda a: Stream(a).match(automaton(made)).node,
        oracle=lambda a, **_: slow(made, a),
        inputs=(ITEMS,),
        liveness=min,
    )
    check_laws(case, data)


KEYED = InputSpec({"k": "key", "v": "key", "s": "text"}, key="k", max_rows=8)


def slow_by_key(made: list[tuple[str, int, str, int, int]], rows: oracles.Rows) -> oracles.Rows:
    """The matches in each group alone; the last item's column is that of the item at the match's start."""
    out: oracles.Rows = []
    for key in {p["k"] for _, _, p in rows}:
        mine = [(le, re, p) for le, re, p in rows if p["k"] == key]
        mine.sort(key=lambda r: (r[0], r[2]["v"] is None, r[2]["v"] or 0, r[2]["s"] is None, r[2]["s"] or ""))
        numbered = [(n, n + 1, p) for n, (_, _, p) in enumerate(mine)]
        for at, _, p in slow(made, numbered, within=len(mine)):
            first, last = mine[p["begin"]], mine[at]
            if last[0] < first[0] + WITHIN:
                row = {"k": key, **p, "begin": first[0], "s": last[2]["s"]}
                out.append((last[0], first[0] + WITHIN, row))
    return out


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(arcs, st.data())
def test_an_automaton_of_each_group_obeys_every_law(
    made: list[tuple[str, int, str, int, int]], data: st.DataObject
) -> None:
    case = LawCase(
        "automaton by key",
        build=lambda a: Stream(a).group_by("k").match(automaton(made), order_by=["v"], carry=["s"]).node,
        oracle=lambda a, **_: slow_by_key(made, a),
        inputs=(KEYED,),
        liveness=min,
    )
    check_laws(case, data)


KEY_ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=6, max_size=14)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(arcs, KEY_ROWS, st.integers(1, 4))
@example([("S", 1, "A", 0, 1), ("A", 0, "B", 0, 1)], [(0, 1), (1, 1), (1, 0), (1, 1), (0, 0), (1, 0)], 1)
def test_runs_of_a_group_wait_while_pages_bring_items_of_others(
    made: list[tuple[str, int, str, int, int]], drawn: list[tuple[int, int]], size: int
) -> None:
    rows = [{"ts": n // 2, "k": k, "v": v, "s": f"{n}"} for n, (k, v) in enumerate(drawn)]
    items = cz.from_rows(rows, time="ts", punctuate=cz.delay(0), batch_size=size)
    matches = items.group_by("k").match(automaton(made), order_by=["v"], carry=["s"])
    plain = [(r["ts"], r["ts"] + 1, {n: r[n] for n in ("k", "v", "s")}) for r in rows]
    wanted = as_history(slow_by_key(made, plain), matches.node)
    assert matches.run().history == wanted
    audited = evaluate({"out": matches.node}, lambda _: Known(plain, ENDED))["out"]  # type: ignore[arg-type]
    assert as_history(audited, matches.node) == wanted


@quickly
@given(arcs, st.lists(st.integers(0, 2), max_size=12))
def test_an_automaton_finds_what_the_cyclic_plan_finds(
    made: list[tuple[str, int, str, int, int]], values: list[int]
) -> None:
    rows = [{"ts": n, "seq": n, "v": v} for n, v in enumerate(values)]
    items = cz.from_rows(rows, pa.schema([(n, pa.int64()) for n in ("ts", "seq", "v")]), time="ts")
    table = [dict(zip(ARC_COLUMNS.names, arc, strict=True)) | {"ts": 0} for arc in made]
    moves = cz.from_rows(table, pa.schema([*ARC_COLUMNS, ("ts", pa.int64())]), time="ts").set_duration(1000)
    live = items.set_duration(WITHIN)
    seed = live.select(begin=col("seq"), at=col("seq") - 1, state=lit("S"), m=lit(0, "bigint"))

    def follow(match: Stream) -> Stream:
        ahead = match.select("begin", "state", "m", wanted=col("at") + 1)
        met = ahead.join(live, on={"wanted": "seq"}).join(moves, on=["state", "v"])
        going = met.where(col("m") >= col("low"))
        return going.select("begin", at=col("wanted"), state=col("next"), m=col("m") + col("add"))

    cyclic = cz.fixpoint(seed, follow).where(col("at") >= col("begin"))
    wanted = cyclic.select("begin", length=col("at") - col("begin") + 1, state=col("state"), m=col("m"))
    assert items.drop("seq").match(automaton(made)).run().history == wanted.run().history


TOSSES = "UDDUDUUDUDDUUUDU"


def test_the_w_query_finds_the_same_cyclic_and_native() -> None:
    drawn = " LE RE | seq symbol |\n" + "\n".join(
        f" {n} {n + 30} | {n} {s} | +" for n, s in enumerate(TOSSES, 1)
    )
    moves = pa.schema(
        [
            *((name, pa.string()) for name in ("state", "symbol", "next")),
            *((name, pa.int64()) for name in ("least", "change")),
        ]
    )
    table = " LE RE | state symbol next least change |\n" + "\n".join(
        f" 0 inf | {s} {x} {to} {'null' if m is None else m} {d} | +" for s, x, to, m, d in W_ARCS
    )
    plan = complete(w_query(SYMBOLS, cz.input_stream("arcs", moves)))
    out = run(plan, {"arcs": table, "symbols": drawn + "\n-- 100 --"})
    cyclic = {(p[0], p[1]) for _, _, p in History.of(out, plan.schema).rows()}
    native = w_native(SYMBOLS)
    found = History.of(run(native, {"symbols": drawn + "\n-- 100 --"}), native.schema).rows()
    assert {(p[0], p[0] + p[1] - 1) for _, _, p in found} == cyclic == slow_w()


def slow_w(tosses: str = TOSSES, *, lower: bool = False) -> set[tuple[int, int]]:
    """U D^i U^j D^k U^l with i + k = j + l, each at least 1, by looking at every stretch; lower: k >= j."""
    import re

    found = set()
    for a in range(len(tosses)):
        for b in range(a + 1, len(tosses) + 1):
            match = re.fullmatch("U(D+)(U+)(D+)(U+)", tosses[a:b])
            i, j, k, last = (len(part) for part in match.groups()) if match else (0, 0, 0, 1)
            if i + k == j + last and (k >= j or not lower):
                found.add((a + 1, b))
    return found


def test_the_second_trough_of_a_w_may_have_to_lie_no_higher() -> None:
    tosses = "UDDUDUUDUDDUUUDDUUDUDDDUUU"
    rows = [{"ts": n, "symbol": s} for n, s in enumerate(tosses, 1)]
    for lower in (False, True):
        found = w_native(cz.from_rows(rows, time="ts"), lower=lower).run().history.rows()
        assert {(p[0], p[0] + p[1] - 1) for _, _, p in found} == slow_w(tosses, lower=lower)
    assert slow_w(tosses, lower=True) < slow_w(tosses)


def test_registers_may_hold_values_of_items() -> None:
    prices = cz.from_rows([{"ts": t, "p": p} for t, p in ((1, 5.0), (2, 3.0), (3, 4.0), (4, 2.0))], time="ts")
    falling = cz.automaton(
        [cz.arc("S", "low", low=col("p")), cz.arc("low", "low", col("p") < col("low"), low=col("p"))],
        {"low": 0.0},
        within=10,
    )
    found = prices.match(falling).run().history.rows()
    assert [(p[0], p[1], p[3]) for _, _, p in found if p[1] > 1] == [(1, 2, 3.0), (3, 2, 2.0)]


def test_more_runs_than_there_was_room_for_are_found() -> None:
    n = 400
    every = cz.from_rows([{"ts": 1, "x": k} for k in range(n)], time="ts")
    longer = cz.automaton([cz.arc("S", "A"), cz.arc("A", "A")], {}, within=5)
    assert len(every.match(longer).run().history) == n * (n + 1) // 2


@pytest.mark.slow
def test_machine_code_and_its_twin_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tosses = np.random.default_rng(7).random(30_000) < 0.5
    ticks = cz.from_arrow(
        pa.table({"ts": np.arange(len(tosses)), "symbol": np.where(tosses, "U", "D")}), time="ts"
    )
    fast = w_native(ticks).run().history
    monkeypatch.setenv("CAESURA_KERNELS", "python")
    assert w_native(ticks).run().history == fast
    assert len(fast) > 1000


@pytest.mark.parametrize(
    ("arc", "message"),
    [
        (cz.arc("S", "A", col("w") == 1), "no column 'w'"),
        (cz.arc("S", "A", k=col("m") + 1), "changes 'k', which is no register"),
        (cz.arc("A", "A"), "no arc leaves the start 'S'"),
        (cz.arc("S", "A", m=col("m") % 2), "more than an automaton does"),
        (cz.arc("S", "A", m=col("m") * 0.5), "'m' is int64"),
    ],
)
def test_arcs_that_make_no_sense_are_refused(arc: Any, message: str) -> None:
    items = cz.input_stream("items", pa.schema([("v", pa.int64())]))
    with pytest.raises(cz.CaesuraError, match=message):
        items.match(cz.automaton([arc], {"m": 0}, 5))


def test_an_automaton_without_time_is_refused() -> None:
    items = cz.input_stream("items", pa.schema([("v", pa.int64())]))
    with pytest.raises(PlanError, match="nothing fits within 0"):
        items.match(cz.automaton([cz.arc("S", "A")]))
