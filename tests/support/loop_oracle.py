"""Loops, from scratch: the fixed point of every snapshot, and every derivation with its lifetime.

>>> seed = [(1, 9, {"node": 0})]
>>> links = [(2, 9, {"a": 0, "b": 1}), (1, 5, {"a": 1, "b": 0})]
>>> def hop(rows, links):
...     return [{"node": l["b"]} for r in rows for l in links if r["node"] == l["a"]]
>>> snapshots(seed, hop, links)
[(1, 9, {'node': 0}), (2, 9, {'node': 1})]
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from caesura.testing.oracles.rows import Payload, Rows, maximal, same

Step = Callable[..., list[Payload]]


def snapshots(
    seed: Rows, step: Step, *others: Rows, best: Callable[[list[Payload]], list[Payload]] | None = None
) -> Rows:
    """At every instant all that follows from the seed, once each; or the best of it."""

    def found(seed: list[Payload], *others: list[Payload]) -> list[Payload]:
        closure = _closure(seed, step, list(others))
        return closure if best is None else best(closure)

    return at_instants(found, seed, *others)


def at_instants(solve: Callable[..., list[Payload]], *streams: Rows) -> Rows:
    """What a function makes, at every instant, of the payloads alive in each stream."""
    times = sorted({t for rows in streams for le, re, _ in rows for t in (le, re)})
    spans: dict[object, list[tuple[int, int]]] = {}
    payloads: dict[object, Payload] = {}
    for start, end in pairwise(times):
        for payload in solve(*([p for le, re, p in rows if le <= start < re] for rows in streams)):
            payloads.setdefault(same(payload), payload)
            spans.setdefault(same(payload), []).append((start, end))
    return [(a, b, payloads[kind]) for kind, some in spans.items() for a, b in maximal(some)]


def _closure(seed: list[Payload], step: Step, others: list[list[Payload]]) -> list[Payload]:
    known: dict[object, Payload] = {}
    fresh = seed
    while fresh:
        new = [p for p in fresh if same(p) not in known]
        known.update({same(p): p for p in new})
        fresh = step(new, *others)
    return list(known.values())


def derivations(seed: Rows, step: Callable[[Payload, Payload], Payload | None], others: Rows) -> Rows:
    """Every derivation as a row of its own, alive while all that it was made of is."""
    out: Rows = []
    fresh = list(seed)
    while fresh:
        out += fresh
        met = [
            (max(le, start), min(re, end), step(p, q))
            for le, re, p in fresh
            for start, end, q in others
            if max(le, start) < min(re, end)
        ]
        fresh = [(le, re, p) for le, re, p in met if p is not None]
    return out
