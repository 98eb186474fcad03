"""Every kernel does what the plain Python does that it was compiled from.

Each call that random streams make is made twice, on copies: by the machine code, and by its twin.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from depth import DEPTH

import caesura
import caesura as cz
from caesura import Stream, col
from caesura.kernels import Kernel
from caesura.ops.aggregate import panes, slots
from caesura.runtime import Query
from caesura.runtime.threads import dealing

ROOMS = (
    "kernels", "events", "ops.aggregate", "ops.join", "ops.layers", "ops.clip", "ops.chop", "ops.windows",
    "ops.top", "ops.match", "io",
)  # fmt: skip
"""The rooms whose kernels the streams below reach; others bring their own tests of twins."""
ELSEWHERE = (
    "ops.aggregate.accumulators.moments", "io.codecs.json_maps", "ops.join.waiting", "events.grouping",
    "kernels.dividing",
)  # fmt: skip


def kernels() -> dict[str, Kernel[..., Any]]:
    """All kernels of these rooms, by module and name."""
    found = {}
    for info in pkgutil.walk_packages(caesura.__path__, "caesura."):
        name = info.name.removeprefix("caesura.")
        if name.startswith(ROOMS) and not name.startswith(ELSEWHERE):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if isinstance(value, Kernel) and value.twin.__module__ == info.name:
                    found[f"{info.name}.{name}"] = value
    return found


class Checked:
    """Stands in for a kernel's call: the twin on copies first, then the machine code."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._inside = False

    def call(self, kernel: Kernel[..., Any], *args: Any) -> Any:
        if self._inside:
            return kernel.twin(*args)
        self.seen.add(f"{kernel.twin.__module__}.{kernel.twin.__name__}")
        flat = [b for a in args for b in (a if isinstance(a, tuple) else (a,))]
        copies = {id(a): a.copy() for a in flat if isinstance(a, np.ndarray)}
        again = [
            type(a)(*(copies.get(id(b), b) for b in a)) if isinstance(a, tuple) else copies.get(id(a), a)
            for a in args
        ]
        self._inside = True
        with np.errstate(all="ignore"):
            wanted = kernel.twin(*again)
        self._inside = False
        got = kernel.compiled()(*args)
        assert got == wanted or (got != got and wanted != wanted), kernel.twin.__name__
        for mine, other in zip(args, again, strict=True):
            if isinstance(mine, tuple):
                for field, same in zip(mine, other, strict=True):
                    assert_same(field, same, kernel.twin.__name__)
                continue
            assert_same(mine, other, kernel.twin.__name__)
        return got


def assert_same(mine: Any, other: Any, name: str) -> None:
    """Equal values, as NumPy has it; it takes long to say so, and need not be asked about the same bytes."""
    if mine is other or (plain(mine) and bits(mine) == bits(other)):
        return
    np.testing.assert_array_equal(mine, other, err_msg=name)


def plain(value: Any) -> bool:
    """Whether it is an array whose bytes are its values."""
    return isinstance(value, np.ndarray) and not value.dtype.hasobject


def bits(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Checked]:
    checked = Checked()
    monkeypatch.setattr(Kernel, "__call__", lambda self, *args: checked.call(self, *args))
    for limit in ("TAIL", "SLACK"):
        monkeypatch.setattr(f"caesura.io.ingress.matching.{limit}", 0)  # so that few rows make an index
    monkeypatch.setattr("caesura.events.columns.SHORT_GATHER", 0)
    yield checked


VALUES = [0.0, -0.0, 0.1, 0.2, 1.5, -7.25, 1e300, -1e300, 1e-300, float("nan"), float("inf"), None]
NAMES = ["a", "b", "a longer name than eight", "", "é", None]


