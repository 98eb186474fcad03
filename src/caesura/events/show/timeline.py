"""A history as text with a bar for each lifetime.

The text still reads as a drawn stream: whatever stands behind the sign is a remark.

>>> from caesura.events import parse
>>> page, = parse(" LE RE | id |\\n 10 20 | 3 | +\\n 15 40 | 4 | +\\n 30 inf | 5 | +")
>>> print(timeline(page, width=20))
 LE  RE  | id |    10                70
 10  20  | 3  | +  [=)
 15  40  | 4  | +    [======)
 30  inf | 5  | +         [===========>
>>> [len(p) for p in parse(timeline(page))]
[3]
"""

from __future__ import annotations

import pyarrow as pa

from caesura.errors import PlanError
from caesura.events import Page, draw
from caesura.events.draw import shown_time
from caesura.events.show.scale import ShownLifetime, bounds, spans
from caesura.punctuation import INFINITY

WIDTH = 40


WIDEST = 10_000


def timeline(
    page: Page, *, schema: pa.Schema | None = None, time: pa.DataType | None = None, width: int = WIDTH
) -> str:
    """The rows of a page, drawn, each with its lifetime as a bar."""
    if not 1 <= width <= WIDEST:
        raise PlanError(
            f"a timeline {width} characters wide cannot be shown.", remedy=f"Give width=1 to {WIDEST}."
        )
    head, *lines = draw([page], schema=schema, time=time).splitlines()
    if not lines:
        return head
    room = max(len(line) for line in lines)
    first, last = bounds(page)
    end = shown_time(last, time) if last < INFINITY else ""
    start = shown_time(first, time)
    axis = start + end.rjust(max(len(end) + 1, width - len(start)))
    bars = [bar(span, width) for span in spans(page)]
    drawn = (f"{line.ljust(room)}  {one}".rstrip() for line, one in zip(lines, bars, strict=True))
    return "\n".join([f"{head.ljust(room)}  {axis}", *drawn])


def bar(span: ShownLifetime, width: int) -> str:
    """One lifetime: ``[==)``, ``|`` where it is shorter than a character, ``[==>`` without an end.

    >>> bar(ShownLifetime(0.25, 0.75, False), 8), bar(ShownLifetime(0.5, 0.5, False), 8)
    ('  [==)', '    |')
    """
    left = min(width - 1, round(span.left * width))
    right = round(span.right * width)
    if right - left < 2:
        return " " * left + (">" if span.endless else "|")
    return " " * left + "[" + "=" * (right - left - 2) + (">" if span.endless else ")")
