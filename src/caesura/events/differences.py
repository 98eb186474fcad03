"""Two histories drawn as one table, with what only one of them has marked.

>>> import pyarrow as pa
>>> schema = pa.schema([("shop", pa.string()), ("n", pa.int64())])
>>> same = [(10, 20, ("A", 5))]
>>> wanted = History.from_rows([(0, 10, ("A", 42)), *same], schema)
>>> print(drawn_difference(wanted, History.from_rows([(0, 10, ("A", 30)), *same], schema)))
  LE  RE | shop n  |
   0  10 | A    30 | only got
   0  10 | A    42 | only wanted
  10  20 | A    5  |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from caesura.events.draw import layout, shown_time, shown_value
from caesura.events.history import History, Row

NEAR = 2
"""So many rows that both have are shown on either side of one that only one has."""


def drawn_difference(
    wanted: History, got: History, marks: tuple[str, str] = ("only wanted", "only got")
) -> str:
    """The rows in canonical order, marked; far from what differs they are left out."""
    marked = list(_marked(wanted, got, marks))
    apart = [place for place, (_, mark) in enumerate(marked) if mark]
    lines: list[tuple[str, str, list[str], str] | str] = []
    last = -1
    for place, (row, mark) in enumerate(marked):
        if all(abs(place - other) > NEAR for other in apart):
            continue
        lines += [f"  ... {place - last - 1} rows alike"] if place > last + 1 else []
        cells = [shown_value(value) for value in row[2]]
        lines.append((" " + shown_time(row[0]), shown_time(row[1]), cells, mark))
        last = place
    lines += [f"  ... {len(marked) - last - 1} rows alike"] if len(marked) > last + 1 else []
    return layout(list(wanted.schema.names), lines)


def _marked(wanted: History, got: History, marks: tuple[str, str]) -> Iterator[tuple[Row, str]]:
    """Every row once per copy, with the mark of the side that alone has it."""
    missing, extra = (Counter(rows) for rows in wanted.difference(got))
    both = Counter(wanted.bag) - missing
    parts = ((both, ""), (missing, marks[0]), (extra, marks[1]))
    some = [(row, mark) for rows, mark in parts for row in rows.elements()]
    yield from sorted(some, key=lambda one: (one[0][0], one[0][1], str(one[0][2]), one[1]))
