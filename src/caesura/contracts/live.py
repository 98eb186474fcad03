"""Sources held to what they declared while a query runs: the first breach is said, with the source's name.

>>> import pyarrow as pa
>>> from caesura.contracts.check import check
>>> from caesura.ops.input import Input
>>> from caesura.punctuation import definite
>>> from caesura.runtime import Query
>>> clicks = Input(label="clicks", payload=pa.schema([("id", pa.int64())]))
>>> query = Query({"out": clicks})
>>> watches = watch_sources(query.graph.cells, check(clicks, schemes={"clicks": "{[[time:+]]}"}))
>>> query.feed("clicks", definite(id=7))
>>> query.run()
Traceback (most recent call last):
caesura.errors.StreamError: the source 'clicks' declares {[[time:+, id:-]]}, but gave 'id = 7'.
Declare that form too, or take such punctuation out of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from caesura.contracts.verdict import Verdict
from caesura.contracts.watch import Watch
from caesura.events.item import Item
from caesura.plan import Node


class Tapped(Protocol):
    """A step at work whose output can be listened to."""

    node: Node
    taps: list[Any]


@dataclass
class LiveWatch(Watch):
    """A watch that raises as soon as a source breaks its word."""

    source: str = ""

    def append(self, item: Item) -> None:
        super().append(item)
        self.refuse(self.source)


def watch_sources(cells: Iterable[Tapped], verdict: Verdict) -> dict[str, LiveWatch]:
    """Listens to every source that the caller or its policy speaks for.

    Parameters
    ----------
    cells
        The steps of a running query.
    verdict
        What `check` said of its plan.

    Returns
    -------
    dict
        A watch for each source, by name; ask each to ``close`` at the end.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import caesura as cz
    >>> from caesura import contracts
    >>> clicks = cz.input_stream("clicks", pa.schema([("id", pa.int64())]))
    >>> verdict = contracts.check(clicks.node, schemes={"clicks": "{[[time:+]]}"})
    >>> watches = contracts.watch_sources(clicks.query().graph.cells, verdict)
    >>> list(watches)
    ['clicks']
    """
    steps = {step.node.fingerprint: step for step in verdict.steps if step.origin in ("declared", "given")}
    watches: dict[str, LiveWatch] = {}
    for cell in cells:
        step = steps.get(cell.node.fingerprint)
        if step is not None and step.scheme.kind == "some":
            watch = watches[step.source] = LiveWatch(step.scheme, source=step.source)
            cell.taps.append(watch)
    return watches
