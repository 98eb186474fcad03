"""Running views: longer courses than laws draw, of rows that only begin, late or in order."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from depth import examples

from caesura.events.history import History
from caesura.events.page import NO_NEW_END, Page
from caesura.expr import col
from caesura.ops.aggregate import Aggregate, Alive
from caesura.ops.aggregate.alive_operator import AliveOperator
from caesura.ops.input import Input
from caesura.plan import Operator, Properties
from caesura.punctuation import INFINITY, Pattern, Punctuation
from caesura.testing import oracles

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("f", pa.float64()), ("w", pa.decimal128(38, 0))])
SUMS = {
    "n": ("count", None),
    "total": ("sum", "v"),
    "mean": ("avg", "v"),
    "exact": ("sum", "f"),
    "high": ("max", "v"),
    "d": ("count_distinct", "v"),
    "wide": ("sum", "w"),
}
ENDS = {"high": ("max", "v"), "low": ("min", "f")}
"""Which often stay as they are."""


def course(seed: int, late: float, none: tuple[None, ...] = (None,)) -> tuple[list[Page], list[Any]]:
    """Pages of rows that only begin, some of them together, some late; and all rows."""
    draw = random.Random(seed)
    pages, rows = [], []
    for turn in range(20):
        some = []
        for place in range(draw.choice((1, 5, 40))):
            le = 20 * turn + (draw.randrange(-30, 20) if draw.random() < late else place // 2)
            f = draw.choice((*none, 0.1, -0.0, 0.0, 1e300, float("nan") if turn > 15 else 0.2))
            w = draw.choice((*none, Decimal(2**65), Decimal(-(2**75))))
            some.append((le, draw.choice((None, 0, 1, 2)), draw.choice((*none, 1, 5, -(2**50))), f, w))
        draw.shuffle(some)
        le, *columns = zip(*some, strict=True)
        pages.append(Page.of(pa.record_batch(columns, schema=SCHEMA), le=le, re=[INFINITY] * len(le)))
        rows += [(t, INFINITY, {"k": k, "v": v, "f": f, "w": w}) for t, k, v, f, w in some]
    return pages, rows


def restored(old: Operator, new: Operator, saved: dict[str, bytes]) -> Operator:
    """A new operator with the state of an old one, of which ``saved`` has the chunks so far."""
    new.secret.become(old.secret)
    chunks = {**saved, **old.snapshot()}
    saved.clear()
    saved.update({name: data for name, data in chunks.items() if data is not None})
    new.restore(saved)
    return new


@pytest.mark.parametrize(("asked", "none"), [(SUMS, (None,)), (ENDS, (None,)), (ENDS, ())])
def test_groups_go_forward_in_time_or_are_looked_at_again(
    asked: dict[str, Any], none: tuple[None, ...]
) -> None:
    source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=True, endless=True))
    aggregates = tuple((name, Aggregate(kind, over and col(over))) for name, (kind, over) in asked.items())
    for seed in range(examples(6, short=3)):
        late = (0.0, 0.05, 0.5)[seed % 3]
        pages, rows = course(seed, late, none)
        node = Alive(inputs=(source,), group=("k",), aggregates=aggregates)
        operator, saved, out = node.operator(), {}, []
        for turn, fresh in enumerate(pages):
            out += operator.page(0, fresh)
            if turn % 3 == 2:
                until = 20 * turn - 10 if late else int(fresh.le.max()) - turn % 4
                operator.punctuation(0, Punctuation(Pattern.before(until)))
            if turn % 5 == 4:
                operator = restored(operator, node.operator(), saved)
        plain = [(le, re, tuple(p.values())) for le, re, p in oracles.alive(rows, ("k",), asked)]
        assert History.of(out, node.schema) == History.from_rows(plain, node.schema), seed


RUNNING = {name: asked for name, asked in SUMS.items() if name != "high"}
"""What follows rows that go, too."""


@pytest.mark.thin(2)
@pytest.mark.parametrize("odd", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("asked", [RUNNING, {"n": ("count", None)}, {"mean": ("avg", "v")}])
def test_groups_go_forward_where_rows_end(asked: dict[str, Any], odd: float) -> None:
    source = Input(label="in", payload=SCHEMA)
    aggregates = tuple((name, Aggregate(kind, over and col(over))) for name, (kind, over) in asked.items())
    for seed in range(examples(6, short=3)):
        draw = random.Random(seed)
        node = Alive(inputs=(source,), group=("k",), aggregates=aggregates)
        operator, saved, out, live = node.operator(), {}, [], []
        for turn in range(16):
            items = []
            for _ in range(draw.choice((1, 8, 30))):
                ends = [i for i, (_, re, _) in enumerate(live) if re >= 10 * turn]
                strange = draw.random() < odd
                if not strange:
                    ends = [i for i in ends if live[i][1] == INFINITY]
                if ends and draw.random() < 0.6:
                    le, re, row = live.pop(draw.choice(ends))
                    new = max(le if strange else le + 1, 10 * turn) + draw.randrange(8 if strange else 1)
                    items.append((le, re, new, row))
                    live += [(le, new, row)] if new > le else []
                else:
                    le = 10 * turn + draw.randrange(9)
                    until = draw.randrange(1, 30 if strange else 10 * turn + 11 - le)
                    row = (
                        draw.choice((0, 1, None)),
                        draw.choice((1, 5, None)),
                        draw.choice((0.5, 2.0)),
                        Decimal(2**65),
                    )
                    live.append((le, draw.choice((INFINITY, le + until)), row))
                    items.append((*live[-1][:2], NO_NEW_END, row))
            le, re, new, payload = zip(*items, strict=True)
            batch = pa.record_batch(list(zip(*payload, strict=True)), schema=SCHEMA)
            out += operator.page(0, Page.of(batch, le=le, re=re, re_new=new))
            if turn % 3 == 2:
                operator.punctuation(0, Punctuation(Pattern.before(10 * turn + draw.randrange(11))))
            if turn % 5 == 4:
                operator = restored(operator, node.operator(), saved)
        rows = [(le, re, dict(zip("kvfw", row, strict=True))) for le, re, row in live]
        plain = [(le, re, tuple(p.values())) for le, re, p in oracles.alive(rows, ("k",), asked)]
        assert History.of(out, node.schema) == History.from_rows(plain, node.schema), seed


def test_groups_that_go_forward_are_not_looked_at_and_state_is_bounded_by_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(AliveOperator, "_changed")
    source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=True, endless=True))
    aggregates = (("n", Aggregate("count", None)), ("total", Aggregate("sum", col("v"))))
    operator = Alive(inputs=(source,), group=("k",), aggregates=aggregates).operator()
    out = []
    for turn in range(30):
        k, v = [t * 7919 % 10 for t in range(100)], [t % 17 for t in range(100)]
        le = [turn * 50 + t // 2 for t in range(100)]
        payload = pa.record_batch([k, v, [0.0] * 100, [None] * 100], schema=SCHEMA)
        out += operator.page(0, Page.of(payload, le=le, re=[INFINITY] * 100))
        operator.punctuation(0, Punctuation(Pattern.before(le[-1] - 3)))
        assert operator.measure().state_rows <= 2 * 10 + 4 * 4  # sums and results; points in three ticks
    found = [row for _, re, row in History.of(out, operator.node.schema).rows() if re == INFINITY]
    each = {k: sum(t % 17 for t in range(100) if t * 7919 % 10 == k) for k in range(10)}
    assert {k: (n, total) for k, n, total in found} == {k: (300, 30 * each[k]) for k in range(10)}


@pytest.mark.thin(2)
@pytest.mark.parametrize("asked", [SUMS, ENDS, {"n": ("count", None)}])
@pytest.mark.parametrize("endless", [True, False])
def test_whether_somebody_looks_at_the_state_behind_a_punctuation_changes_nothing(
    asked: dict[str, Any], endless: bool
) -> None:
    source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=endless, endless=endless))
    aggregates = tuple((name, Aggregate(kind, over and col(over))) for name, (kind, over) in asked.items())
    node = Alive(inputs=(source,), group=("k",), aggregates=aggregates)
    for seed in range(examples(4, short=2)):
        seen, unseen = node.operator(), node.operator()
        unseen.secret.become(seen.secret)
        for turn, page in enumerate(course(seed, (0.0, 0.3)[seed % 2])[0]):
            some, others = ([repr(p.rows()) for p in one.page(0, page)] for one in (seen, unseen))
            assert some == others, (seed, turn)  # as texts: a NaN equals none
            for until in (20 * turn - 40, 20 * turn - 30)[: turn % 3]:
                for one in (seen, unseen):
                    one.punctuation(0, Punctuation(Pattern.before(until)))
                seen.measure()
            if turn % 6 == 5:
                held = [{name: state.live for name, state in one.states().items()} for one in (seen, unseen)]
                assert held[0] == held[1], (seed, turn)
        for one in (seen, unseen):  # of which the last page is not filed
            one.punctuation(0, Punctuation(Pattern.before(INFINITY)))
            assert one.measure().state_rows == 0


def test_a_sweep_of_the_groups_that_changed_lets_go_of_what_a_sweep_of_all_does() -> None:
    source = Input(label="in", payload=SCHEMA)
    aggregates = (("n", Aggregate("count", None)), ("high", Aggregate("max", col("v"))))
    node = Alive(inputs=(source,), group=("k",), aggregates=aggregates)
    for seed in range(examples(12, short=6)):
        draw = random.Random(seed)
        some, every = node.operator(), node.operator()
        every.secret.become(some.secret)
        live: list[tuple[int, int, int, int]] = []
        for turn in range(25):
            came = [
                (draw.randrange(9), draw.randrange(4), turn, draw.choice((turn + 2, INFINITY)))
                for _ in range(draw.choice((0, 1, 6)))
            ]
            ends = [row for row in live if row[3] == INFINITY and draw.random() < 0.4]
            rows = [*((row, turn) for row in ends), *((row, None) for row in came)]
            live = [*(row for row in live if row not in ends), *came]
            if rows:
                kept = [[r[0] for r, _ in rows], [r[1] for r, _ in rows], [0.0] * len(rows)]
                payload = pa.record_batch([*kept, [None] * len(rows)], schema=SCHEMA)
                new = [NO_NEW_END if end is None else end for _, end in rows]
                page = Page.of(payload, le=[r[2] for r, _ in rows], re=[r[3] for r, _ in rows], re_new=new)
                assert [p.rows() for p in some.page(0, page)] == [p.rows() for p in every.page(0, page)]
            every._changed_slots = None
            for operator in (some, every):
                operator.punctuation(0, Punctuation(Pattern.before(turn + 1)))
            held = [{name: state.live for name, state in one.states().items()} for one in (some, every)]
            assert held[0] == held[1], (seed, turn)


@pytest.mark.parametrize("asked", [SUMS, ENDS])
def test_equal_rows_are_told_apart_once_an_end_moves(asked: dict[str, Any]) -> None:
    source = Input(label="in", payload=SCHEMA)
    aggregates = tuple((name, Aggregate(kind, over and col(over))) for name, (kind, over) in asked.items())
    for seed in range(examples(6, short=3)):
        draw = random.Random(seed)
        node = Alive(inputs=(source,), group=("k",), aggregates=aggregates)
        operator, saved, out, live = node.operator(), {}, [], []
        for turn in range(12):
            items = []
            for _ in range(draw.choice((1, 8, 30))):
                open_rows = [i for i, (_, re, _) in enumerate(live) if re >= 10 * turn]
                if open_rows and draw.random() < (0.0, 0.0, 0.4)[turn % 3]:
                    le, re, row = live.pop(draw.choice(open_rows))
                    new = max(le, 10 * turn) + draw.choice((0, 1, 5))
                    items.append((le, re, new, row))
                    live += [(le, new, row)] if new > le else []
                else:
                    le = 10 * turn + draw.randrange(3)
                    row = draw.choice((0, 1)), draw.choice((1, 5)), 0.5, Decimal(2**65)
                    live.append((le, le + draw.choice((2, INFINITY - le)), row))
                    items.append((*live[-1][:2], NO_NEW_END, row))
            le, re, new, payload = zip(*items, strict=True)
            batch = pa.record_batch(list(zip(*payload, strict=True)), schema=SCHEMA)
            out += operator.page(0, Page.of(batch, le=le, re=re, re_new=new))
            if turn % 4 == 3:
                operator.punctuation(0, Punctuation(Pattern.before(10 * turn)))
                operator = restored(operator, node.operator(), saved)
        rows = [(le, re, dict(zip("kvfw", row, strict=True))) for le, re, row in live]
        plain = [(le, re, tuple(p.values())) for le, re, p in oracles.alive(rows, ("k",), asked)]
        assert History.of(out, node.schema) == History.from_rows(plain, node.schema), seed
