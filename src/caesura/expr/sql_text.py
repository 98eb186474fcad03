"""Expressions written as SQL text, in Spark's dialect: ``where("id > 3 AND name LIKE 'a%'")``.

sqlglot parses; here each kind of its nodes becomes an expression, or is refused by its name and place.
Functions are those of `caesura.expr.functions`, by the names that they have there and in Spark.

>>> from_text("id > 3 AND name LIKE 'a%'")
Expr(id > 3 AND name LIKE 'a%')
>>> from_text("uper(name)")
Traceback (most recent call last):
caesura.errors.ExprError: in 'uper(name)', line 1, column 1: there is no function 'uper'.
Did you mean 'upper'? caesura.functions lists those that there are.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Sequence
from functools import reduce
from inspect import Parameter, signature
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from caesura.errors import CaesuraError, ExprError
from caesura.expr import functions
from caesura.expr.calls import registered_udf
from caesura.expr.nodes import Alias, Apply, Boundary, Case, Cast, Column, Constant, Expr, Field, Member, lit
from caesura.expr.sql_literals import (
    AMBIGUOUS,
    hexed,
    interval_micros,
    interval_months,
    is_interval,
    literal,
    moved,
    type_name,
)
from caesura.expr.sql_read import LONGEST, VALUES, as_written, not_known, refused, unread
from caesura.expr.types import as_type

Lower = Callable[[Any, str], Expr]
WHOLE = "whole"
"""The mark of a division, and of an average, that is whole where its numbers are: as in Flink."""


class SqlDialect(Spark):
    """Spark's, with calls left as they are written, and '' for a quote within a text, as Spark 4 has it."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012 - sqlglot's own form
        COMMANDS = set()  # noqa: RUF012 - a column may be called load or show

    class Parser(SparkParser):
        FUNCTIONS = {}  # noqa: RUF012
        FUNC_TOKENS = {*SparkParser.FUNC_TOKENS, TokenType.END}  # noqa: RUF012
        STRICT_CAST = True

        def _parse_interval(self, *args: Any, **options: Any) -> exp.Add | exp.Interval | None:
            start = self._index
            made = super()._parse_interval(*args, **options)
            told = self._tokens[start : self._index]
            if made is not None and any(re.fullmatch(r"(?i)[0-9. ]*m", token.text) for token in told):
                for one in made.find_all(exp.Interval):
                    one.meta[AMBIGUOUS] = True
            return made


def from_text(text: str) -> Expr:
    """The expression that a text in SQL means; refuses what we lack, with where it stands."""
    try:
        return _from_text(text)
    except RecursionError:
        raise ExprError(
            f"{text[:LONGEST]!r}... is nested too deeply.",
            remedy="Write it in parts, or with fewer brackets.",
        ) from None


def _from_text(text: str) -> Expr:
    try:
        found = [] if _STATEMENT.match(text) else SqlDialect().parse_into(exp.Expr, text)
    except (ParseError, TokenError) as error:
        raise _unread(text, error) from None
    statements = [one for one in found if one is not None]
    if len(statements) != 1 or not _is_expression(statements[0], text):
        raise ExprError(
            f"{text!r} is no expression.",
            remedy="Write a condition or a value, for example \"id > 3 AND name LIKE 'a%'\".",
        )
    for node, name in unread(statements[0], VALUES):
        if name:  # nodes that are not known are refused below
            raise refused(node, text, not_known(node, name))
    return lowered(statements[0], text)


def lowered(node: exp.Expr, text: str = "") -> Expr:
    """One node of sqlglot's and everything below it, as an expression."""
    lower = LOWER.get(type(node))
    if lower is None:
        raise refused(node, text, f"{as_written(node)} ({type(node).__name__}) is not known here")
    return lower(node, text)


def _unread(text: str, error: ParseError | TokenError) -> ExprError:
    told = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    place = f", line {told['line']}, column {told['col']}" if told.get("line") else ""
    near = str(told.get("highlight") or "")
    behind = f" at {near!r}" if near else ""
    return ExprError(
        f"in {text!r}{place}: this is no SQL{behind}.",
        remedy="Close every quote and bracket; put names with blanks in backticks, texts in single quotes.",
    )


_STATEMENT = re.compile(r"\s*(select|with|from|insert|create|drop|alter|grant)\b", re.IGNORECASE)
_NAMED = re.compile(r"\bas\b", re.IGNORECASE)