def changes(seed: int, rows: int = 45) -> Stream:
    """Inserts and retracts of random events: disorder, late rows, orphans, nulls."""
    rng = random.Random(seed)
    out: list[dict[str, Any]] = []
    live: list[dict[str, Any]] = []
    for number in range(rows):
        if live and rng.random() < 0.35:
            old = live.pop(rng.randrange(len(live)))
            new = rng.choice([old["from"], old["from"] + rng.randint(1, 30), None])
            out.append({**old, "kind": "-", "now": new})
            continue
        start = number + rng.randint(-8, 3)
        end = rng.choice([start + rng.randint(1, 25), start + rng.randint(1, 9), None])
        row = {"from": start, "to": end, "now": None, "id": rng.choice([0, 1, 2, 3, None])}
        row |= {"v": rng.choice(VALUES), "k": rng.randint(-(2**40), 2**40), "s": rng.choice(NAMES)}
        live.append(row)
        out.append({**row, "kind": "+"})
    for row in rng.sample(out, 6):
        out.insert(rng.randrange(len(out)), {**row, "kind": rng.choice("+-?")})
    types = {"v": pa.float64(), "s": pa.string(), "kind": pa.string()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in out[0]])
    late: Any = rng.choice(["reject", "adjust"])
    names = {"time": "from", "end": "to", "kind": "kind", "new_end": "now"}
    return cz.from_rows(out, schema, batch_size=20, punctuate=cz.delay(9), late=late, **names)


def points(seed: int) -> Stream:
    """Points in some disorder, never taken back."""
    rng = random.Random(seed)
    rows = [{"ts": n + rng.randint(-9, 3), "id": n % 4, "v": rng.choice(VALUES)} for n in range(60)]
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(5, future=4))


def edges(seed: int) -> Stream:
    """Starts and ends, as texts in a dictionary."""
    rng = random.Random(seed)
    rows = [{"ts": n, "to": n + 3, "id": n % 3, "k": rng.choice(["start", "end", None])} for n in range(20)]
    return cz.from_rows(rows, time="ts", end="to", kind="k")


def recalled(seed: int, ids: Any = range(10)) -> Stream:
    """Rows some of which come late, a few of them taken back right away."""
    rng = random.Random(seed)
    starts = [n - 41 * (n % 8 == 7) for n in range(80)]
    rows = [{"ts": n, "to": n + 5, "id": rng.choice(ids), "k": "+", "now": None} for n in starts]
    for n in rng.sample(range(70), 4):
        rows.append({**rows[n], "k": "-", "now": rows[n]["ts"] + rng.choice([0, 2])})
    twice = [71] * (seed % 2)
    rows += [rows[n] for n in twice]
    rows += [{**rows[n], "k": "-", "now": rows[n]["ts"]} for n in (*range(7, 80, 8), *twice)]
    return cz.from_rows(rows, time="ts", end="to", kind="k", new_end="now", punctuate=cz.delay(50))


MADE = {
    "n": cz.count(),
    "total": cz.sum("v"),
    "low": cz.min("v"),
    "high": cz.max("v"),
    "mean": cz.avg("v"),
}


@cz.uda
def spread(values: list[float]) -> int:
    return len(values)


@cz.uda
class Kept:
    def init(self) -> list[int]:
        return [0]

    def add(self, state: list[int], value: float) -> None:
        state[0] += 1

    def remove(self, state: list[int], value: float) -> None:
        state[0] -= 1

    def compute(self, state: list[int]) -> int:
        return state[0]


def windows(a: Stream, only: Stream) -> Iterator[Stream]:
    """Windows of every kind, over lists of members and without."""
    yield a.group_by("id").snapshot().agg(**MADE, wide=cz.sum("k"))
    yield a.snapshot().agg(mid=cz.median("v"))
    yield a.snapshot().agg(n=cz.count())
    yield a.group_by("id").hopping(6, every=4).agg(n=spread("v"))
    yield only.group_by("id").hopping(6, every=4).agg(n=spread("v"))
    yield only.group_by("id").hopping(6, every=2).agg(n=Kept("v"))
    yield a.count_by_start(3).agg(n=cz.count())
    yield a.group_by("id").session(4).agg(n=cz.count())


def views(a: Stream, only: Stream) -> Iterator[Stream]:
    """What is alive: kept up to date, and the first rows of it."""
    yield a.group_by("id").alive().agg(**MADE, wide=cz.sum("k"))
    yield (
        a.group_by("id")
        .alive()
        .agg(
            n=cz.count(),
            mean=cz.avg("v"),
            d=cz.count_distinct("s"),
            var=cz.variance("v"),
            r=cz.corr("v", "k"),
        )
    )
    yield (
        only.forever()
        .group_by("id")
        .alive()
        .agg(**MADE, d=cz.count_distinct("v"), best=cz.max_by("v", "v"), text=cz.max(col("v").cast("string")))
    )
    yield only.group_by("id").tumbling(7).agg(about=cz.approx_count_distinct("v"), ids=cz.sum("id"))
    yield only.forever().group_by("id").alive().agg(about=cz.approx_count_distinct("v"), ids=cz.sum("id"))
    yield only.tumbling(7).agg(about=cz.approx_count_distinct("v"), ids=cz.sum("id"))
    yield a.group_by("id").over(rows=3).agg(n=cz.count("v"), ids=cz.sum("id"))
    yield a.group_by("id").top(2, by="v")
    yield only.forever().group_by("id").top(2, by="v", row_number="place")
    yield a.top(2, by="s", row_number="place", dense_rank="rank")


