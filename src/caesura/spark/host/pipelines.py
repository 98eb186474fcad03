"""A pipeline on Spark: one streaming query writes all views, and each epoch ends in a claim.

The prefix of an epoch is its entry in Spark's offset log, which Spark writes before the epoch runs. The
manifest appears when every file of every view is there. An epoch that is run again after a kill has its
manifest already, or gets the one that the first run would have written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from caesura.consistency import Claim, Level, Prefix
from caesura.consistency.claimable import refuse_arrival, refuse_budgets
from caesura.consistency.store import Manifest, Store, Written
from caesura.errors import PlanError
from caesura.fixpoint.node import Fixpoint
from caesura.io.places import Place
from caesura.io.sinks.protocol import Part
from caesura.io.sources.source import Source
from caesura.plan import Node, here, walk
from caesura.plan.cut import cut
from caesura.plan.prune import prune
from caesura.runtime.query.pipelines import source_labels
from caesura.runtime.query.stored_plan import pickled
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark.host.part import SparkPart
from caesura.spark.host.running import SparkQuery, Trigger, start
from caesura.spark.host.source_log import files_of, offsets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class ClaimedSink(ParquetSink):
    """Writes views as files, and a manifest per epoch that makes them count."""

    checkpoint: str = ""
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def open(self, outputs: Mapping[str, Node]) -> None:
        super().open(outputs)
        self.store = Store(self.path)
        self.labels = _in_spark_order(self.nodes)
        about = {"host": "spark", "sources": list(self.labels)}
        self.store.create(self._schemas, about, pickled(self.nodes))

    def pending(self, epoch: int, outputs: Sequence[str]) -> Sequence[str]:
        """An epoch counts once it has a manifest."""
        return () if any(m.claim.number == epoch for m in self.store.chain().manifests) else outputs

    def commit(self, epoch: int, parts: Sequence[Part]) -> None:
        super().commit(epoch, parts)
        chain = self.store.chain()
        files: dict[str, list[Written]] = {name: [] for name in self._schemas}
        for part in parts:
            if part.output in files:
                files[part.output].append(self._written(part))
        before = [m for m in chain.manifests if m.claim.number < epoch]
        last = before[-1] if before else None
        prefix, read = self._prefix(epoch, last)
        rows = dict(last.claim.output) if last is not None else {}
        output = {view: rows.get(view, 0) + sum(w.rows for w in some) for view, some in files.items()}
        claim = Claim(epoch, Level.PREFIX_CONSISTENT, prefix, output=output)
        named = {view: tuple(some) for view, some in files.items()}
        self.store.commit(Manifest(claim, named, (), "" if last is None else last.check, read))

    def _written(self, part: Part) -> Written:
        data = (self.store.path / part.output / part.file).read_bytes()
        return Written(part.file, part.rows, len(data), hashlib.sha256(data).hexdigest())

    def _prefix(
        self, epoch: int, last: Manifest | None
    ) -> tuple[dict[str, Prefix], dict[str, tuple[str, ...]]]:
        """The offset log's entry of an epoch, and the files that it read."""
        part = SparkPart.of(Place.of(self.checkpoint))
        entries = offsets_of(part.folder, epoch - part.first)
        prefix: dict[str, Prefix] = {}
        read: dict[str, tuple[str, ...]] = {}
        for place, label in enumerate(self.labels):
            entry = entries[place] if place < len(entries) else "-"
            before = {} if last is None else dict(last.claim.prefix[label].offsets)
            prefix[label] = Prefix(offsets=_offsets(entry) or before, log=entry)
            if reads_files(self.labels[label]):
                span = range(before.get(0, 0), prefix[label].offsets.get(0, 0))
                files = (files_of(part.folder, place, n) for n in span)
                read[label] = tuple(sorted(file for some in files for file in some))
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


def _in_spark_order(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The streaming sources, in the order in which the query reads them, under the names of claims."""
    labels = {node: label for label, node in source_labels(nodes).items()}
    whole = list(source_labels(nodes).values())
    pruned = list(source_labels(prune(nodes)).values())
    found: dict[str, Node] = {}
    for source in cut(prune(nodes)).sources:
        place = next(i for i, one in enumerate(pruned) if one.fingerprint == source.fingerprint)
        found[labels[whole[place]]] = whole[place]
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
    state_memory: int | str | None = None,
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
    return start(
        nodes,
        spark,
        sink=sink,
        checkpoint=checkpoint,
        trigger=trigger,
        files_per_epoch=files_per_epoch,
        bytes_per_epoch=bytes_per_epoch,
        take_over=take_over,
        state_memory=state_memory,
        name=name,
        metrics_port=metrics_port,
    )
