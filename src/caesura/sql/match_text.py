"""MATCH_RECOGNIZE as sqlglot's parser reads it with our clauses, and the grammar of PATTERN.

sqlglot takes no WITHIN and no SUBSET, reads the clause behind all joins, and keeps PATTERN as a text; here it
belongs to the table in front of it, and PATTERN is a list of words.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from caesura.ops.match.reader import PatternWord
from caesura.sql.strict import StrictDialect

TENSES = ("FINAL", "RUNNING")


class MatchDialect(StrictDialect):
    """With MATCH_RECOGNIZE behind a table."""

    class Tokenizer(StrictDialect.Tokenizer):
        KEYWORDS = {  # noqa: RUF012 - sqlglot's own form
            **StrictDialect.Tokenizer.KEYWORDS,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
        }

    class Parser(StrictDialect.Parser):
        QUERY_MODIFIER_PARSERS = {  # noqa: RUF012
            token: parse
            for token, parse in StrictDialect.Parser.QUERY_MODIFIER_PARSERS.items()
            if token != TokenType.MATCH_RECOGNIZE
        }

        def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
            made = super()._parse_table(*args, **options)
            found = self._parse_match_recognize() if made is not None else None
            if made is not None and found is not None:
                made.set("match", found)
            return made

        def _parse_match_recognize(self) -> exp.MatchRecognize | None:
            if not self._match(TokenType.MATCH_RECOGNIZE):
                return None
            start = self._prev.start
            self._match_l_paren()
            made = exp.MatchRecognize(partition_by=self._parse_partition_by(), order=self._parse_order())
            if self._match_text_seq("MEASURES"):
                made.set("measures", self._parse_csv(self._parse_expression))
            rows = self._parse_words("ONE ROW PER MATCH", *(f"ALL ROWS PER MATCH{more}" for more in MORE))
            skip = self._parse_words(*(f"AFTER MATCH SKIP {to}" for to in SKIPS))
            target = self._parse_id_var() if skip.endswith((" TO", "FIRST", "LAST")) else None
            pattern = self._parse_pattern_words() if self._match_text_seq("PATTERN") else None
            within = self._parse_disjunction() if self._match_text_seq("WITHIN") else None
            subsets = self._parse_csv(self._parse_disjunction) if self._match_text_seq("SUBSET") else []
            if self._match_text_seq("DEFINE"):
                made.set("define", self._parse_csv(self._parse_name_as_expression))
            self._match_r_paren()
            made.set("alias", self._parse_table_alias())
            found = {"rows": rows, "skip": skip.removeprefix("AFTER MATCH SKIP "), "target": target}
            made.meta.update(found, start=start, pattern=pattern, within=within, subsets=subsets)
            return made

        def _parse_words(self, *forms: str) -> str:
            """The first of some forms that is there, each without those that begin like it."""
            return next((form for form in forms if self._match_text_seq(*form.split())), "")

        def _parse_pattern_words(self) -> list[PatternWord]:
            """All of PATTERN between its brackets."""
            self._match_l_paren()
            words: list[PatternWord] = []
            depth = 1
            while self._curr:
                token = self._curr
                depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
                self._advance()
                if depth == 0:
                    return words
                words += _words(token)
            self.raise_error("Expecting )")
            return words


MORE = (" SHOW EMPTY MATCHES", " OMIT EMPTY MATCHES", " WITH UNMATCHED ROWS", "")
SKIPS = ("PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST", "TO")


def _words(token: Token) -> list[PatternWord]:
    if token.token_type == TokenType.IDENTIFIER:
        return [PatternWord(token.text, token.start, True)]
    if token.text[:1].isalnum() or token.text[:1] == "_":
        return [PatternWord(token.text, token.start, not token.text.isdigit())]
    return [PatternWord(sign, token.start + n) for n, sign in enumerate(token.text)]


def with_tenses(tokens: list[Token]) -> list[Token]:
    """FINAL LAST(...) and RUNNING avg(...), as one name each."""
    made: list[Token] = []
    for at, token in enumerate(tokens):
        called = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
        if called and made and made[-1].text.upper() in TENSES:
            tense = made.pop()
            text = f"{tense.text.upper()} {token.text}"
            token = Token(TokenType.VAR, text, tense.line, tense.col, tense.start, token.end, tense.comments)
        made.append(token)
    return made
