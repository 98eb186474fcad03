"""Tables and timelines as HTML, without scripts: they show wherever a notebook is read.

>>> table(["a"], [["<b>"]])
'<table class="caesura"><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import pyarrow as pa

from caesura.events import Page
from caesura.events.draw import shown_time, shown_value
from caesura.events.show.scale import ShownLifetime, spans
from caesura.printable import printable

MAX_ROWS = 200
"""So many rows are drawn; the others are counted."""
COLOURS = ("#2f6fab", "#b35c1e", "#3d8b40", "#8a4fa0", "#a8323e", "#5a6570")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]], *, note: str = "") -> str:
    """A table of plain cells."""
    head = "".join(f"<th>{escape(printable(name))}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(printable(str(c)))}</td>" for c in row) + "</tr>" for row in rows
    )
    below = f"<p><small>{escape(note)}</small></p>" if note else ""
    return f'<table class="caesura"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}'


def timeline_html(page: Page, schema: pa.Schema, time: pa.DataType | None = None) -> str:
    """The rows of a page with their lifetimes as bars, coloured by their first column."""
    shown = page.slice(0, min(len(page), MAX_ROWS))
    heads = "".join(f"<th>{escape(printable(name))}</th>" for name in ("LE", "RE", *schema.names, "lifetime"))
    colours: dict[str, str] = {}
    rows = []
    for (le, re, _, values), span in zip(shown.rows(), spans(shown), strict=True):
        cells = [shown_time(le, time), shown_time(re, time), *(shown_value(v) for v in values)]
        key = cells[2] if values else ""
        colour = colours.setdefault(key, COLOURS[len(colours) % len(COLOURS)])
        plain = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr>{plain}<td style="min-width:260px">{_bar(span, colour)}</td></tr>')
    more = len(page) - len(shown)
    below = f"<p><small>and {more} more rows</small></p>" if more else ""
    return (
        '<table class="caesura-timeline" style="border-collapse:collapse;text-align:left">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>{below}"
    )


def _bar(span: ShownLifetime, colour: str) -> str:
    width = max(1.0, 100 * (span.right - span.left))
    left = min(100 * span.left, 99.0)
    edge = "border-radius:2px 0 0 2px" if span.endless else "border-radius:2px"
    fill = f"linear-gradient(90deg,{colour} 60%,transparent)" if span.endless else colour
    inner = f"position:absolute;left:{left:.1f}%;width:{width:.1f}%;height:10px;background:{fill};{edge}"
    return f'<div style="position:relative;height:10px"><div style="{inner}"></div></div>'
