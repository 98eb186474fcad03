"""What is known of a map-collect before it runs: its rate, its ticks, and which letters synchronise it."""

from __future__ import annotations

import numpy as np

from caesura.expr import Column
from caesura.kernels.hashing import I64
from caesura.qre.checking.checking import letters_of
from caesura.qre.checking.minterms import Alphabet
from caesura.qre.checking.positions import bits, positions
from caesura.qre.compiler.automaton import PatternAutomaton
from caesura.qre.compiler.lowering import NotCompiled
from caesura.qre.compiler.threads import STORE
from caesura.qre.language.items import TICK
from caesura.qre.language.operations import ExprOp
from caesura.qre.language.query import MapCollect, Query, Split
from caesura.qre.language.regex import Star

MAX_RATE_STATES = 1000
"""So many synchronisation items a rate may tell apart."""


def core(query: Query) -> tuple[MapCollect, bool] | None:
    """The map-collect that a query is, and whether it begins anew after each map."""
    if isinstance(query, MapCollect):
        return query, False
    match query:
        case Split(parts=(skip, MapCollect() as inner), op=ExprOp(expr=expr)) if str(expr) == "_1":
            return (inner, True) if skip.rate == Star(inner.rate) else None
    return None


def by_tick(node: MapCollect) -> bool:
    """Whether ticks are the synchronisation items."""
    return isinstance(node.sync, Column) and node.sync.name == TICK


def anew_at_every_tick(node: MapCollect, again: bool) -> bool:
    """Whether every tick brings a map and nothing of what was before it counts behind it."""
    if not again or not by_tick(node) or node.items is None:
        return False
    rate = map_rate(node, again)
    return bool(rate[0, 0] >= 0 and rate[rate[0, 0], 1] == 2)


def ends(node: MapCollect, again: bool) -> bool:
    """Whether a synchronisation item may come behind which there are no maps any more."""
    rate, at, seen = map_rate(node, again), 0, set[int]()
    while at >= 0 and at not in seen:
        seen.add(at)
        at = int(rate[at, 0])
        if at >= 0 and rate[at, 1] == 2:
            at = 0
    return at < 0


def sync_letters(letters: Alphabet, node: MapCollect) -> int:
    """The letters of the body's alphabet that are synchronisation items."""
    whole = letters_of(node)
    sync = whole.mask(node.sync)
    shared = [(whole.predicates[e.key], i) for i, e in enumerate(letters.exprs)]
    truths = {
        sum(1 << i for w, i in shared if m.truth >> w & 1)
        for c, m in enumerate(whole.minterms)
        if sync >> c & 1
    }
    return sum(1 << c for c, m in enumerate(letters.minterms) if m.truth in truths)


def turns_with_syncs(auto: PatternAutomaton, sync: int) -> bool:
    """Whether the rings of windows go on at synchronisation items only."""
    moves = [m for some in auto.moves.values() for m in some]
    into: dict[int, int] = {}
    for m in moves:
        into[m.target] = into.get(m.target, 0) | m.mask
    stores = [m for m in moves if any(s.startswith(STORE) for s in m.put)]
    return bool(stores) and all(
        not m.mask & ~sync or (m.source in into and not into[m.source] & ~sync) for m in stores
    )


def map_rate(node: MapCollect, again: bool) -> I64:
    """Per state: (the next after a synchronisation item, 1 if a map comes then, 2 to begin anew)."""
    letters = letters_of(node)
    auto = positions(node.over, lambda key: letters.mask(letters.exprs[letters.predicates[key]]))
    sync = next(bits(letters.mask(node.sync)))
    states: dict[int, int] = {-1: 0}
    rows: list[list[int]] = []
    live = -1
    while len(states) <= MAX_RATE_STATES:
        after = auto.by_letter[-1].get(sync, 0) if live == -1 else 0
        for p in bits(live) if live > 0 else ():
            after |= auto.by_letter[p].get(sync, 0)
        rows.append([states.setdefault(after, len(states)) if after else -1, 0])
        if not after or len(rows) >= len(states):
            break
        live = after
    for mask, number in states.items():
        if mask > 0 and number < len(rows):
            rows[number][1] = (2 if again else 1) if mask & auto.last else 0
    if len(states) > len(rows):
        raise NotCompiled("a rate of too many synchronisation items")
    return np.array(rows, np.int64)
