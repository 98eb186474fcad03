"""A query as sqlglot reads it, with the table functions of streams in Flink's and in Spark's form.

>>> query = parsed("SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))")
>>> query.args["from_"].this.this.name
'TUMBLE'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from caesura.errors import CaesuraError, PlanError
from caesura.expr.sql_read import BEGINS, start_of
from caesura.sql.match_text import MatchDialect, with_tenses
from caesura.sql.remedies import in_sql
from caesura.sql.strict import refuse_loose

Emit = Literal["changes", "final", "marked"]
IN_PARTS = "Name parts of it in WITH, or write a script of views."
BEGINS_QUERY = ("SELECT", "WITH", "VALUES", "(")


class QueryDialect(MatchDialect):
    """With PACE behind a union: ``... UNION ALL ... WITH PACE ON ts INTERVAL '1' MINUTE``."""

    class Parser(MatchDialect.Parser):
        QUERY_MODIFIER_PARSERS = {  # noqa: RUF012
            **MatchDialect.Parser.QUERY_MODIFIER_PARSERS,
            TokenType.WITH: lambda self: ("pace", self._parse_pace()),
        }
        SET_OP_MODIFIERS = {*MatchDialect.Parser.SET_OP_MODIFIERS, "pace"}  # noqa: RUF012

        def _parse_pace(self) -> exp.Tuple | None:
            if not self._match_text_seq("WITH", "PACE", "ON"):
                return None
            told = [self._parse_column(), self._parse_interval() or self._parse_number()]
            if None in told:
                self.raise_error("expected a column and a length of time")
            return exp.Tuple(expressions=told)


@dataclass(frozen=True)
class QueryText:
    """A query, and what of it is to come out; None where it does not say."""

    tree: exp.Query
    emit: Emit | None = None


def parsed(text: str) -> exp.Query:
    """The one query of a text."""
    return read_query(text).tree


def script_text(content: bytes, *, line: int = 1) -> str:
    """A script as text; refuses what is no UTF-8, with the line of it."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = line + content.count(b"\n", 0, error.start)
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise PlanError(
            f"line {at}, column {column}: the byte {content[error.start]:#04x} is no UTF-8.",
            remedy="Write the script as UTF-8: iconv -f latin1 -t utf-8 script.sql.",
        ) from None


def read_query(text: str) -> QueryText:
    """The one query of a text, with EMIT behind it."""
    try:
        return query_text(QueryDialect().tokenize(text), text)
    except TokenError as error:
        raise not_read(error, text) from None


def query_text(tokens: list[Token], text: str) -> QueryText:
    """The query that some tokens of a text are; a name alone is all that it holds."""
    tokens, emit = _without_emit(tokens)
    others = [one for one in tokens if one.token_type == TokenType.SEMICOLON]
    name = len(tokens) == 1 and tokens[0].token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    if others or not (name or (tokens and tokens[0].text.upper() in BEGINS_QUERY)):
        raise _no_query(others[0] if others else tokens[0] if tokens else None, text)
    if name:
        return QueryText(exp.select("*").from_(exp.to_table(tokens[0].text, dialect="spark")), emit)
    refuse_loose(tokens, text)
    try:
        found = [
            one for one in QueryDialect().parser().parse(_plain(with_tenses(tokens)), text) if one is not None
        ]
    except (ParseError, TokenError) as error:
        raise not_read(error, text) from None
    except RecursionError:
        place = _placed_at(tokens[0].start, text)
        raise PlanError(f"{place}the query is nested too deeply.", remedy=IN_PARTS) from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise _no_query(tokens[0], text)
    found[0].meta[BEGINS] = tokens[0].start
    return QueryText(found[0], emit)


def _no_query(token: Token | None, text: str) -> PlanError:
    place = _placed_at(0 if token is None else token.start, text)
    return PlanError(
        f"{place}this is no query, or more than one.",
        remedy="Write one SELECT, with what it needs in WITH; a script takes several statements.",
    )


def _without_emit(tokens: list[Token]) -> tuple[list[Token], Emit | None]:
    """Without EMIT CHANGES, EMIT FINAL or EMIT MARKED at the end, and which it was."""
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if len(tokens) < 2 or tokens[-2].text.upper() != "EMIT":
        return tokens, None
    for emit in get_args(Emit):
        if tokens[-1].text.upper() == emit.upper():
            return tokens[:-2], emit
    raise PlanError(
        f"{_place(tokens[-1].line, tokens[-1].col)}there is no EMIT {tokens[-1].text.upper()}.",
        remedy="Write EMIT CHANGES, EMIT FINAL or EMIT MARKED.",
    )


