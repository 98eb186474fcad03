"""A stretch of what a query has read, read again from its sources: the last rows before where it is.

>>> import caesura as cz
>>> stream = cz.from_rows([{"ts": n, "id": n} for n in range(9)], time="ts").where(cz.col("id") > 4)
>>> (source,) = [node for node in walk(stream.node) if not node.inputs]
>>> again = read_again(stream.node, {source.fingerprint: {0: 7}}, rows=3)
>>> [raw.batch.column("id").to_pylist() for raw in again.raws[source.fingerprint]]
[[4, 5, 6]]
"""

from __future__ import annotations

from collections.abc import Mapping

from caesura.errors import StreamError
from caesura.io.sources.protocol import Offsets
from caesura.io.sources.source import Source
from caesura.plan import Node, walk
from caesura.runtime.query.recording import Recording


def read_again(node: Node, ends: Mapping[str, Offsets], *, rows: int) -> Recording:
    """The last rows of every lane before some offsets, by source (its fingerprint), once more.

    A source whose rows cannot be read again is refused, and so is an input that is fed.
    """
    made = Recording(node, rows)
    for source in (own for own in walk(node) if not own.inputs):
        why = source.reader.cannot_replay() if isinstance(source, Source) else "it is fed"
        if why or not isinstance(source, Source):
            raise StreamError(
                f"the rows of '{source.fed or source.step}' cannot be read again: {why}.",
                remedy="Keep some as they come, recording = query.record(), and trace those: "
                "stream.trace(..., recording=recording).",
            ).at(source.step, source.place)
        end = dict(ends.get(source.fingerprint, {}))
        earliest = source.reader.earliest()
        start = {lane: max(earliest.get(lane, 0), at - rows) for lane, at in end.items()}
        raws = made.raws[source.fingerprint] = []
        if any(at > start[lane] for lane, at in end.items()):
            raws.extend(source.reader.read_between(start, end))
    return made
