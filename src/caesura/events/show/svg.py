"""Lifetimes as a picture: SVG without scripts, readable on a light and on a dark page.

>>> from caesura.events import parse
>>> items = parse(" LE RE | id |\\n 10 20 | 3 | +\\n 10 20->15 | 3 | -\\n-- definite: time < 20 --")
>>> picture = drawn_svg(items)
>>> picture.count('class="row"'), picture.count('class="cut"'), picture.count('class="promise"')
(2, 1, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events.draw import shown_time, shown_value
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.printable import printable
from caesura.punctuation import INFINITY, Intent

MAX_ROWS = 500
"""So many lines are drawn; the others are counted."""
MAX_TEXT = 60
CHARACTER = 7.3
LINE = 24
BAR = 12
TICKS = 7
SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 10800, 21600, 43200, 86400)
CLOCK = tuple(1_000_000 * seconds for seconds in SECONDS)
"""Steps that people know, in microseconds."""
STYLE = (
    "svg:root{color:#1c1f23;background:#fff}"
    "@media (prefers-color-scheme:dark){svg:root{color:#e4e6e8;background:#131416}}"
    ".caesura text{fill:currentColor;font:12px ui-monospace,Menlo,Consolas,monospace}"
    ".caesura .axis{stroke:currentColor;stroke-opacity:.2}"
    ".caesura .row{fill:#4a90c2;stroke:#4a90c2}"
    ".caesura .final{fill:#3f9b5c;stroke:#3f9b5c}"
    ".caesura .partial{fill:#4a90c2;fill-opacity:.3;stroke:#4a90c2;stroke-dasharray:4 3}"
    ".caesura .cut{fill:#d0654a;fill-opacity:.18;stroke:#d0654a;stroke-dasharray:4 3}"
    ".caesura .promise{stroke:#3f9b5c;stroke-width:2}"
    ".caesura .past{fill:#3f9b5c;fill-opacity:.12}"
)
"""Alone, a picture has a background; on a page it takes the page's colours."""
CLASSES = {"+": "row", "-": "row", "=": "final", "~": "partial"}


@dataclass(frozen=True)
class DrawnLine:
    """A line of the picture: cells and a sign, and what is drawn beside them."""

    cells: tuple[str, ...]
    sign: str
    le: int = 0
    re: int = 0
    new: int | None = None
    promised: int | None = None


def timeline_svg(
    page: Page, *, schema: pa.Schema | None = None, time: pa.DataType | None = None, width: int = 40
) -> str:
    """The rows of a page, each with its lifetime as a bar; the bars take ``width`` times 10 pixels."""
    return drawn_svg([page], schema=schema, time=time, width=width, signs=False)


