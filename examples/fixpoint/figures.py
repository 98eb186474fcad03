"""The paper's examples as drawn streams: what goes in, and what comes out of the loop.

python examples/fixpoint/figures.py
"""

from __future__ import annotations

import pyarrow as pa
from queries import nfa, reachability, regions, shortest, w_native

import caesura as cz
from caesura.events import draw
from caesura.testing import run

TEXT, WHOLE = pa.string(), pa.int64()
SOURCES = cz.input_stream("sources", pa.schema([("node", TEXT)]))
LINKS = cz.input_stream("links", pa.schema([("a", TEXT), ("b", TEXT)]))
SYMBOLS = cz.input_stream("symbols", pa.schema([("seq", WHOLE), ("symbol", TEXT)]))
TRANSITIONS = cz.input_stream("transitions", pa.schema([("state", TEXT), ("symbol", TEXT), ("next", TEXT)]))
NODES = cz.input_stream("nodes", pa.schema([("node", WHOLE)]))
ROADS = cz.input_stream("roads", pa.schema([("a", WHOLE), ("b", WHOLE), ("length", WHOLE)]))

NODES_AT_1 = """
 LE RE  | node |
  1 inf | n2   | +
  1 inf | n3   | +
-- 6 --
"""
HOPS = """
 LE RE  | a  b  |
  2 inf | n3 n1 | +
-- 3 --
  3 inf | n1 n2 | +
  3 inf | n2 n3 | +
-- 4 --
  4 inf | n3 n4 | +
-- 5 --
"""
EXPIRING = """
 LE RE | a  b  |
  2  8 | n3 n1 | +
  3 10 | n1 n2 | +
-- 12 --
"""
RETRACTED = HOPS + "  2 inf->5 | n3 n1 | -\n-- 6 --\n"
ARCS = """
 LE RE  | state symbol next |
  0 inf | S     A      B    | +
  0 inf | B     B      B    | +
  0 inf | B     A      F    | +
-- 3 --
  0 inf->4 | B  B      B    | -
"""
ABBA = """
 LE RE  | seq symbol |
  1 inf | 1   A      | +
  2 inf | 2   B      | +
  3 inf | 3   B      | +
  4 inf | 4   A      | +
"""
TOSSES = " LE RE | seq symbol |\n" + "".join(
    f" {n} {n + 30} | {n} {s} | +\n" for n, s in enumerate("UDUDUDDUU", 1)
)
MAP = """
 LE RE | a b length |
  1 20 | 1 2 4      | +
  1 20 | 2 3 4      | +
  5 20 | 1 3 3      | +
  1 20->9 | 1 2 4   | -
"""


def show(title: str, query: cz.Stream, **inputs: str) -> None:
    print(f"== {title}")
    for label, drawn in inputs.items():
        print(f"{label}:{drawn.rstrip()}")
    print("->")
    print(draw(run(query, inputs), schema=query.schema))
    print()


def main() -> None:
    show("reachability, times 1 to 4", reachability(SOURCES, LINKS), sources=NODES_AT_1, links=HOPS)
    one = " LE RE | node |\n  1  6 | n3   | +\n-- 12 --"
    show("events that expire", reachability(SOURCES, LINKS), sources="\n" + one, links=EXPIRING)
    show("a link is retracted at 5", reachability(SOURCES, LINKS), sources=NODES_AT_1, links=RETRACTED)
    show("AB*A, changed at 4", nfa(SYMBOLS, TRANSITIONS), transitions=ARCS, symbols=ABBA)
    show("W, the operator of its own", w_native(SYMBOLS), symbols="\n" + TOSSES + "-- 40 --")
    show("shortest ways", shortest(NODES, ROADS), nodes="\n LE RE | node |\n  1 20 | 1    | +\n", roads=MAP)
    ways = "\n LE RE | a b length |\n  1 20 | 1 2 0 | +\n  1 20 | 2 3 0 | +\n-- 4 --\n  1 20->7 | 2 3 0 | -\n"
    three = "\n LE RE | node |\n  1 20 | 1    | +\n  1 20 | 2    | +\n  1 20 | 3    | +\n"
    show("regions when a link fails", regions(NODES, ROADS), nodes=three, roads=ways)


if __name__ == "__main__":
    main()
