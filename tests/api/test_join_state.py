"""What a join looks at when rows end or are taken back: those rows, not all that it holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import caesura as cz
from caesura.events import Page
from caesura.events.ending import EndingRows
from caesura.events.page import NO_NEW_END
from caesura.ops.join.lookups import ByValue

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def page(keys: list[int], values: list[int], le: int, new: int | None = None) -> Page:
    rows = pa.record_batch({"k": keys, "v": values}, SCHEMA)
    ends = np.full(len(keys), NO_NEW_END if new is None else new)
    return Page.of(rows, le=np.full(len(keys), le), re=np.full(len(keys), cz.INFINITY), re_new=ends)


def pairs(how: str) -> list[tuple[int, int, tuple[object, ...]]]:
    """Many rows of one key, of which some are taken back in two steps, against one row of the other side."""
    left, right = cz.input_stream("a", SCHEMA), cz.input_stream("b", pa.schema([("k", pa.int64())]))
    query = left.join(right, on="k", how=how).query()  # type: ignore[arg-type]
    values = list(range(400))
    query.feed("a", page([7] * 400, values, 1))
    query.feed("b", Page.of(pa.record_batch({"k": [7]}), le=[2], re=[cz.INFINITY]))
    for at, some in ((3, values[:200]), (4, values[200:390])):
        query.feed("a", page([7] * len(some), some, 1, at))
        for label in ("a", "b"):
            query.feed(label, cz.cti(at + 1))
        query.run()
    return cz.History.of(query.take("out"), query.outputs["out"].schema).rows()


def test_rows_of_long_chains_are_taken_back_by_value() -> None:
    made = [(1 + 1, 3 if v < 200 else 4 if v < 390 else cz.INFINITY, (7, v)) for v in range(400)]
    assert sorted(pairs("inner")) == sorted(made)
    assert sorted(pairs("semi")) == sorted(made)


def test_rows_that_end_are_listed_while_they_are_few() -> None:
    ending, ends = EndingRows(), np.full(100, cz.INFINITY)
    ends[[5, 50]] = 7
    ending.add(np.arange(100), ends)
    ending.add(np.array([5]), np.array([6]))
    assert ending.rows(100).tolist() == [5, 50]  # type: ignore[union-attr]
    ending.keep(np.array([50]))
    assert ending.rows(100).tolist() == [50]  # type: ignore[union-attr]
    ending.add(np.arange(60), np.full(60, 9))
    assert ending.rows(100) is None
    ending.relist(ends)
    assert ending.rows(100).tolist() == [5, 50]  # type: ignore[union-attr]


def test_values_have_the_rows_that_have_them() -> None:
    rows = ByValue(np.array([1, 2, 1], np.uint64), np.array([1, 2, 1], np.uint64))
    rows.add(np.array([2], np.uint64), np.array([2], np.uint64))
    found = rows.find(np.array([1, 2, 3], np.uint64), np.array([1, 2, 3], np.uint64))
    owner, row = rows.chains.gather(found[:2])
    assert sorted(zip(owner.tolist(), row.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 1), (1, 3)]
    assert found[2] == -1
