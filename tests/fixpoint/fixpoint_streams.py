"""The streams of the paper's examples, drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import caesura as cz

EXAMPLES = Path(__file__).parents[2] / "examples" / "fixpoint"
sys.path.insert(0, str(EXAMPLES))

SOURCES = cz.input_stream("sources", pa.schema([("node", pa.string())]))
LINKS = cz.input_stream("links", pa.schema([("a", pa.string()), ("b", pa.string())]))
SYMBOLS = cz.input_stream("symbols", pa.schema([("seq", pa.int64()), ("symbol", pa.string())]))
ARCS = pa.schema([("state", pa.string()), ("symbol", pa.string()), ("next", pa.string())])
TRANSITIONS = cz.input_stream("transitions", ARCS)

NODES = """
 LE RE  | node |
  1 inf | n2   | +
  1 inf | n3   | +
-- definite: * --
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
AB_STAR_A = """
 LE RE  | state symbol next |
  0 inf | S     A      B    | +
  0 inf | B     B      B    | +
  0 inf | B     A      F    | +
"""
ABBA = """
 LE RE  | seq symbol |
  1 inf | 1   A      | +
  2 inf | 2   B      | +
  3 inf | 3   B      | +
  4 inf | 4   A      | +
"""