def drawn_svg(
    items: Iterable[Item],
    *,
    schema: pa.Schema | None = None,
    time: pa.DataType | None = None,
    width: int = 40,
    signs: bool = True,
) -> str:
    """Stream items in the order in which they came: rows, what was taken back of them, promises."""
    if not 1 <= width <= 1000:
        raise PlanError(f"a picture {width} characters wide cannot be drawn.", remedy="Give width=1 to 1000.")
    some = list(items)
    names = list(schema.names) if schema else next((i.schema.names for i in some if isinstance(i, Page)), [])
    lines = [line for item in some for line in _lines(item)]
    shown = lines[:MAX_ROWS]
    tick = partial(shown_time, time=time)
    heads = tuple(printable(name) for name in names) + (("",) if signs else ())
    columns = _columns(heads, shown, signs)
    wide = max([sum(columns), *(len(line.cells[0]) + 2 for line in shown if not line.sign)])
    left = round(wide * CHARACTER) + 12
    scale = _scale(shown, left, width * 10)
    clock = time is not None and pa.types.is_timestamp(time)
    parts = [*_axis(scale, shown, tick, clock, LINE * (len(shown) + 1))]
    parts += _texts(heads, columns, 16)
    for place, line in enumerate(shown):
        y = LINE * (place + 1)
        cells = (*line.cells, line.sign) if signs and line.sign else line.cells
        parts += _texts(cells, columns, y + 16) + _marks(line, scale, y + (LINE - BAR) // 2)
    height = LINE * (len(shown) + 1) + 4
    if len(lines) > len(shown):
        height += LINE
        parts.append(f'<text x="4" y="{height - 10}">and {len(lines) - len(shown):,} more</text>')
    size = f'width="{scale.right + 12}" height="{height}" viewBox="0 0 {scale.right + 12} {height}"'
    about = f"{len(lines)} lifetimes" if not signs else f"{len(lines)} items of a stream"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="caesura" role="img" aria-label="{about}" {size}>'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )


def _lines(item: Item) -> Iterable[DrawnLine]:
    if not isinstance(item, Page):
        bound = item.pattern.time_bound if item.intent is Intent.DEFINITE else None
        yield DrawnLine((_short(printable(str(item))),), "", promised=bound)
        return
    first = "=" if item.settled else "~" if item.partial else "+"
    for le, re, new, row in item.rows():
        yield DrawnLine(
            tuple(_short(shown_value(v)) for v in row), first if new is None else "-", le, re, new
        )


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _columns(heads: tuple[str, ...], lines: Sequence[DrawnLine], signs: bool) -> list[int]:
    """How many characters each column takes; a promise writes over all of them and the bars."""
    rows = [(*line.cells, line.sign) if signs else line.cells for line in lines if line.sign]
    return [2 + max([len(head), *(len(row[at]) for row in rows)]) for at, head in enumerate(heads)]


@dataclass(frozen=True)
class _Pixels:
    first: int
    last: int
    left: int
    right: int
    """Pixels."""

    def at(self, t: int) -> float:
        share = (min(max(t, self.first), self.last) - self.first) / (self.last - self.first)
        return round(self.left + share * (self.right - self.left), 1)


def _scale(lines: Sequence[DrawnLine], left: int, width: int) -> _Pixels:
    times = [
        t for line in lines if line.sign for t in (line.le, line.re, line.new or line.le) if t < INFINITY
    ]
    times += [line.promised for line in lines if line.promised is not None and line.promised < INFINITY]
    first, last = (min(times), max(times)) if times else (0, 1)
    if any(line.sign and line.re >= INFINITY for line in lines):
        last += max(1, last - first)
    return _Pixels(first, max(last, first + 1), left, left + width)


def _axis(
    scale: _Pixels, lines: Sequence[DrawnLine], tick: Callable[[int], str], clock: bool, bottom: int
) -> Iterable[str]:
    """A thin line and its time at each start and end, or at round times where these are too many."""
    ends = {t for line in lines if line.sign for t in (line.le, line.re, line.new or line.le)}
    ends |= {line.promised for line in lines if line.promised is not None}
    exact = sorted(t for t in ends if scale.first <= t <= scale.last)
    step = _step(scale.last - scale.first, clock)
    round_times = list(range(-(-scale.first // step) * step, scale.last + 1, step))
    free = scale.left - CHARACTER
    for t in exact if len(exact) <= TICKS else round_times:
        x, text = scale.at(t), tick(t)
        yield f'<line class="axis" x1="{x}" y1="{LINE - 4}" x2="{x}" y2="{bottom}"/>'
        room = len(text) * CHARACTER / 2
        middle = min(max(x, scale.left - CHARACTER + room), scale.right + CHARACTER - room)
        if middle - room >= free:
            yield f'<text x="{middle:.1f}" y="16" text-anchor="middle">{escape(text)}</text>'
            free = middle + room + CHARACTER


def _step(span: int, clock: bool) -> int:
    """A round number, or a round time of the clock, of which a span holds at most seven."""
    step = next((some for some in CLOCK if clock and span // some < TICKS), 1)
    while span // step >= TICKS:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step


def _texts(cells: Sequence[str], columns: Sequence[int], y: int) -> list[str]:
    starts = [sum(columns[:at]) * CHARACTER + 4 for at in range(len(cells))]
    return [
        f'<text x="{x:.1f}" y="{y}">{escape(cell)}</text>'
        for x, cell in zip(starts, cells, strict=True)
        if cell
    ]


def _marks(line: DrawnLine, scale: _Pixels, y: int) -> list[str]:
    if line.promised is not None:
        x = scale.at(line.promised)
        past = f'<rect class="past" x="{scale.left}" y="{y}" width="{x - scale.left:.1f}" height="{BAR}"/>'
        return [past, f'<line class="promise" x1="{x}" y1="{y - 5}" x2="{x}" y2="{y + BAR + 5}"/>']
    if not line.sign:
        return []
    kept = line.re if line.new is None else line.new
    marks = [_bar(CLASSES[line.sign], line.le, kept, scale, y)] if kept > line.le else []
    if line.new is not None and line.new < line.re:
        marks.append(_bar("cut", line.new, line.re, scale, y))
    return marks


def _bar(kind: str, start: int, end: int, scale: _Pixels, y: int) -> str:
    """A lifetime; without an end it has a point."""
    left, right = scale.at(start), scale.at(end)
    right = max(right, left + 2)
    tip = f"L{right + 8} {y + BAR / 2}" if end >= INFINITY else ""
    return f'<path class="{kind}" d="M{left} {y}L{right} {y}{tip}L{right} {y + BAR}L{left} {y + BAR}Z"/>'