def _plain(tokens: list[Token]) -> list[Token]:
    """Without the word TABLE of ``TABLE(TUMBLE(TABLE bid, ...))``, and the brackets that go with it."""
    made: list[Token] = []
    around = [_Place()]
    """The brackets that are open, the innermost last."""
    left_out = False
    for at, token in enumerate(tokens):
        behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        if token.token_type in TABLES_FOLLOW or token.token_type in VALUES_FOLLOW:
            around[-1].tables = token.token_type in TABLES_FOLLOW
        in_front = [one.token_type for one in made[-2:]]
        if token.token_type == TokenType.TABLE and (around[-1].tables or around[-1].called):
            first = tokens[at - 1].token_type in (TokenType.L_PAREN, TokenType.COMMA, TokenType.FARROW)
            named = at + 2 < len(tokens) and tokens[at + 2].token_type == TokenType.FARROW
            left_out = behind == TokenType.L_PAREN
            if left_out or (around[-1].called and first and not named):
                continue
        if token.token_type == TokenType.L_PAREN:
            named = around[-1].tables and in_front[0] in {*TABLES_FOLLOW, TokenType.COMMA}
            called = around[-1].called if left_out else named
            around.append(_Place(left_out, around[-1].tables and not called, called))
            if left_out:
                left_out = False
                continue
        if token.token_type == TokenType.R_PAREN and len(around) > 1 and around.pop().left_out:
            continue
        called = token.text.upper() in ("WINDOW", "SESSION") and behind in (TokenType.L_PAREN, TokenType.DOT)
        made.append(_as_name(token) if called else token)
    return made


@dataclass
class _Place:
    """What stands in a bracket: tables, as behind FROM, or what is given to a function of tables."""

    left_out: bool = False
    tables: bool = False
    called: bool = False


TABLES_FOLLOW = {TokenType.FROM, TokenType.JOIN, TokenType.LATERAL}
VALUES_FOLLOW = {
    *(TokenType.SELECT, TokenType.ON, TokenType.USING, TokenType.WHERE, TokenType.GROUP_BY),
    *(TokenType.HAVING, TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.UNION),
}


def _as_name(token: Token) -> Token:
    """A word of SQL's that is a name here: ``window(ts, ...)`` and ``window.start``."""
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)


def not_read(error: Exception, text: str) -> PlanError:
    """What is said of a text that is no SQL, with where it stops being it."""
    first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near = str(first.get("highlight") or "")
    place = _place(first.get("line"), first.get("col")) or _placed_at(_unclosed(text), text)
    told = str(first.get("description") or "")
    lacks = f": {told}" if told.startswith("expected") else ""  # sqlglot's own are for its developers
    return PlanError(
        f"{place}this is no SQL{f' at {near!r}' if near else ''}{lacks}.",
        remedy="Close every quote and bracket; put names with blanks in backticks, texts in single quotes.",
    )


_CLOSED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|[^'"`/]|/(?!\*)""", re.DOTALL
)


def _unclosed(text: str) -> int:
    """Where the quote or the comment begins that nothing closes; else the beginning of the text."""
    at = 0
    while at < len(text):
        found = _CLOSED.match(text, at)
        if found is None:
            return at
        at = found.end()
    return 0


def _placed_at(at: int, text: str) -> str:
    return _place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _place(line: object, column: object) -> str:
    return f"line {line}, column {column}: " if line else ""


def refused(node: exp.Expr, text: str, problem: str, remedy: str) -> PlanError:
    """What is wrong with a part of a query, and where it stands."""
    at = start_of(node)
    place = ""
    if at is not None:
        place = _placed_at(at, text)
    return PlanError(f"{place}{problem}.", remedy=remedy)


def placed(error: CaesuraError, node: exp.Expr, text: str) -> CaesuraError:
    """An error of a step or an expression, with where its part of the query stands."""
    if error.problem.startswith("line "):
        return error
    return refused(node, text, error.problem.rstrip("."), in_sql(error.remedy))
