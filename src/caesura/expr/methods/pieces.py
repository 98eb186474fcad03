"""What is asked of texts beyond their letters: patterns, padding, hashes, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class PieceMethods:
    """What is asked of texts beyond their letters: patterns, padding, hashes, JSON."""

    def ilike(self, pattern: str) -> Expr:
        """LIKE whatever the case of the letters."""
        return nodes.apply("ilike", self, options=(nodes.plain_text("ilike", pattern),))

    def regexp_extract(self, pattern: str, group: int = 1) -> Expr:
        """What a group of the regular expression (RE2) matches first; '' where nothing does."""
        which = nodes.whole_number("regexp_extract", group)
        return nodes.apply(
            "regexp_extract", self, options=(nodes.plain_text("regexp_extract", pattern), which)
        )

    def regexp_replace(self, pattern: str, replacement: str) -> Expr:
        """All that the regular expression (RE2) matches, replaced; ``$1`` is its first group."""
        texts = tuple(nodes.plain_text("regexp_replace", text) for text in (pattern, replacement))
        return nodes.apply("regexp_replace", self, options=texts)

    def regexp_count(self, pattern: str) -> Expr:
        """How often the regular expression (RE2) is found."""
        return nodes.apply("regexp_count", self, options=(nodes.plain_text("regexp_count", pattern),))

    def split(self, pattern: str, limit: int = -1) -> Expr:
        """The pieces between what the regular expression (RE2) matches, as a list; at most ``limit``.

        Several parts of one text are taken from one split of the page.
        """
        most = nodes.whole_number("split", limit)
        return nodes.apply("split", self, options=(nodes.plain_text("split", pattern), most))

    def lpad(self, length: int, pad: str = " ") -> Expr:
        """The text filled on the left to so many characters; a longer one is cut."""
        size = nodes.whole_number("lpad", length)
        return nodes.apply("lpad", self, options=(size, nodes.plain_text("lpad", pad)))

    def rpad(self, length: int, pad: str = " ") -> Expr:
        """The text filled on the right to so many characters; a longer one is cut."""
        size = nodes.whole_number("rpad", length)
        return nodes.apply("rpad", self, options=(size, nodes.plain_text("rpad", pad)))

    def instr(self, part: str) -> Expr:
        """Where a text stands first, counted from 1; 0 where it does not."""
        return nodes.apply("locate", self, options=(nodes.plain_text("instr", part), 1))

    def locate(self, part: str, pos: int = 1) -> Expr:
        """Where a text stands first at or behind ``pos``, counted from 1; 0 where it does not."""
        first = nodes.whole_number("locate", pos)
        return nodes.apply("locate", self, options=(nodes.plain_text("locate", part), first))

    def initcap(self) -> Expr:
        """The words with a capital each and small letters behind it; blanks part words."""
        return nodes.apply("initcap", self)

    def repeat(self, count: int) -> Expr:
        """The text so many times."""
        return nodes.apply("repeat", self, options=(nodes.whole_number("repeat", count),))

    def reverse(self) -> Expr:
        """The characters from the last to the first."""
        return nodes.apply("reverse", self)

    def translate(self, matching: str, replacement: str) -> Expr:
        """Each character of ``matching`` replaced by the one at its place; without one, left out."""
        texts = tuple(nodes.plain_text("translate", text) for text in (matching, replacement))
        return nodes.apply("translate", self, options=texts)

    def left(self, count: int) -> Expr:
        """The first characters."""
        size = nodes.whole_number("left", count)
        return nodes.apply("substring", self, options=(1, size))

    def right(self, count: int) -> Expr:
        """The last characters."""
        return nodes.apply("right", self, options=(nodes.whole_number("right", count),))

    def octet_length(self) -> Expr:
        """The number of bytes."""
        return nodes.apply("octet_length", self)

    def ascii(self) -> Expr:
        """The code of the first character; 0 of an empty text."""
        return nodes.apply("ascii", self)

    def md5(self) -> Expr:
        """The MD5 hash in hexadecimal digits."""
        return nodes.apply("md5", self)

    def sha1(self) -> Expr:
        """The SHA-1 hash in hexadecimal digits."""
        return nodes.apply("sha1", self)

    def sha2(self, bits: int = 256) -> Expr:
        """The SHA-2 hash of 224, 256, 384 or 512 bits in hexadecimal digits; 0 is 256."""
        return nodes.apply("sha2", self, options=(nodes.whole_number("sha2", bits),))

    def crc32(self) -> Expr:
        """The cyclic redundancy check, as a whole number."""
        return nodes.apply("crc32", self)

    def json(self, path: str) -> Expr:
        """What stands at a path in a JSON text: ``col("j").json("$.a.b[0]")``; null where nothing does.

        A text is given bare, anything else as JSON. Each distinct text of a page is parsed once.
        """
        return nodes.apply("get_json_object", self, options=(nodes.plain_text("json", path),))

    get_json_object = json
