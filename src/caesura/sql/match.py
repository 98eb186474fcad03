"""MATCH_RECOGNIZE in FROM: partitions, PATTERN and DEFINE as a step that matches rows, and its MEASURES.

A column in a condition or a measure is that of the last row of its variable; PREV, NEXT, FIRST and LAST
name other rows, and aggregates are of all rows so far. Every one becomes a column that the step computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from caesura.errors import CaesuraError, closest
from caesura.expr import Expr, col, reads_end, start
from caesura.expr.sql_text import lowered
from caesura.expr.types import kind
from caesura.ops.match import NUMBER, Formula, MatchFold, Navigation, Skip
from caesura.ops.match.node import Shown, SkipTo
from caesura.ops.match.pattern import RowPattern, excludes, variables
from caesura.ops.match.reader import FORM, PatternReader, PatternWord
from caesura.sql.grouping import Grouping, is_aggregate
from caesura.sql.match_text import TENSES
from caesura.sql.relation import HeldColumn, Relation
from caesura.sql.text import placed, refused
from caesura.sql.windows import duration, refuse_other_times

if TYPE_CHECKING:
    from caesura.sql.query import Lowering

FARTHEST = 2**40
"""So many rows away there is none."""
NAVIGATIONS = ("prev", "next", "first", "last")
SHOWN: dict[str, Shown] = {
    "": "one",
    "ONE ROW PER MATCH": "one",
    "ALL ROWS PER MATCH": "all",
    "ALL ROWS PER MATCH SHOW EMPTY MATCHES": "all",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES": "all without empty",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS": "all with unmatched",
}
SKIPS: dict[str, SkipTo] = {"": "past last row", "TO NEXT ROW": "next row", "TO FIRST": "first"}


def match_rows(query: Lowering, relation: Relation, node: exp.MatchRecognize) -> Relation:
    """The rows that match, as a table of their own."""
    text = query.text
    group = [_column(relation, part, "PARTITION BY", text) for part in node.args.get("partition_by") or ()]
    order = _order(relation, node, text)
    names = _Names.of(node, text)
    formulas = Formulas(relation, names, text)
    define = _defined(node, formulas)
    measures = {one.alias: formulas.measure(one.this) for one in _named(node, text)}
    _refuse_others(relation, node, text, names.pattern, shows=bool(group or measures))
    within, shown = node.meta["within"], SHOWN[node.meta["rows"]]
    length = None if within is None else duration(within, text)
    try:
        matched = relation.stream.group_by(*(col(c.held) for c in group)).match_rows(
            names.pattern,
            define=define,
            measures=measures,
            rows=shown,
            skip=names.skip(node.meta),
            within=length,
            order=[c.held for c in order[1:]],
        )
    except CaesuraError as error:
        raise placed(error, node, text) from None
    own = [HeldColumn("", name, name) for name in measures]
    columns = [*group, *own] if shown == "one" else [*group, *order, *own, *relation.columns]
    return query.called(Relation(matched, tuple(dict.fromkeys(columns))), node.args.get("alias"))


def _defined(node: exp.MatchRecognize, formulas: Formulas) -> dict[str, Formula]:
    """The conditions of variables."""
    define: dict[str, Formula] = {}
    for one in node.args.get("define") or ():
        name = formulas.names.defined(one)
        if name in define:
            raise refused(one, formulas.text, f"{name} is defined twice", "Join both conditions by AND.")
        define[name] = formulas.condition(name, one.this)
    return define


def _refuse_others(
    relation: Relation, node: exp.MatchRecognize, text: str, pattern: RowPattern, *, shows: bool
) -> None:
    """Refuses rows that are in windows, and clauses that do not go together."""
    if relation.window is not None:
        problem = "MATCH_RECOGNIZE over rows that are assigned to windows is not known here"
        raise refused(node, text, problem, "Match the rows, then group.")
    shown = SHOWN[node.meta["rows"]]
    if shown == "one" and not shows:
        raise refused(node, text, "MATCH_RECOGNIZE shows no column", "Write MEASURES COUNT(*) AS n.")
    if shown == "all with unmatched" and excludes(pattern):
        problem = "WITH UNMATCHED ROWS shows what {- -} leaves out"
        raise refused(node, text, problem, "Leave one of the two out.")


def _column(relation: Relation, node: exp.Expr, clause: str, text: str) -> HeldColumn:
    if not isinstance(node, exp.Column):
        raise refused(
            node, text, f"{clause} in MATCH_RECOGNIZE takes columns", "Compute it in a SELECT before."
        )
    found = relation.find(node.name, node.table)
    if len(found) != 1:
        raise relation.unknown(node, text)
    return found[0]


def _order(relation: Relation, node: exp.MatchRecognize, text: str) -> list[HeldColumn]:
    order = node.args.get("order")
    parts = list(order.expressions) if order is not None else []
    if not parts or any(part.args.get("desc") for part in parts):
        raise refused(
            order or node,
            text,
            "MATCH_RECOGNIZE wants ORDER BY the time of rows, ascending",
            "Write ORDER BY ts.",
        )
    refuse_other_times(relation, parts[0].this, text)
    return [_column(relation, part.this, "ORDER BY", text) for part in parts]


def _named(node: exp.MatchRecognize, text: str) -> list[exp.Alias]:
    measures = list(node.args.get("measures") or ())
    for at, one in enumerate(measures):
        if not isinstance(one, exp.Alias):
            raise refused(one, text, "a measure needs a name", "Write MEASURES LAST(A.price) AS price.")
        if one.alias in (before.alias for before in measures[:at]):
            raise refused(one, text, f"two measures are called '{one.alias}'", "Give one another name.")
    return measures


@dataclass(frozen=True)
class _Names:
    """The pattern, its variables, and the unions of some of them."""

    pattern: RowPattern
    variables: tuple[str, ...]
    subsets: dict[str, tuple[str, ...]]
    text: str

    @staticmethod
    def of(node: exp.MatchRecognize, text: str) -> _Names:
        words = node.meta["pattern"]
        if not words:
            raise refused(
                node, text, "MATCH_RECOGNIZE has no PATTERN", "Write PATTERN (A B+) DEFINE B AS ...."
            )

        def wrong(word: PatternWord) -> CaesuraError:
            place = exp.Var(this=word.text)
            place.meta["start"] = word.start
            return refused(place, text, f"PATTERN is not written like this at '{word.text}'", FORM)

        pattern = PatternReader(words, wrong).whole()
        made = _Names(pattern, variables(pattern), {}, text)
        for one in node.meta["subsets"]:
            if not isinstance(one, exp.EQ):
                raise refused(one, text, "SUBSET is not written like this", "Write SUBSET U = (A, B).")
            members = one.expression
            parts = members.expressions if isinstance(members, exp.Tuple) else [members.this]
            made.subsets[one.this.name.upper()] = tuple(made.one(part) for part in parts)
        return made

    def one(self, node: exp.Expr) -> str:
        """A variable of the pattern."""
        if node.name.upper() not in self.variables:
            raise self.unknown(node, node.name)
        return node.name.upper()

    def rows(self, name: str) -> tuple[str, ...] | None:
        """The variables that a name stands for; None where it is none."""
        name = name.upper()
        return (name,) if name in self.variables else self.subsets.get(name)

    def unknown(self, node: exp.Expr, name: str) -> CaesuraError:
        known = [*self.variables, *self.subsets]
        return refused(node, self.text, f"PATTERN has no variable '{name}'", closest(name.upper(), known))

    def defined(self, node: exp.Expr) -> str:
        """The variable that an entry of DEFINE is of."""
        if not isinstance(node, exp.Alias):
            raise refused(node, self.text, "DEFINE is not written like this", "Write DEFINE A AS price > 10.")
        return self.one(node.args["alias"])

    def skip(self, clauses: dict[str, Any]) -> Skip:
        to, target = clauses["skip"], clauses["target"]
        if target is None:
            return Skip(SKIPS.get(to, "past last row"))
        of = self.rows(target.name)
        if of is None:
            raise self.unknown(target, target.name)
        return Skip("first" if to == "TO FIRST" else "last", of)


@dataclass
class Formulas:
    """Conditions and measures, as expressions over what they read of a match."""

    relation: Relation
    names: _Names
    text: str
    variable: str = ""
    """The variable whose condition is read; none for measures."""
    reads: dict[object, tuple[str, Navigation | MatchFold]] = field(default_factory=dict)

    def condition(self, variable: str, node: exp.Expr) -> Formula:
        """The condition of a variable."""
        self.variable = variable
        made = self._formula(node)
        source = self.relation.stream.node
        if kind(made.type(source.schema, source.time)) not in ("boolean", "null"):
            raise refused(node, self.text, f"DEFINE {variable} is no condition", "Write a comparison.")
        return made

    def measure(self, node: exp.Expr) -> Formula:
        """A measure."""
        self.variable = ""
        return self._formula(node)

    def _formula(self, node: exp.Expr) -> Formula:
        self.reads = {}
        written = node.copy().transform(self._replaced)
        source = self.relation.stream.node
        try:
            made = Formula(lowered(written), tuple(self.reads.values()))
            made.type(source.schema, source.time)
        except CaesuraError as error:
            raise placed(error, node, self.text) from None
        return made

    def _replaced(self, part: exp.Expr) -> exp.Expr:
        if part.meta.get("held"):
            return part
        if isinstance(part, exp.Column):
            return self._held(self._navigation(part, part, {}))
        if not isinstance(part, exp.Anonymous | exp.Filter):
            return part
        tense, plain = self._tense(part)
        name = plain.name.lower()
        if name == "match_number":
            return _held(NUMBER, part)
        if name == "classifier" and self.variable and not plain.expressions:
            return exp.Literal.string(self.variable)
        if name in (*NAVIGATIONS, "classifier", "match_rowtime", "start", "end"):
            return self._held(self._moved(plain, {"final": tense}))
        if is_aggregate(plain):
            stripped, of = self._stripped(plain)
            grouping = Grouping(self.relation, self.text)
            return self._held(MatchFold(grouping.made[grouping.aggregate(stripped)], of, tense), part)
        if tense or plain is not part:
            raise refused(part, self.text, f"'{part.name}' is no value of rows", "Write FINAL LAST(A.price).")
        return part

    def _tense(self, part: exp.Expr) -> tuple[bool, exp.Expr]:
        """Whether FINAL stands before a call, and the call without it."""
        called = part.this if isinstance(part, exp.Filter) else part
        tense, _, name = called.name.rpartition(" ")
        if tense not in TENSES:
            return False, part
        if tense == "FINAL" and self.variable:
            raise refused(
                part, self.text, "FINAL stands in MEASURES only", "A condition sees the rows up to its own."
            )
        plain = part.copy()
        (plain.this if isinstance(part, exp.Filter) else plain).set("this", name)
        return tense == "FINAL", plain

    def _moved(self, part: exp.Expr, options: dict[str, Any]) -> Navigation:
        """A navigation, from the outside in."""
        name, args = part.name.lower(), list(part.expressions)
        if name in ("prev", "next") and args:
            by = self._offset(args, 1)
            options = {**options, "move": -by if name == "prev" else by}
            return self._inner(args[0], options)
        if name in ("first", "last") and args:
            options = {**options, "by": self._offset(args, 0), "first": name == "first"}
            return self._navigation(args[0], part, options)
        return self._navigation(part, part, options)

    def _inner(self, node: exp.Expr, options: dict[str, Any]) -> Navigation:
        """What PREV and NEXT go from: a row of FIRST or LAST, or the last one."""
        if isinstance(node, exp.Anonymous):
            tense, plain = self._tense(node)
            if plain.name.lower() in ("first", "last"):
                return self._moved(plain, {**options, "final": tense or options.get("final", False)})
        return self._navigation(node, node, options)

    def _offset(self, args: list[exp.Expr], usual: int) -> int:
        if len(args) == 1:
            return usual
        if not isinstance(args[1], exp.Literal) or not args[1].name.isdigit():
            raise refused(
                args[1],
                self.text,
                f"'{args[1].sql('spark')}' is no number of rows",
                "Write PREV(A.price, 2).",
            )
        return min(int(args[1].name), FARTHEST)

    def _navigation(self, node: exp.Expr, part: exp.Expr, options: dict[str, Any]) -> Navigation:
        """The value of a row of a variable; ``node`` says which value."""
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if name == "classifier":
            given = self.names.rows(node.expressions[0].name) if node.expressions else ()
            if given is None or options.get("move"):
                raise self.names.unknown(part, node.expressions[0].name if node.expressions else "")
            return Navigation(None, given, **options)
        if name in ("match_rowtime", "start"):
            return Navigation(start(), (), **options)
        stripped, of = self._stripped(node)
        value: Expr = self.relation.value(stripped, self.text)
        if reads_end(value):
            raise refused(
                part, self.text, "an end may change long after a row has begun", "Read columns, or start()."
            )
        return Navigation(value, of, **options)

    def _stripped(self, node: exp.Expr) -> tuple[exp.Expr, tuple[str, ...]]:
        """A value without the variable that its columns are of, and that."""
        found: dict[str, None] = {}

        def strip(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            first = part.parts[0].name
            if len(part.parts) == 1 or self.names.rows(first) is None:
                if len(part.parts) > 1 and not self.relation.has(part):
                    raise self.names.unknown(part, first)
                found[""] = None
                return part
            found[first.upper()] = None
            if isinstance(part.this, exp.Star):
                return exp.Star()
            names = [one.copy() for one in part.parts[1:]]
            keys = ("this", "table", "db", "catalog")
            made = exp.Column(**dict(zip(keys, reversed(names), strict=False)))
            made.meta.update(part.meta)
            return made

        made = node.copy().transform(strip)
        if len(found) > 1:
            raise refused(
                node,
                self.text,
                f"'{node.sql('spark')}' reads rows of several variables at once",
                "Name one variable, or a SUBSET of them.",
            )
        only = next(iter(found), "")
        return made, self.names.rows(only) or ()

    def _held(self, read: Navigation | MatchFold, like: exp.Expr | None = None) -> exp.Expr:
        """The column that holds what is read."""
        name, _ = self.reads.setdefault(read.key, (f"read {len(self.reads)}", read))
        return _held(name, like)


def _held(name: str, like: exp.Expr | None) -> exp.Expr:
    made = exp.Column(this=exp.Identifier(this=name, quoted=True))
    made.meta.update({**(like.meta if like is not None else {}), "held": True})
    return made
