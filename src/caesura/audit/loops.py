"""Loops: the seed and what the step makes of the result so far, again and again until nothing is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from caesura.audit.functions import order
from caesura.audit.values import NotAuditedError
from caesura.fixpoint.node import Fixpoint, Keep, Recursive
from caesura.plan import Node
from caesura.testing.oracles.bags import distinct
from caesura.testing.oracles.rows import Rows, key, maximal, same

ROUNDS_LIMIT = 10_000


def open_loops(node: Node) -> frozenset[str]:
    """The loops whose rows a step reads from inside."""
    if isinstance(node, Recursive):
        return frozenset((node.loop,))
    found: frozenset[str] = frozenset().union(*(open_loops(child) for child in node.inputs))
    return found - {node.loop} if isinstance(node, Fixpoint) else found


def least_solution(node: Fixpoint, seed: Rows, step: Callable[[Rows], Rows]) -> Rows:
    """The least result that is the seed and what the step makes of the result."""
    if node.max_rounds is not None:
        raise NotAuditedError(
            "the audit cannot recompute a loop that is cut off after some rounds.",
            remedy="Audit the views in front of it, or compare this one by hand.",
        )
    names = node.plain.names
    result: Rows = []
    for _ in range(ROUNDS_LIMIT):
        derived = [(le, re, {n: p[n] for n in names}) for le, re, p in step(result)]
        fresh = selected([*seed, *derived], node.keep)
        if _bag(fresh) == _bag(result):
            return result
        result = fresh
    raise NotAuditedError(
        f"the audit has gone around a loop {ROUNDS_LIMIT} times without an end.",
        remedy="Audit the views in front of it, or compare this one by hand.",
    )


def _bag(rows: Rows) -> Counter[Any]:
    return Counter((le, re, same(p)) for le, re, p in rows)


def selected(rows: Rows, keep: Keep | None) -> Rows:
    """All rows; each once; or at every instant the best of each key."""
    if keep is None:
        return rows
    groups: dict[Any, Rows] = {}
    for row in rows:
        groups.setdefault(key(row[2], keep.per) if keep.value else same(row[2]), []).append(row)
    best = _best if keep.value else lambda some, _: distinct(some)
    return [row for some in groups.values() for row in best(some, keep)]


def _best(rows: Rows, keep: Keep) -> Rows:
    """Of rows with one key, at every instant the one with the best value, then the least further columns.

    Null is worst; of rows with further columns, those without a value are none.
    """
    sign = 1 if keep.best == "least" else -1
    further = [n for n in rows[0][2] if n not in (*keep.per, keep.value)]
    spans: dict[Any, list[tuple[int, int]]] = {}
    payloads: dict[Any, dict[str, Any]] = {}
    for start, end in pairwise(sorted({t for le, re, _ in rows for t in (le, re)})):
        alive = [p for le, re, p in rows if le <= start < re]
        known = [p for p in alive if p[keep.value] is not None]
        best = [p for p in known if all(sign * order(p[keep.value], q[keep.value]) <= 0 for q in known)]
        for name in further:
            best = [p for p in best if all(_order(p[name], q[name]) <= 0 for q in best)]
        for p in best or ([] if further else alive):
            payloads[same(p)] = p
            spans.setdefault(same(p), [])
            if (start, end) not in spans[same(p)]:
                spans[same(p)].append((start, end))
    return [(a, b, payloads[one]) for one, some in spans.items() for a, b in maximal(some)]


def _order(a: Any, b: Any) -> int:
    """Null comes first."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    return order(a, b)
