"""A pipeline on Spark: one streaming query writes all views, and each epoch ends in a claim.

The prefix of an epoch is its entry in Spark's offset log, which Spark writes before the epoch runs. The
manifest appears when every file of every view is there. An epoch that is run again after a kill has its
manifest already, or gets the one that the first run would have written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from caesura.consistency import Claim, Level, Prefix
from caesura.consistency.claimable import refuse_arrival, refuse_budgets
from caesura.consistency.store import Manifest, Store, Written, columns_text
from caesura.errors import DataError, PlanError
from caesura.fixpoint.node import Fixpoint
from caesura.io.places import Place
from caesura.io.sinks.protocol import Part
from caesura.io.sources.source import Source
from caesura.plan import Duration, Node, here, walk
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.durable.change import OnChange
from caesura.runtime.durable.corrections import FinalRows
from caesura.runtime.durable.rebuild import columns_of
from caesura.runtime.query.pipelines import source_labels
from caesura.runtime.query.stored_plan import pickled
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark.host.checkpoint import plans_of, read_plan
from caesura.spark.host.part import SparkPart
from caesura.spark.host.running import SparkQuery, Trigger, start
from caesura.spark.host.source_log import files_of, offsets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class LastClaims:
    """What the next claim of a folder follows: the last one, and how many rows each view has by now."""

    last: Manifest | None = None
    rows: dict[int, dict[str, int]] = field(default_factory=dict)
    """By generation and view."""

    @staticmethod
    def of(store: Store) -> LastClaims:
        """Reads all claims that there are."""
        made = LastClaims()
        for manifest in store.chain().manifests:
            made.add(manifest)
        return made

    def add(self, manifest: Manifest) -> None:
        """Follows a claim that was made."""
        self.last = manifest
        self.rows.setdefault(manifest.claim.generation, {}).update(manifest.claim.output)


@dataclass
class ClaimedSink(ParquetSink):
    """Writes views as files, and a manifest per epoch that makes them count."""

    claims = True

    checkpoint: str = ""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    _described: int = field(default=0, init=False, repr=False)
    """The number of the plan that this start has said what it is."""
    _claims: LastClaims | None = field(default=None, init=False, repr=False)
    """Read once by a start, which alone may claim from then on: a later one has another fencing number."""

    @property
    def store(self) -> Store:
        return Store(self.path)

    def attach(self, query: str) -> None:
        super().attach(query)
        self._claims = None

    def _claimed(self) -> LastClaims:
        if self._claims is None:
            self._claims = LastClaims.of(self.store)
        return self._claims

    def open(self, outputs: Mapping[str, Node]) -> None:
        super().open(outputs)
        self.store.make_folders(self._schemas, self._generation)
        if not self.store.described:
            self._describe(1, list(source_labels(self.nodes)))

    def _describe(self, number: int, sources: Sequence[str]) -> None:
        views = {name: columns_text(schema) for name, schema in self._schemas.items()}
        about = {"host": "spark", "views": views, "sources": list(sources), "columns": columns_of(self.nodes)}
        self.store.describe(number, about, pickled(self.nodes))
        self._described = number

    def pending(self, epoch: int, outputs: Sequence[str]) -> Sequence[str]:
        """An epoch counts once it has a manifest."""
        last = self._claimed().last
        return () if last is not None and epoch <= last.claim.number else outputs

    def begin(self, epoch: int) -> None:
        """What an earlier plan wrote of an epoch that it never claimed goes too."""
        if not self._begun and self.pending(epoch - 1, [*self._schemas]):
            for file in self.store.view_files():
                if file.name.startswith(f"epoch-{epoch - 1:06d}-"):
                    file.remove()
        super().begin(epoch)

    def read_back(self, output: str) -> pa.Table:
        """What is claimed; a commit without a claim counts for nothing."""
        own = [m for m in self.store.chain().manifests if m.claim.generation == self._generation]
        with_it = [m for m in own if output in m.claim.output]
        return self.store.rows(output, with_it) if with_it else self._schemas[output].empty_table()

    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        super().commit(epoch, parts)
        saved = read_plan(Place.of(self.checkpoint)) or {}
        labels = _in_spark_order(self.nodes, list(saved.get("sources", ())))
        plans = tuple(plans_of(saved))
        if plans[-1] > 1 and self._described != plans[-1]:
            self._describe(plans[-1], list(labels))
        claims = self._claimed()
        last = claims.last
        files: dict[str, list[Written]] = {name: [] for name in self._schemas}
        for part in parts:
            if part.output in files:
                files[part.output].append(self._written(part))
        same = last is not None and last.claim.plan == plans[-1]
        prefix, read = self._prefix(epoch, labels, last.claim.prefix if last is not None and same else {})
        rows = claims.rows.get(self._generation, {})
        output = {view: rows.get(view, 0) + sum(w.rows for w in some) for view, some in files.items()}
        level = Level.PREFIX_CONSISTENT
        claim = Claim(epoch, level, prefix, output=output, plans=plans, generation=self._generation)
        named = {view: tuple(some) for view, some in files.items()}
        made = Manifest(claim, named, (), "" if last is None else last.check, read)
        self.store.commit(made)
        claims.add(made)

    def _written(self, part: Part) -> Written:
        data = (self._place / part.output / part.file).read_bytes()
        return Written(part.file, part.rows, len(data), hashlib.sha256(data).hexdigest())

    def _prefix(
        self, epoch: int, labels: Mapping[str, Node], before: Mapping[str, Prefix]
    ) -> tuple[dict[str, Prefix], dict[str, tuple[str, ...]]]:
        """The offset log's entry of an epoch, and the files that were read since the claim of a plan before.

        The first claim of another plan names all of them: its sources may have other names.
        """
        part = SparkPart.of(Place.of(self.checkpoint))
        entries = offsets_of(part.folder, epoch - part.first)
        prefix: dict[str, Prefix] = {}
        read: dict[str, tuple[str, ...]] = {}
        for place, label in enumerate(labels):
            entry = entries[place] if place < len(entries) else "-"
            then = dict(before[label].offsets) if label in before else {}
            prefix[label] = Prefix(None, None, _offsets(entry) or then, log=entry)
            if reads_files(labels[label]):
                span = range(then.get(0, 0), prefix[label].offsets.get(0, 0))
                files = (files_of(part.folder, place, n) for n in span)
                read[label] = tuple(file for some in files for file in sorted(some))
        return prefix, read


def reads_files(node: Node) -> bool:
    """Whether Spark's own log of a source names files."""
    return isinstance(node, Source) and node.reader.spark_form == "files"


