"""Lifetimes and windows as a plot; needs the extra ``plot``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caesura.errors import PlanError, closest
from caesura.events import Page
from caesura.events.draw import shown_value
from caesura.events.show.scale import bounds
from caesura.punctuation import INFINITY

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MAX_EDGES = 60
"""Beyond so many different times, no line is drawn at each of them."""


def plot(
    page: Page,
    schema: pa.Schema,
    time: pa.DataType,
    *,
    by: str | Sequence[str] = (),
    value: str | None = None,
) -> Figure:
    """Each lifetime as a line from its start to its end.

    Rows lie below each other, those of a group (``by``) together and in one colour; with ``value`` they
    lie as high as that column says. Dotted lines stand where lifetimes begin and end.
    """
    try:
        from plotly.graph_objects import Figure, Scatter
    except ImportError:
        raise PlanError(
            "plots need plotly, which is not installed.", remedy="Install it: pip install 'caesura[plot]'."
        ) from None
    keys = (by,) if isinstance(by, str) else tuple(by)
    for name in (*keys, *([value] if value else ())):
        if name not in schema.names:
            raise PlanError(f"there is no column '{name}' to plot.", remedy=closest(name, schema.names))
    figure = Figure()
    for label, lines in _lines(page, schema, time, keys, value).items():
        figure.add_trace(Scatter(x=lines.x, y=lines.y, text=lines.text, mode="lines+markers", name=label))
    for edge in _edges(page, time):
        figure.add_vline(x=edge, line_width=1, line_dash="dot", line_color="#cccccc")
    figure.update_layout(xaxis_title="time", yaxis_title=value or "rows", showlegend=bool(keys))
    if value is None:
        figure.update_yaxes(showticklabels=False, autorange="reversed")
    return figure


class _Lines:
    """The points of one trace; a None lifts the pen."""

    def __init__(self) -> None:
        self.x: list[Any] = []
        self.y: list[Any] = []
        self.text: list[Any] = []

    def add(self, start: Any, end: Any, height: Any, text: str) -> None:
        self.x += [start, end, None]
        self.y += [height, height, None]
        self.text += [text, text, None]


def _lines(
    page: Page, schema: pa.Schema, time: pa.DataType, keys: tuple[str, ...], value: str | None
) -> dict[str, _Lines]:
    last = bounds(page)[1]
    found: dict[str, _Lines] = {}
    rows = [(le, re, dict(zip(schema.names, row, strict=True))) for le, re, _, row in page.rows()]
    rows.sort(key=lambda row: ([shown_value(row[2][k]) for k in keys], row[0], row[1]))
    for number, (le, re, row) in enumerate(rows):
        label = ", ".join(f"{k}={shown_value(row[k])}" for k in keys) or "rows"
        text = ", ".join(f"{name}={shown_value(v)}" for name, v in row.items())
        end = last if re >= INFINITY else re
        height = number if value is None else row[value]
        found.setdefault(label, _Lines()).add(_moment(le, time), _moment(end, time), height, text)
    return found


def _edges(page: Page, time: pa.DataType) -> list[Any]:
    times = sorted({t for t in (*page.le.tolist(), *page.re.tolist()) if t < INFINITY})
    return [_moment(t, time) for t in times] if len(times) <= MAX_EDGES else []


def _moment(t: int, time: pa.DataType) -> Any:
    return pa.scalar(t, pa.timestamp("us")).as_py() if pa.types.is_timestamp(time) else t
