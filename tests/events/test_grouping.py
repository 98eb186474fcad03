"""Rows of a page by some columns, beside a table of those that were seen."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from caesura.events import grouping
from caesura.events.grouping import grouped


@pytest.mark.parametrize("texts", [["same"], [""], ["a", "aa"], ["ab", "ba"], ["x", "y", "z"]])
def test_rows_of_a_group_have_equal_values_and_groups_are_numbered_as_they_come(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "repeats", lambda texts: True)
    for seed in range(10):
        draw = random.Random(seed)
        number = [draw.randrange(4) for _ in range(60)]
        text = [draw.choice(texts) for _ in range(60)]
        for columns in ([number, text], [text, number], [text]):
            rows = list(zip(*columns, strict=True))
            known = {row: place for place, row in enumerate(dict.fromkeys(rows))}
            found = grouped([pa.array(["other", *c] if c is text else [9, *c])[1:] for c in columns], 60)
            assert found is not None
            assert found.number.tolist() == [known[row] for row in rows]
            assert found.first.tolist() == [rows.index(row) for row in known]


def test_rows_that_hardly_two_share_are_told_apart_by_what_they_are() -> None:
    number = pa.array([*range(50), 0, 1])
    assert grouped([number], 52) is not None
    assert grouped([number, pa.array(["x"] * 52)], 52) is None