def _offsets(entry: str) -> dict[int, int]:
    """An entry of the offset log as one offset per lane, where it has that form."""
    if entry == "-":
        return {}
    offset = json.loads(entry)
    if not isinstance(offset, dict):
        return {0: int(offset)}
    if "logOffset" in offset:
        return {0: int(offset["logOffset"]) + 1}
    lanes = [lanes for lanes in offset.values() if isinstance(lanes, dict)]
    if len(lanes) != 1:
        return {}
    return {int(lane): int(at) for lane, at in lanes[0].items()}


def _in_spark_order(nodes: Mapping[str, Node], order: Sequence[str]) -> dict[str, Node]:
    """The streaming sources, in the order in which the query reads them, under the names of claims."""
    labels = {node.fingerprint: label for label, node in source_labels(nodes).items()}
    whole = list(source_labels(nodes).values())
    pruned = list(source_labels(prune(nodes)).values())
    found: dict[str, Node] = {}
    for fingerprint in order or [source.fingerprint for source in cut(prune(nodes)).sources]:
        place = next(i for i, one in enumerate(pruned) if one.fingerprint == fingerprint)
        found[labels[whole[place].fingerprint]] = whole[place]
    return found


def start_pipeline(
    nodes: Mapping[str, Node],
    spark: SparkSession,
    *,
    path: str | Path,
    checkpoint: str | Path,
    trigger: Trigger = "continuous",
    files_per_epoch: int | None = None,
    bytes_per_epoch: int | None = None,
    take_over: bool = False,
    on_change: OnChange = "refuse",
    final_rows: FinalRows = "refuse",
    state_memory: int | str | None = None,
    allow_unbounded: bool = False,
    lifetimes: Mapping[str, Duration | Literal["finite"]] | None = None,
    bounded_columns: Mapping[str, Iterable[str]] | None = None,
    name: str | None = None,
    metrics_port: int | str | None = None,
) -> SparkQuery:
    """Starts all views of a pipeline as one streaming query; claims appear in ``path``."""
    if any(isinstance(node, Fixpoint) for node in walk(*nodes.values())):
        raise PlanError(
            "on Spark an epoch of a plan with a loop is no claim.",
            remedy="Run the pipeline in this process with claims=cz.synchronised(...).",
        ).at("pipeline", here())
    refuse_arrival(walk(*nodes.values()))
    refuse_budgets(walk(*nodes.values()))
    folder, place = (str(Place.of(given).absolute()) for given in (path, checkpoint))
    sink = ClaimedSink(folder, checkpoint=place, nodes=dict(nodes))
    if sink.store.described and read_plan(Place.of(place)) is None:
        raise DataError(
            f"'{folder}' holds the views of another pipeline: {', '.join(sink.store.about['views'])}.",
            remedy="Give a new folder, or the checkpoint that this one was written from.",
        ).at("pipeline", here())
    return start(
        nodes,
        spark,
        sink=sink,
        checkpoint=checkpoint,
        trigger=trigger,
        files_per_epoch=files_per_epoch,
        bytes_per_epoch=bytes_per_epoch,
        allow_unbounded=allow_unbounded,
        lifetimes=lifetimes,
        bounded_columns=bounded_columns,
        take_over=take_over,
        on_change=on_change,
        final_rows=final_rows,
        state_memory=state_memory,
        name=name,
        metrics_port=metrics_port,
    )
