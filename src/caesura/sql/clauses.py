"""A query before it is lowered: clauses that are none of ours are refused, some are written in others.

Nothing of a query is passed over: what no function of this room reads is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from sqlglot import exp

from caesura.expr.calls import registered_udf
from caesura.expr.sql_read import TWO, VALUES, Read, as_written, record, unread
from caesura.expr.sql_text import function_names
from caesura.sql.grouping import AGGREGATES, aggregates_in
from caesura.sql.ranks import NEIGHBOURS, RANKS
from caesura.sql.text import refused
from caesura.sql.unnest import CALLS, as_laterals
from caesura.sql.windows import MARKS, TIMED

SET = "with_ this expression distinct order limit pace"
READ: Read = {
    **VALUES,
    **record(
        {
            exp.Select: "with_ expressions distinct from_ joins laterals where group having qualify order"
            " limit",
            **dict.fromkeys((exp.Union, exp.Except, exp.Intersect), SET),
            **dict.fromkeys((exp.From, exp.Where, exp.Having, exp.Qualify, exp.Exists), "this"),
            **dict.fromkeys((exp.Any, exp.All), "this"),
            **dict.fromkeys((exp.Rollup, exp.Cube, exp.GroupingSets), "expressions"),
            exp.CTE: "this alias",
            exp.TableAlias: "this columns",
            **dict.fromkeys((exp.Kwarg, exp.PropertyEQ, exp.Filter, exp.WithinGroup), TWO),
            **dict.fromkeys((exp.ArgMin, exp.ArgMax), TWO),
            exp.Subquery: "this alias with_ match",
            exp.Table: "this alias version match",
            exp.Version: "this expression kind",
            exp.Join: "this on side kind using method",
            exp.Lateral: "this view outer alias",
            exp.Unnest: "expressions alias",
            exp.Values: "expressions alias",
            exp.With: "expressions recursive",
            exp.Distinct: "expressions",
            exp.Group: "expressions rollup cube grouping_sets all",
            exp.Order: "this expressions",
            exp.Ordered: "this desc nulls_first",
            exp.Limit: "expression",
            exp.Window: "this partition_by order spec over",
            exp.WindowSpec: "start start_side end end_side kind",
            exp.MatchRecognize: "partition_by order measures define alias",
            exp.Star: "except_",
            exp.GroupConcat: "this separator",
            exp.Quantile: "this quantile",
            exp.ApproxQuantile: "this quantile accuracy",
        }
    ),
}
"""What is read of each kind of node; refused is whatever else a query sets."""
ELSE = "Write the query without it, if it means the same then; docs/sql.md says what there is."
SHOWN: dict[str | tuple[type[exp.Expr], str], str] = {
    "by_name": "BY NAME",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "windows": "WINDOW",
    "db": "a name with a dot",
    "on": "DISTINCT ON",
    "locks": "FOR UPDATE",
    "connect": "CONNECT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "kind": "SELECT AS",
    "joins": "a join in brackets",
    "symmetric": "BETWEEN SYMMETRIC",
    "materialized": "MATERIALIZED",
    (exp.Window, "alias"): "a window by its name",
    (exp.WindowSpec, "exclude"): "EXCLUDE",
    (exp.Star, "replace"): "* REPLACE",
    (exp.Star, "rename"): "* RENAME",
    (exp.Star, "ilike"): "* ILIKE",
    (exp.Unnest, "offset"): "WITH ORDINALITY",
    (exp.Lateral, "ordinality"): "WITH ORDINALITY",
    (exp.Ordered, "with_fill"): "WITH FILL",
}
NODES: dict[type[exp.Expr], str] = {exp.Fetch: "FETCH FIRST", exp.Command: "this statement"}
REMEDIES = {
    "offset": "Rank the rows: ROW_NUMBER() OVER (ORDER BY ...) AS n, and WHERE n > 10 AND n <= 20.",
    "sample": "Keep the rows whose key says so: WHERE id % 10 = 0.",
    "pivots": "Write an aggregate for each value: sum(v) FILTER (WHERE id = 1).",
    "by_name": "Select the columns in one order on both sides.",
    "windows": "Write the window in each OVER (...).",
    "alias": "Write the window in each OVER (...).",
    "db": "Streams have one name: write it without a dot, under the name that it is given by.",
    "on": "Rank the rows: QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ...) = 1.",
    "symmetric": "Write both ways: x BETWEEN a AND b OR x BETWEEN b AND a.",
    "replace": "Write * EXCEPT (v), and the new value beside it: v + 1 AS v.",
    "rename": "Write * EXCEPT (v), and the column beside it under its new name: v AS w.",
    "ilike": "Name the columns.",
    "ordinality": "Write LATERAL VIEW explode(array) t AS element; elements have no numbers here.",
    "joins": "Write the join as a query: (SELECT * FROM a JOIN b ON a.k = b.k) x.",
    "fetch": "Write LIMIT 10.",
    "sort": "Write ORDER BY with LIMIT.",
}
CALLED = frozenset({*TIMED, *MARKS, *RANKS, *NEIGHBOURS, *CALLS, "grouping"})
"""What may be called where it has a meaning: windows, ranks, neighbours, elements of arrays."""
CHANGING = frozenset(
    {"now", "currenttimestamp", "currentdate", "currenttime", "curdate", "localtimestamp", "rand", "random"}
    | {"randn", "uuid", "monotonicallyincreasingid", "shuffle"}
)
"""Functions that give another value in another run."""


def refuse_unread(tree: exp.Expr, text: str) -> None:
    """Refuses a query of which anything is set that nothing here reads."""
    for node, name in unread(tree, READ):
        _refuse_changing(node, text)
        if not (name == "db" and not node.text("db")):
            raise _unknown_clause(node, name, text)
    for select in tree.find_all(exp.Select):
        _refuse_odd(select, text)


def ours(tree: exp.Query, text: str) -> exp.Query:
    """The query in clauses that steps are made of."""
    made = _rewritten(tree)
    for node in made.walk():
        _refuse_changing(node, text)
        if isinstance(node, exp.Anonymous) and not _is_known(node):
            raise _no_function(node, text)
    return made


def _is_known(node: exp.Anonymous) -> bool:
    """Whether anything may be called by this name where it stands."""
    name = node.name.lower()
    if isinstance(node.parent, exp.Table | exp.Lateral) or node.find_ancestor(exp.MatchRecognize) is not None:
        return True  # they say themselves what there is
    if name in AGGREGATES or name in CALLED or name in function_names():
        return True
    return node.meta.get("function") is not None or registered_udf(name) is not None


def _no_function(node: exp.Anonymous, text: str) -> Exception:
    near = get_close_matches(node.name.lower(), [*AGGREGATES, *function_names()], n=1)
    listing = f"Aggregates are {', '.join(sorted(AGGREGATES))}."
    remedy = f"Did you mean '{near[0]}'? docs/sql.md says what there is." if near else listing
    return refused(node, text, f"there is no function '{node.name.lower()}'", remedy)


def _refuse_odd(node: exp.Select, text: str) -> None:
    """Refuses clauses that would say nothing where they stand."""
    if not node.expressions:
        problem = "SELECT names no column"
        raise refused(node, text, problem, "Write SELECT *, or the columns that are wanted.")
    group, having = node.args.get("group"), node.args.get("having")
    if group is not None and group.args.get("all") is False:
        problem = "GROUP BY DISTINCT is not known here"
        raise refused(group, text, problem, "Write each set of keys once, in GROUPING SETS.")
    if group is not None and group.expressions and group.args.get("grouping_sets"):
        problem = "GROUPING SETS stands behind keys"
        raise refused(group, text, problem, "Write GROUP BY GROUPING SETS (...), or a comma before it.")
    parts = [*node.expressions, having]
    if having is not None and group is None and not any(aggregates_in(one) for one in parts if one):
        problem = "HAVING stands without GROUP BY, and no aggregate is asked for"
        raise refused(having, text, problem, "Write WHERE.")


def _unknown_clause(node: exp.Expr, name: str, text: str) -> Exception:
    if not name:
        shown = NODES.get(type(node)) or as_written(node)
        return refused(node, text, f"{shown} is not known here", REMEDIES.get(node.key, ELSE))
    value = node.args[name]
    at = value[0] if isinstance(value, list) and value else value
    shown = SHOWN.get((type(node), name)) or SHOWN.get(name) or name.rstrip("_").replace("_", " ").upper()
    remedy = REMEDIES.get(name, ELSE)
    return refused(at if isinstance(at, exp.Expr) else node, text, f"{shown} is not known here", remedy)


def _refuse_changing(node: exp.Expr, text: str) -> None:
    name = (node.name if isinstance(node, exp.Anonymous) else node.key).lower().replace("_", "")
    if isinstance(node, exp.Func) and name in CHANGING and not node.meta.get("function"):
        raise refused(
            node,
            text,
            f"'{node.sql('spark').lower()}' differs from run to run: no answer could be corrected or resumed",
            "Take the time of the rows; that is when they came where a script declares TIME ingestion_time.",
        )


# -- clauses that are written in others --------------------------------------------------------------------


def _rewritten(tree: exp.Query) -> exp.Query:
    for call in list(tree.find_all(*_AGGREGATES)):
        call.replace(_AGGREGATES[type(call)](call))
    for node in list(tree.find_all(exp.Select)):
        as_laterals(node)
        _group_by_all(node)
        _having_by_alias(node)
    for node in list(tree.find_all(exp.Select)):
        if node.args.get("qualify"):
            made = qualified(node)
            if node is tree:
                tree = made
            else:
                node.replace(made)
    return tree


def qualified(node: exp.Select) -> exp.Select:
    """QUALIFY as a condition around the query."""
    inner = node.copy()
    condition = inner.args["qualify"].this
    inner.set("qualify", None)
    held = inner.args.get("with_")
    inner.set("with_", None)
    names: list[str] = []
    named = {one.alias.lower() for one in inner.expressions if isinstance(one, exp.Alias)}
    for part in _asked(condition, named):
        names.append(f"qualify {len(names)}")
        column = exp.column(names[-1], quoted=True)
        inner.append("expressions", exp.alias_(part.copy(), names[-1], quoted=True))
        condition = column if condition is part else condition
        part.replace(column)
    shown = exp.Star(except_=[exp.to_identifier(name, quoted=True) for name in names])
    alias = exp.TableAlias(this=exp.to_identifier("qualified"))
    made = exp.Select(expressions=[shown], from_=exp.From(this=exp.Subquery(this=inner, alias=alias)))
    made.set("where", exp.Where(this=condition))
    made.set("with_", held)
    return made


def _asked(condition: exp.Expr, named: set[str]) -> list[exp.Expr]:
    """What QUALIFY asks of rows: windows, and columns that are no names of SELECT."""
    found: list[exp.Expr] = list(condition.find_all(exp.Window))
    for column in condition.find_all(exp.Column):
        plain = column.name.lower() in named and not column.table
        if not plain and column.find_ancestor(exp.Window) is None:
            found.append(column)
    return found


def _called(name: str, *args: str) -> Callable[[exp.Expr], exp.Expr]:
    """A call of a function by its name, which sqlglot has a node of its own for."""

    def plain(node: exp.Expr) -> exp.Expr:
        given = [node.args[arg] for arg in args if node.args.get(arg) is not None]
        made = exp.Anonymous(this=name, expressions=given)
        made.meta.update(node.meta)
        return made

    return plain


def _ordered_set(node: exp.Expr) -> exp.Expr:
    """mode() and percentile_cont(0.5) WITHIN GROUP (ORDER BY v)."""
    call, order = node.this, node.expression.expressions
    names = {"mode": "mode", "percentile_cont": "percentile", "percentile_disc": "percentile_disc"}
    name = names.get(call.name.lower()) if isinstance(call, exp.Anonymous) else None
    if name is None or len(order) != 1 or order[0].args.get("desc"):
        return node
    return exp.Anonymous(this=name, expressions=[order[0].this, *call.expressions])


_AGGREGATES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.GroupConcat: _called("string_agg", "this", "separator"),
    exp.ArgMin: _called("min_by", "this", "expression"),
    exp.ArgMax: _called("max_by", "this", "expression"),
    exp.Quantile: _called("percentile", "this", "quantile"),
    exp.ApproxQuantile: _called("percentile_approx", "this", "quantile", "accuracy"),
    exp.WithinGroup: _ordered_set,
}


def _group_by_all(node: exp.Select) -> None:
    """GROUP BY ALL: by what is no aggregate."""
    group = node.args.get("group")
    if group is not None and group.args.get("all") and not group.expressions:
        plain = [one.unalias() for one in node.expressions if not aggregates_in(one)]
        node.set("group", exp.Group(expressions=[one.copy() for one in plain]))


def _having_by_alias(node: exp.Select) -> None:
    """HAVING by names that SELECT gives to aggregates."""
    having = node.args.get("having")
    named = {one.alias.lower(): one.this for one in node.expressions if isinstance(one, exp.Alias)}
    if having is None:
        return
    for column in list(having.find_all(exp.Column)):
        value = named.get(column.name.lower()) if not column.table else None
        if value is not None and aggregates_in(value) and column.find_ancestor(exp.Query) is node:
            column.replace(value.copy())
