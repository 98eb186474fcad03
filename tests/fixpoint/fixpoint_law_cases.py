"""Loops as law cases: paths, reachable nodes, shortest ways, mutual recursion."""

from __future__ import annotations

from typing import Any

import loop_oracle as slow

import caesura as cz
from caesura import col, lit
from caesura.api import Stream
from caesura.fixpoint.node import PROGRESS, Progress
from caesura.plan import Node
from caesura.testing import oracles
from caesura.testing.case import LawCase
from caesura.testing.spec import InputSpec

NODES = InputSpec({"node": "key"}, key="node", max_rows=3)
LINKS = InputSpec({"a": "key", "b": "key"}, key="a", max_rows=6)
FEW = InputSpec({"a": "key", "b": "key"}, key="a", max_rows=3)
ROADS = InputSpec({"a": "key", "b": "key", "w": "int"}, key="a", max_rows=6)
FAR = 9
CASES: list[LawCase] = []


def slowest(ctis: tuple[int, ...]) -> int:
    return min(ctis)


def paths(nodes: Node, links: Node, progress: Progress) -> Node:
    """Every way that visits no node twice."""
    wire = Stream(links)
    seed = Stream(nodes).select(src=col("node"), node=col("node"), seen=lit(1).shift_left(col("node")))
    here = lit(1).shift_left(col("b"))

    def hop(r: Stream) -> Stream:
        met = r.join(wire, on={"node": "a"}).where(col("seen").bit_and(here) == 0)
        return met.select("src", node=col("b"), seen=col("seen").bit_or(here))

    return cz.fixpoint(seed, hop, progress=progress).node


def slow_paths(nodes: oracles.Rows, links: oracles.Rows, **_: Any) -> oracles.Rows:
    def hop(r: oracles.Payload, link: oracles.Payload) -> oracles.Payload | None:
        if r["node"] is None or r["node"] != link["a"] or link["b"] is None or r["seen"] & 1 << link["b"]:
            return None
        return {"src": r["src"], "node": link["b"], "seen": r["seen"] | 1 << link["b"]}

    def start(n: Any) -> oracles.Payload:
        return {"src": n, "node": n, "seen": None if n is None else 1 << n}

    return slow.derivations([(le, re, start(p["node"])) for le, re, p in nodes], hop, links)


def ways(nodes: Node, links: Node, progress: Progress) -> Node:
    """The same with a set that has room for any number of nodes."""
    seed = Stream(nodes).select(src=col("node"), node=col("node"), seen=cz.set_of("node"))

    def hop(r: Stream) -> Stream:
        met = r.join(Stream(links), on={"node": "a"}).where(~col("seen").set_has(col("b")))
        return met.select("src", node=col("b"), seen=col("seen").set_add(col("b")))

    return cz.fixpoint(seed, hop, progress=progress).select("src", "node").node


def slow_ways(nodes: oracles.Rows, links: oracles.Rows, **_: Any) -> oracles.Rows:
    found = slow_paths(nodes, links)
    return [(le, re, {"src": p["src"], "node": p["node"]}) for le, re, p in found]


def reached(nodes: Node, links: Node, progress: Progress) -> Node:
    """The nodes that can be reached."""

    def hop(r: Stream) -> Stream:
        return r.join(Stream(links), on={"node": "a"}).select(node=col("b")).distinct()

    return cz.fixpoint(Stream(nodes), hop, progress=progress).node


def slow_hop(rows: list[oracles.Payload], links: list[oracles.Payload]) -> list[oracles.Payload]:
    return [{"node": x["b"]} for r in rows for x in links if r["node"] == x["a"] and r["node"] is not None]


def pairs(links: Node, progress: Progress) -> Node:
    """Transitive closure, by joining the loop with itself."""
    direct = Stream(links).select(a=col("a"), b=col("b"))

    def twice(r: Stream) -> Stream:
        return r.join(r.rename(c="a", d="b"), on={"b": "c"}).select("a", b=col("d"))

    return cz.fixpoint(direct, twice, progress=progress, keep="distinct").node


def slow_pairs(links: oracles.Rows, **_: Any) -> oracles.Rows:
    def hop(rows: list[oracles.Payload], links: list[oracles.Payload]) -> list[oracles.Payload]:
        return [
            {"a": r["a"], "b": x["b"]} for r in rows for x in links if r["b"] == x["a"] and r["b"] is not None
        ]

    return slow.snapshots(links, hop, links)


def nearest(nodes: Node, roads: Node, progress: Progress) -> Node:
    """The shortest ways."""
    seed = Stream(nodes).select("node", dist=lit(0, "bigint"))
    sound = Stream(roads).where(col("w") >= 0)

    def hop(r: Stream) -> Stream:
        return r.join(sound, on={"node": "a"}).select(node=col("b"), dist=col("dist") + col("w"))

    return cz.fixpoint(seed, hop, progress=progress, keep=cz.least("dist", per="node")).node


