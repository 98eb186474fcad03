"""Claims on storage: the views of a pipeline as files, and a manifest per claim that names them.

    <path>/<view>/claim-00000007.parquet    what the view gave since the claim before
    <path>/_claims/00000007.json            the claim, its files with their sizes and hashes
    <path>/_pipeline/                       the views' columns, the sources, the plan; of each plan there was
    <path>/_generation-2/<view>/...         a view that began anew

A manifest appears, whole, after all files that it names. A reader takes what manifests name and nothing
else, so it sees all views at one prefix or none; and a torn manifest, a file that was changed, or one
written by hand is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from caesura.consistency.claim import Claim
from caesura.errors import DataError, StreamError
from caesura.events.chunks import later
from caesura.io.places import Place
from caesura.io.places.json_files import read_json
from caesura.io.sinks.commits import generation_folder, generation_numbers
from caesura.io.sinks.protocol import Sink

FORMAT = 2
"""In format 1 a folder has had one plan and one generation, and is still written so as long as that holds."""
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
        claim = self.claim.to_json()
        own = {"format": FORMAT if "plans" in claim else 1, "claim": claim, "files": files}
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

    def describe(self, number: int, about: Mapping[str, Any], plan: bytes | None) -> None:
        """Says what the plan of a number is; it counts once a claim has that number."""
        file = self._plan_file(number, ".pickle")
        if plan is not None:
            file.put(plan)
        else:
            file.remove()
        content = {"format": 1 if number == 1 else FORMAT, **about}
        self._about_file(number).put(json.dumps(content, indent=1).encode())

    def make_folders(self, views: Iterable[str], generation: int = 1) -> None:
        """Makes the folders that views of a generation, and what is said about them, lie in."""
        self.path.reach()
        for name in ("_claims", "_pipeline", "_state"):
            (self.path / name).make_folder()
        for name in views:
            (self.folder_of(generation) / name).make_folder()

    def folder_of(self, generation: int) -> Place:
        """Where the views of a generation lie."""
        return generation_folder(self.path, generation)

    def write_view(self, view: str, file: str, table: pa.Table, generation: int = 1) -> Written:
        """Writes a part of a view; it counts when a manifest names it."""
        from caesura.io.sinks.parquet_bytes import parquet_bytes

        data = parquet_bytes(table)
        (self.folder_of(generation) / view / file).put(data)
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
        for file in self.view_files():
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
        """What the pipeline wrote about the plan that counts."""
        return self.about_plan(self.plan_now)

    @property
    def described(self) -> bool:
        """Whether a pipeline has written anything about itself."""
        return self._about_file(1).exists()

    @property
    def plan_now(self) -> int:
        """The number of the plan that has made the last claim."""
        if not self._about_file(2).exists():
            return 1
        last = self.chain().last
        return 1 if last is None else last.claim.plan

    def about_plan(self, number: int) -> dict[str, Any]:
        """What the pipeline wrote about one of its plans."""
        file = self._about_file(number)
        if not file.exists():
            raise DataError(
                f"'{self.path}' holds no claimed views"
                + (f" of plan {number}: '{file.name}' is gone." if number > 1 else "."),
                remedy="Give the folder that a pipeline was written to: cz.pipeline(...).write(path)."
                if number == 1
                else PIPELINE_REMEDY,
            )
        content: dict[str, Any] = read_json(file, PIPELINE_REMEDY, wants=("format", "views"))
        if content["format"] > FORMAT:
            raise later(f"'{file}'", content["format"], FORMAT)
        return content

    def stored_plan(self, number: int) -> Place:
        """Where a plan lies that could be written down: a pickle, for whoever trusts it."""
        return self._plan_file(number, ".pickle")

    def _about_file(self, number: int) -> Place:
        name = "pipeline.json" if number == 1 else f"pipeline-{number}.json"
        return self.path / "_pipeline" / name

    def _plan_file(self, number: int, suffix: str) -> Place:
        return self.path / "_pipeline" / (f"plan{suffix}" if number == 1 else f"plan-{number}{suffix}")

    def schema(self, view: str, plan: int | None = None) -> pa.Schema:
        """The columns of a view's files, as a plan writes them; by default the one that counts."""
        views = (self.about if plan is None else self.about_plan(plan))["views"]
        return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(views[view])))

    def read_back(self, view: str) -> pa.Table:
        """The rows of a view that are claimed, claim after claim."""
        return self.rows(view, self.chain().manifests)

    def files(self, view: str, manifests: Sequence[Manifest]) -> list[Place]:
        """The files that hold a view as of the last of some manifests: those of its generation."""
        generation = manifests[-1].claim.generation if manifests else 1
        folder = self.folder_of(generation) / view
        own = [m for m in manifests if m.claim.generation == generation]
        return [folder / written.file for m in own for written in m.files.get(view, ())]

    def rows(self, view: str, manifests: Sequence[Manifest]) -> pa.Table:
        """The rows of a view that some manifests name."""
        import pyarrow.parquet as pq

        schema = self.schema(view, manifests[-1].claim.plan if manifests else 1)
        tables = (pq.read_table(file.open(), schema=schema) for file in self.files(view, manifests))
        return pa.concat_tables([schema.empty_table(), *tables])

    def view_files(self) -> list[Place]:
        """Every file that lies where views do, of any plan and generation."""
        kept = [e.name for e in (self.path / "_pipeline").entries() if e.name.endswith(".json")]
        plans = [1, *(int(n[len("pipeline-") : -len(".json")]) for n in kept if n.startswith("pipeline-"))]
        views = {view: None for plan in plans for view in self.about_plan(plan)["views"]}
        folders = [
            self.folder_of(number) / view for number in generation_numbers(self.path) for view in views
        ]
        return [file for folder in folders for file in folder.files(".parquet")]

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
            folder = self.folder_of(manifest.claim.generation)
            for view, some in manifest.files.items():
                for written in some:
                    file = folder / view / written.file
                    named.add(file)
                    found += _flaw(file, view, written, manifest.claim)
        last = -1 if chain.last is None else chain.last.claim.number
        for file in self.view_files():
            own = OWN_NAME.fullmatch(file.stem)
            if file not in named and (own is None or int(own[1]) <= last):
                found.append(f"'{file.parent.name}/{file.name}' is named by no claim: it was written by hand")
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


def columns_text(schema: pa.Schema) -> str:
    """Columns as a text, by which they are found again."""
    return schema.serialize().to_pybytes().hex()  # type: ignore[no-any-return]
