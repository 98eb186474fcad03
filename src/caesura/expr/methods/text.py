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
        """The text in small letters.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").lower(), s=["Ab", None])
        ['ab', None]
        """
        return nodes.apply("lower", self)

    def upper(self) -> Expr:
        """The text in capitals.

        Returns
        -------
        Expr
            ``string``; null for null. Each character is mapped for itself, so ``ß`` has a capital of its
            own, where Spark writes ``SS``.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").upper(), s=["Ab", None])
        ['AB', None]
        """
        return nodes.apply("upper", self)

    def length(self) -> Expr:
        """The number of characters.

        Returns
        -------
        Expr
            ``int``; null for null.

        See Also
        --------
        Expr.octet_length : the number of bytes.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").length(), s=["abc", "", None])
        [3, 0, None]
        """
        return nodes.apply("length", self)

    def trim(self, characters: str | None = None) -> Expr:
        """The text without blanks at its ends, or without other characters.

        Parameters
        ----------
        characters
            Which characters are taken off; blanks where it is None.

        Returns
        -------
        Expr
            ``string``; null for null.

        See Also
        --------
        Expr.ltrim, Expr.rtrim : at one end only.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").trim(), s=["  a ", None])
        ['a', None]
        >>> values(col("s").trim("x"), s=["xax"])
        ['a']
        """
        return nodes.apply("trim", self, options=_characters("trim", characters))

    def ltrim(self, characters: str | None = None) -> Expr:
        """The text without blanks at its start, or without other characters.

        Parameters
        ----------
        characters
            Which characters are taken off; blanks where it is None.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").ltrim(), s=["  a ", None])
        ['a ', None]
        """
        return nodes.apply("ltrim", self, options=_characters("ltrim", characters))

    def rtrim(self, characters: str | None = None) -> Expr:
        """The text without blanks at its end, or without other characters.

        Parameters
        ----------
        characters
            Which characters are taken off; blanks where it is None.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").rtrim(), s=["  a ", None])
        ['  a', None]
        """
        return nodes.apply("rtrim", self, options=_characters("rtrim", characters))

    def substring(self, pos: int, length: int | None = None) -> Expr:
        """Characters from a place on.

        Parameters
        ----------
        pos
            The first of them, counted from 1, or from the end when negative.
        length
            How many; all that follow where it is None.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").substring(2, 3), s=["banana", None])
        ['ana', None]
        >>> values(col("s").substring(-2), s=["banana"])
        ['na']
        """
        numbers = (pos,) if length is None else (pos, length)
        return nodes.apply(
            "substring", self, options=tuple(nodes.whole_number("substring", n) for n in numbers)
        )

    def concat(self, *others: object) -> Expr:
        """The texts one behind the other.

        Parameters
        ----------
        *others
            What follows: texts, or expressions of texts.

        Returns
        -------
        Expr
            ``string``; null where one of them is null.

        See Also
        --------
        Expr.concat_ws : with a separator, without the nulls.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").concat("-", col("z")), s=["a", None], z=["b", "c"])
        ['a-b', None]
        """
        return nodes.apply("concat", self, *others)

    def concat_ws(self, separator: str, *others: object) -> Expr:
        """The texts that are not null, with a separator between them.

        Parameters
        ----------
        separator
            What stands between two texts.
        *others
            What follows: texts, or expressions of texts.

        Returns
        -------
        Expr
            ``string``, never null: ``''`` where all are null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").concat_ws("-", col("z")), s=["a", None], z=["b", "c"])
        ['a-b', 'c']
        """
        return nodes.apply("concat_ws", self, *others, options=(nodes.plain_text("concat_ws", separator),))

    def contains(self, part: str | Expr) -> Expr:
        """Whether a text stands anywhere in this one.

        Parameters
        ----------
        part
            What is looked for: a text, or for the method another column's in each row.

        Returns
        -------
        Expr
            ``boolean``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").contains("an"), s=["banana", "pear", None])
        [True, False, None]
        """
        if isinstance(part, nodes.Expr) and not isinstance(part, nodes.Constant):
            return nodes.apply("contains_each", self, part)
        return nodes.apply("contains", self, options=(nodes.plain_text("contains", part),))

    def startswith(self, prefix: str) -> Expr:
        """Whether the text begins so.

        Parameters
        ----------
        prefix
            A plain text.

        Returns
        -------
        Expr
            ``boolean``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").startswith("ba"), s=["banana", "pear", None])
        [True, False, None]
        """
        return nodes.apply("startswith", self, options=(nodes.plain_text("startswith", prefix),))

    def endswith(self, suffix: str) -> Expr:
        """Whether the text ends so.

        Parameters
        ----------
        suffix
            A plain text.

        Returns
        -------
        Expr
            ``boolean``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").endswith("na"), s=["banana", "pear", None])
        [True, False, None]
        """
        return nodes.apply("endswith", self, options=(nodes.plain_text("endswith", suffix),))

    def like(self, pattern: str) -> Expr:
        """Whether the text is like a pattern: SQL's LIKE.

        Parameters
        ----------
        pattern
            ``%`` stands for any text, ``_`` for one character, a backslash before either for itself.

        Returns
        -------
        Expr
            ``boolean``; null for null.

        See Also
        --------
        Expr.ilike : whatever the case of the letters.
        Expr.rlike : regular expressions.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").like("b%a"), s=["banana", "pear", None])
        [True, False, None]
        """
        return nodes.apply("like", self, options=(nodes.plain_text("like", pattern),))

    def rlike(self, pattern: str) -> Expr:
        """Whether a regular expression is found anywhere in the text.

        Parameters
        ----------
        pattern
            A regular expression of RE2: no lookaround, no backreferences, and ``$`` is the end of the
            text.

        Returns
        -------
        Expr
            ``boolean``; null for null.

        See Also
        --------
        Expr.regexp_extract : what a group of it matches.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").rlike("an+a$"), s=["banana", "pear", None])
        [True, False, None]
        """
        return nodes.apply("rlike", self, options=(nodes.plain_text("rlike", pattern),))

    def replace(self, search: str, replacement: str = "") -> Expr:
        """The text with one part replaced by another wherever it stands.

        Parameters
        ----------
        search
            What is replaced: a plain text. An empty one replaces nothing.
        replacement
            What stands there instead.

        Returns
        -------
        Expr
            ``string``; null for null.

        See Also
        --------
        Expr.regexp_replace : by a regular expression.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").replace("an", "-"), s=["banana", None])
        ['b--a', None]
        """
        texts = tuple(nodes.plain_text("replace", text) for text in (search, replacement))
        return nodes.apply("replace", self, options=texts)

    def split_part(self, delimiter: str, part: int) -> Expr:
        """One of the pieces between delimiters.

        Parameters
        ----------
        delimiter
            What stands between the pieces: a plain text.
        part
            Which piece, counted from 1, or from the end when negative.

        Returns
        -------
        Expr
            ``string``; ``''`` where there is no such piece, null for null.

        See Also
        --------
        Expr.split : all pieces, by a regular expression.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").split_part("-", 2), s=["a-b-c", "a", None])
        ['b', '', None]
        >>> values(col("s").split_part("-", -1), s=["a-b-c"])
        ['c']
        """
        which = nodes.whole_number("split_part", part)
        return nodes.apply("split_part", self, options=(nodes.plain_text("split_part", delimiter), which))


def _characters(name: str, given: str | None) -> tuple[str, ...]:
    return () if given is None else (nodes.plain_text(name, given),)
