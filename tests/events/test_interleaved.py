"""Pages of several origins become one page by time, and no origin's rows change places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from caesura.events import Page
from caesura.events.interleaved import by_time
from caesura.events.page import NO_NEW_END

INSERT = st.tuples(st.integers(0, 9), st.none())
RETRACT = st.tuples(st.integers(0, 9), st.integers(0, 9))
ORIGINS = st.lists(st.lists(st.lists(st.one_of(INSERT, RETRACT), max_size=4), max_size=3), max_size=4)


def page(rows: list[tuple[int, int | None]], origin: int, first: int) -> Page:
    """Events without end that start then, and retracts of others to a later end or none."""
    payload = pa.record_batch(
        {"origin": np.full(len(rows), origin), "n": np.arange(first, first + len(rows))}
    )
    starts = [start for start, _ in rows]
    ends = [NO_NEW_END if more is None else start + more for start, more in rows]
    return Page.of(payload, le=starts, re=[99] * len(rows), re_new=ends)


@settings(max_examples=200)
@given(ORIGINS)
def test_rows_come_by_time_and_those_of_an_origin_as_they_came(drawn: list) -> None:  # type: ignore[type-arg]
    origins = []
    for origin, pages in enumerate(drawn):
        starts = np.cumsum([0, *map(len, pages)])
        origins.append([page(rows, origin, int(first)) for rows, first in zip(pages, starts, strict=False)])
    made = by_time(origins)
    rows = [(r["origin"], r["n"]) for p in made for r in p.payload.to_pylist()]
    assert sorted(rows) == sorted(
        (r["origin"], r["n"]) for o in origins for p in o for r in p.payload.to_pylist()
    )
    for origin in range(len(origins)):
        numbers = [n for o, n in rows if o == origin]
        assert numbers == sorted(numbers)
    if sum(any(map(len, o)) for o in origins) > 1:
        (one,) = made
        reached = {
            o: np.maximum.accumulate([s for (q, _), s in zip(rows, one.sync, strict=True) if q == o])
            for o, _ in rows
        }
        times = [int(reached[o][n]) for o, n in rows]
        assert times == sorted(times)


def test_pages_of_another_kind_stay_as_they_are() -> None:
    settled = page([(1, None)], 0, 0).as_inserts()
    settled.__dict__["settled"] = True
    assert by_time([[settled], [page([(0, None)], 1, 0)]])[0] is settled
