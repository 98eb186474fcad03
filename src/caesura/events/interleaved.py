"""Pages of several origins as one page, by time: a step behind them then corrects as if there were one.

Each origin gives its rows of a round in pages that span the round's whole time. Taken one origin after the
other, the second would correct what followed from the first, the third what followed from both.

Law: the rows of an origin stay in the order in which they came, so that a retract follows its insert.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caesura.events.page import Page, concat


def by_time(origins: Sequence[Sequence[Page]]) -> list[Page]:
    """One page, its rows by sync time; the pages as they are where they are not of one kind."""
    given = [pages for pages in origins if any(map(len, pages))]
    pages = [page for some in given for page in some]
    if len(given) < 2 or not _alike(pages):
        return pages
    times = [np.maximum.accumulate(np.concatenate([page.sync for page in some])) for some in given]
    order = np.argsort(np.concatenate(times), kind="stable")
    return [concat(pages, pages[0].schema).take(order)]


def _alike(pages: Sequence[Page]) -> bool:
    first = pages[0].settled, pages[0].partial
    return all((page.settled, page.partial) == first and page.tags is None for page in pages)
