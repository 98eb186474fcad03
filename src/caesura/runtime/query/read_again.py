"""A stretch of what a query has read, read again from its sources: the last rows before where it is.

>>> import caesura as cz
>>> stream = cz.from_rows([{"ts": n, "id": n} for n in range(9)], time="ts").where(cz.col("id") > 4)
>>> (source,) = [node for node in walk(stream.node) if not node.inputs]
>>> again = read_again(stream.node, {source.fingerprint: {0: 7}}, rows=3)
>>> [raw.batch.column("id").to_pylist() for raw in again.raws[source.fingerprint]]
[[4, 5, 6]]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from caesura.errors import CaesuraError, PlanError, StreamError
from caesura.io.sources.protocol import Offsets
from caesura.io.sources.source import Source
from caesura.plan import Node, Raw, here, walk
from caesura.runtime.query.recording import Recording


def read_again(node: Node, ends: Mapping[str, Offsets], *, rows: int) -> Recording:
    """The last rows of every lane before some offsets, by source (its fingerprint), once more.

    A source whose rows cannot be read again is refused, and so is an input that is fed.
    """
    made = Recording(node, check_rows(rows))
    for source in replayable(node):
        end = dict(ends.get(source.fingerprint, {}))
        earliest = source.reader.earliest()
        start = {lane: max(earliest.get(lane, 0), at - rows) for lane, at in end.items()}
        raws = made.raws[source.fingerprint] = []
        if any(at > start[lane] for lane, at in end.items()):
            raws.extend(source.reader.read_between(start, end))
    return made


def read_first(node: Node, *, rows: int) -> Recording:
    """The first rows of every source of a plan."""
    made = Recording(node, check_rows(rows))
    for source in replayable(node, on_spark=True):
        made.raws[source.fingerprint] = list(first_rows(source.reader.sample(rows), rows))
    return made


def check_rows(rows: int) -> int:
    """Refuses a stretch that has no rows."""
    if rows < 1:
        raise PlanError(f"a stretch of {rows} rows has none.", remedy="Give 1 or more.").at("replay", here())
    return rows


def replayable(node: Node, *, on_spark: bool = False) -> Iterator[Source]:
    """The sources of a plan; one whose rows cannot be read again is refused, unless Spark can do it."""
    for source in (own for own in walk(node) if not own.inputs):
        why = source.reader.cannot_replay() if isinstance(source, Source) else "it is fed"
        if isinstance(source, Source) and on_spark and source.reader.spark_form == "frame":
            why = ""
        if why or not isinstance(source, Source):
            raise unrepeatable(source, why)
        yield source


def unrepeatable(source: Node, why: str) -> CaesuraError:
    """Says why rows of a source cannot be read again, and how to keep them."""
    return StreamError(
        f"the rows of '{source.fed or source.step}' cannot be read again: {why}.",
        remedy="Keep some as they come, recording = query.record(), and trace those: recording.trace(...); "
        'or give the query a checkpoint and record="10m".',
    ).at(source.step, source.place)


def first_rows(raws: Iterable[Raw], rows: int) -> Iterator[Raw]:
    """The first so many rows."""
    for raw in raws:
        yield raw if raw.batch.num_rows <= rows else raw.split(rows)[0]
        rows -= raw.batch.num_rows
        if rows <= 0:
            return
