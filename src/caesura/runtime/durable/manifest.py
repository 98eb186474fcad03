"""The manifests of a checkpoint: numbered, each made by one put that only one process can win.

    <checkpoint>/manifests/00000007.json      what holds: files of state, the epoch, what it gave
    <checkpoint>/state/00000007-3.chunks      what changed, by the start that manifest 3 began
    <checkpoint>/output/00000007-3.packets    what an epoch gave, for sinks that take it whole

The last one counts. A start begins with a manifest of its own, so that an earlier start, which may still
run somewhere, finds its next number taken and stops. Where old manifests were removed its number may be
free again: so whoever has made one looks whether a later one is there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from caesura.errors import DataError, StreamError
from caesura.events.chunks import STATE_FORMAT, later
from caesura.io.places import Place
from caesura.io.sinks.protocol import Part
from caesura.runtime.durable.change import SavedStep
from caesura.runtime.query.pipelines import StateLog

KEPT = 2
"""So many manifests stay: the last, and the one before, for whoever reads while it is made."""


@dataclass(frozen=True)
class SavedEpoch:
    """What a query had read, held and given at one moment."""

    query: str
    """The id of the query, which its sink knows it by."""
    plan: Mapping[str, str]
    """Its steps, in words."""
    number: int = -1
    start: int = -1
    """The number of the manifest that began the start that made this one."""
    epoch: int = -1
    """The last epoch that has given anything."""
    state: tuple[str, ...] = ()
    """The files of state, oldest first."""
    parts: tuple[Part, ...] = ()
    """What the epoch wrote for a sink whose parts count when they are committed."""
    output: str = ""
    """The file with what the epoch gave, for a sink that takes it whole."""
    steps: Mapping[str, SavedStep] = field(default_factory=dict)
    """What each step does, by which state is found again under another plan; none in manifests of 0.1.0."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of each output, in words."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """What the rows of each output say of being final."""
    version: int = 1
    """How many plans the query has had."""
    generation: int = 1
    """Which generation of the output epochs belong to."""
    format: int = field(default=STATE_FORMAT)

    @property
    def known_steps(self) -> Mapping[str, SavedStep]:
        """The steps; of a manifest that has texts alone, as far as those tell."""
        return self.steps or {n: SavedStep(text, "", "", True) for n, text in self.plan.items()}

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @staticmethod
    def from_bytes(data: bytes, file: Place) -> SavedEpoch:
        try:
            content: dict[str, Any] = json.loads(data)
            parts = tuple(Part(**part) for part in content.pop("parts"))
            steps = {label: SavedStep(**step) for label, step in content.pop("steps", {}).items()}
            made = SavedEpoch(**{**content, "state": tuple(content["state"]), "parts": parts, "steps": steps})
        except (ValueError, KeyError, TypeError):
            raise StreamError(
                f"'{file}' is not whole.",
                remedy="Put back the file as it was, or start with a new checkpoint.",
            ) from None
        if made.format > STATE_FORMAT:
            raise later(f"the checkpoint '{file}'", made.format, STATE_FORMAT)
        return made


class Manifests:
    """The manifests of one checkpoint, as one start of its query sees them."""

    def __init__(self, checkpoint: Place) -> None:
        self.checkpoint = checkpoint
        self._folder = checkpoint / "manifests"

    def last(self) -> SavedEpoch | None:
        """The manifest that counts; None of a new checkpoint."""
        while files := self._folder.files(".json"):
            with suppress(FileNotFoundError):  # the query that runs has made others meanwhile
                return SavedEpoch.from_bytes(files[-1].read_bytes(), files[-1])
        return None

    def saved(self) -> tuple[SavedEpoch, dict[str, bytes]] | None:
        """The manifest that counts, and what it says of the query but not of its steps; None of a new one.

        The query may run, and replace manifests and files of state meanwhile: both are of one moment.
        """
        last = self.last()
        while last is not None:
            try:
                return last, StateLog(self.checkpoint / "state", {}).load(last.state, steps=False)
            except (DataError, FileNotFoundError):
                before, last = last, self.last()
                if last is None or last.number == before.number:
                    raise
        return None

    def begin(self, first: SavedEpoch) -> SavedEpoch:
        """Takes the checkpoint for a start of its query, which goes on from the last manifest."""
        while True:
            before = self.last() or first
            number = before.number + 1
            made = replace(before, number=number, start=number)
            if self._file(number).create(made.to_bytes()):
                return made

    def add(self, made: SavedEpoch) -> None:
        """Makes a manifest count; refuses where another start has gone on from the one before it."""
        if not self._file(made.number).create(made.to_bytes()):
            raise self._taken(made.number)
        if (there := self._numbers())[-1] > made.number:
            self._file(made.number).remove()
            raise self._taken(there[-1])
        for number in there[:-KEPT]:
            self._file(number).remove()

    def _numbers(self) -> list[int]:
        return [int(file.stem) for file in self._folder.files(".json")]

    def _file(self, number: int) -> Place:
        return self._folder / f"{number:08d}.json"

    def _taken(self, number: int) -> StreamError:
        return StreamError(
            f"another process goes on with the checkpoint '{self.checkpoint}' (manifest {number}).",
            remedy="Let that one run, or stop it and start this one again; this one has given nothing since "
            "its last epoch.",
        )
