"""Hashes of texts and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caesura.expr import nodes
from caesura.misuse import checked_methods

if TYPE_CHECKING:
    from caesura.expr.nodes import Expr


@checked_methods
class HashMethods:
    """Hashes of texts and bytes."""

    def md5(self) -> Expr:
        """The MD5 hash in hexadecimal digits.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").md5(), s=["abc", None])
        ['900150983cd24fb0d6963f7d28e17f72', None]
        """
        return nodes.apply("md5", self)

    def sha1(self) -> Expr:
        """The SHA-1 hash in hexadecimal digits.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").sha1(), s=["abc", None])
        ['a9993e364706816aba3e25717850c26c9cd0d89d', None]
        """
        return nodes.apply("sha1", self)

    def sha2(self, bits: int = 256) -> Expr:
        """The SHA-2 hash in hexadecimal digits.

        Parameters
        ----------
        bits
            224, 256, 384 or 512; 0 is 256.

        Returns
        -------
        Expr
            ``string``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").sha2(224), s=["abc", None])
        ['23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7', None]
        """
        return nodes.apply("sha2", self, options=(nodes.whole_number("sha2", bits),))

    def crc32(self) -> Expr:
        """The cyclic redundancy check.

        Returns
        -------
        Expr
            ``bigint``; null for null.

        Examples
        --------
        >>> from caesura import col
        >>> from caesura.testing import values
        >>> values(col("s").crc32(), s=["abc", None])
        [891568578, None]
        """
        return nodes.apply("crc32", self)
