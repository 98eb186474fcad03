"""The current rows of keys: longer courses than laws draw, late, tied, deleted and taken back."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import examples

import caesura as cz
from caesura.events.delta import deltas
from caesura.events.history import History
from caesura.events.page import NO_NEW_END, Page
from caesura.ops.input import Input
from caesura.ops.latest import Latest, Ops
from caesura.ops.latest.physical import LatestOperator
from caesura.plan import Operator, Properties
from caesura.punctuation import INFINITY, Pattern, Punctuation
from caesura.testing import oracles

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("op", pa.string())])
OPS = Ops("op", ("c", "u"), ("d",))
ODD = (None, -0.0, 0.0, float("nan"))


def course(seed: int, late: float, taken_back: float = 0.25) -> tuple[list[Page], list[Any]]:
    """Pages of rows, some of them late, alike, together, or taken back; and the rows that are left."""
    draw = random.Random(seed)
    live: list[tuple[int, int, int, Any, str]] = []
    pages = []
    for turn in range(20):
        changes = []
        for place in range(draw.choice((1, 5, 40))):
            if live and draw.random() < late * taken_back:
                le, re, *row = live.pop(draw.randrange(len(live)))
                changes.append((le, re, draw.choice((le, re + 1)), *row))
                live += [(le, re + 1, *row)] if changes[-1][2] > le else []
                continue
            le = 40 * turn + (draw.randrange(-30, 40) if draw.random() < late else place)
            v = draw.choice(ODD) if draw.random() < 0.1 else float(draw.randrange(3))
            row = (draw.choice((None, 0, 1, 2, 3)), v, draw.choice("ccud"))
            live.append((le, le + 1, *row))
            changes.append((le, le + 1, NO_NEW_END, *row))
        le, re, new, *columns = zip(*changes, strict=True)
        ends = new if taken_back else None
        pages.append(Page.of(pa.record_batch(columns, schema=SCHEMA), le=le, re=re, re_new=ends))
    return pages, live


def restored(old: Operator, new: Operator, saved: dict[str, bytes]) -> Operator:
    """A new operator with the state of an old one, of which ``saved`` has the chunks so far."""
    new.secret.become(old.secret)
    chunks = {**saved, **old.snapshot()}
    saved.clear()
    saved.update({name: data for name, data in chunks.items() if data is not None})
    new.restore(saved)
    return new


def test_rows_are_followed_or_looked_at_whichever_way_they_come() -> None:
    for seed in range(examples(12)):
        late = (0.0, 0.05, 0.5)[seed % 3]
        pages, left = course(seed, late)
        node = Latest(inputs=(Input(label="in", payload=SCHEMA),), group=("k",), ops=OPS)
        operator, saved, out = node.operator(), {}, []
        for turn, fresh in enumerate(pages):
            out += operator.page(0, fresh)
            if turn % 3 == 2 and late == 0:
                operator.punctuation(0, Punctuation(Pattern.before(int(fresh.le.max()) - turn % 5)))
            if turn % 5 == 4:
                operator = restored(operator, node.operator(), saved)
        rows = [(le, re, {"k": k, "v": v, "op": op}) for le, re, k, v, op in left]
        wanted = oracles.latest(rows, ["k"], (), "op", ["d"])
        plain = [(le, re, tuple(p.values())) for le, re, p in wanted]
        assert History.of(out, node.schema) == History.from_rows(plain, node.schema), seed


def current(items: list[Any], rows: Counter[Any]) -> Counter[Any]:
    """The rows that have no end after some items more."""
    for page in items:
        part = deltas(page)
        held = np.flatnonzero(part.re == INFINITY)
        values = page.payload.take(pa.array(part.rows[held])).to_pylist()
        for row, weight in zip(values, part.weight[held].tolist(), strict=True):
            rows[str(row)] += weight
    return +rows


@pytest.mark.slow
@pytest.mark.parametrize("ops", [None, OPS])
def test_where_current_rows_alone_are_wanted_they_are_the_same_after_every_page(ops: Ops | None) -> None:
    source = Input(label="in", payload=SCHEMA, known=Properties(insert_only=True))
    whole = Latest(inputs=(source,), group=("k",), ops=ops)
    node = whole.for_current_table()
    assert node.wanted == "current" and node.fingerprint == whole.fingerprint
    for seed in range(examples(12)):
        pages, _ = course(seed, (0.0, 0.05, 0.5)[seed % 3], taken_back=0)
        every, some, saved = whole.operator(), node.operator(), {}
        wanted, found = Counter(), Counter()
        for turn, fresh in enumerate(pages):
            wanted = current(list(every.page(0, fresh)), wanted)
            found = current(list(some.page(0, fresh)), found)
            assert found == wanted, (seed, turn)
            if turn % 3 == 2 and seed % 3 == 0:
                until = Punctuation(Pattern.before(int(fresh.le.max()) - turn % 5))
                every.punctuation(0, until), some.punctuation(0, until)
            if turn % 5 == 4:
                some = restored(some, node.operator(), saved)


def test_keys_that_go_forward_in_time_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LatestOperator, "_changed")
    rows = [{"t": t, "k": t * 7919 % 10, "s": f"text {t}"} for t in range(300)]
    stream = cz.from_rows(rows, time="t", punctuate=cz.every(50), batch_size=40).latest(key="k")
    found = stream.run().history.table().to_pylist()
    assert {r["k"]: r["s"] for r in found if r["RE"] == cz.INFINITY} == {r["k"]: r["s"] for r in rows}
    assert sorted(r["s"] for r in found) == sorted(r["s"] for r in rows)


def test_keys_that_were_deleted_are_forgotten() -> None:
    rows = [{"t": t, "k": t // 2, "op": "cd"[t % 2]} for t in range(20_000)]
    stream = cz.from_rows(rows, time="t", punctuate=cz.delay(10), batch_size=1000)
    query = stream.changelog(key="k", op="op", insert="c", update="u", delete="d").query()
    query.run()
    operator = next(c.operator for c in query.graph.cells if isinstance(c.operator, LatestOperator))
    assert operator._keys.count < 6000 and operator.measure().state_rows < 20


def test_what_leaves_when_it_is_final_is_in_the_end_what_changed() -> None:
    draw = random.Random(3)
    rows = [{"t": t // 3, "k": draw.randrange(9), "v": draw.randrange(50), "s": f"{t}"} for t in range(600)]
    stream = cz.from_rows(rows, time="t", punctuate=cz.delay(7), batch_size=50)
    kept = stream.forever().group_by("k")
    views = (
        stream.latest(key="k"),
        kept.top(3, by="v", row_number="place"),
        kept.top(1, by=cz.start()),
        kept.alive().agg(n=cz.count(), high=cz.max("v")),
    )
    for view in views:
        assert view.run(output="final").history == view.run().history, view
