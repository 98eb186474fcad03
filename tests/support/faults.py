"""Kills a run at a chosen put or removal of any place, before it is done or after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from caesura.io.places.local import LocalStorage
from caesura.io.places.objects import ObjectStorage


class Killed(BaseException):
    """What a kill looks like from inside: nobody catches it."""


class Kill:
    """Counts puts and removals; the one with the number ``at`` is the last thing that happens."""

    def __init__(self, at: int | None, *, after: bool = False) -> None:
        self.at, self.after, self.count = at, after, 0

    @contextmanager
    def armed(self) -> Iterator[Kill]:
        with (
            patch.object(LocalStorage, "put", self._counted(LocalStorage.put)),
            patch.object(LocalStorage, "remove", self._counted(LocalStorage.remove)),
            patch.object(ObjectStorage, "put", self._counted(ObjectStorage.put)),
            patch.object(ObjectStorage, "remove", self._counted(ObjectStorage.remove)),
        ):
            yield self

    def _counted(self, real: Any) -> Any:
        def counted(storage: Any, *args: Any, **options: Any) -> None:
            if str(args[0]).endswith("lease.json"):  # a thread beats for it, whenever that comes
                real(storage, *args, **options)
                return
            number, self.count = self.count, self.count + 1
            if number == self.at and not self.after:
                raise Killed
            real(storage, *args, **options)
            if number == self.at:
                raise Killed

        return counted
