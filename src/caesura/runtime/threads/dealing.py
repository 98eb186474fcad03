"""Rows dealt to buckets as they lie, where windows of a key can be put together afterwards.

To find a row's bucket by its key costs about as much as to bring it into its window. So where windows merge,
a page is cut into as many slices as there are buckets, each brings its own into windows of its own, and then
every bucket takes over those of its keys (`caesura.ops.aggregate.dealt`). Where keys are many next to rows,
windows would change hands as often as rows: those come by their keys.

Law: however rows come, round by round, what leaves is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from caesura.events import Item, Page
from caesura.events.identity import Secret, identity
from caesura.events.page import concat, take_rows
from caesura.kernels.dividing import RowsByBucket
from caesura.kernels.sums import each_once
from caesura.ops.aggregate.dealt import dealt_windows
from caesura.plan import Operator
from caesura.runtime.threads.routing import by_bucket
from caesura.runtime.threads.spreading import DealtStep

LEAST = 1 << 15
"""A slice of fewer rows is not worth another thread."""
MANY = 12
"""Rows come by their keys unless there are so many times as many as windows to be taken over."""
PAUSE = 16
"""For so many rounds they then do, before it is asked again."""
SAMPLE = 1 << 14


class DealtPart:
    """What one bucket has of windows of any key, and which bucket each of them is for."""

    def __init__(self, operator: Operator, keys: Sequence[str]) -> None:
        windows = dealt_windows(operator)
        assert windows is not None, "only windows that merge are dealt to"
        self.windows = windows
        self._keys = list(keys)
        self._rows: RowsByBucket

    def divide(self, buckets: int, secret: Secret) -> None:
        """Finds the bucket of each key that came."""
        keys = self.windows.keys().select(self._keys)
        self._rows = by_bucket(keys.columns, keys.num_rows, buckets, secret)

    def take_over(self, other: DealtPart, number: int) -> None:
        """Takes the windows of another that are for this bucket."""
        self.windows.take_over(other.windows, other._rows[number])


class Dealer:
    """Says, round by round, whether rows are dealt, and deals them."""

    def __init__(self, step: DealtStep, buckets: int, secret: Secret) -> None:
        self.label = step.edge.label
        self._keys = list(step.edge.keys or ()) if step.may_divide else []
        self._buckets, self._secret = buckets, secret
        self._pause, self._few_keys = 0, False

    @property
    def deals_now(self) -> bool:
        """Whether rows are dealt, by what is known of their keys."""
        return self._pause == 0 and (self._few_keys or not self._keys)

    def deals(self, items: Sequence[Item]) -> bool:
        """Whether the rows of a round are dealt, rather than divided by their keys."""
        if not self._keys:
            return True
        largest = max((item for item in items if isinstance(item, Page)), key=len, default=None)
        if largest is None or len(largest) < LEAST * self._buckets:
            return False
        if self._pause:
            self._pause -= 1
            return False
        self._few_keys = self._few_keys or self._has_few_keys(largest)
        self._pause = 0 if self._few_keys else PAUSE
        return self._few_keys

    def _has_few_keys(self, page: Page) -> bool:
        """Whether a page has so few keys, by how many some of its rows have."""
        some = np.arange(0, len(page), max(1, len(page) // SAMPLE))
        keys = take_rows(page.payload.select(self._keys), some)
        hashes = identity(keys.columns, len(some), self._secret.routing)[0]
        found = len(each_once(hashes.view(np.int64)))
        met = len(some) - found
        # Of d keys, n rows leave few out where they meet as often as not; else n * n / 2d of them meet.
        count = 1.25 * found if met >= found else len(some) ** 2 / max(1, 2 * met)
        return MANY * self._buckets * count < len(page)

    def hands(self, items: Sequence[Item]) -> list[Page | None]:
        """What each bucket gets; a few rows go to one of them."""
        pages = [item for item in items if isinstance(item, Page)]
        page = concat(pages, pages[0].schema) if len(pages) > 1 else pages[0] if pages else None
        count = 0 if page is None else len(page)
        hands = max(1, min(self._buckets, count // LEAST))
        ends = [count * n // hands for n in range(hands + 1)]
        parts = [page.slice(a, b - a) for a, b in pairwise(ends)] if page is not None else []
        return [*parts, *[None] * (self._buckets - len(parts))]

    def note(self, items: Sequence[Item], windows: int) -> None:
        """Takes down how many windows changed hands for the rows of a round."""
        rows = sum(len(item) for item in items if isinstance(item, Page))
        if MANY * windows > rows:
            self._few_keys, self._pause = False, PAUSE
