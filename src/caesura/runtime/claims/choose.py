"""The way of making claims that a mode asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caesura.consistency import Claim, Draining, Heeding, Level, Mode, Synchronised, Tokens
from caesura.consistency.claimable import refuse_arrival, refuse_demands, refuse_speakers
from caesura.errors import CaesuraError, StreamError
from caesura.events.chunks import Chunks
from caesura.plan import here
from caesura.runtime.claims.claiming import Claiming, CountedReader, holds_back
from caesura.runtime.claims.draining import DrainClaims
from caesura.runtime.claims.figures import TokenFigures
from caesura.runtime.claims.heeding import HeedClaims
from caesura.runtime.claims.punctuated import SettledClaims
from caesura.runtime.claims.tokens import TokenClaims
from caesura.runtime.claims.update_complete import UpdateClaims
from caesura.runtime.graph.cell import Cell
from caesura.runtime.graph.edge import Edge
from caesura.runtime.graph.graph import Graph
from caesura.runtime.graph.publication import Subscribed


def claiming_for(
    mode: Mode,
    graph: Graph,
    outputs: Mapping[str, Cell],
    readers: Mapping[str, CountedReader],
    edges: Mapping[str, Edge],
) -> Claiming:
    """Watches a query in the way that a mode names."""
    inputs = {label: (_cell(edge), edge) for label, edge in edges.items()}
    followed = {label: cell for label, (cell, _) in inputs.items() if isinstance(cell.node, Subscribed)}
    refuse_arrival(cell.node for cell in graph.cells)
    passed = next((c for c in graph.cells if c.operator.speculate == "passed"), None)
    if passed is not None:
        raise StreamError(
            "with speculate='passed' it depends on the order of rows which windows are out.",
            remedy="Make claims with speculate='arrival' or 'watermark'.",
        ).at(passed.node.step, passed.node.place)
    if any(map(holds_back, graph.cells)):
        refuse_demands(cell.node for cell in graph.cells)
    try:
        return _made(mode, graph, outputs, readers, inputs, followed)
    except CaesuraError as error:
        raise error.at("claims", here()) from None


def _made(mode: Mode, graph: Graph, *rest: Any) -> Claiming:
    parts = (graph, *rest)
    match mode:
        case Synchronised() if any(edge.back for edge in graph.edges):
            return SettledClaims(mode, *parts)
        case Tokens() | Synchronised():
            return TokenClaims(mode, *parts)
        case Heeding():
            refuse_speakers(cell.node for cell in graph.cells)
            weaker = mode.level < Level.PREFIX_CONSISTENT
            return UpdateClaims(mode, *parts) if weaker else HeedClaims(mode, *parts)
        case Draining():
            return DrainClaims(mode, *parts)
    raise StreamError(
        f"{mode!r} is no way of making claims.",
        remedy="Give cz.tokens(), cz.synchronised(), cz.heeding() or cz.draining().",
    )


def _cell(edge: Edge) -> Cell:
    assert edge.target is not None
    return edge.target


def _tokens(claiming: Claiming) -> TokenClaims:
    if not isinstance(claiming, TokenClaims):
        raise StreamError("this query makes no claims by tokens.", remedy="Make it with claims=cz.tokens().")
    return claiming


def put_token(claiming: Claiming) -> None:
    """Puts a token into every source now."""
    _tokens(claiming).round()


def figures_of(claiming: Claiming) -> TokenFigures:
    """What tokens take now."""
    return _tokens(claiming).figures()


def saved_by(claiming: Claiming) -> list[tuple[Claim, Chunks]]:
    """The snapshots that were completed since the last call."""
    barriers = _tokens(claiming).barriers
    if barriers is None:
        return []
    saved, barriers.saved = barriers.saved, []
    return saved
