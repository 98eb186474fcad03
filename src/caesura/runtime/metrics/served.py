"""Serving the metrics of a query in this process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from caesura.runtime.metrics.endpoint import MetricsEndpoint
from caesura.runtime.metrics.figures import Figures
from caesura.runtime.metrics.live_status import LiveStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from caesura.plan import Node
    from caesura.runtime.query.query import Query


def serve_query(query: Query, port: int | str, name: str) -> MetricsEndpoint:
    """Serves how a query stands; it looks at its steps itself, between two of them, when somebody asks."""
    live = LiveStatus(query.status)
    query.runner.onlookers.append(live)
    began = time.time()

    def figures() -> Figures:
        return Figures(
            name,
            live.read(),
            timed=timed(query.outputs.values()),
            began=began,
            starts=getattr(query, "starts", 1),
            claims=None if query.claiming is None else len(query.claims),
        )

    return MetricsEndpoint(figures, port)


def timed(nodes: Iterable[Node]) -> bool:
    """Whether the times of a plan are moments, not plain integers."""
    return all(pa.types.is_timestamp(node.time) for node in nodes)
