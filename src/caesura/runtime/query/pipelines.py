"""Several views of one pipeline, run together: one prefix per claim for all of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from caesura.consistency import Claim, Mode, Synchronised, Tokens
from caesura.errors import DataError, StreamError, looked_up
from caesura.events import History
from caesura.events.chunks import Chunks
from caesura.io.places import Place
from caesura.misuse import checked_methods
from caesura.plan import Node, SourceNode, walk
from caesura.plan.prune import prune
from caesura.runtime.graph.schedule import Schedule, ScheduleName
from caesura.runtime.query.query import Query
from caesura.runtime.query.result import Result
from caesura.waiting import waiting

MAX_STATE_FILES = 32


@checked_methods
@dataclass(frozen=True)
class Views:
    """What came out of a pipeline: each view, and the claims about all of them."""

    results: Mapping[str, Result]
    claims: list[Claim] = field(default_factory=list)

    def __getitem__(self, view: str) -> Result:
        return looked_up(self.results, view, "view")

    def at(self, claim: Claim) -> dict[str, History]:
        """The state of every view at a claim: one prefix for all."""
        return {name: result.at(claim) for name, result in self.results.items()}


def run_views(
    nodes: Mapping[str, Node], mode: Mode | None, schedule: Schedule | ScheduleName | None = None
) -> Views:
    """Runs all views until every source is at its end."""
    query = Query(prune(nodes), claims=mode, schedule=schedule)
    query.run()
    late, counters = query.late(), query.counters()
    made = {n: Result(query.take(n), node, late, counters, query.claims) for n, node in nodes.items()}
    return Views(made, query.claims)


class StateLog:
    """Snapshots as files: what changed at each claim, and now and then everything.

    In files a step goes by its label: a fingerprint may hold what changes from process to process.
    """

    def __init__(self, folder: Place, labels: Mapping[str, str], tag: str = "") -> None:
        self.folder = folder
        self._tag = tag
        """What tells the files of one start from those of another."""
        self.labels = dict(labels)
        self.prints = {label: fingerprint for fingerprint, label in labels.items()}
        self.files: list[str] = []
        self.whole: dict[str, bytes] = {}
        self._all = False
        """Whether the next file holds everything, whatever changed."""
        self._replaced: list[str] = []
        """Files that the last full one has made superfluous; they go when another claim is made."""

    def save(self, number: int, chunks: Chunks) -> tuple[str, ...]:
        """Writes what changed; gives the files that a restart from here needs."""
        chunks = {_renamed(name, self.labels): data for name, data in chunks.items()}
        for name, data in chunks.items():
            if data is None:
                self.whole.pop(name, None)
            else:
                self.whole[name] = data
        full, self._all = self._all or len(self.files) >= MAX_STATE_FILES, False
        stale, self._replaced = self._replaced, self.files if full else []
        file = f"{number:08d}{self._tag}.chunks"
        (self.folder / file).put(_packed(self.whole if full else chunks))
        self.files = [file] if full else [*self.files, file]
        for name in stale:
            (self.folder / name).remove()
        return tuple(self.files)

    def begin_anew(self, chunks: Mapping[str, bytes]) -> None:
        """Takes these, under the labels of steps, for all there is: the next file holds them too."""
        self.files, self.whole, self._all = [], dict(chunks), True

    def sweep(self) -> None:
        """Removes files that nothing needs: those of saves that were cut off."""
        for file in self.folder.files(".chunks"):
            if file.name not in self.files:
                file.remove()

    def carry(self, names: Mapping[str, str], dropped: Iterable[str]) -> dict[str, bytes]:
        """The chunks that were loaded, under other labels; the next file holds all of them."""
        self.whole = {
            _renamed(name, names): data
            for name, data in self.whole.items()
            if name.partition("/")[0] not in dropped
        }
        self._all = True
        return self.named()

    def load(self, files: Iterable[str], *, steps: bool = True) -> dict[str, bytes]:
        """The chunks that these files leave; without ``steps``, those of the query alone."""
        files = tuple(files)
        with waiting("reading the saved state", len(files), "files") as progress:
            for file in files:
                self._take(self.folder / file, steps=steps)
                progress.done += 1
        self.files = list(files)
        return self.named()

    def named(self) -> dict[str, bytes]:
        """The chunks under the fingerprints of this process."""
        return {_renamed(name, self.prints): data for name, data in self.whole.items()}

    def _take(self, file: Place, *, steps: bool) -> None:
        """What a file changes of the state."""
        if not file.exists():
            raise DataError(
                f"'{file}', which a restart needs, is gone.",
                remedy="Put it back, or start anew in an empty folder.",
            )
        for name, data in self._read(file).items():
            if data is None:
                self.whole.pop(name, None)
            elif steps or "/" not in name:
                self.whole[name] = data

    @staticmethod
    def _read(file: Place) -> Chunks:
        try:
            return _unpacked(file.read_bytes())
        except (ValueError, TypeError, KeyError):
            raise StreamError(
                f"'{file}', which a restart needs, is not whole.",
                remedy="Put it back as it was, or start anew in an empty folder.",
            ) from None


def _renamed(name: str, names: Mapping[str, str]) -> str:
    head, _, rest = name.partition("/")
    return f"{names[head]}/{rest}" if rest and head in names else name


def _packed(chunks: Mapping[str, bytes | None]) -> bytes:
    bodies = [d for d in chunks.values() if d is not None]
    sizes = [[name, None if d is None else len(d)] for name, d in chunks.items()]
    head = json.dumps({"chunks": sizes, "check": _check(bodies)}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *bodies])


def _check(bodies: Iterable[bytes]) -> int:
    return reduce(lambda sum, body: zlib.crc32(body, sum), bodies, 0)


def _unpacked(data: bytes) -> Chunks:
    at = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:at])
    sizes = head["chunks"] if isinstance(head, dict) else head  # 0.1.0 wrote no check
    chunks: Chunks = {}
    for name, size in sizes:
        chunks[name] = None if size is None else data[at : at + size]
        at += size or 0
    bodies = [d for d in chunks.values() if d is not None]
    if len(data) != at or (isinstance(head, dict) and head["check"] != _check(bodies)):
        raise ValueError("is not what was written")
    return chunks


def source_labels(nodes: Mapping[str, Node]) -> dict[str, SourceNode]:
    """The sources of a plan under the names that claims give them."""
    labels: dict[str, SourceNode] = {}
    taken: set[str] = set()
    for node in walk(*nodes.values()):
        label, number = node.step, 2
        while label in taken:
            label, number = f"{node.step}-{number}", number + 1
        taken.add(label)
        if isinstance(node, SourceNode):
            labels[label] = node
    return labels


def token_mode(mode: Mode) -> Tokens | Synchronised:
    """The mode, if it makes claims that a restart can land on."""
    if isinstance(mode, (Tokens, Synchronised)):
        return mode
    raise StreamError(
        f"a pipeline cannot be written with {mode}: only a token is also a place to restart from.",
        remedy="Give claims=cz.tokens() or cz.synchronised(...).",
    )
