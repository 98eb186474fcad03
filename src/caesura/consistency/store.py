"""Claims on storage: the views of a pipeline as files, and a manifest per claim that names them.

    <path>/<view>/claim-00000007.parquet    what the view gave since the claim before
    <path>/_claims/00000007.json            the claim, its files with their sizes and hashes
    <path>/_pipeline/                       the views' columns, the sources, the plan

A manifest appears, whole, after all files that it names. A reader takes what manifests name and nothing
else, so it sees all views at one prefix or none; and a torn manifest, a file that was changed, or one
written by hand is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.consistency.claim import Claim
from caesura.errors import DataError, StreamError
from caesura.events.chunks import later
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.sinks.protocol import Sink

FORMAT = 1
PIPELINE_REMEDY = "Put back the file as it was, or write into a new folder."
OWN_NAME = re.compile(r"(?:claim|epoch)-(\d+)(?:-\d+)?")
"""Files of a pipeline: of the claim, or of the epoch and the worker."""


@dataclass(frozen=True)
class Written:
    """One file of a view, as a manifest names it."""

    file: str
    rows: int
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A claim, and the files that hold what each view gave since the one before."""

    claim: Claim
    files: Mapping[str, tuple[Written, ...]]
    state: tuple[str, ...] = ()
    """The files that a restart needs, oldest first."""
    before: str = ""
    """The check of the manifest before it."""
    read: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """On Spark, the files that each source read since the claim before."""

    @property
    def body(self) -> dict[str, Any]:
        files = {view: [vars(w) for w in some] for view, some in self.files.items()}
        own = {"format": FORMAT, "claim": self.claim.to_json(), "files": files}
        read = {source: list(some) for source, some in self.read.items()}
        return {**own, "state": list(self.state), "before": self.before, "read": read}

    @property
    def check(self) -> str:
        """The hash that tells a whole manifest from a torn one."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()

    def to_bytes(self) -> bytes:
        return json.dumps({**self.body, "check": self.check}, sort_keys=True).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Manifest | None:
        """The manifest, or None where the bytes are not a whole one."""
        try:
            content = json.loads(data)
            files = {v: tuple(Written(**w) for w in some) for v, some in content["files"].items()}
            claim = Claim.from_json(content["claim"])
            read = {source: tuple(some) for source, some in content["read"].items()}
            made = Manifest(claim, files, tuple(content["state"]), content["before"], read)
            known = content["format"] <= FORMAT
            return made if known and made.check == content["check"] else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass
class Chain:
    """The manifests of a folder that follow from each other, and what is wrong with the rest."""

    manifests: list[Manifest] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)

    @property
    def last(self) -> Manifest | None:
        return self.manifests[-1] if self.manifests else None


class Store(Sink):
    """A folder of claimed views: a sink whose epochs are claims, and count once they have a manifest."""

    def __init__(self, path: str | Path | Place) -> None:
        if not str(path).strip():
            raise DataError("The name of a folder is empty.", remedy="Give a folder, e.g. 'views'.")
        self.path = Place.of(path)
        self._fence = 0

    # -- writing ----------------------------------------------------------------------------------------

    def create(self, views: Mapping[str, pa.Schema], about: Mapping[str, Any], plan: bytes | None) -> None:
        """Makes the folder, or goes on with one of the same pipeline."""
        self.path.reach()
        for name in ("_claims", "_pipeline", "_state", *views):
            (self.path / name).make_folder()
        content = {"format": FORMAT, "views": {n: _columns(s) for n, s in views.items()}, **about}
        file = self.path / "_pipeline" / "pipeline.json"
        if file.exists():
            there = self.about
            if there["views"] != content["views"] or there.get("steps") != content.get("steps"):
                raise DataError(
                    f"'{self.path}' holds the views of another pipeline: {', '.join(there['views'])}.",
                    remedy="Give a new folder, or the pipeline that wrote this one.",
                )
            return
        if plan is not None:
            (self.path / "_pipeline" / "plan.pickle").put(plan)
        file.put(json.dumps(content, indent=1).encode())

    def write_view(self, view: str, file: str, table: pa.Table) -> Written:
        """Writes a part of a view; it counts when a manifest names it."""
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        data = sink.getvalue().to_pybytes()
        (self.path / view / file).put(data)
        return Written(file, table.num_rows, len(data), hashlib.sha256(data).hexdigest())

    def attach(self, query: str) -> None:
        """Takes the folder for a start of its pipeline: one that started before can claim no more."""
        self._fence = int(self._fence_file.update(lambda held: str(1 + int(held or 0)).encode()))

    @property
    def _fence_file(self) -> Place:
        return self.path / "_pipeline" / "fence"

    def _latest_fence(self) -> int:
        return int(self._fence_file.read_text()) if self._fence_file.exists() else 0

    def last_epoch(self) -> int | None:
        last = self.chain().last
        return None if last is None else last.claim.number

    def abort(self, epoch: int) -> None:
        """Takes away torn manifests, and the files of claims from a number on that were never made."""
        last = self.last_epoch()
        first = epoch if last is None else max(epoch, last + 1)
        for file in (self.path / "_claims").files(".json"):
            if int(file.stem) >= first:
                file.remove()
        for view in self.about["views"]:
            for file in (self.path / view).files(".parquet"):
                if file.name.startswith("claim-") and int(file.stem.removeprefix("claim-")) >= first:
                    file.remove()

    def commit(self, manifest: Manifest) -> None:
        """Makes a claim hold for readers; of two starts that make the same one, one is refused."""
        if self._fence and self._latest_fence() != self._fence:
            raise self._taken_over(f"its number is {self._latest_fence()}, and this one's {self._fence}")
        file, data = self.path / "_claims" / f"{manifest.claim.number:08d}.json", manifest.to_bytes()
        if file.create(data):
            return
        if Manifest.from_bytes(file.read_bytes()) is not None:
            raise self._taken_over(f"it has made claim {manifest.claim.number}")
        file.put(data)

    def _taken_over(self, how: str) -> StreamError:
        return StreamError(
            f"another start of this pipeline writes to '{self.path}': {how}.",
            remedy="Let the later one run, or stop it and start this one again.",
        )

    # -- reading ----------------------------------------------------------------------------------------

    @property
    def about(self) -> dict[str, Any]:
        """What the pipeline wrote about itself."""
        file = self.path / "_pipeline" / "pipeline.json"
        if not file.exists():
            raise DataError(
                f"'{self.path}' holds no claimed views.",
                remedy="Give the folder that a pipeline was written to: cz.pipeline(...).write(path).",
            )
        content: dict[str, Any] = read_json(file, PIPELINE_REMEDY, wants=("format", "views"))
        if content["format"] > FORMAT:
            raise later(f"'{file}'", content["format"], FORMAT)
        return content

    def schema(self, view: str) -> pa.Schema:
        """The columns of a view's files."""
        return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(self.about["views"][view])))

    def read_back(self, view: str) -> pa.Table:
        """The rows of a view that are claimed, claim after claim."""
        return self.rows(view, self.chain().manifests)

    def rows(self, view: str, manifests: Sequence[Manifest]) -> pa.Table:
        """The rows of a view that some manifests name."""
        import pyarrow.parquet as pq

        schema = self.schema(view)
        files = [self.path / view / written.file for m in manifests for written in m.files.get(view, ())]
        tables = (pq.read_table(file.open(), schema=schema) for file in files)
        return pa.concat_tables([schema.empty_table(), *tables])

    def chain(self) -> Chain:
        """The manifests up to the first that is torn or does not follow."""
        chain = Chain()
        for file in (self.path / "_claims").files(".json"):
            data = file.read_bytes()
            made = Manifest.from_bytes(data)
            if made is None:
                refuse_later(data, file)
                chain.flaws.append(f"the manifest '{file.name}' is torn")
                break
            wanted = chain.last.check if chain.last is not None else ""
            if made.before != wanted:
                chain.flaws.append(f"the manifest '{file.name}' does not follow the one before it")
                break
            if chain.last is not None and not made.claim.follows(chain.last.claim):
                chain.flaws.append(f"'{file.name}' takes back part of a prefix: an offset is repeated")
                break
            chain.manifests.append(made)
        return chain

    def flaws(self, chain: Chain) -> list[str]:
        """What is wrong with the files that a chain names, and with those that it does not."""
        found = list(chain.flaws)
        named: set[Place] = set()
        for manifest in chain.manifests:
            for view, some in manifest.files.items():
                for written in some:
                    file = self.path / view / written.file
                    named.add(file)
                    found += _flaw(file, view, written, manifest.claim)
        last = -1 if chain.last is None else chain.last.claim.number
        for view in self.about["views"]:
            for file in (self.path / view).files(".parquet"):
                own = OWN_NAME.fullmatch(file.stem)
                if file not in named and (own is None or int(own[1]) <= last):
                    found.append(f"'{view}/{file.name}' is named by no claim: it was written by hand")
        return found


def _flaw(file: Place, view: str, written: Written, claim: Claim) -> list[str]:
    where = f"'{view}/{file.name}' of claim {claim.number}"
    if not file.exists():
        return [f"{where} is gone"]
    data = file.read_bytes()
    if len(data) != written.size or hashlib.sha256(data).hexdigest() != written.sha256:
        return [f"{where} was changed after it was claimed"]
    return []


def refuse_later(data: bytes, file: Place) -> None:
    """Refuses a manifest of a later version, which is not torn for all that."""
    try:
        number = int(json.loads(data)["format"])
    except (ValueError, KeyError, TypeError):
        return
    if number > FORMAT:
        raise later(f"'{file}'", number, FORMAT)


def _columns(schema: pa.Schema) -> str:
    return schema.serialize().to_pybytes().hex()  # type: ignore[no-any-return]
