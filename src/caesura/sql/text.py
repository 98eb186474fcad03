"""A query as sqlglot reads it, with the table functions of streams in Flink's and in Spark's form.

>>> query = parsed("SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))")
>>> query.args["from_"].this.this.name
'TUMBLE'
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from caesura.errors import CaesuraError, PlanError
from caesura.expr.sql_text import SqlDialect


def parsed(text: str) -> exp.Query:
    """The one query of a text."""
    own = SqlDialect()
    try:
        tokens = _plain(own.tokenize(text))
        found = [one for one in own.parser().parse(tokens, text) if one is not None]
    except (ParseError, TokenError) as error:
        raise _unread(error) from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise PlanError(
            "this is no query, or more than one.",
            remedy="cz.sql takes one SELECT, with what it needs in WITH; sources are given as streams.",
        )
    return found[0]


def _plain(tokens: list[Token]) -> list[Token]:
    """Without the word TABLE of ``TABLE(TUMBLE(TABLE bid, ...))``, and the brackets that go with it."""
    made: list[Token] = []
    open_at: list[bool] = []
    """For each bracket that is open, whether it is left out."""
    left_out = False
    for at, token in enumerate(tokens):
        behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        if token.token_type == TokenType.TABLE:
            left_out = behind == TokenType.L_PAREN
            continue
        if token.token_type == TokenType.L_PAREN:
            open_at.append(left_out)
            if left_out:
                left_out = False
                continue
        if token.token_type == TokenType.R_PAREN and open_at and open_at.pop():
            continue
        called = token.text.upper() in ("WINDOW", "SESSION") and behind in (TokenType.L_PAREN, TokenType.DOT)
        made.append(_as_name(token) if called else token)
    return made


def _as_name(token: Token) -> Token:
    """A word of SQL's that is a name here: ``window(ts, ...)`` and ``window.start``."""
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)


def _unread(error: ParseError | TokenError) -> PlanError:
    told = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near = str(told.get("highlight") or "")
    emits = re.fullmatch(r"CHANGES|FINAL|MARKED|EMIT", near, re.IGNORECASE)
    return PlanError(
        f"{_place(told.get('line'), told.get('col'))}this is no SQL{f' at {near!r}' if near else ''}.",
        remedy="Say what comes out where the query is run: .run(output='final')."
        if emits
        else "Close every quote and bracket; put names with blanks in backticks, texts in single quotes.",
    )


def _place(line: object, column: object) -> str:
    return f"line {line}, column {column}: " if line else ""


def refused(node: exp.Expr, text: str, problem: str, remedy: str) -> PlanError:
    """What is wrong with a part of a query, and where it stands."""
    spots = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    place = ""
    if spots:
        at = min(spots)
        place = _place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
    return PlanError(f"{place}{problem}.", remedy=remedy)


def placed(error: CaesuraError, node: exp.Expr, text: str) -> CaesuraError:
    """An error of a step or an expression, with where its part of the query stands."""
    if error.problem.startswith("line "):
        return error
    return refused(node, text, error.problem.rstrip("."), error.remedy)
