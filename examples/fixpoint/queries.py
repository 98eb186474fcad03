"""The queries of the paper on cyclic plans: reachability, patterns with an NFA, the W of a price.

Each function gives a stream; the streams that it reads are given to it, so that a test can draw them.
"""

from __future__ import annotations

from typing import Any

import caesura as cz
from caesura import col, lit


def reachability(sources: cz.Stream, links: cz.Stream, **options: Any) -> cz.Stream:
    """Figure 1: every way that visits no node twice, as (src, node, path).

    ``sources`` has node, ``links`` has a and b: texts. The paper marks visited nodes with bits; a set has
    room for any number of them.
    """
    seed = sources.select(src=col("node"), node=col("node"), path=col("node"), seen=cz.set_of("node"))

    def hop(reached: cz.Stream) -> cz.Stream:
        met = reached.join(links, on={"node": "a"})
        fresh = met.where(~col("seen").set_has(col("b")))
        way = col("path").concat(lit("/"), col("b"))
        return fresh.select("src", node=col("b"), path=way, seen=col("seen").set_add(col("b")))

    ways = cz.fixpoint(seed, hop, **options)
    return ways.where(col("src") != col("node")).select("src", "node", "path")


def nfa(symbols: cz.Stream, transitions: cz.Stream, **options: Any) -> cz.Stream:
    """Figure 4: all partial and complete matches of an automaton that is itself a stream.

    ``symbols`` has seq and symbol, ``transitions`` has state, symbol and next. A match has begin, the
    number of its first symbol, at, that of its last, and the state it has come to; 'S' is the start.
    """
    seed = symbols.select(begin=col("seq"), at=col("seq") - 1, state=lit("S"))
    arcs = symbols.join(transitions, on="symbol")

    def follow(match: cz.Stream) -> cz.Stream:
        ahead = match.select("begin", "state", wanted=col("at") + 1)
        met = ahead.join(arcs, on={"wanted": "seq", "state": "state"})
        return met.select("begin", at=col("wanted"), state=col("next"))

    return cz.fixpoint(seed, follow, **options)


W_ARCS = [
    # state, symbol, next, least m before, change of m
    ("S", "U", "first", None, 0),
    ("first", "D", "down", None, 1),
    ("down", "D", "down", None, 1),
    ("down", "U", "up", None, -1),
    ("up", "U", "up", None, -1),
    ("up", "D", "down2", None, 1),
    ("down2", "D", "down2", None, 1),
    ("down2", "U", "up2", 1, -1),
    ("up2", "U", "up2", 1, -1),
]
"""The W: U D^i U^j D^k U^l with i + k = j + l; m counts downs minus ups, and must come back to 0."""


def w_query(ticks: cz.Stream, arcs: cz.Stream, **options: Any) -> cz.Stream:
    """Section 4's W with its register m, over ``ticks`` (seq, symbol) whose lifetimes are the window.

    ``arcs`` has state, symbol, next, least and change.
    """
    seed = ticks.select(begin=col("seq"), at=col("seq") - 1, state=lit("S"), m=lit(0, "bigint"))

    def follow(match: cz.Stream) -> cz.Stream:
        ahead = match.select("begin", "state", "m", wanted=col("at") + 1)
        met = ahead.join(ticks, on={"wanted": "seq"}).join(arcs, on=["state", "symbol"])
        alive = met.where(col("least").is_null() | (col("m") >= col("least")))
        return alive.select("begin", at=col("wanted"), state=col("next"), m=col("m") + col("change"))

    return cz.fixpoint(seed, follow, **options)


def complete(matches: cz.Stream) -> cz.Stream:
    """The W's that are complete: in the last group of ups, and back where they began."""
    return matches.where((col("state") == "up2") & (col("m") == 0))


def shortest(starts: cz.Stream, roads: cz.Stream, **options: Any) -> cz.Stream:
    """The length of the shortest way to each node; ``roads`` has a, b and length."""
    seed = starts.select("node", dist=lit(0, "bigint"))
    sound = roads.where(col("length") >= 0)

    def drive(near: cz.Stream) -> cz.Stream:
        met = near.join(sound, on={"node": "a"})
        return met.select(node=col("b"), dist=col("dist") + col("length"))

    return cz.fixpoint(seed, drive, keep=cz.least("dist", per="node"), **options)


def regions(nodes: cz.Stream, links: cz.Stream, **options: Any) -> cz.Stream:
    """The connected regions: each node with the least node that it is connected to, both ways."""
    both = links.select("a", "b").union(links.select(a=col("b"), b=col("a")))

    def spread(known: cz.Stream) -> cz.Stream:
        return known.join(both, on={"node": "a"}).select(node=col("b"), region=col("region"))

    seed = nodes.select(node=col("node"), region=col("node"))
    return cz.fixpoint(seed, spread, keep=cz.least("region", per="node"), **options)


def w_native(ticks: cz.Stream, within: int = 30, *, lower: bool = False) -> cz.Stream:
    """The W as an automaton of its own; ``ticks`` has symbol. The complete matches come out.

    With ``lower`` the second low is not above the first (section 5.1): a register keeps how deep that was.
    """
    moves = []
    for state, symbol, following, least, change in W_ARCS:
        when = col("symbol") == symbol
        if least is not None:
            when = when & (col("m") >= least)
        changes = {"m": col("m") + change}
        if lower and (state, following) == ("down", "up"):
            changes["first"] = col("m")
        if lower and (state, following) == ("down2", "up2"):
            when = when & (col("m") >= col("first"))
        moves.append(cz.arc(state, following, when, **changes))
    registers = {"m": 0, "first": 0} if lower else {"m": 0}
    return ticks.match(cz.automaton(moves, registers, within, accept={"up2": col("m") == 0}))
