"""What is asked of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class TextMethods:
    """What is asked of texts."""

    def lower(self) -> Expr:
        """The text in small letters."""
        return nodes.apply("lower", self)

    def upper(self) -> Expr:
        """The text in capitals."""
        return nodes.apply("upper", self)

    def length(self) -> Expr:
        """The number of characters."""
        return nodes.apply("length", self)

    def trim(self, characters: str | None = None) -> Expr:
        """The text without blanks at its ends, or without other characters."""
        return nodes.apply("trim", self, options=_characters("trim", characters))

    def ltrim(self, characters: str | None = None) -> Expr:
        """The text without blanks at its start, or without other characters."""
        return nodes.apply("ltrim", self, options=_characters("ltrim", characters))

    def rtrim(self, characters: str | None = None) -> Expr:
        """The text without blanks at its end, or without other characters."""
        return nodes.apply("rtrim", self, options=_characters("rtrim", characters))

    def substring(self, pos: int, length: int | None = None) -> Expr:
        """Characters from `pos` on, counted from 1, or from the end when negative."""
        numbers = (pos,) if length is None else (pos, length)
        return nodes.apply(
            "substring", self, options=tuple(nodes.whole_number("substring", n) for n in numbers)
        )

    def concat(self, *others: object) -> Expr:
        """The texts one behind the other; null where one of them is."""
        return nodes.apply("concat", self, *others)

    def concat_ws(self, separator: str, *others: object) -> Expr:
        """The texts that are not null, with a separator between them."""
        return nodes.apply("concat_ws", self, *others, options=(nodes.plain_text("concat_ws", separator),))

    def contains(self, part: str | Expr) -> Expr:
        """Whether a text stands anywhere in this one: a constant, or another column's in each row."""
        if isinstance(part, nodes.Expr) and not isinstance(part, nodes.Constant):
            return nodes.apply("contains_each", self, part)
        return nodes.apply("contains", self, options=(nodes.plain_text("contains", part),))

    def startswith(self, prefix: str) -> Expr:
        """Whether the text begins so."""
        return nodes.apply("startswith", self, options=(nodes.plain_text("startswith", prefix),))

    def endswith(self, suffix: str) -> Expr:
        """Whether the text ends so."""
        return nodes.apply("endswith", self, options=(nodes.plain_text("endswith", suffix),))

    def like(self, pattern: str) -> Expr:
        """SQL's LIKE: % for any text, _ for one character, \\ before either to mean itself."""
        return nodes.apply("like", self, options=(nodes.plain_text("like", pattern),))

    def rlike(self, pattern: str) -> Expr:
        """Whether the regular expression (RE2) is found anywhere in the text."""
        return nodes.apply("rlike", self, options=(nodes.plain_text("rlike", pattern),))

    def replace(self, search: str, replacement: str = "") -> Expr:
        """The text with one part replaced by another wherever it stands."""
        texts = tuple(nodes.plain_text("replace", text) for text in (search, replacement))
        return nodes.apply("replace", self, options=texts)

    def split_part(self, delimiter: str, part: int) -> Expr:
        """The part-th piece counted from 1, from the end when negative, '' when there is none."""
        which = nodes.whole_number("split_part", part)
        return nodes.apply("split_part", self, options=(nodes.plain_text("split_part", delimiter), which))


def _characters(name: str, given: str | None) -> tuple[str, ...]:
    return () if given is None else (nodes.plain_text(name, given),)
