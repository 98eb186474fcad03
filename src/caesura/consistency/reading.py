"""A claimed view as the source of another pipeline: its claims come with its rows, as tokens.

So a pipeline in two queries, joined by storage, still answers for one prefix of the first one's sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from caesura.consistency.claim import Prefix
from caesura.consistency.store import Manifest, Store, Written
from caesura.errors import CaesuraError, DataError, StreamError, closest
from caesura.io.ingress.policy import at_end
from caesura.io.ingress.shape import Shape
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.source import Source
from caesura.plan import Raw, SourceBatch, here

Break = tuple[int, dict[str, Prefix]]
"""So many rows of the view, and the prefix of the sources behind it that they answer for."""


class ClaimedReader(Reader):
    """Reads what the manifests of a folder name, in the order of the claims."""

    def __init__(self, store: Store, view: str) -> None:
        self.store = store
        self.view = view
        chain = store.chain()
        self._generation = 1 if chain.last is None else chain.last.claim.generation
        begun = "" if self._generation == 1 else f":{self._generation}"
        self.key = f"claimed:{store.path}:{view}{begun}"
        self.schema = store.schema(view)
        self._known: int | None = None
        """How many claims were there when they were asked for; None where nobody asked."""

    def claims(self) -> list[Break]:
        """Where claims stand among the rows; what is written later is not read before they are asked again.

        They are counted in the files that are read: a claim may have been made by a process that had
        written only the last of them.
        """
        manifests = self.manifests()
        self._known = len(manifests)
        found, at = [], 0
        for manifest in manifests:
            named = {f"{self.view}/{source}": p for source, p in manifest.claim.prefix.items()}
            at += sum(written.rows for written in manifest.files.get(self.view, ()))
            found.append((at, named))
        return found

    def manifests(self) -> list[Manifest]:
        """Those of the generation that is read; offsets count the rows of one."""
        manifests = self.store.chain().manifests
        now = manifests[-1].claim.generation if manifests else 1
        if now != self._generation:
            raise StreamError(
                f"'{self.view}' of '{self.store.path}' has begun anew in generation {now}, and this query "
                f"reads generation {self._generation}.",
                remedy="Start it again, with on_change='rebuild' or with a new checkpoint and a new sink.",
            )
        return [m for m in manifests if m.claim.generation == now]

    @property
    def finished(self) -> bool:
        """Whether the pipeline that writes the view has read its own sources to their ends."""
        manifests = self.manifests()
        return bool(manifests) and all(p.closed for p in manifests[-1].claim.prefix.values())

    def latest(self) -> Offsets:
        manifests = self.manifests()[: self._known]
        return {0: sum(w.rows for m in manifests for w in m.files.get(self.view, ()))}

    def read(self, offsets: Offsets) -> Iterator[SourceBatch]:
        manifests = self.manifests()[: self._known]
        return self._rows([w for m in manifests for w in m.files.get(self.view, ())], offsets.get(0, 0))

    def _rows(self, files: Iterable[Written], skip: int) -> Iterator[Raw]:
        import pyarrow.parquet as pq

        at = 0
        for written in files:
            end = at + written.rows
            if end > skip:
                file = self.store.folder_of(self._generation) / self.view / written.file
                rows = pq.read_table(file.open(), schema=self.schema).slice(max(0, skip - at))
                begin = max(at, skip)
                for batch in rows.to_batches():
                    yield Raw(0, begin, batch)
                    begin += batch.num_rows
            at = end

    def describe(self) -> str:
        begun = "" if self._generation == 1 else f" of generation {self._generation}"
        return f"claimed view '{self.view}'{begun}"


def claimed_source(path: str | Path, view: str) -> Source:
    """The step that reads a claimed view."""
    store = Store(path)
    try:
        known = store.about["views"]
        if view not in known:
            raise DataError(f"there is no view '{view}'.", remedy=closest(view, known))
        shape = Shape.of(time="LE", end="RE", kind="kind", new_end="RE_new")
        return Source(reader=ClaimedReader(store, view), shape=shape, policy=at_end())
    except CaesuraError as error:
        raise error.at("from_claimed", here()) from None