def slow_nearest(nodes: oracles.Rows, roads: oracles.Rows, **_: Any) -> oracles.Rows:
    """All distances up to the longest way without a cycle; the least of them."""

    def hop(rows: list[oracles.Payload], roads: list[oracles.Payload]) -> list[oracles.Payload]:
        return [
            {"node": x["b"], "dist": r["dist"] + x["w"]}
            for r in rows
            for x in roads
            if r["node"] is not None and r["node"] == x["a"] and (x["w"] or 0) >= 0 and x["w"] is not None
            if r["dist"] + x["w"] <= 30
        ]

    def best(rows: list[oracles.Payload]) -> list[oracles.Payload]:
        least: dict[Any, int] = {}
        for p in rows:
            least[p["node"]] = min(p["dist"], least.get(p["node"], p["dist"]))
        return [{"node": n, "dist": d} for n, d in least.items()]

    return slow.snapshots([(le, re, {**p, "dist": 0}) for le, re, p in nodes], hop, roads, best=best)


def least_on_the_loop(nodes: Node, roads: Node, progress: Progress) -> Node:
    """The shortest ways back to a node by a minimum that the loop takes back when it finds less."""
    seed = Stream(nodes).select("node", dist=lit(0, "bigint"))
    sound = Stream(roads).where(col("w") > 0)

    def hop(r: Stream) -> Stream:
        met = r.where(col("dist") < FAR).join(sound, on={"node": "a"})
        made = met.select(node=col("b"), dist=col("dist") + col("w"))
        return made.group_by("node").snapshot().agg(dist=cz.min("dist"))

    return cz.fixpoint(seed, hop, progress=progress).distinct().node


def slow_least(nodes: oracles.Rows, roads: oracles.Rows, **_: Any) -> oracles.Rows:
    """All nodes at once, again and again until nothing changes."""

    def solve(nodes: list[oracles.Payload], roads: list[oracles.Payload]) -> list[oracles.Payload]:
        before: dict[Any, int] = {}
        while True:
            far = [(p["node"], 0) for p in nodes] + list(before.items())
            least: dict[Any, int] = {}
            for node, dist in far:
                for x in roads:
                    if node is not None and node == x["a"] and (x["w"] or 0) > 0 and dist < FAR:
                        least[x["b"]] = min(dist + x["w"], least.get(x["b"], dist + x["w"]))
            if least == before:
                return [{"node": node, "dist": dist} for node, dist in far]
            before = least

    return slow.at_instants(solve, nodes, roads)


def counted_ways(nodes: Node, links: Node, progress: Progress) -> Node:
    """How many ways of each length lead to a node: a sum of each round."""
    seed = Stream(nodes).select("node", hops=lit(0, "bigint"), ways=lit(1, "bigint"))

    def hop(r: Stream) -> Stream:
        met = r.where(col("hops") < 3).join(Stream(links), on={"node": "a"})
        made = met.select(node=col("b"), hops=col("hops") + 1, ways=col("ways"))
        return made.group_by("node", "hops").snapshot().agg(ways=cz.sum("ways"))

    return cz.fixpoint(seed, hop, progress=progress).distinct().node


def slow_counted(nodes: oracles.Rows, links: oracles.Rows, **_: Any) -> oracles.Rows:
    def solve(nodes: list[oracles.Payload], links: list[oracles.Payload]) -> list[oracles.Payload]:
        found = [(p["node"], 0, 1) for p in nodes]
        last = found
        for hops in (1, 2, 3):
            ways: dict[Any, int] = {}
            for node, _, count in last:
                for x in links:
                    if node is not None and node == x["a"]:
                        ways[x["b"]] = ways.get(x["b"], 0) + count
            last = [(node, hops, count) for node, count in ways.items()]
            found = found + last
        return [{"node": node, "hops": hops, "ways": count} for node, hops, count in found]

    return slow.at_instants(solve, nodes, links)


def routes(nodes: Node, roads: Node, progress: Progress) -> Node:
    """The shortest ways with the last hop and where they began; of equal ones the least by these."""
    seed = Stream(nodes).select(
        "node", dist=lit(0, "bigint"), via=lit(None, "bigint"), first=col("node").cast("bigint")
    )
    sound = Stream(roads).where(col("w") > 0)

    def hop(r: Stream) -> Stream:
        met = r.join(sound, on={"node": "a"})
        return met.select(
            node=col("b"), dist=col("dist") + col("w"), via=col("node").cast("bigint"), first=col("first")
        )

    return cz.fixpoint(seed, hop, progress=progress, keep=cz.least("dist", per="node")).node


