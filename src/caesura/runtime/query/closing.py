"""Things that are closed at the end of a ``with``.

>>> class Door(Closing):
...     def close(self):
...         print("closed")
>>> with Door():
...     pass
closed
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Self


class Closing:
    """Has a ``close()``, which the end of a ``with`` calls."""

    @abstractmethod
    def close(self) -> None:
        """Releases what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
