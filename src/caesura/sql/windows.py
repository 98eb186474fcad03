"""Windows in SQL: table functions (TUMBLE, HOP, SESSION), the same in GROUP BY, and Spark's window().

A row is assigned by its time. Rows are grouped by the columns `window_start` and `window_end` of a table
function, by TUMBLE(ts, ...) with TUMBLE_START and TUMBLE_END beside it, or by window(ts, '10 minutes').
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from sqlglot import exp

from caesura.errors import CaesuraError
from caesura.expr.durations import micros
from caesura.expr.sql_literals import interval_micros
from caesura.expr.sql_read import as_written
from caesura.plan import Duration
from caesura.sql.relation import AssignedWindow, Relation
from caesura.sql.text import placed, refused

TABLE_FUNCTIONS = ("tumble", "hop", "session", "cumulate", "count_window", "snapshot")
TIMED = frozenset(
    {"descriptor", "window", "session_window"}
    | {name + part for name in TABLE_FUNCTIONS for part in ("", "_start", "_end")}
)
"""Functions whose first argument is the time of a row."""
NAMED = {
    "tumble": ("data", "timecol", "size"),
    "hop": ("data", "timecol", "slide", "size"),
    "session": ("data", "timecol", "gap"),
    "cumulate": ("data", "timecol", "step", "size"),
    "count_window": ("data", "timecol", "size"),
    "snapshot": ("data",),
}
"""The arguments of table functions by their names, in the order that they have without."""
STEPS_LIMIT = 1000
"""Of CUMULATE, for each step is a window of its own."""
MARKS = {
    **dict.fromkeys(("window_start", "tumble_start", "hop_start", "session_start"), "start"),
    **dict.fromkeys(("window_end", "tumble_end", "hop_end", "session_end"), "end"),
}


def duration(node: exp.Expr, text: str) -> Duration:
    """INTERVAL '10' SECOND, '10 minutes', or a plain number for times that are numbers."""
    if isinstance(node, exp.Literal) and not node.is_string and re.fullmatch("[0-9]{1,18}", node.name):
        return int(node.name)
    try:
        length = micros(node.name) if isinstance(node, exp.Literal) else interval_micros(node, "")
    except CaesuraError as error:
        raise placed(error, node, text) from None
    if length is None:
        raise refused(
            node,
            text,
            f"'{node.sql('spark')}' is no length of time",
            "Write INTERVAL '10' SECOND, or '10 seconds'.",
        )
    return timedelta(microseconds=length)


def _window(name: str, lengths: list[exp.Expr], node: exp.Expr, text: str) -> AssignedWindow:
    given = [duration(each, text) for each in lengths]
    if name == "hop" and len(given) == 2:
        return AssignedWindow("hop", given[1], given[0])
    if name == "tumble" and len(given) == 1:
        return AssignedWindow("tumble", given[0])
    if name == "session" and len(given) == 1:
        return AssignedWindow("session", given[0])
    if name == "count_window" and len(given) == 1:
        return AssignedWindow("count", given[0])
    if name == "cumulate" and len(given) == 2:
        made = AssignedWindow("cumulate", given[1], given[0])
        _refuse_uneven(made, node, text)
        return made
    raise refused(
        node,
        text,
        f"{name.upper()} does not take {len(given)} lengths",
        "Write TUMBLE(ts, size), HOP(ts, slide, size), SESSION(ts, gap) or CUMULATE(ts, step, size).",
    )


def steps(window: AssignedWindow) -> list[Any]:
    """The sizes of the windows that start together and grow by a step."""
    return [window.every * n for n in range(1, _count(window) + 1)]


def _count(window: AssignedWindow) -> int:
    return int(window.size // window.every)


def _refuse_uneven(window: AssignedWindow, node: exp.Expr, text: str) -> None:
    try:
        even = window.size % window.every in (0, timedelta(0)) and 0 < _count(window) <= STEPS_LIMIT
    except (TypeError, ZeroDivisionError):
        even = False
    if not even:
        problem = f"the size of CUMULATE is no multiple of its step, or of more than {STEPS_LIMIT} steps"
        raise refused(node, text, problem, "Write CUMULATE(TABLE t, DESCRIPTOR(ts), step, size).")


def refuse_other_times(relation: Relation, node: exp.Expr, text: str) -> None:
    """Refuses windows and frames by another column than the time of the rows."""
    if not relation.is_time(node):
        raise refused(
            node,
            text,
            f"'{node.sql('spark')}' is not the time of these rows",
            "Windows and frames go by the time that the stream was read with: TIME ts in CREATE STREAM.",
        )


def refuse_other_mark(relation: Relation, node: exp.Expr, window: AssignedWindow | None, text: str) -> None:
    """Refuses TUMBLE_START(ts, size) and its kin of another window than rows are grouped by."""
    if not isinstance(node, exp.Anonymous):
        return
    kind, _, _ = node.name.lower().rpartition("_")
    time, lengths = node.expressions[:1], node.expressions[1:]
    if kind == "window" or not time or _window(kind, lengths, node, text) != window:
        problem = f"{as_written(node)} is of another window than the rows are grouped by"
        raise refused(node, text, problem, "Write it with the time and the lengths of GROUP BY.")
    refuse_other_times(relation, time[0], text)


def table_window(node: exp.Anonymous, text: str) -> tuple[str, exp.Expr | None, AssignedWindow]:
    """The table that a table function is over, the column of its time, and its windows.

    SNAPSHOT goes by lifetimes, and has no such column.
    """
    name = node.name.lower()
    args = _by_position(node, text)
    plain = bool(args) and isinstance(args[0], exp.Column) and not args[0].table
    if name == "snapshot" and len(args) == 1 and plain:
        return args[0].name, None, AssignedWindow("snapshot")
    described = args[1] if len(args) > 1 else exp.Null()
    named = isinstance(described, exp.Anonymous) and described.name.lower() == "descriptor"
    if not plain or not named or len(described.expressions) != 1:
        raise refused(
            node,
            text,
            f"{name.upper()} in FROM is not written like this",
            f"Write TABLE({name.upper()}(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND)).",
        )
    return args[0].name, described.expressions[0], _window(name, args[2:], node, text)


def _by_position(node: exp.Anonymous, text: str) -> list[exp.Expr]:
    """The arguments of a table function in order, also of those with names: DATA => TABLE bid."""
    given, known = list(node.expressions), NAMED.get(node.name.lower(), ())
    named = [one for one in given if isinstance(one, exp.Kwarg | exp.PropertyEQ)]
    if not named:
        return given
    found = {one.this.name.lower(): one.expression for one in named}
    if len(found) < len(given) or set(found) != set(known):
        problem = f"{node.name.upper()} has other arguments by name, and has all of them by name or none"
        raise refused(node, text, problem, f"They are {', '.join(one.upper() for one in known)}.")
    return [found[one] for one in known]


def group_window(node: exp.Expr, text: str) -> AssignedWindow | None:
    """The windows that a key of GROUP BY is; None where it is none."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) < 2:
        return None
    name, lengths = node.name.lower(), list(node.expressions[1:])
    if name in TABLE_FUNCTIONS:
        return _window(name, lengths, node, text)
    if name == "session_window":
        return _window("session", lengths, node, text)
    if name == "window":
        return _window(*(("hop", lengths[::-1]) if len(lengths) == 2 else ("tumble", lengths)), node, text)
    return None


def mark_of(node: exp.Expr, window: AssignedWindow | None) -> str:
    """Whether a part of a query says where a window starts or ends."""
    if window is None:
        return ""
    if isinstance(node, exp.Column):
        if node.table.lower() in ("window", "session_window") and node.name.lower() in ("start", "end"):
            return node.name.lower()
        return MARKS.get(node.name.lower(), "")
    return MARKS.get(node.name.lower(), "") if isinstance(node, exp.Anonymous) else ""
