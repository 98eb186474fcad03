"""Times beyond Python's calendar are rows like others: drawn, compared, put in order."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

import caesura as cz
from caesura.events.far_times import FarTime, values

FAR = [-(2**62), 0, 2**62]
TYPES = [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_rows_with_far_times_come_back_as_they_were(kind: pa.DataType) -> None:
    far = [-(2**31), 0, 2**31 - 1] if pa.types.is_date(kind) else FAR
    column = pa.array(far, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    history = cz.from_arrow(pa.table({"t": [3, 2, 1], "at": column}), time="t").run().history
    assert history.ordered().payload.column("at").equals(column.take(pa.array([2, 1, 0])))
    assert str(history).count("\n") == 3


def test_far_times_lie_before_and_behind_all_dates() -> None:
    first, last = FarTime(-(2**60)), FarTime(2**60)
    some = datetime(2024, 5, 1)
    assert sorted([last, some, first]) == [first, some, last]
    assert sorted([last, first, FarTime(2**61)]) == [first, last, FarTime(2**61)]
    assert [str(t) for t in values(pa.array([2**63 - 1, 2**62], pa.timestamp("us")))] == [
        "inf",
        f"{2**62} since 1970",
    ]


def test_the_end_of_what_never_ends_is_shown() -> None:
    rows = cz.from_rows([{"ts": datetime(2024, 5, 1), "a": 1}], time="ts")
    both = rows.select(e=cz.end()).union(rows.forever().select(e=cz.end())).run()
    assert [line.split("|")[1].strip() for line in str(both).splitlines()[1:]] == [
        "'2024-05-01 00:00:00.000001'",
        "inf",
    ]
