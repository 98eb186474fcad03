"""Streams as drawn tables: the same in tests, docs and the terminal.

>>> items = parse('''
...  LE  RE     | segment speed |
...  10  20     | 3       51.5  | +
...  10  20->15 | 3       51.5  | -   its end moves to 15
...  10  15     | 3       51.5  | -   and it goes
... -- definite: time < 20 --
... ''')
>>> print(draw(items))
 LE  RE     | segment speed |
 10  20     | 3       51.5  | +
 10  20->15 | 3       51.5  | -
 10  15     | 3       51.5  | -
-- definite: time < 20 --
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from caesura.errors import DataError, closest
from caesura.events.item import Item
from caesura.events.page import NO_NEW_END, Page
from caesura.events.written import read_nested, words, written
from caesura.kernels.ticks import FIRST
from caesura.printable import printable
from caesura.punctuation import INFINITY, Punctuation
from caesura.punctuation.parsing import drawn_time, parse_punctuation, reads

TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "ts": pa.timestamp("us"),
    "date": pa.date32(),
}


def parse(text: str, schema: pa.Schema | None = None) -> list[Item]:
    """Stream items from a drawn table.

    Parameters
    ----------
    text
        A header ``LE RE | names |``, and a line for each row: its start, its end, its values, ``+``; a
        correction has ``9->5`` for an end that moves, and ``-``. A line between ``--`` is a punctuation.
    schema
        The columns' types; without it they are told by ``name:type`` in the header (int, float, str,
        bool, ts, date), or by their values.

    Returns
    -------
    list
        Pages and punctuation; neighbouring rows of a kind form one page.

    Raises
    ------
    DataError
        Where a line cannot be read.

    See Also
    --------
    draw : the inverse.

    Examples
    --------
    >>> import caesura as cz
    >>> items = cz.parse('''
    ...  LE RE   | id |
    ...   1 9    | 7  | +
    ...   1 9->5 | 7  | -
    ...  -- definite: time < 5 --
    ... ''')
    >>> print(cz.draw(items))
     LE  RE   | id |
      1  9    | 7  | +
      1  9->5 | 7  | -
    -- definite: time < 5 --
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or "|" not in lines[0]:
        raise DataError(
            "a drawn stream starts with its header.", remedy="Begin with a line like ' LE  RE | id speed |'."
        )
    names = lines[0].split("|")[1].split()
    body = [_line(line, len(names)) for line in lines[1:]]
    schema = schema or _infer(names, [row for row in body if not isinstance(row, Punctuation)])
    return _paged(body, schema)


_Drawn = tuple[int, int, int, list[str]]


def _line(line: str, columns: int) -> _Drawn | Punctuation:
    if line.lstrip().startswith("--"):
        return parse_punctuation(line.strip().strip("- "))
    parts = line.split("|")
    if len(parts) < 2:
        raise DataError(f"cannot read the drawn line {line!r}.", remedy="A row is ' LE RE | values | +'.")
    left, right = parts[0].split(), words(parts[1])
    sign = parts[2].split()[0] if len(parts) > 2 and parts[2].split() else "+"
    if len(left) != 2:
        raise DataError(
            f"the drawn line {line!r} begins with {len(left)} times; wanted LE and RE.",
            remedy="A row is ' LE RE | values | +', a retract ' LE RE->new | values | -'.",
        )
    if sign not in ("+", "-"):
        raise DataError(
            f"the drawn line {line!r} is marked '{sign}'.",
            remedy="Mark an insert with + and a retract with -.",
        )
    if len(right) != columns:
        raise DataError(
            f"the drawn line {line!r} has {len(right)} values; the header names {columns}.",
            remedy="Write null for a missing value, and quote strings that hold blanks.",
        )
    start = drawn_time(left[0])
    end, _, new = left[1].partition("->")
    return start, drawn_time(end), _ending(start, new, sign), right


def _ending(start: int, new: str, sign: str) -> int:
    if sign == "+":
        return NO_NEW_END
    return drawn_time(new) if new else start


def _type(name: str) -> pa.DataType:
    if name not in TYPES:
        raise DataError(f"a drawn column cannot be '{name}'.", remedy=closest(name, TYPES))
    return TYPES[name]


def _infer(names: Sequence[str], rows: list[_Drawn]) -> pa.Schema:
    fields = []
    for place, name in enumerate(names):
        plain, _, kind = name.partition(":")
        fields.append(pa.field(plain, _type(kind) if kind else _guess([row[3][place] for row in rows])))
    return pa.schema(fields)


