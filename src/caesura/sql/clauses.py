"""A query before it is lowered: clauses that are none of ours are refused, some are written in others.

Nothing of a query is passed over: what no function of this room reads is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from caesura.sql.grouping import aggregates_in
from caesura.sql.text import refused
from caesura.sql.unnest import as_laterals

SET = frozenset({"with_", "this", "expression", "distinct", "order", "limit", "pace"})
KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit"}
        | {"match", "laterals"}
    ),
    exp.Subquery: frozenset({"this", "alias", "with_", "match"}),
    exp.Table: frozenset({"this", "alias", "version", "match"}),
    exp.Union: SET,
    exp.Except: SET,
    exp.Intersect: SET,
    exp.Join: frozenset({"this", "on", "side", "kind", "using", "method"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over", "first"}),
    exp.WindowSpec: frozenset({"start", "start_side", "end", "end_side", "kind"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.Values: frozenset({"expressions", "alias"}),
    exp.Limit: frozenset({"expression"}),
    exp.Group: frozenset({"expressions", "rollup", "cube", "grouping_sets"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
}
"""What is read of each kind of node."""
SHOWN = {
    "by_name": "BY NAME",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "windows": "WINDOW",
    "db": "a name with a dot",
}
REMEDIES = {
    "offset": "Rank the rows: ROW_NUMBER() OVER (ORDER BY ...) AS n, and WHERE n > 10 AND n <= 20.",
    "sample": "Take a share in Python: stream.sample(0.1, seed=4).",
    "pivots": "Write an aggregate for each value: sum(v) FILTER (WHERE id = 1).",
    "by_name": "Select the columns in one order on both sides.",
    "windows": "Write the window in each OVER (...).",
    "db": "Streams have one name: give it as cz.sql(text, name=stream).",
}
CHANGING = frozenset(
    {"now", "currenttimestamp", "currentdate", "currenttime", "curdate", "localtimestamp", "rand", "random"}
    | {"randn", "uuid", "monotonicallyincreasingid", "shuffle"}
)
"""Functions that give another value in another run."""


def ours(tree: exp.Query, text: str) -> exp.Query:
    """The query in clauses that are known here; refuses others."""
    made = _rewritten(tree)
    for node in made.walk():
        known = KNOWN.get(type(node))
        if known is not None:
            for name, value in node.args.items():
                if value and name not in known and not (name == "db" and not node.text("db")):
                    raise _unknown_clause(node, name, text)
        _refuse_changing(node, text)
    return made


def _unknown_clause(node: exp.Expr, name: str, text: str) -> Exception:
    shown = SHOWN.get(name, name.rstrip("_").replace("_", " ").upper())
    return refused(node, text, f"{shown} is not known here", REMEDIES.get(name, "Leave it out."))


def _refuse_changing(node: exp.Expr, text: str) -> None:
    name = (node.name if isinstance(node, exp.Anonymous) else node.key).lower().replace("_", "")
    if isinstance(node, exp.Func) and name in CHANGING and not node.meta.get("function"):
        raise refused(
            node,
            text,
            f"'{node.sql('spark').lower()}' differs from run to run: no answer could be corrected or resumed",
            "Take the time of the rows; of when they came, read them with time=cz.ingestion_time().",
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
