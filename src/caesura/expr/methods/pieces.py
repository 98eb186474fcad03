"""What is asked of texts beyond their letters: patterns, padding, hashes, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.expr.methods.hashes import HashMethods
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class PieceMethods(HashMethods):
    """What is asked of texts beyond their letters: patterns, padding, hashes, JSON."""

    def ilike(self, pattern: str) -> Expr:
        """Whether the text is like a pattern, whatever the case of the letters.

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
        Expr.like : with the case of the letters.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").ilike("b%a"), s=["BANANA", "pear", None])
        [True, False, None]
        """
        return nodes.apply("ilike", self, options=(nodes.plain_text("ilike", pattern),))

    def regexp_extract(self, pattern: str, group: int = 1) -> Expr:
        r"""What a group of a regular expression matches first.

        Parameters
        ----------
        pattern
            A regular expression of RE2: no lookaround, no backreferences.
        group
            Which group, counted from 1; 0 is the whole match.

        Returns
        -------
        Expr
            ``string``; ``''`` where nothing matches, null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").regexp_extract(r"(\w+)@(\w+)", 2), s=["ann@home", "pear", None])
        ['home', '', None]
        """
        which = nodes.whole_number("regexp_extract", group)
        return nodes.apply(
            "regexp_extract", self, options=(nodes.plain_text("regexp_extract", pattern), which)
        )

    def regexp_replace(self, pattern: str, replacement: str) -> Expr:
        """All that a regular expression matches, replaced.

        Parameters
        ----------
        pattern
            A regular expression of RE2: no lookaround, no backreferences.
        replacement
            What stands there instead; ``$1`` is the first group.

        Returns
        -------
        Expr
            ``string``; null for null.

        See Also
        --------
        Expr.replace : plain texts.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").regexp_replace("a(n)", "$1-"), s=["banana", None])
        ['bn-n-a', None]
        """
        texts = tuple(nodes.plain_text("regexp_replace", text) for text in (pattern, replacement))
        return nodes.apply("regexp_replace", self, options=texts)

    def regexp_count(self, pattern: str) -> Expr:
        """How often a regular expression is found.

        Parameters
        ----------
        pattern
            A regular expression of RE2: no lookaround, no backreferences.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").regexp_count("an"), s=["banana", "pear", None])
        [2, 0, None]
        """
        return nodes.apply("regexp_count", self, options=(nodes.plain_text("regexp_count", pattern),))

    def split(self, pattern: str, limit: int = -1) -> Expr:
        """The pieces between what a regular expression matches, as a list.

        Parameters
        ----------
        pattern
            A regular expression of RE2: no lookaround, no backreferences.
        limit
            At most so many pieces, the last with all that is left; as many as there are for 0 and below.

        Returns
        -------
        Expr
            ``array<string>``; null for null.

        Notes
        -----
        Several parts of one text are taken from one split of the page.

        See Also
        --------
        Expr.split_part : one piece, by a plain delimiter.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").split("[,;]"), s=["a,b;c", "", None])
        [['a', 'b', 'c'], [''], None]
        >>> values(col("s").split("[,;]", 2), s=["a,b;c"])
        [['a', 'b;c']]
        """
        most = nodes.whole_number("split", limit)
        return nodes.apply("split", self, options=(nodes.plain_text("split", pattern), most))

    def lpad(self, length: int, pad: str = " ") -> Expr:
        """The text filled on the left to so many characters; a longer one is cut.

        Parameters
        ----------
        length
            How many characters it has then.
        pad
            What it is filled with.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").lpad(4, "0"), s=["7", "12345", None])
        ['0007', '1234', None]
        """
        size = nodes.whole_number("lpad", length)
        return nodes.apply("lpad", self, options=(size, nodes.plain_text("lpad", pad)))

    def rpad(self, length: int, pad: str = " ") -> Expr:
        """The text filled on the right to so many characters; a longer one is cut.

        Parameters
        ----------
        length
            How many characters it has then.
        pad
            What it is filled with.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").rpad(4, "."), s=["7", "12345", None])
        ['7...', '1234', None]
        """
        size = nodes.whole_number("rpad", length)
        return nodes.apply("rpad", self, options=(size, nodes.plain_text("rpad", pad)))

    def instr(self, part: str) -> Expr:
        """Where a text stands first, counted from 1.

        Parameters
        ----------
        part
            What is looked for: a plain text.

        Returns
        -------
        Expr
            ``int``; 0 where it does not stand there, null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").instr("an"), s=["banana", "pear", None])
        [2, 0, None]
        """
        return nodes.apply("locate", self, options=(nodes.plain_text("instr", part), 1))

    def locate(self, part: str, pos: int = 1) -> Expr:
        """Where a text stands first at or behind a place, counted from 1.

        Parameters
        ----------
        part
            What is looked for: a plain text.
        pos
            Where the search begins, counted from 1.

        Returns
        -------
        Expr
            ``int``; 0 where it does not stand there, null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").locate("an", 3), s=["banana", None])
        [4, None]
        """
        first = nodes.whole_number("locate", pos)
        return nodes.apply("locate", self, options=(nodes.plain_text("locate", part), first))

    def initcap(self) -> Expr:
        """The words with a capital each and small letters behind it.

        Returns
        -------
        Expr
            ``string``; null for null. Blanks part words.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").initcap(), s=["new yORK", None])
        ['New York', None]
        """
        return nodes.apply("initcap", self)

    def repeat(self, count: int) -> Expr:
        """The text so many times.

        Parameters
        ----------
        count
            How many times; none for 0 and below.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").repeat(3), s=["ab", None])
        ['ababab', None]
        """
        return nodes.apply("repeat", self, options=(nodes.whole_number("repeat", count),))

    def reverse(self) -> Expr:
        """The characters from the last to the first.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").reverse(), s=["abc", None])
        ['cba', None]
        """
        return nodes.apply("reverse", self)

    def translate(self, matching: str, replacement: str) -> Expr:
        """The text with single characters replaced by others.

        Parameters
        ----------
        matching
            The characters that are replaced.
        replacement
            What stands instead, each at its place in ``matching``; a character without one is left out.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").translate("abc", "12"), s=["cabbage", None])
        ['1221ge', None]
        """
        texts = tuple(nodes.plain_text("translate", text) for text in (matching, replacement))
        return nodes.apply("translate", self, options=texts)

    def left(self, count: int) -> Expr:
        """The first characters of the text.

        Parameters
        ----------
        count
            How many; none for 0 and below.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").left(2), s=["abc", "d", None])
        ['ab', 'd', None]
        """
        size = nodes.whole_number("left", count)
        return nodes.apply("substring", self, options=(1, size))

    def right(self, count: int) -> Expr:
        """The last characters of the text.

        Parameters
        ----------
        count
            How many; none for 0 and below.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").right(2), s=["abc", "d", None])
        ['bc', 'd', None]
        """
        return nodes.apply("right", self, options=(nodes.whole_number("right", count),))

    def octet_length(self) -> Expr:
        """The number of bytes of the text in UTF-8.

        Returns
        -------
        Expr
            ``int``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").octet_length(), s=["abc", "é", None])
        [3, 2, None]
        """
        return nodes.apply("octet_length", self)

    def ascii(self) -> Expr:
        """The code of the first character.

        Returns
        -------
        Expr
            ``int``; 0 of an empty text, null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").ascii(), s=["abc", "", None])
        [97, 0, None]
        """
        return nodes.apply("ascii", self)

    def json(self, path: str) -> Expr:
        """What stands at a path in a JSON text.

        Parameters
        ----------
        path
            ``"$.a.b[0]"``: names and indices, no wildcards.

        Returns
        -------
        Expr
            ``string``: a text bare, anything else as JSON; null for null, for a text that is no JSON, and
            where nothing stands there.

        Notes
        -----
        Each distinct text of a page is parsed once, also for several paths. It reads standard JSON: no single
        quotes, which Spark takes.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("j").json("$.a[0]"), j=['{"a": [7, 8]}', "{}", None])
        ['7', None, None]
        """
        return nodes.apply("get_json_object", self, options=(nodes.plain_text("json", path),))

    get_json_object = json