def _is_expression(node: object, text: str) -> bool:
    if isinstance(node, exp.Query | exp.DDL | exp.DML | exp.Command):
        return False
    if isinstance(node, exp.Alias) and not _NAMED.search(text):
        return False  # two names side by side, such as SHOW TABLES
    return isinstance(node, exp.Condition | exp.Alias | exp.Interval | exp.DataType) or type(node) in LOWER


def _infix(name: str) -> Lower:
    return lambda node, text: Apply(name, (lowered(node.this, text), lowered(node.expression, text)))


def _moving(name: str) -> Lower:
    """Plus and minus, which also move a time by an interval."""

    def lower(node: exp.Binary, text: str) -> Expr:
        first, right = node.this, node.expression
        if name == "add" and is_interval(first):
            first, right = right, first
        left = lowered(first, text)
        months = interval_months(right)
        if months is not None and isinstance(left, Constant) and isinstance(left.value, dt.date):
            day = moved(left.value, months if name == "add" else -months)
            if day is None:
                raise refused(node, text, f"{as_written(node)} is beyond all dates", "Write a shorter one.")
            return Constant(day, left.type)
        length = interval_micros(right, text)
        if length is None:
            return Apply(name, (left, lowered(right, text)))
        return Apply("plus_time", (left,), (length if name == "add" else -length,))

    return lower


def _column(node: exp.Column, text: str) -> Expr:
    if isinstance(node.this, exp.Star):
        raise refused(node, text, "'*' is no value")
    names = [part.name for part in node.parts]
    made: Expr = Column(names[0])
    for name in names[1:]:
        made = Field(made, name)
    return made


def _negated(node: exp.Neg, text: str) -> Expr:
    made = lowered(node.this, text)
    if isinstance(node.this, exp.Literal) and isinstance(made, Constant):
        return lit(-made.value)  # the least bigint has no positive of its own
    return Apply("negate", (made,))


def _cast(node: exp.Cast, text: str) -> Expr:
    named = type_name(node, text)
    try:
        wanted = as_type("timestamp" if named.upper() in _STAMPS else named)
    except CaesuraError as error:
        raise refused(node, text, error.problem.rstrip("."), error.remedy) from None
    attempts = bool(node.args.get("safe"))
    inner = lowered(node.this, text)
    if isinstance(inner, Constant) and not isinstance(node.this, exp.Paren) and not attempts:
        return _typed(inner, wanted)
    return Cast(inner, wanted, attempts)


_ZONED = re.compile(r"[0-9] ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)$")
_STAMPS = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMPNTZ")


def _typed(value: Constant, wanted: pa.DataType) -> Expr:
    """A constant of another type where it is one, such as ``DATE '2024-01-01'`` or ``10L``."""
    from caesura.expr.evaluation import evaluate

    if pa.types.is_timestamp(wanted) and isinstance(value.value, str) and _ZONED.search(value.value):
        wanted = pa.timestamp("us", tz="UTC")
    one = pa.record_batch({"": pa.array([None])})
    made = evaluate(Cast(value, wanted, attempts=True), one)[0]
    if value.value is None or not made.is_valid:
        return Cast(value, wanted)
    try:
        return Constant(made.as_py(), wanted)
    except (OverflowError, ValueError):  # a time that Python has none for
        return Constant(made.value, wanted)


def _case(node: exp.Case, text: str) -> Expr:
    subject = None if node.this is None else lowered(node.this, text)
    branches = []
    for branch in node.args["ifs"]:
        test = lowered(branch.this, text)
        branches.append(
            (test if subject is None else Apply("equal", (subject, test)), lowered(branch.args["true"], text))
        )
    default = node.args.get("default")
    return Case(tuple(branches), lit(None) if default is None else lowered(default, text))


def _if(node: exp.If, text: str) -> Expr:
    otherwise = node.args.get("false")
    then = (lowered(node.this, text), lowered(node.args["true"], text))
    return Case((then,), lit(None) if otherwise is None else lowered(otherwise, text))


def _is(node: exp.Is, text: str) -> Expr:
    asked, arg = node.expression, lowered(node.this, text)
    if isinstance(asked, exp.Null):
        return Apply("is_null", (arg,))
    if isinstance(asked, exp.Boolean):
        return Apply("equal_null_safe", (arg, lit(bool(asked.this))))
    raise refused(node, text, f"IS {asked.sql('spark')} is not known here", "Write IS NULL, IS TRUE, or =.")


def _not(node: exp.Not, text: str) -> Expr:
    made = lowered(node.this, text)
    if isinstance(node.this, exp.Is) and isinstance(made, Apply) and made.name == "is_null":
        return Apply("is_not_null", made.args)
    return Apply("not", (made,))


