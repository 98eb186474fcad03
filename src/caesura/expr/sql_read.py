"""What is read of each kind of node of SQL: whatever else a text sets is refused, never passed over.

The record is looked at once for a whole tree, before any of it becomes a plan. A clause that is to be known
is added to it where it is read; tests/sql/test_nothing_is_passed_over.py holds the record against the plans.

>>> from sqlglot import parse_one
>>> node, name = next(unread(parse_one("a BETWEEN SYMMETRIC 3 AND 1"), VALUES))
>>> type(node).__name__, name
('Between', 'symmetric')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from caesura.errors import ExprError

LONGEST = 60
"""So many signs of a text are shown where it would fill the screen."""
Read = Mapping[type[exp.Expr], frozenset[str]]


def record(told: Mapping[type[exp.Expr], str]) -> Read:
    """A record whose arguments are written as words."""
    return {kind: frozenset(names.split()) for kind, names in told.items()}


TWO = "this expression"
VALUES: Read = record(
    {
        **dict.fromkeys((exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), TWO),
        **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.Mod), TWO),
        **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Is, exp.Extract, exp.Dot), TWO),
        exp.IntervalSpan: TWO,
        **dict.fromkeys((exp.Not, exp.Neg, exp.Paren, exp.Boolean, exp.Var, exp.DataTypeParam), "this"),
        **dict.fromkeys((exp.Like, exp.ILike), f"{TWO} negate"),
        exp.Null: "",
        exp.Star: "",
        exp.RegexpLike: TWO,
        exp.Initcap: TWO,
        exp.Floor: "this",
        exp.Ceil: "this",
        exp.HexString: "this",
        exp.Div: f"{TWO} typed safe",  # of the dialect, always the same
        exp.DPipe: f"{TWO} safe",  # of the dialect, always the same
        exp.Column: "this table db catalog",
        exp.Identifier: "this quoted",
        exp.Bracket: "this expressions",
        exp.Literal: "this is_string",
        exp.Cast: "this to",
        exp.TryCast: "this to safe",
        exp.DataType: "this expressions nested",
        exp.ColumnDef: "this kind",  # a field of STRUCT<a: INT>
        exp.Case: "this ifs default",
        exp.If: "this true false",
        exp.In: "this expressions query",
        exp.Between: "this low high",
        exp.Trim: f"{TWO} position",
        exp.StrPosition: "this substr",
        exp.Substring: "this start length",
        exp.Alias: "this alias",
        exp.Anonymous: "this expressions",
        exp.Interval: "this unit",
        exp.Tuple: "expressions",
    }
)
"""What is read of the nodes of a value."""
BEGINS = "begins"
"""The mark of a whole query: where it begins in its text."""
UNSET = {(exp.Unnest, "offset")}
"""What the parser writes as False where a text says nothing."""


def unread(tree: exp.Expr, read: Read) -> Iterator[tuple[exp.Expr, str]]:
    """The nodes of which something is set that nobody reads, and what; '' where the node is not known."""
    for node in tree.walk():
        known = read.get(type(node))
        if known is None:
            yield node, ""
            continue
        for name, value in node.args.items():
            if name not in known and _is_set(node, name, value):
                yield node, name


def _is_set(node: exp.Expr, name: str, value: object) -> bool:
    if value is None or value == [] or (value is False and (type(node), name) in UNSET):
        return False
    # an ON or a name with nothing in it is none
    return not (isinstance(value, exp.Identifier) and not value.name)


def start_of(node: exp.Expr) -> int | None:
    """Where in its text a node starts; what has no place of its own is where the nearest around it is."""
    around: exp.Expr | None = node
    while around is not None:
        spots = [int(one.meta["start"]) for one in around.walk() if "start" in one.meta]
        if spots:
            return min(spots)
        if BEGINS in around.meta:
            return int(around.meta[BEGINS])
        around = around.parent
    return None


def refused(node: exp.Expr, text: str, problem: str, remedy: str = "") -> ExprError:
    """The error for a node: the text, the place in it, what is wrong."""
    at = start_of(node)
    place = ""
    if at is not None and text:
        line = text.count("\n", 0, at) + 1
        place = f", line {line}, column {at - (text.rfind(chr(10), 0, at) + 1) + 1}"
    where = f"in {text!r}{place}: " if text else ""
    return ExprError(
        f"{where}{problem}.",
        remedy=remedy or "Write it with col and the functions of caesura.functions, or compute it before.",
    )


def not_known(node: exp.Expr, name: str) -> str:
    """What is said of what is set of a node, and nobody reads."""
    told = name.strip("_").replace("_", " ").upper()
    return f"{told} in {as_written(node)} is not known here"


def as_written(node: exp.Expr) -> str:
    """A part of a text for an error, no longer than a line."""
    try:
        made = node.sql("spark", unsupported_level=ErrorLevel.IGNORE)
    except (ValueError, TypeError, AttributeError):  # sqlglot writes few of what other dialects have
        made = ""
    made = " ".join(made.split())
    shown = made if len(made) <= LONGEST else f"{made[:LONGEST]}..."
    return f"'{shown}'" if shown else node.key.upper()