def _guess(cells: list[str]) -> pa.DataType:
    some = [c for c in cells if c != "null"]
    if some and all(c in ("true", "false") for c in some):
        return pa.bool_()
    for test, kind in ((int, pa.int64()), (float, pa.float64())):
        if some and all(reads(test, c) for c in some):
            return kind
    return pa.string()


def _cell(text: str, kind: pa.DataType) -> Any:
    if text == "null":
        return None
    if pa.types.is_nested(kind):
        return read_nested(text, kind)
    if pa.types.is_boolean(kind):
        return text == "true"
    number = int if pa.types.is_integer(kind) else float if pa.types.is_floating(kind) else None
    if number is not None:
        if not reads(number, text):
            raise DataError(
                f"'{text}' is drawn in a column of {kind}.", remedy="Write a number, or null for none."
            )
        return number(text)
    text = text.strip("'")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.scalar(text).cast(kind).as_py()
    return text


def _paged(body: list[_Drawn | Punctuation], schema: pa.Schema) -> list[Item]:
    items: list[Item] = []
    run: list[_Drawn] = []
    for line in [*body, None]:
        if isinstance(line, tuple):
            run.append(line)
            continue
        if run:
            items.append(_page(run, schema))
            run = []
        if line is not None:
            items.append(line)
    return items


def _page(rows: list[_Drawn], schema: pa.Schema) -> Page:
    columns = [
        pa.array([_cell(row[3][i], field.type) for row in rows], field.type) for i, field in enumerate(schema)
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return Page.of(batch, le=[r[0] for r in rows], re=[r[1] for r in rows], re_new=[r[2] for r in rows])


def draw(items: Iterable[Item], *, schema: pa.Schema | None = None, time: pa.DataType | None = None) -> str:
    """The drawn table of a stream's items.

    Parameters
    ----------
    items
        Pages and punctuation.
    schema
        The payload's columns; without it, those of the first page.
    time
        With a type of timestamps, times as people read them; ticks without it.

    Returns
    -------
    str
        A line for each row, with ``+`` for a row and ``-`` for a correction, and for each punctuation.

    See Also
    --------
    parse : the inverse.

    Examples
    --------
    >>> import caesura as cz
    >>> rows = cz.from_rows([{"t": 1, "id": 7}], time="t")
    >>> print(cz.draw([rows.run().history.page, cz.cti(5)]))
     LE  RE | id |
      1  2  | 7  | +
    -- definite: time < 5 --
    """
    tick = partial(shown_time, time=time)
    some = list(items)
    names = list(schema.names) if schema else next((i.schema.names for i in some if isinstance(i, Page)), [])
    lines: list[tuple[str, str, list[str], str] | str] = []
    for item in some:
        if not isinstance(item, Page):
            lines.append(f"-- {item} --")
            continue
        for start, end, new, row in item.rows():
            arrow = "" if new is None or new == start else f"->{tick(new)}"
            cells = [shown_value(v) for v in row]
            first = "=" if item.settled else "~" if item.partial else "+"
            sign = first if new is None else "-"
            lines.append((tick(start), tick(end) + arrow, cells, sign))
    return layout(names, lines)


def layout(names: list[str], lines: list[tuple[str, str, list[str], str] | str]) -> str:
    """Rows of (LE, RE, cells, mark) and lines of their own, under a header: one line for each."""
    names = [printable(name) for name in names]
    lines = [
        printable(line) if isinstance(line, str) else (*line[:2], [printable(c) for c in line[2]], line[3])
        for line in lines
    ]
    rows = [line for line in lines if not isinstance(line, str)]
    first = max([2, *(len(r[0]) for r in rows)])
    second = max([2, *(len(r[1]) for r in rows)])
    widths = [max([len(n), *(len(r[2][i]) for r in rows)]) for i, n in enumerate(names)]

    def row(a: str, b: str, cells: list[str], sign: str) -> str:
        middle = " ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True))
        return f" {a.rjust(first)}  {b.ljust(second)} | {middle} | {sign}".rstrip()

    out = [row("LE", "RE", list(names), "")]
    out += [line if isinstance(line, str) else row(*line) for line in lines]
    return "\n".join(out)


def shown_time(t: int, time: pa.DataType | None = None) -> str:
    """A time as it is drawn."""
    if t >= INFINITY:
        return "inf"
    if t <= FIRST:
        return "-inf"
    if time is None or not pa.types.is_timestamp(time):
        return str(t)
    text = str(pa.scalar(t, pa.timestamp("us")).as_py())
    return text if "." not in text else text.rstrip("0")


def shown_value(v: object) -> str:
    """A value as it is drawn."""
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, dict | list):
        return printable(written(v))
    text = printable(str(v))
    return f"'{text}'" if " " in text or not text else text
