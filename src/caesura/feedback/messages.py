"""The message that rows will be ignored, and what is noted on it.

>>> print(assumed(Pattern(id=4), why="nobody looks"))
assumed: id = 4 (why nobody looks)
"""

from __future__ import annotations

from caesura.punctuation import Intent, Pattern, Punctuation

STANDING = "standing"
WITHDRAWN = "withdrawn"
WHY = "why"
"""Why rows are ignored, where those that are stopped on account of it can be asked for."""


def assumed(
    pattern: Pattern, *, standing: bool = False, withdrawn: bool = False, why: str = ""
) -> Punctuation:
    """The message that rows will be ignored; a standing one counts until it is withdrawn."""
    notes = ((STANDING, standing), (WITHDRAWN, withdrawn), (WHY, why))
    return Punctuation(pattern, Intent.ASSUMED, tuple((name, note) for name, note in notes if note))


def can_wait(message: Punctuation) -> bool:
    """Whether a message has time until the next page: it says, for good, what will be ignored."""
    return message.intent is Intent.ASSUMED and all(name == WHY for name, _ in message.note)