def slow_routes(nodes: oracles.Rows, roads: oracles.Rows, **_: Any) -> oracles.Rows:
    """By Dijkstra, at every instant."""

    def order(p: oracles.Payload) -> Any:
        return p["dist"], *((p[n] is not None, p[n] or 0) for n in ("via", "first"))

    def solve(nodes: list[oracles.Payload], roads: list[oracles.Payload]) -> list[oracles.Payload]:
        waiting = [{**p, "dist": 0, "via": None, "first": p["node"]} for p in nodes]
        known: dict[Any, oracles.Payload] = {}
        while waiting:
            one = min(waiting, key=order)
            waiting.remove(one)
            if one["node"] in known:
                continue
            known[one["node"]] = one
            waiting += [
                {"node": x["b"], "dist": one["dist"] + x["w"], "via": one["node"], "first": one["first"]}
                for x in roads
                if one["node"] is not None and x["a"] == one["node"] and (x["w"] or 0) > 0
            ]
        return list(known.values())

    return slow.at_instants(solve, nodes, roads)


def parity(nodes: Node, links: Node, progress: Progress) -> Node:
    """Nodes at an even and at an odd number of hops, each by the other."""

    def hop(even: Stream, odd: Stream) -> dict[str, Stream]:
        ways = Stream(links)
        return {
            "even": odd.join(ways, on={"node": "a"}).select(node=col("b")),
            "odd": even.join(ways, on={"node": "a"}).select(node=col("b")),
        }

    nothing = Stream(nodes).where(lit(False))
    made = cz.fixpoint({"even": Stream(nodes), "odd": nothing}, hop, progress=progress, keep="distinct")
    return made["even"].select("node", odd=lit(False)).union(made["odd"].select("node", odd=lit(True))).node


def slow_parity(nodes: oracles.Rows, links: oracles.Rows, **_: Any) -> oracles.Rows:
    def hop(rows: list[oracles.Payload], links: list[oracles.Payload]) -> list[oracles.Payload]:
        return [
            {"node": x["b"], "odd": not r["odd"]}
            for r in rows
            for x in links
            if r["node"] == x["a"] and r["node"] is not None
        ]

    return slow.snapshots([(le, re, {**p, "odd": False}) for le, re, p in nodes], hop, links)


def legs(nodes: Node, links: Node, roads: Node, progress: Progress) -> Node:
    """A loop within a loop: up to two changes from links to a road, any number of links in between."""
    wires, ways = Stream(links), Stream(roads)

    def walk(r: Stream) -> Stream:
        return r.join(wires, on={"node": "a"}).select("leg", node=col("b")).distinct()

    def drive(r: Stream) -> Stream:
        off = r.where(col("leg") < 2).join(ways, on={"node": "a"})
        return cz.fixpoint(off.select(leg=col("leg") + 1, node=col("b")), walk, progress=progress)

    seed = Stream(nodes).select(leg=lit(0, "bigint"), node=col("node"))
    return cz.fixpoint(seed, drive, progress=progress).distinct().node


def slow_legs(nodes: oracles.Rows, links: oracles.Rows, roads: oracles.Rows, **_: Any) -> oracles.Rows:
    def hop(
        rows: list[oracles.Payload], links: list[oracles.Payload], roads: list[oracles.Payload]
    ) -> list[oracles.Payload]:
        walked = [
            {**r, "node": x["b"]}
            for r in rows
            for x in links
            if r["leg"] > 0 and r["node"] == x["a"] and r["node"] is not None
        ]
        driven = [
            {"leg": r["leg"] + 1, "node": x["b"]}
            for r in rows
            for x in roads
            if r["leg"] < 2 and r["node"] == x["a"] and r["node"] is not None
        ]
        return walked + driven

    return slow.snapshots([(le, re, {"leg": 0, **p}) for le, re, p in nodes], hop, links, roads)


def add(name: str, build: Any, oracle: Any, *inputs: InputSpec, way: Progress) -> None:
    """One case under one strategy; the high-water mark alone may stay behind until the end."""
    CASES.append(
        LawCase(
            f"{name}-{way}",
            build=lambda *streams: build(*streams, way),
            oracle=oracle,
            inputs=inputs,
            liveness=None if way == "high_water" else slowest,
        )
    )


for each in PROGRESS:
    add("paths", paths, slow_paths, NODES, LINKS, way=each)
    add("reached", reached, lambda n, x, **_: slow.snapshots(n, slow_hop, x), NODES, LINKS, way=each)
    add("nearest", nearest, slow_nearest, NODES, ROADS, way=each)
    if each in ("hybrid", "high_water"):
        add("routes", routes, slow_routes, NODES, ROADS, way=each)
        add("ways", ways, slow_ways, NODES, LINKS, way=each)
        add("pairs", pairs, slow_pairs, LINKS, way=each)
        add("least on the loop", least_on_the_loop, slow_least, NODES, ROADS, way=each)
        add("counted ways", counted_ways, slow_counted, NODES, FEW, way=each)
        add("parity", parity, slow_parity, NODES, LINKS, way=each)
    add("legs", legs, slow_legs, NODES, FEW, FEW, way=each)
