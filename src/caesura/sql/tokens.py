"""The words of a statement, one after another: for the statements that sqlglot does not know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlglot.tokenizer_core import Token, TokenType

from caesura.errors import CaesuraError, ExprError, PlanError, closest
from caesura.expr.durations import micros
from caesura.plan import Duration

Value = str | int | float | bool | timedelta | tuple[str, ...]


class Words:
    """A place in the tokens of one statement."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens = list(tokens)
        self.text = text
        self.at = 0

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.tokens)

    @property
    def rest(self) -> list[Token]:
        """What has not been taken."""
        return self.tokens[self.at :]

    def sees(self, *words: str) -> bool:
        """Whether these words come next."""
        following = self.tokens[self.at : self.at + len(words)]
        return [_word(token) for token in following] == list(words)

    def take(self, *words: str) -> bool:
        """Goes behind these words, if they come next."""
        found = self.sees(*words)
        self.at += len(words) if found else 0
        return found

    def need(self, *words: str) -> None:
        """Goes behind these words, or refuses what stands there."""
        if not self.take(*words):
            raise self.wrong(f"expected {' '.join(words)}")

    def one_of(self, words: Sequence[str], what: str) -> str:
        """One of some words; names the closest where it is another."""
        if self.done or _word(self.tokens[self.at]) not in words:
            guess = closest(self._shown().lower(), [word.lower() for word in words])
            raise self.wrong(f"{self._shown()!r} is no {what}", guess)
        self.at += 1
        return _word(self.tokens[self.at - 1])

    def name(self, what: str) -> str:
        """A name, plain or in backticks."""
        if self.done or self._is(TokenType.STRING, TokenType.NUMBER) or not self._shown()[:1].isidentifier():
            raise self.wrong(f"expected the name of {what}")
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def string(self, what: str) -> str:
        """A text in quotes."""
        if not self._is(TokenType.STRING):
            raise self.wrong(f"expected {what}, in quotes")
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def names(self, what: str) -> tuple[str, ...]:
        """Names in brackets."""
        self.need("(")
        found = [self.name(what)]
        while self.take(","):
            found.append(self.name(what))
        self.need(")")
        return tuple(found)

    def length(self) -> Duration:
        """INTERVAL '30' SECOND, '30s', or a plain number for times that are numbers."""
        if self._is(TokenType.NUMBER):
            return int(self._taken())
        if not self.take("INTERVAL"):
            return self.string("a length of time, as INTERVAL '30' SECOND")
        amount = self._taken() if self._is(TokenType.NUMBER) else self.string("a number")
        written = amount.strip()
        if written.replace(".", "", 1).isdigit():
            written += f" {self.name('a unit of time')}"
        try:
            return timedelta(microseconds=micros(written))
        except ExprError as error:
            raise self.wrong(error.problem.rstrip("."), "Write INTERVAL '30' SECOND.") from None

    def value(self) -> Value:
        """What an option is: a text, a number, TRUE or FALSE, a length of time, a name, or several."""
        if self._is(TokenType.STRING):
            return self._taken()
        if self._is(TokenType.NUMBER):
            written = self._taken()
            return float(written) if "." in written else int(written)
        if self.sees("INTERVAL"):
            length = self.length()
            return length if isinstance(length, timedelta) else str(length)
        if self.sees("("):
            return self.names("a column")
        word = self.name("a value")
        return {"TRUE": True, "FALSE": False}.get(word.upper(), word)

    def source(self, start: int) -> str:
        """The text from a token on, up to where we are."""
        if start >= self.at:
            return ""
        return self.text[self.tokens[start].start : self.tokens[self.at - 1].end + 1]

    def wrong(self, problem: str, remedy: str = "See docs/sql.md for how it is written.") -> CaesuraError:
        """What is wrong with the next word, and where it stands."""
        near = f", not {self._shown()!r}" if problem.startswith("expected") else ""
        return PlanError(f"{self.place()}{problem}{near}.", remedy=remedy)

    def place(self) -> str:
        """Where the next word stands, as errors begin."""
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        at = token.start
        return f"line {self.text.count(chr(10), 0, at) + 1}, column {at - self.text.rfind(chr(10), 0, at)}: "

    def _is(self, *kinds: TokenType) -> bool:
        return not self.done and self.tokens[self.at].token_type in kinds

    def _taken(self) -> str:
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def _shown(self) -> str:
        return "the end" if self.done else str(self.tokens[self.at].text)


def _word(token: Token) -> str:
    return "" if token.token_type == TokenType.STRING else str(token.text).upper()
