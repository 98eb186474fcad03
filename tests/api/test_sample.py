"""`sample`: the same rows wherever a query runs, a correction with its row, copies together."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from cluster import Cluster

import caesura as cz
from caesura import col
from caesura.errors import PlanError
from caesura.events import History, Page
from caesura.events.identity import Secret
from caesura.plan.prune import prune
from caesura.runtime import Query
from caesura.testing import oracles

ROWS = [{"ts": n, "id": n % 50, "v": n / 4} for n in range(400)]


def ids(stream: cz.Stream) -> list[int]:
    return [payload[0] for _, _, payload in sorted(stream.run().history.rows())]


def read(rows: list[dict[str, Any]] = ROWS, **options: Any) -> cz.Stream:
    return cz.from_rows(rows, time="ts", punctuate=cz.delay(5), **options)


def test_about_the_share_is_kept_and_a_greater_share_keeps_more() -> None:
    small, large = (set(read().sample(share, seed=3).run().history.rows()) for share in (0.25, 0.5))
    assert small < large
    assert 60 < len(small) < 140 and 150 < len(large) < 250
    assert not read().sample(0).run().history.rows()
    assert len(read().sample(1).run().history.rows()) == len(ROWS)


def test_equal_rows_are_kept_or_left_out_together_and_seeds_choose_anew() -> None:
    stream = read().select("id")
    chosen = [payload for _, _, payload in stream.sample(0.5, seed=1).run().history.rows()]
    assert chosen and all(chosen.count(one) == 8 for one in chosen)
    assert ids(stream.sample(0.5, seed=1)) != ids(stream.sample(0.5, seed=2))


@pytest.mark.parametrize("buckets", [1, 3])
def test_the_choice_is_the_same_in_any_number_of_buckets(buckets: int) -> None:
    """In buckets, columns for the gate travel beside the payload in front of it: they do not count."""
    plan = read().where(col("id") > 2).sample(0.5, seed=9).group_by("id").tumbling(100).agg(n=cz.count())
    cluster = Cluster({"out": plan.node}, buckets)
    cluster.run()
    assert History.of(cluster.items["out"], plan.schema) == plan.run().history


def test_columns_that_nobody_wants_behind_it_still_count() -> None:
    whole = {(le, p[0]) for le, _, p in read().sample(0.4).run().history.rows()}
    assert {(le, p[0]) for le, _, p in read().sample(0.4).select("id").run().history.rows()} == whole


def test_a_filter_goes_first_and_the_choice_stays() -> None:
    behind = read().sample(0.4).where(col("id") < 20)
    assert prune({"out": behind.node})["out"].kind == "sample"
    kept = {row for row in read().sample(0.4).run().history.rows() if row[2][0] < 20}
    assert set(behind.run().history.rows()) == kept


def test_a_correction_goes_with_its_row() -> None:
    rows = [{"ts": n, "to": n + 9, "kind": "+", "now": None, "id": n} for n in range(40)]
    rows += [{**row, "kind": "-", "now": row["ts"] + 3} for row in rows[::2]]
    stream = cz.from_rows(rows, time="ts", end="to", kind="kind", new_end="now")
    kept = {p[0] for _, _, p in stream.sample(0.5, seed=5).run().history.rows()}
    whole = [row for row in stream.run().history.rows() if row[2][0] in kept]
    assert 10 < len(kept) < 30
    assert sorted(stream.sample(0.5, seed=5).run().history.rows()) == sorted(whole)


def test_the_oracle_hashes_every_type_as_the_engine_does() -> None:
    inner = pa.struct([("x", pa.int64()), ("y", pa.string())])
    types = [
        *(("i", pa.int16()), ("u", pa.uint64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.binary())),
        *(("d", pa.decimal128(20, 3)), ("day", pa.date32()), ("t", pa.timestamp("us")), ("o", pa.bool_())),
        ("st", inner),
    ]
    full = [-2, 2**64 - 1, -0.0, "hé", b"12345678", Decimal("-12.345"), date(1969, 1, 2)]
    full += [datetime(2020, 1, 1, 2, 3, 4, 5), True, {"x": 1, "y": "a longer text than eight"}]
    names = [name for name, _ in types]
    rows = [dict(zip(names, full, strict=True)), dict.fromkeys(names)]
    rows += [{**rows[0], name: None} for name in names] + [{**rows[1], "f": float("nan"), "s": ""}]
    table = pa.Table.from_pylist(
        [{"ts": n, **row} for n, row in enumerate(rows)], pa.schema([("ts", pa.int64()), *types])
    )
    for seed in range(4):
        got = cz.from_arrow(table, time="ts").sample(0.5, seed=seed).run().history.rows()
        wanted = oracles.sample([(n, n + 1, row) for n, row in enumerate(rows)], 0.5, seed, pa.schema(types))
        assert sorted(le for le, _, _ in got) == [le for le, _, _ in wanted]


def test_shares_and_seeds_that_are_none_are_refused() -> None:
    with pytest.raises(PlanError, match=r"1\.5 is no share"):
        read().sample(1.5)
    with pytest.raises(PlanError, match="the seed is"):
        read().sample(0.5, seed=2**70)


def test_the_secret_of_a_query_has_no_part_in_the_choice() -> None:
    plan = read().select("id").sample(0.5)
    chosen = []
    for number in range(2):
        query = Query({"out": plan.node}, secret=Secret(bytes([number] * Secret.SIZE)))
        query.run()
        chosen.append(
            sorted(row for page in query.take("out") if isinstance(page, Page) for row in page.rows())
        )
    assert chosen[0] == chosen[1] and 0 < len(chosen[0]) < len(ROWS)
