"""SQL without the freedoms that sqlglot takes: every word of a text is in its tree, or the text is no SQL.

sqlglot reads past commas with nothing behind them, brackets that nothing closes, a NATURAL in front of UNION,
and drops the length of VARCHAR(3); tests/sql/test_no_token_is_swallowed.py holds it to what is written.

>>> from caesura.sql.text import parsed
>>> parsed("SELECT k, FROM t")
Traceback (most recent call last):
caesura.errors.PlanError: line 1, column 14: this is no SQL at 'FROM': expected something behind ','.
Close every quote and bracket; put names with blanks in backticks, texts in single quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from caesura.errors import PlanError
from caesura.expr.sql_text import SqlDialect

LENGTH = "length"
"""The mark of a text whose length is told: VARCHAR(3)."""
TEXTS = ("VARCHAR", "CHAR", "CHARACTER", "NCHAR", "NVARCHAR", "BPCHAR")
TOGETHER = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)


class StrictDialect(SqlDialect):
    """Spark's, where what is written is read."""

    class Parser(SqlDialect.Parser):
        # OR (a, b) is no call: of a OR OR (b) one OR would be lost
        FUNC_TOKENS = SqlDialect.Parser.FUNC_TOKENS - {TokenType.AND, TokenType.OR}

        def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
            found: list[Any] = []
            empty = False

            def noted() -> Any:
                nonlocal empty
                if empty:
                    self.raise_error("expected something in front of ','")
                found.append(parse_method())
                empty = found[-1] is None
                return found[-1]

            made = super()._parse_csv(noted, sep)
            if empty and len(found) > 1:
                self.raise_error("expected something behind ','")
            return made

        def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
            start = self._index
            made = super()._parse_join(*args, **options)
            if made is None and self._index > start:
                self.raise_error("expected a table behind ','")
            if made is not None and self._prev.token_type == TokenType.ON:
                self.raise_error("expected a condition behind ON")
            return made

        def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
            start = self._index
            made = super()._parse_alias(this, explicit)
            if made is this and self._index > start:
                self.raise_error("expected a name behind AS")
            if isinstance(made, exp.Alias) and made.args.get("this") is None:
                self.raise_error("expected something in front of AS", self._tokens[start])
            return made

        def _parse_partition_by(self) -> list[exp.Expr]:
            made = super()._parse_partition_by()
            if not made and self._prev.token_type == TokenType.PARTITION_BY:
                self.raise_error("expected what PARTITION BY goes by")
            return made

        def _parse_group(self, *args: Any, **options: Any) -> exp.Group | None:
            made = super()._parse_group(*args, **options)
            if self._prev.token_type == TokenType.GROUP_BY:
                self.raise_error("expected what GROUP BY goes by")
            return made

        def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
            made = super()._parse_table_alias(*args, **options)
            if made is None and self._prev.token_type == TokenType.ALIAS:
                self.raise_error("expected a name behind AS")
            return made

        def parse_set_operation(
            self, this: exp.Expr | None, *args: Any, **options: Any
        ) -> exp.SetOperation | None:
            first = self._curr
            made = super().parse_set_operation(this, *args, **options)
            if made is not None and first.token_type not in TOGETHER:
                self.raise_error("expected UNION", first)
            return made

        def _parse_string_agg(self) -> exp.GroupConcat:
            made = super()._parse_string_agg()
            of = made.this
            if of is None or (isinstance(of, exp.Distinct) and None in of.expressions):
                self.raise_error("expected what is listed")
            return made

        def _parse_function_parameter(self) -> exp.Expr | None:
            return self._parse_id_var()  # a name of a column; no text gives it a type

        def _parse_table_parts(self, *args: Any, **options: Any) -> exp.Table | exp.Dot | None:
            if self._curr and self._curr.token_type == TokenType.DOT:
                self.raise_error("expected the name of a table")
            return super()._parse_table_parts(*args, **options)

        def _parse_limit_options(self) -> exp.LimitOptions | None:
            only = self._curr
            made = super()._parse_limit_options()
            if made is None and self._prev is only:
                self.raise_error("expected the end of LIMIT", only)
            return made

        def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
            start = self._index
            made = super()._parse_types(*args, **options)
            told = [token.text.upper() for token in self._tokens[start : self._index]]
            if made is not None and any(a in TEXTS and b == "(" for a, b in pairwise(told)):
                made.meta.update({LENGTH: True, "start": self._tokens[start].start})
            return made


def refuse_loose(tokens: Sequence[Token], text: str) -> None:
    """Refuses a bracket that nothing closes, or that closes none; and what sqlglot would not tell us of."""
    opened: list[Token] = []
    before: TokenType | None = None
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type == TokenType.R_PAREN and not (opened and opened.pop()):
            raise _at(token.start, text, "this ')' closes no bracket", "Leave it out, or write its '('.")
        for one in token.comments:
            if f"/*+{one}*/" in text:
                raise _at(text.index(f"/*+{one}*/"), text, "a hint is not known here", "Leave it out.")
        if token.token_type == TokenType.ALIAS and before in (TokenType.SELECT, TokenType.DISTINCT):
            raise _at(token.start, text, "AS stands behind no value", "Leave it out.")
        if token.token_type == TokenType.COMMA and before == TokenType.LIMIT:
            raise _at(token.start, text, "LIMIT has nothing in front of ','", "Write LIMIT 10.")
        if before == TokenType.FROM and token.text.upper() == "FOR":
            raise _at(token.start, text, "FROM has nothing behind it", "Write SUBSTRING(s FROM 1 FOR 2).")
        before = token.token_type
    if opened:
        raise _at(opened[-1].start, text, "nothing closes this '('", "Write its ')'.")


def _at(at: int, text: str, problem: str, remedy: str) -> PlanError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return PlanError(f"line {line}, column {column}: {problem}.", remedy=remedy)
