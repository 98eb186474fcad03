"""Where lifetimes lie between the first start and the last end that are shown.

>>> import pyarrow as pa
>>> page = Page.of(pa.record_batch({"id": [1, 2]}), le=[0, 5], re=[5, INFINITY])
>>> [(span.left, span.right, span.endless) for span in spans(page)]
[(0.0, 0.5, False), (0.5, 1.0, True)]
"""

from __future__ import annotations

from dataclasses import dataclass

from caesura.events import Page
from caesura.punctuation import INFINITY


@dataclass(frozen=True)
class ShownLifetime:
    """A lifetime as shares of what is shown."""

    left: float
    right: float
    endless: bool


def bounds(page: Page) -> tuple[int, int]:
    """The first start, and the last finite time; something further where a lifetime has no end."""
    times = [*page.le.tolist(), *(t for t in page.re.tolist() if t < INFINITY)]
    if not times:
        return 0, 1
    first, last = min(times), max(times)
    if (page.re >= INFINITY).any():
        last += max(1, last - first)
    return first, max(last, first + 1)


def spans(page: Page) -> list[ShownLifetime]:
    """The lifetimes of a page's rows."""
    first, last = bounds(page)
    size = last - first
    return [
        ShownLifetime((le - first) / size, 1.0 if re >= INFINITY else (re - first) / size, re >= INFINITY)
        for le, re in zip(page.le.tolist(), page.re.tolist(), strict=True)
    ]
