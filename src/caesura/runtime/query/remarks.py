"""What a result says besides its rows: what came too late, was refused or waits, and why there is nothing.

>>> import caesura as cz
>>> rows = [{"ts": 1, "id": 7}, {"ts": 90, "id": 8}, {"ts": 2, "id": 9}]
>>> clicks = cz.from_rows(rows, time="ts", punctuate=cz.delay(5), name="clicks")
>>> for line in clicks.where("id > 8").run().remarks:
...     print(line)
1 of 3 rows of 'clicks' came too late (result.late['clicks']).
No row came out: 'where' passed none of 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from caesura.plan import Counters, Node, walk
from caesura.runtime.graph.rejected import STOPPED

LINES = 6
"""So many are shown at most."""
NUMBERED = re.compile(r" \d+$")
"""What tells steps of one name apart."""
LATE = r"came after|is below its lane's bound|is behind"
"""What the reason of a row says that came behind a promise."""


def remarks(
    node: Node, late: Mapping[str, pa.Table], counters: Mapping[str, Counters], *, empty: bool
) -> list[str]:
    """A line for each thing that a reader of the rows alone would not see."""
    steps = {one.name or one.step for one in walk(node) if one.inputs}
    lines: list[str] = []
    for name, table in late.items():
        of_step = name.endswith(STOPPED) or NUMBERED.sub("", name) in steps
        lines += (_at_step if of_step else _refused)(name, table, counters.get(name))
    lines += _held_back(counters)
    if empty:
        lines += _emptied(node, {name: c for name, c in counters.items() if name not in late})
    return lines


def shown(lines: list[str]) -> list[str]:
    """As many of them as are printed behind the rows."""
    more = len(lines) - LINES
    return lines if more <= 0 else [*lines[:LINES], f"And {more} more (result.remarks)."]


def _at_step(name: str, table: pa.Table, counted: Counters | None) -> Iterator[str]:
    """How many rows a step speaks of, and where they are."""
    of = _of(table, counted)
    rows = f"{table.num_rows}{of} rows" if of else _rows(table.num_rows)
    yield f"{rows} at {name!r}: {_reason(table)} (result.late[{name!r}])."


def _of(table: pa.Table, counted: Counters | None) -> str:
    known = counted is not None and counted.rows_in >= table.num_rows
    return f" of {counted.rows_in}" if counted is not None and known else ""


def _refused(name: str, table: pa.Table, counted: Counters | None) -> Iterator[str]:
    """How many rows of a source were turned away, and where they are."""
    asked, of = f"(result.late[{name!r}])", _of(table, counted)
    kinds = table.column("kind")
    promises = pc.equal(kinds, "punctuation")
    behind = pc.match_substring_regex(table.column("reason"), LATE)
    parts = {
        "came too late": pc.and_not(behind, promises),
        "": pc.and_not(pc.invert(behind), promises),
    }
    for said, mask in parts.items():
        some = table.filter(mask)
        if some.num_rows:
            count = f"{some.num_rows}{of}" if of else str(some.num_rows)
            rows = "row" if some.num_rows == 1 and not of else "rows"
            yield f"{count} {rows} of {name!r} {said or f'were refused: {_reason(some)}'} {asked}."
    told = table.filter(promises)
    if told.num_rows:
        yield f"{told.num_rows} punctuation of {name!r} did not count: {_reason(told)} {asked}."
    gone = 0 if counted is None else counted.extra.get("late_dropped", 0)
    if gone:
        yield f"{_rows(gone)} of {name!r} that were refused before these are no longer kept."


def _reason(table: pa.Table) -> str:
    """The first reason, and how many others there are."""
    reasons = table.column("reason").unique().to_pylist()
    more = "" if len(reasons) == 1 else f", and {len(reasons) - 1} more reason{'s' * (len(reasons) > 2)}"
    return f"{str(reasons[0]).rstrip('.')}{more}"


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _held_back(counters: Mapping[str, Counters]) -> Iterator[str]:
    """Rows that wait for their turn to be final."""
    for name, counted in counters.items():
        if name == "output final" and counted.state_rows:
            yield f"{_rows(counted.state_rows)} of the output may still change, and wait to be final."


def _emptied(node: Node, counters: Mapping[str, Counters]) -> Iterator[str]:
    """Which steps were given rows and gave none; what is known of the reason."""
    nodes = {one.name or one.step: one for one in walk(node)}
    for name, counted in counters.items():
        if counted.rows_in == 0 or counted.rows_out:
            continue
        own = nodes.get(name)
        if own is not None and own.caution:
            yield f"No row came out: {name!r} {own.caution}."
        elif own is not None and own.kind == "where":
            yield f"No row came out: {name!r} passed none of {counted.rows_in}."
        else:
            held = f", and holds {_rows(counted.state_rows)}" if counted.state_rows else ""
            yield f"No row came out: {name!r} was given {_rows(counted.rows_in)} and gave none{held}."