def _in(node: exp.In, text: str) -> Expr:
    if node.args.get("query") is not None:
        raise refused(node, text, "IN over a query is not known here", "Join with how='semi' instead.")
    arg, listed = lowered(node.this, text), [lowered(one, text) for one in node.expressions]
    constants = tuple(one for one in listed if isinstance(one, Constant))
    if len(constants) == len(listed):
        return Member(arg, constants)
    return reduce(lambda a, b: Apply("or", (a, b)), (Apply("equal", (arg, one)) for one in listed))


def _between(node: exp.Between, text: str) -> Expr:
    return Apply("between", tuple(lowered(n, text) for n in (node.this, node.args["low"], node.args["high"])))


def _matching(name: str) -> Lower:
    """LIKE and its kin, whose pattern is a plain text."""

    def lower(node: exp.Binary, text: str) -> Expr:
        pattern = lowered(node.expression, text)
        if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
            raise refused(node, text, f"{name.upper()} wants a plain text as its pattern")
        made = Apply(name, (lowered(node.this, text),), (pattern.value,))
        return Apply("not", (made,)) if node.args.get("negate") else made  # sqlglot's form of NOT LIKE

    return lower


def _trim(node: exp.Trim, text: str) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    args = [node.this, *([node.expression] if node.expression is not None else [])]
    return called(name, args, node, text)


def _extract(node: exp.Extract, text: str) -> Expr:
    unit = node.this.name.lower()
    named = {"dayofweek": "day_of_week", "dow": "day_of_week", "doy": "day_of_year", "week": "week_of_year"}
    return called(named.get(unit, unit), [node.expression], node, text)


def _anonymous(node: exp.Anonymous, text: str) -> Expr:
    name = node.name.lower()
    own = node.meta.get("function")
    if own is not None:  # of a user, known to the query around it
        return _of_user(own.call, [lowered(arg, text) for arg in node.expressions], node, text)
    if name in ("start", "end") and not node.expressions:
        return Boundary(name)  # type: ignore[arg-type]
    return called(name, node.expressions, node, text)


def _of_user(function: Callable[..., Expr], args: list[Expr], node: exp.Expr, text: str) -> Expr:
    try:
        return function(*args)
    except CaesuraError as error:
        raise refused(node, text, error.problem.rstrip("."), error.remedy) from None


NAMES = {"mod": ("remainder", ("a", "b")), "negative": ("negate", ("x",))}
"""Functions that are signs in Python: how they are called inside, and what they take."""
AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last", "median", "stddev", "variance")
_OWN = ("col", "lit", "when", "start", "end", "set_of", "expr")


def called(name: str, args: list[exp.Expr], node: exp.Expr, text: str) -> Expr:
    """A function by its name; plain parameters such as patterns must be constants."""
    made = [lowered(arg, text) for arg in args]
    if name in NAMES:
        inner, takes = NAMES[name]
        if len(made) != len(takes):
            error = miscounted(name, takes, str(len(takes)), len(made))
            raise refused(node, text, error.problem, error.remedy)
        return Apply(inner, tuple(made))
    known = [one for one in functions.__all__ if one not in _OWN]
    if name in AGGREGATES:
        told = f"'{name}' is of many rows, and this is a value of one"
        raise refused(node, text, told, f"Write .group_by(...).tumbling(...).agg(x=cz.{name}(...)).")
    if name not in known and (own := registered_udf(name)) is not None:
        return _of_user(own, made, node, text)
    if name not in known:
        near = difflib.get_close_matches(name, [*known, *NAMES], n=1)
        guess = f"Did you mean '{near[0]}'? " if near else ""
        problem = f"there is no function '{name}'"
        raise refused(node, text, problem, f"{guess}caesura.functions lists those that there are.")
    try:
        return by_name(name, made)
    except CaesuraError as error:
        raise refused(node, text, error.problem.rstrip("."), error.remedy) from None


def function_names() -> list[str]:
    """The functions of one row that a text may call, those of users aside."""
    return [*(one for one in functions.__all__ if one not in _OWN), *NAMES, "start", "end"]


def by_name(name: str, args: list[Expr]) -> Expr:
    """A function of `functions` with these arguments."""
    function: Callable[..., Expr] = getattr(functions, name)
    places = [p for p in signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    several = any(p.kind is p.VAR_POSITIONAL for p in places)
    fewest = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in places)
    if len(args) < fewest or (len(args) > len(places) and not several):
        most = " or more" if several else f" to {len(places)}" if fewest < len(places) else ""
        raise miscounted(name, [p.name for p in places], f"{fewest}{most}", len(args))
    return function(*_arguments(function, args))


