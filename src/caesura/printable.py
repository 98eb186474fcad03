"""Text from outside as a terminal may show it: signs that would move the cursor are spelt out.

>>> print(printable("red\\x1b[31m\\nnext"))
red\\x1b[31m\\nnext
>>> printable("plain Ü") is printable("plain Ü")
True
"""

from __future__ import annotations


def printable(text: str, *, lines: bool = False) -> str:
    """The same text without control characters; with ``lines`` ends of lines stay."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or (lines and one == "\n") else _spelt(one) for one in text)


def _spelt(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")
