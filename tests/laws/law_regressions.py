"""Inputs that once broke a law, as they were drawn."""

from __future__ import annotations

SETTLED_LEFT_MEETS_A_LATER_RIGHT = (
    ("a", " LE RE | id v |\n 3 14 | 2 null | +\n-- 16 --"),
    ("b", " LE RE | other s |\n 3 14 | 2 a | +\n-- 16 --\n-- definite: * --"),
    ("a", " LE RE | id v |\n-- definite: * --"),
)
"""The left CTI is past the right row's end, but the left row's pieces still depend on it."""

LEFT_IS_OVER_BEFORE_RIGHT_COMES = (
    ("a", " LE RE | id v |\n 1 7 | 1 2.0 | +\n 1 7->2 | 1 2.0 | -\n-- definite: * --"),
    ("b", " LE RE | other s |\n 1 7 | 1 c | +\n 1 7->2 | 1 c | -\n 1 2->inf | 1 c | -\n-- definite: * --"),
)

A_RIGHT_ROW_BEHIND_A_KEY_PROMISE = (
    ("a", " LE RE | id v |\n 6 inf | 1 0.1 | +\n-- definite: id < 2 --"),
    ("b", " LE RE | other s |\n 6 9 | 1 b | +"),
    ("a", " LE RE | id v |\n-- definite: * --"),
    ("b", " LE RE | other s |\n 7 8 | 0 null | +\n 7 8 | 0 null | -\n-- definite: * --"),
)

A_ROW_THAT_WAS_LET_GO_IS_CORRECTED_TWICE_IN_A_PAGE = (
    ("a", " LE RE | id v |\n 0 1 | 1 0.0 | +\n 5 6 | 1 0.1 | +"),
    ("b", " LE RE | other s |\n-- 8 --"),
    ("a", " LE RE | id v |\n 5 6->20 | 1 0.1 | -\n 5 20 | 1 0.1 | -"),
    ("b", " LE RE | other s |\n 9 10 | 1 b | +\n 11 12 | 1 c | +\n-- definite: * --"),
    ("a", " LE RE | id v |\n-- definite: * --"),
)
"""Both versions were looked for before the first was stored again, and it stayed."""

A_RIGHT_ROW_THAT_WAS_LET_GO_IS_CORRECTED_TWICE_IN_A_PAGE = (
    ("b", " LE RE | other s |\n 5 6 | 1 b | +\n-- 5 --"),
    ("a", " LE RE | id v |\n-- 8 --"),
    ("b", " LE RE | other s |\n 5 6->20 | 1 b | -\n 5 20->9 | 1 b | -"),
    ("a", " LE RE | id v |\n 8 14 | 1 0.1 | +\n-- definite: * --"),
    ("b", " LE RE | other s |\n-- definite: * --"),
)

JOIN = (
    A_ROW_THAT_WAS_LET_GO_IS_CORRECTED_TWICE_IN_A_PAGE,
    A_RIGHT_ROW_THAT_WAS_LET_GO_IS_CORRECTED_TWICE_IN_A_PAGE,
    SETTLED_LEFT_MEETS_A_LATER_RIGHT,
    LEFT_IS_OVER_BEFORE_RIGHT_COMES,
    A_RIGHT_ROW_BEHIND_A_KEY_PROMISE,
)

BOTH_SIDES_GET_A_PAGE_OF_CORRECTIONS = (
    ("a", " LE RE | id v |\n 5 6 | 1 0.1 | +\n-- 6 --"),
    ("a", " LE RE | id v |\n 5 6->20 | 1 0.1 | -\n 5 20->9 | 1 0.1 | -\n-- definite: * --"),
)
"""The row had been let go on both sides; both of its new versions met it, and one retract left twice."""

MET_ITSELF = (BOTH_SIDES_GET_A_PAGE_OF_CORRECTIONS,)

TWO_EQUAL_EVENTS_WITHOUT_END = (
    ("a", " LE RE | id v |\n 6 inf | 2 -3 | +\n 6 inf | 2 -3 | +\n-- 12 --\n-- 20 --\n-- definite: * --"),
)
"""Counted as one row of weight 2, they were summed once."""

TUMBLING = (TWO_EQUAL_EVENTS_WITHOUT_END,)

KEY_PROMISES_THAT_ADD_UP_TO_ALL = (
    (
        "a",
        " LE RE | id v |\n 11 inf | null 1 | +\n"
        "-- definite: id is not null --\n-- definite: id is null --\n-- definite: * --",
    ),
)
"""Together they promise everything; the end of the stream then says nothing new, and nothing came out."""

TOTALS = (KEY_PROMISES_THAT_ADD_UP_TO_ALL,)