def miscounted(name: str, takes: Sequence[str], count: str, given: int) -> ExprError:
    """What is said of a call of too few arguments, or of too many."""
    noun = "argument" if count == "1" else "arguments"
    problem = f"{name.upper()} takes {count} {noun}, and not {given}"
    return ExprError(problem, remedy=f"Write {name}({', '.join(takes)}).")


def _arguments(function: Callable[..., Expr], given: list[Expr]) -> list[object]:
    """Constants as plain values where a function wants them so."""
    parameters = list(signature(function).parameters.values())
    made: list[object] = []
    for i, one in enumerate(given):
        parameter = parameters[min(i, len(parameters) - 1)] if parameters else None
        wants = "object" if parameter is None else str(parameter.annotation)
        several = parameter is not None and parameter.kind is Parameter.VAR_POSITIONAL
        plain = not several and wants not in ("object", "Duration") and isinstance(one, Constant)
        made.append(one.value if plain and isinstance(one, Constant) else one)
    return made


def _alias(node: exp.Alias, text: str) -> Expr:
    return Alias(lowered(node.this, text), node.alias)


def _position(node: exp.StrPosition, text: str) -> Expr:
    return called("locate", [node.args["substr"], node.this], node, text)


def _substring(node: exp.Substring, text: str) -> Expr:
    parts = [node.this, *(node.args[n] for n in ("start", "length") if node.args.get(n) is not None)]
    return called("substring", parts, node, text)


def _floor(node: exp.Floor | exp.Ceil, text: str) -> Expr:
    if node.this is None:
        raise refused(node, text, f"{node.key.upper()} takes 1 argument, and not 0", f"Write {node.key}(x).")
    return called(node.key, [node.this], node, text)


def _initcap(node: exp.Initcap, text: str) -> Expr:
    between = node.args.get("expression")
    if node.this is None:
        raise refused(node, text, "INITCAP takes 1 argument, and not 0", "Write initcap(x).")
    if between is not None and between != exp.Literal.string(" "):
        raise refused(between, text, "INITCAP takes 1 argument, and not 2", "Write initcap(x).")
    return called("initcap", [node.this], node, text)


def _dot(node: exp.Dot, text: str) -> Expr:
    return Field(lowered(node.this, text), node.expression.name)


def _bracket(node: exp.Bracket, text: str) -> Expr:
    if len(node.expressions) != 1:
        raise refused(node, text, "brackets take one place or key")
    return lowered(node.this, text)[lowered(node.expressions[0], text)]


LOWER: dict[type[exp.Expr], Lower] = {
    exp.And: _infix("and"),
    exp.Or: _infix("or"),
    exp.Not: _not,
    exp.EQ: _infix("equal"),
    exp.NEQ: _infix("not_equal"),
    exp.LT: _infix("less"),
    exp.LTE: _infix("less_equal"),
    exp.GT: _infix("greater"),
    exp.GTE: _infix("greater_equal"),
    exp.NullSafeEQ: _infix("equal_null_safe"),
    exp.NullSafeNEQ: lambda node, text: Apply("not", (_infix("equal_null_safe")(node, text),)),
    exp.Add: _moving("add"),
    exp.Sub: _moving("subtract"),
    exp.Mul: _infix("multiply"),
    exp.Div: lambda node, text: _infix("quotient" if node.meta.get(WHOLE) else "divide")(node, text),
    exp.Mod: _infix("remainder"),
    exp.BitwiseAnd: _infix("bit_and"),
    exp.BitwiseOr: _infix("bit_or"),
    exp.BitwiseXor: _infix("bit_xor"),
    exp.DPipe: _infix("concat"),
    exp.Neg: _negated,
    exp.Paren: lambda node, text: lowered(node.this, text),
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Literal: literal,
    exp.Null: lambda node, text: lit(None),
    exp.Boolean: lambda node, text: lit(bool(node.this)),
    exp.HexString: hexed,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _matching("like"),
    exp.ILike: _matching("ilike"),
    exp.RegexpLike: _matching("rlike"),
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.StrPosition: _position,
    exp.Substring: _substring,
    exp.Initcap: _initcap,
    exp.Floor: _floor,
    exp.Ceil: _floor,
    exp.Alias: _alias,
    exp.Anonymous: _anonymous,
}
"""What each kind of node becomes."""