def matched(rows: Stream, within: str) -> Stream:
    """Rows that match a pattern."""
    clauses = f"MEASURES COUNT(*) AS n PATTERN (A (B | C)* D?) {within} DEFINE B AS v > 0, D AS v < PREV(v)"
    text = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts {clauses})"
    return cz.sql(text, t=rows.with_columns(ts=cz.start()))


def plans(seed: int) -> Iterator[Stream]:
    a, b = changes(seed), changes(seed + 1000).select("id", {"name": "s"})
    yield a.group_by("id").tumbling(7).agg(**MADE, wide=cz.sum("k"), first=cz.min("s"))
    yield a.group_by("id").totals(**MADE, wide=cz.sum("k"), last=cz.max("s"))
    yield points(seed).group_by("id").tumbling(7).agg(**MADE)
    yield points(seed).where(col("id") > 0).group_by("id").tumbling(7).agg(n=cz.count(), ids=cz.sum("id"))
    yield points(seed).group_by("id").hopping(6, every=2).agg(**MADE, wide=cz.sum("id"))
    yield from windows(a, points(seed))
    yield from views(a, points(seed))
    yield a.join(b, on="id", how=("full", "left", "semi", "anti")[seed % 4])
    yield a.join(b, on="id", where=col("v") > 0)
    yield a.select("id", "s").distinct()
    yield a.group_by("id").tumbling(7).agg(names=cz.collect("s")).distinct()
    yield a.select("id").difference(b.select("id"), mode=("bag", "set")[seed % 2])
    yield a.clip(b, on="id").chop(5)
    yield matched(a, "WITHIN 4")
    yield matched(points(seed), "")
    yield edges(seed)
    yield recalled(seed)
    yield recalled(seed, NAMES[:-1])
    yield recalled(seed).group_by("id").tumbling(1000).agg(n=cz.count())


@pytest.mark.slow
def test_every_call_of_a_kernel_gives_what_its_twin_gives(
    checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SCATTERED_ROWS", "SCATTERED_SLOTS"):
        monkeypatch.setattr(slots, name, 8)
    monkeypatch.setattr(panes, "PLACED", 16)
    monkeypatch.setattr(dealing, "LEAST", 1)
    monkeypatch.setattr(dealing, "MANY", 0)
    for seed in range(4):
        for place, stream in enumerate(plans(seed)):
            if DEPTH == 1 and (place + seed // 2) % 2:  # each plan with two seeds of four
                continue
            ran(stream.query(output=("changes", "final", "marked")[seed % 3]))
        both = points(seed)
        ran(both.join(both.select("id", w=col("v")), on="id").query(claims=cz.heeding()))
        both.group_by("id").tumbling(7).agg(mean=cz.avg("v"), skewed=True).run(threads=2)
        dealt = both.group_by("id").hopping(6, every=2)
        dealt.agg(n=cz.sum(col("id").cast("double"))).run(output="final", threads=2)
    assert set(kernels()) - reached(checked.seen) <= RARE
    assert len(checked.seen) > 25


def ran(query: Query) -> None:
    """Runs a query, and has every step build its indexes anew on the way, as a restart does."""
    turn = 0
    while query.step():
        turn += 1
        if turn % 3 == 0:
            for cell in query.graph.cells:
                cell.operator.rebuild()


def reached(seen: set[str]) -> set[str]:
    """The kernels that were called, and those that they call."""
    known = kernels()
    while True:
        named = {n for name in seen if name in known for n in known[name].twin.__code__.co_names}
        more = seen | {name for name in known if name.rsplit(".", 1)[1] in named}
        if more == seen:
            return seen
        seen = more


RARE = {"caesura.ops.aggregate.accumulators.exact.carry_limbs"}
"""Called after millions of additions; its own test is in test_kernels.py."""
