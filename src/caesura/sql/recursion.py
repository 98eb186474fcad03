"""WITH RECURSIVE as fixed points: at each instant, all that follows from the rows alive then.

The parts of a table's UNION that do not speak of the loop are where it starts, the others its step. UNION
counts every row once, UNION ALL every derivation. Tables that need each other go around together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from caesura.api.loops import fixpoint
from caesura.api.stream import Stream
from caesura.errors import CaesuraError
from caesura.expr import col
from caesura.expr.nodes import Cast
from caesura.expr.types import common_type
from caesura.sql.relation import HeldColumn, Relation, with_names
from caesura.sql.text import placed, refused

MORE = ("with_", "order", "limit", "pace")
"""What a UNION may have beside its parts."""

if TYPE_CHECKING:
    from caesura.sql.query import Lowering


def declare(query: Lowering, declared: exp.With) -> None:
    """Makes the tables of WITH RECURSIVE known, each loop as a whole."""
    tables = {table.alias: table for table in declared.expressions}
    needs = {name: _mentioned(table.this, tables) for name, table in tables.items()}
    reached = {name: _reached(name, needs) for name in tables}
    known: set[str] = set()
    for name in sorted(tables, key=lambda n: len(reached[n] | {n})):
        if name in known:
            continue
        if name not in reached[name]:
            query.declare(tables[name])
            continue
        around = [other for other in tables if other in reached[name] and name in reached[other]]
        _close(query, [tables[one] for one in around])
        known.update(around)


def _mentioned(node: exp.Expr, names: dict[str, exp.CTE]) -> set[str]:
    found = {table.name.lower() for table in node.find_all(exp.Table)}
    found |= {column.name.lower() for call in node.find_all(exp.Anonymous) for column in call.expressions}
    return {name for name in names if name.lower() in found}


def _reached(name: str, needs: dict[str, set[str]]) -> set[str]:
    """All tables that one needs, over any number of others."""
    found: set[str] = set()
    waiting = list(needs[name])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += needs[one]
    return found


def _branches(node: exp.Expr) -> list[exp.Expr]:
    plain = _plain(node)
    if isinstance(plain, exp.Union) and not any(plain.args.get(name) for name in MORE):
        return [*_branches(plain.this), *_branches(plain.expression)]
    return [node]


def _plain(node: exp.Expr) -> exp.Expr:
    """Without the brackets around it that say nothing else."""
    while isinstance(node, exp.Subquery | exp.Paren) and not node.args.get("with_"):
        node = node.this
    return node


def _close(query: Lowering, tables: list[exp.CTE]) -> None:
    """One loop of tables that need each other."""
    named = {table.alias: table for table in tables}
    for table in tables:
        _refuse_clauses(query, table)
    starts = {name: _start(query, table, named) for name, table in named.items()}
    distinct = all(_distinct(table) for table in tables)
    if not distinct and any(_distinct(table) for table in tables):
        raise refused(
            tables[0],
            query.text,
            "tables of one loop mix UNION and UNION ALL",
            "Write the same in all of them.",
        )

    def step(*around: Stream) -> dict[str, Stream]:
        outer = dict(query.with_)
        for (name, start), stream in zip(starts.items(), around, strict=True):
            query.with_[name] = Relation(stream, start.columns)
        made = {name: _step(query, table, starts[name], named) for name, table in named.items()}
        query.with_ = outer
        return made

    try:
        seeds = {name: start.stream for name, start in starts.items()}
        loops = fixpoint(seeds, step, keep="distinct" if distinct else "all")
    except CaesuraError as error:
        if "that the loop ends" in error.problem:
            error.remedy = (
                "Write UNION if each row counts once, or test a column that ends it: WHERE depth < 10."
            )
        raise placed(error, tables[0], query.text) from None
    for name, start in starts.items():
        query.with_[name] = Relation(loops[name], start.columns)


def _refuse_clauses(query: Lowering, table: exp.CTE) -> None:
    """Refuses what would be of the loop as a whole, and UNION ALL around rows of a UNION."""
    whole = _plain(table.this)
    for name in MORE:
        if whole.args.get(name):
            shown = {"with_": "WITH", "order": "ORDER BY"}.get(name, name.upper())
            problem = f"{shown} of a recursive table is not known here"
            at = whole.args[name] if name == "limit" else whole
            raise refused(at, query.text, problem, "Write it in a query that reads the table.")
    inner = [_plain(one) for one in (whole.args.get("this"), whole.args.get("expression")) if one is not None]
    for one in inner:
        if isinstance(one, exp.Union) and one.args.get("distinct") and not whole.args.get("distinct"):
            problem = "a recursive table has UNION within UNION ALL"
            raise refused(one, query.text, problem, "Write the same in all of them.")


def _distinct(table: exp.CTE) -> bool:
    node = _plain(table.this)
    return isinstance(node, exp.Union) and bool(node.args.get("distinct"))


def _start(query: Lowering, table: exp.CTE, around: dict[str, exp.CTE]) -> Relation:
    """Where a table of a loop starts, its columns under the names that the loop has for them."""
    first = [one for one in _branches(table.this) if not _mentioned(one, around)]
    if not first:
        raise refused(
            table,
            query.text,
            f"'{table.alias}' has no part to start from: every SELECT of it reads the loop itself",
            "Begin with it: SELECT ... UNION ALL SELECT ... FROM " + table.alias + ".",
        )
    given = [c.name for c in table.args["alias"].args.get("columns") or ()]
    made = query.lower(with_names(first[0], given), {})
    names = [*given, *(c.name for c in made.columns[len(given) :])]
    held = {name: col(c.held) for name, c in zip(names, made.columns, strict=True)}
    columns = tuple(HeldColumn(table.alias, name, name) for name in names)
    start = Relation(made.stream.select(held), columns)
    parts = [start.stream, *(_like(query, start, one) for one in first[1:])]
    return Relation(_union(parts), columns)


def _step(query: Lowering, table: exp.CTE, start: Relation, around: dict[str, exp.CTE]) -> Stream:
    parts = [_like(query, start, one) for one in _branches(table.this) if _mentioned(one, around)]
    if not parts:
        return start.stream.where("false")
    return _union(parts)


def _like(query: Lowering, start: Relation, node: exp.Expr) -> Stream:
    """A part of the UNION with the columns and the types of where the loop starts."""
    made = query.lower(with_names(node, [c.name for c in start.columns]), {})
    if len(made.columns) != len(start.columns):
        problem = f"one part has {len(start.columns)} columns, another {len(made.columns)}"
        raise refused(node, query.text, problem, "Select as many in all parts.")
    shown = {}
    for wanted, given in zip(start.columns, made.columns, strict=True):
        type_, own = (s.stream.schema.field(c.held).type for s, c in ((start, wanted), (made, given)))
        if own != type_ and common_type(type_, own) != type_:
            problem = f"'{wanted.name}' starts as {type_}, and goes around as {own}"
            raise refused(node, query.text, problem, f"CAST where the loop starts: CAST(... AS {own}).")
        shown[wanted.held] = col(given.held) if own == type_ else Cast(col(given.held), type_)
    return made.stream.select(shown)


def _union(parts: list[Stream]) -> Stream:
    return parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]
